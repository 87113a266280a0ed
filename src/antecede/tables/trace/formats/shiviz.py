"""Reader of vector-clock logs in the format of ShiViz: a regular expression over the whole text.

The expression is the user's (`regex`), else that of the first line, else a known dialect.
`delimiter`, or a first line `=== name ===`, separates executions. The id of an event is
HOST:COUNTER, from its own entry in its clock. Zero entries are dropped.

Text between events is only counted, as in ShiViz, but text with a clock is quarantined. The file is
read whole, because expressions may span lines. A group with a name of a time (`TIMES`) becomes
`send_time`; other groups (`level`, `thread`) become extra columns.

`safe_regex` matches untrusted expressions, and known dialects on long lines.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from antecede.errors import FormatError
from antecede.tables.trace import text
from antecede.tables.trace.formats import safe_regex, shiviz_dialects
from antecede.tables.trace.reader import Detail, Item, ReadOptions
from antecede.tables.trace.schema import Event, Quarantined
from antecede.tables.trace.time_text import GUESSED_UNIT, UNREADABLE_TIMES

TIMES = ("timestamp", "date", "time", "datetime", "ts", "when", "at")
"""Names of a group with a time, by preference."""
_LINE = re.compile(r"[^\n]+")
_US_DATE = re.compile(
    r"(\d{1,2})/(\d{1,2})/(\d{4})\s+(\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?\s*([AP]M)?\Z", re.I
)
"""Date with the month before the day, as in the dialects of akka and web logs."""
MAX_BYTES = 1 << 28
"""Limit of a decompressed log, which is in memory."""
CHUNK = 1 << 20
LONG_LINE = 4096
"""Limit of a line for known dialects, which take quadratic time."""


ItemWithExtra = tuple[Item, dict[str, Any] | None]


class ShivizReader:
    """Reader of vector-clock logs."""

    name = "shiviz"
    uses = ("regex", "delimiter", "time_unit")

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize an expression on the first line, or lines of a known dialect."""
        if b'"' not in head and b"(?" not in head:
            return 0.0
        sample = _decode_text(head)[: shiviz_dialects.SAMPLE]
        if shiviz_dialects.parse_declared_dialect(_get_first_line(sample)):
            return 1.0
        return 0.9 if shiviz_dialects.detect_dialect(sample) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield the events of all executions."""
        return (item for item, _ in self.read_with_extra(path, options))

    def read_with_extra(self, path: Path, options: ReadOptions) -> Iterator[ItemWithExtra]:
        """Yield the events with their extra columns."""
        raw, breaks_off = text.read_bytes(path, MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            line = raw.count(b"\n") + 1
            message = f"the log exceeds {MAX_BYTES >> 20} MiB, which must fit in memory; split it"
            raise FormatError(message, path=str(path), line=line)
        log = _ClockLog(path, _decode_text(raw), breaks_off, options)
        if log.break_reason:
            yield log.quarantine(len(log.text), log.break_reason, ""), None
        yield Detail("regex", log.dialect.spelling), None
        yield from log.read()
        yield Detail("unmatched_lines", log.unmatched_lines), None
        yield from ((detail, None) for detail in log.collect_details())


class _ClockLog:
    def __init__(self, path: Path, whole: str, breaks_off: str, options: ReadOptions) -> None:
        self.source = str(path)
        self.text = whole
        self.break_reason = breaks_off
        self.unmatched_lines = 0
        self.body = 0
        self.dialect = self._choose_dialect(options)
        self.delimiter = self._choose_delimiter(options)
        self.line_cursor = 0, 1
        """Last position and its line, from which line numbers are computed."""
        named = self.dialect.pattern.groupindex
        self.time_group = next((name for name in TIMES if name in named), None)
        self.extra_groups = sorted(set(named) - {*shiviz_dialects.GROUPS, self.time_group})
        self.time_unit = options.time_unit
        self.unreadable_times = 0
        self.guessed_units: set[str] = set()

    def _choose_dialect(self, options: ReadOptions) -> shiviz_dialects.Dialect:
        own = shiviz_dialects.parse_declared_dialect(_get_first_line(self.text))
        if own:  # its line is never an event
            self.body = self.text.index(own.spelling) + len(own.spelling)
        if options.regex is not None:
            return self._compile("--regex", options.regex, shiviz_dialects.GROUPS)
        dialect = own or shiviz_dialects.detect_dialect(self.text[: shiviz_dialects.SAMPLE])
        if dialect is None:
            message = (
                "unknown dialect of vector-clock logs; give --regex with the groups host, "
                r"clock and event, for example --regex '(?<host>\S*) (?<clock>{.*})\n(?<event>.*)'"
            )
            raise FormatError(message, path=self.source)
        return dialect

    def _choose_delimiter(self, options: ReadOptions) -> re.Pattern[str] | None:
        if options.delimiter is not None:
            return self._compile("--run-delimiter", options.delimiter, ()).pattern
        usual = shiviz_dialects.compile_expression(shiviz_dialects.DELIMITER, ()).pattern
        return usual if usual.match(_get_first_line(self.text[self.body :])) else None

    def _compile(self, option: str, text: str, groups: tuple[str, ...]) -> shiviz_dialects.Dialect:
        try:
            return shiviz_dialects.compile_expression(text, groups)
        except FormatError as error:
            raise FormatError(f"{option}: {error.message}", path=self.source) from error

    def find_executions(self) -> Iterator[tuple[str | None, int, int]]:
        """Yield (name, start, end) of each execution (name None: no delimiters)."""
        if self.delimiter is None:
            yield None, self.body, len(self.text)
            return
        name, start = None, self.body
        whole = [(self.body, len(self.text))]
        for number, match in enumerate(self._find_matches(self.delimiter, whole), 1):
            yield name, start, match.start
            name, start = match.groups.get("trace") or f"execution {number}", match.end
        yield name, start, len(self.text)

    def read(self) -> Iterator[ItemWithExtra]:
        executions = list(self.find_executions())
        ranges = [(start, end) for _, start, end in executions]
        matches = self._find_matches(self.dialect.pattern, ranges)
        match = next(matches, None)
        for number, (run, done, end) in enumerate(executions):
            while match is not None and match.range == number:
                if match.start < match.end:
                    yield from ((bad, None) for bad in self._check_unmatched(done, match.start))
                    done = match.end
                    yield self._make_event(run, match), self._collect_extra(match)
                match = next(matches, None)
            yield from ((bad, None) for bad in self._check_unmatched(done, end))

    def _collect_extra(self, match: safe_regex.RegexMatch) -> dict[str, Any] | None:
        return {name: match.groups[name] for name in self.extra_groups} or None

    def _find_matches(
        self, pattern: re.Pattern[str], ranges: Sequence[tuple[int, int]]
    ) -> Iterator[safe_regex.RegexMatch]:
        if pattern in shiviz_dialects.KNOWN_PATTERNS and self._has_short_lines():
            yield from safe_regex.find_matches_here(pattern, self.text, ranges)
            return
        try:
            yield from safe_regex.find_matches(pattern, self.text, ranges)
        except safe_regex.RegexTimeoutError as error:
            begins = self._find_long_line(error.position)
            if pattern in shiviz_dialects.KNOWN_PATTERNS and begins is not None:
                long = f"the line exceeds {LONG_LINE:,} characters"
                message = f"{long}, so matching takes too long; shorten it, or give --regex"
                raise FormatError(message, path=self.source, line=self._find_line(begins)) from None
            message = (
                f"the expression finds no match from here on in {safe_regex.MATCH_TIMEOUT_S:g} s; "
                "give another with --regex, without nested repetitions such as (a+)+"
            )
            line = self._find_line(error.position)
            raise FormatError(message, path=self.source, line=line) from None

    def _has_short_lines(self) -> bool:
        return self._find_long_line(0) is None

    def _find_long_line(self, start: int) -> int | None:
        begins = start
        for at in range(start, len(self.text), CHUNK):
            parts = self.text[at : at + CHUNK].split("\n")
            for number, part in enumerate(parts):
                begins = begins if not number else at
                at += len(part) + 1
                if at - 1 - begins > LONG_LINE:
                    return begins
        return None

    def collect_details(self) -> Iterator[Detail]:
        if self.time_group is not None:
            yield Detail("time_group", self.time_group)
            yield Detail(UNREADABLE_TIMES, self.unreadable_times)
        if self.guessed_units:
            units = [unit for unit in ("s", "ms", "us", "ns") if unit in self.guessed_units]
            yield Detail(GUESSED_UNIT, " and ".join(units))
        if self.extra_groups:
            yield Detail("further_groups", ", ".join(self.extra_groups))

    def _make_event(self, run: str | None, match: safe_regex.RegexMatch) -> Event | Quarantined:
        host = (match.groups["host"] or "").strip()
        clock = shiviz_dialects.parse_clock(match.groups["clock"] or "")
        raw = self.text[match.start : match.end]
        if isinstance(clock, str):
            return self.quarantine(match.start, clock, raw)
        if not host or host not in clock:
            problem = f"the clock has no entry of its own host {host!r}" if host else "no host"
            return self.quarantine(match.start, problem, raw)
        return Event(
            run=run,
            id=f"{host}:{clock[host]}",
            member=host,
            seq=clock[host],
            clock_members=tuple(clock),
            clock_counts=tuple(clock.values()),
            send_time=self._parse_time(match),
            text=match.groups["event"],
            source=self.source,
            line=self._find_line(match.start),
        )

    def _parse_time(self, match: safe_regex.RegexMatch) -> int | None:
        written = match.groups[self.time_group] if self.time_group else None
        if written is None or not written.strip():
            return None
        number = _parse_number(written.strip())
        unit = self.time_unit or ("" if number is None else text.guess_unit(number))
        when = _text_to_time(written.strip(), unit)
        if when is not None and number is not None and not self.time_unit:
            self.guessed_units.add(unit)
        self.unreadable_times += when is None
        return when

    def _check_unmatched(self, start: int, end: int) -> Iterator[Quarantined]:
        for found in _LINE.finditer(self.text, start, end):
            if found[0].isspace():
                continue
            self.unmatched_lines += 1
            if shiviz_dialects.CLOCK_LIKE.search(found[0]):
                problem = "contains a clock, but does not match the expression"
                yield self.quarantine(found.start(), problem, found[0])

    def quarantine(self, position: int, reason: str, raw: str) -> Quarantined:
        return Quarantined(self.source, self._find_line(position), None, reason, text.shorten(raw))

    def _find_line(self, position: int) -> int:
        at, line = self.line_cursor
        if position < at:
            at, line = 0, 1
        line += self.text.count("\n", at, position)
        self.line_cursor = position, line
        return line


def _decode_text(raw: bytes) -> str:
    return text.decode(raw.removeprefix(b"\xef\xbb\xbf")).replace("\r\n", "\n")


def _parse_number(written: str) -> float | None:
    try:
        return float(written) if len(written) < 40 else None
    except ValueError:
        return None


def _text_to_time(written: str, unit: str) -> int | None:
    """Return ns since 1970: a number of `unit`, ISO 8601, or month/day/year."""
    if unit:
        return text.parse_nanoseconds(written, unit)
    if (found := _US_DATE.match(written)) is None:
        return text.parse_iso_time(written)
    month, day, year, hour, minute, second = (int(found[k]) for k in range(1, 7))
    half = (found[8] or "").upper()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "PM" else 0)
    try:
        when = datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None
    return text.parse_iso_time(f"{when.isoformat()}.{(found[7] or '0')}")


def _get_first_line(whole: str) -> str:
    start = whole[:4096].lstrip()
    return start.partition("\n")[0]
