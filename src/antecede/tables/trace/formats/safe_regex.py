"""Matching of untrusted regular expressions with a time limit.

An expression of the user or of a log may take exponential time in `re` (`(a+)+b`), and Python
cannot interrupt it. So it runs in a child process, which returns the positions of matches. The
child is killed if it finds no match for `MATCH_TIMEOUT_S`.
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from antecede.errors import InputError

START_TIMEOUT_S = 60.0
"""Limit for the start of the child and the transfer of the text, s."""
MATCH_TIMEOUT_S = 10.0
"""Limit for one match, s; 10,000 characters take less than 1 s with useful expressions."""

_CHILD = """
import json, re, sys
take = sys.stdin.buffer
head = json.loads(take.readline())
text = take.read().decode("utf-8", "surrogatepass")
pattern = re.compile(head["pattern"], head["flags"])
out = sys.stdout.buffer
out.write(b"[]\\n")
out.flush()
for number, (start, end) in enumerate(head["ranges"]):
    for match in pattern.finditer(text, start, end):
        spans = [match.span(name) for name in head["groups"]]
        out.write(json.dumps([number, *match.span(), spans]).encode() + b"\\n")
        out.flush()
"""


class RegexMatch(NamedTuple):
    """Match: number of its range, position, named groups."""

    range: int
    start: int
    end: int
    groups: dict[str, str | None]


class RegexTimeoutError(Exception):
    """The time limit passed without a match after `position`."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def find_matches(
    pattern: re.Pattern[str], text: str, ranges: Sequence[tuple[int, int]]
) -> Iterator[RegexMatch]:
    """Yield the matches of `pattern.finditer` in each range of a text, in order.

    Raise RegexTimeoutError without a match for `MATCH_TIMEOUT_S`, InputError without a child.
    """
    names = list(pattern.groupindex)
    head = {"pattern": pattern.pattern, "flags": pattern.flags, "groups": names, "ranges": ranges}
    command = [sys.executable or "python3", "-I", "-S", "-c", _CHILD]
    try:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        raise InputError(f"cannot start a process for an expression: {error}") from error
    try:
        answers = _start_exchange(child, json.dumps(head).encode() + b"\n", text)
        position = ranges[0][0] if ranges else 0
        limit = START_TIMEOUT_S
        while True:
            try:
                line = answers.get(timeout=limit)
            except queue.Empty:
                raise RegexTimeoutError(position) from None
            limit = MATCH_TIMEOUT_S
            if line is None:
                break
            if found := _decode_match(line, names, text):
                position = found.end
                yield found
        if child.wait():
            raise InputError(
                f"the process for an expression failed with exit code {child.returncode}"
            )
    finally:
        child.kill()
        child.wait()


def find_matches_here(
    pattern: re.Pattern[str], text: str, ranges: Sequence[tuple[int, int]]
) -> Iterator[RegexMatch]:
    """Yield the same matches without a child process, for trusted expressions."""
    for number, (start, end) in enumerate(ranges):
        for match in pattern.finditer(text, start, end):
            yield RegexMatch(number, match.start(), match.end(), match.groupdict())


def _decode_match(line: bytes, names: Sequence[str], text: str) -> RegexMatch | None:
    answer = json.loads(line)
    if not answer:
        return None
    number, start, end, spans = answer
    groups = {
        name: None if begin < 0 else text[begin:stop]
        for name, (begin, stop) in zip(names, spans, strict=True)
    }
    return RegexMatch(number, start, end, groups)


def _start_exchange(
    child: subprocess.Popen[bytes], head: bytes, text: str
) -> queue.SimpleQueue[bytes | None]:
    """Send the text; return a queue of the lines of the answer, None at the end."""
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def feed() -> None:
        with contextlib.suppress(OSError), child.stdin as pipe:  # type: ignore[union-attr]
            pipe.write(head)
            pipe.write(text.encode("utf-8", "surrogatepass"))

    def collect() -> None:
        with child.stdout as pipe:  # type: ignore[union-attr]
            for line in pipe:
                lines.put(line)
        lines.put(None)

    for work in (feed, collect):
        threading.Thread(target=work, daemon=True).start()
    return lines
