"""Known dialects of vector-clock logs, and their detection.

A dialect is a regular expression of ShiViz, in JavaScript syntax, over the whole text. Dialects are
ordered from narrow to wide: a wide one matches a timestamp as part of the text.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from antecede.errors import FormatError
from antecede.tables.trace.text import parse_int64

HOST_FIRST = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"
EVENT_FIRST = r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"
NARROW = (
    r"\[(?<date>\d{4}-\d{2}-\d{2} (\d{2}:){2}\d{2},\d{3}) (?<path>\S*)\] "
    r"(?<priority>(INFO|WARN)) (?<event>.*)\n(?<host>\S*) (?<clock>{.*})",
    r"\[\w+\] \[(?<date>([^ ]+ [^ ]+))\] [^ ]+ \[akka://Broadcast/user/(?<host>\w+)\] "
    r"(?<clock>.*\}) (?<event>.*)",
    r"(?<ip>(\d{1,3}\.){3}\d{1,3}) (?<date>(\d{1,2}/){2}\d{4} (\d{2}:){2}\d{2} (AM|PM)) "
    r"(?<action>(INFO|GET|POST)) (?<event>.*)\n(?<host>\w*) (?<clock>.*)",
    r"^State [0-9]+: <(?<event>\w*) .*>\n\/\\ Host = (?<host>.*)\n\/\\ Clock = "
    r'"(?<clock>.*)"\n\/\\ active = (?<active>.*)\n\/\\ color = (?<color>.*)\n'
    r"\/\\ counter = (?<counter>.*)",
)
DELIMITER = r"^=== (?<trace>.*) ===$"
SAMPLE = 32_768
CLOCK_LIKE = re.compile(r'\{\s*\\?"[^"\n]*"\s*:\s*\d')
GROUPS = ("host", "clock", "event")

_ONE = r"['\"]?(?P<member>[^\s,;='\"{}\[\]()<>]+)['\"]?\s*[:=]\s*(?P<count>\d+)"
_PAIR = re.compile(_ONE, re.ASCII)
_BARE = _ONE.replace("?P<member>", "?:").replace("?P<count>", "?:")
_PAIRS = re.compile(
    rf"[\[{{(<]?\s*(?:{_BARE})(?:(?:\s*[,;]\s*|\s+)(?:{_BARE}))*\s*[\]}})>]?", re.ASCII
)
"""Clock as pairs of members and counters, not as JSON."""
_JAVASCRIPT_GROUP = re.compile(r"\(\?<(?![=!])")
_LONG_LINE = re.compile(r"([^\n]{4096})[^\n]+")
_JAVASCRIPT_REFERENCE = re.compile(r"\\k<(\w+)>")


class Dialect(NamedTuple):
    """Compiled expression and its text."""

    spelling: str
    pattern: re.Pattern[str]


def compile_expression(spelling: str, required_groups: tuple[str, ...] = GROUPS) -> Dialect:
    """Return a compiled expression. Raise FormatError if it is invalid or lacks a group."""
    python = _JAVASCRIPT_GROUP.sub("(?P<", spelling)
    flags = re.MULTILINE
    if python != spelling:  # \w and \d of JavaScript match only ASCII
        flags |= re.ASCII
        python = _JAVASCRIPT_REFERENCE.sub(r"(?P=\1)", python)
    try:
        pattern = re.compile(python, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise FormatError(f"invalid regular expression {spelling!r}: {error}") from error
    missing = [name for name in required_groups if name not in pattern.groupindex]
    if missing:
        groups = ", ".join(f"(?<{name}>...)" for name in missing)
        raise FormatError(f"the expression {spelling!r} lacks the group {groups}; add it")
    return Dialect(spelling, pattern)


def parse_declared_dialect(first_line: str) -> Dialect | None:
    """Return the dialect that the first line of a file declares, if any."""
    line = first_line.strip()
    if "(?<" not in line and "(?P<" not in line:
        return None
    try:
        return compile_expression(line)
    except FormatError:
        return None


def detect_dialect(text: str) -> Dialect | None:
    """Return the known dialect with the most events in `text`, None without any.

    A narrow dialect needs only 90 % of the events. Of the two widest, the one that matches more
    text wins.
    """
    if not CLOCK_LIKE.search(text):
        return None
    text = _LONG_LINE.sub(r"\1", text)  # expressions take quadratic time per line
    found = [(dialect, *_count_fit(dialect, text)) for dialect in _KNOWN]
    most = max(events for _, events, _ in found)
    if not most:
        return None
    for dialect, events, _ in found[: len(NARROW)]:
        if events >= 0.9 * most:
            return dialect
    return max(found[len(NARROW) :], key=lambda entry: entry[1:])[0]


def _count_fit(dialect: Dialect, text: str) -> tuple[int, int]:
    events = covered = 0
    for match in dialect.pattern.finditer(text):
        clock = parse_clock(match["clock"])
        if not isinstance(clock, str) and match["host"] in clock:
            events += 1
            covered += match.end() - match.start()
    return events, covered


def parse_clock(written: str) -> dict[str, int] | str:
    """Return the positive entries of a clock (JSON, or pairs such as `a:1,b:2`), or its defect."""
    written = written.strip()
    try:
        if written.startswith('{\\"'):  # JSON in a quoted string
            written = json.loads(f'"{written}"')
        clock = json.loads(written)
    except (ValueError, RecursionError) as error:
        if _PAIRS.fullmatch(written):
            return _parse_pairs(written)
        return f'invalid clock: {error}; expected {{"member": 1}} or member:1,other:2'
    if not isinstance(clock, dict):
        return 'invalid clock; expected a JSON object such as {"member": 1}'
    for member, count in clock.items():
        if isinstance(count, str | float) or parse_int64(count) is None or count < 0:
            return f"invalid counter of {member!r}: {str(count)[:40]}; expected a whole number >= 0"
    return {member: count for member, count in clock.items() if count}


def _parse_pairs(written: str) -> dict[str, int] | str:
    clock: dict[str, int] = {}
    for pair in _PAIR.finditer(written):
        member, count = pair["member"], parse_int64(pair["count"])
        if member in clock:
            return f"the clock has two entries of {member!r}"
        if count is None:
            return f"counter of {member!r} exceeds 64 bits: {pair['count'][:40]}"
        clock[member] = count
    return {member: count for member, count in clock.items() if count}


_KNOWN = tuple(compile_expression(spelling) for spelling in (*NARROW, EVENT_FIRST, HOST_FIRST))
KNOWN_PATTERNS = frozenset(
    [*(dialect.pattern for dialect in _KNOWN), compile_expression(DELIMITER, ()).pattern]
)
"""Patterns that need no time limit on short lines."""
