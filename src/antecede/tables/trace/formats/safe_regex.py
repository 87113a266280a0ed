"""Regular expressions of strangers, matched so that they cannot hang the program.

An expression comes from the user, or from the first line of a log that anybody may have sent;
Python's engine tries an expression such as `(a+)+b` for longer than the universe will last, and
nothing in Python stops it. So such an expression runs in a child process that answers with the
places of its matches, and is ended when none has come for `LIMIT_S`. The answer is that of
`re` in every case: same engine, same flags.
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

START_S = 60.0
"""So long may the child take to start and to get the text."""
LIMIT_S = 10.0
"""So long may the engine look for one more match. A line of 10,000 characters takes less than
a second with every expression that is of use."""

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


class Found(NamedTuple):
    """One match: in which range, where, and the text of its named groups."""

    range: int
    start: int
    end: int
    groups: dict[str, str | None]


class TooLongError(Exception):
    """No match came in time; `position` is where the last one ended."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def find(pattern: re.Pattern[str], text: str, ranges: Sequence[tuple[int, int]]) -> Iterator[Found]:
    """Yield what `pattern.finditer` finds in each range of a text, in order.

    Raises TooLongError when no further match has come for `LIMIT_S`, InputError when no child
    process can be started.
    """
    names = list(pattern.groupindex)
    head = {"pattern": pattern.pattern, "flags": pattern.flags, "groups": names, "ranges": ranges}
    child = _started()
    try:
        answers = _answers(child, json.dumps(head).encode() + b"\n", text)
        position = ranges[0][0] if ranges else 0
        limit = START_S
        while True:
            try:
                line = answers.get(timeout=limit)
            except queue.Empty:
                raise TooLongError(position) from None
            limit = LIMIT_S
            if line is None:
                break
            if found := _found(line, names, text):
                position = found.end
                yield found
        if child.wait():
            raise InputError(
                f"the process that matches an expression ended with {child.returncode}"
            )
    finally:
        child.kill()
        child.wait()


def find_here(
    pattern: re.Pattern[str], text: str, ranges: Sequence[tuple[int, int]]
) -> Iterator[Found]:
    """Do the same in this process, for an expression and a text that are known to be harmless."""
    for number, (start, end) in enumerate(ranges):
        for match in pattern.finditer(text, start, end):
            yield Found(number, match.start(), match.end(), match.groupdict())


def _found(line: bytes, names: Sequence[str], text: str) -> Found | None:
    answer = json.loads(line)
    if not answer:
        return None
    number, start, end, spans = answer
    groups = {
        name: None if begin < 0 else text[begin:stop]
        for name, (begin, stop) in zip(names, spans, strict=True)
    }
    return Found(number, start, end, groups)


def _started() -> subprocess.Popen[bytes]:
    command = [sys.executable or "python3", "-I", "-S", "-c", _CHILD]
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    except OSError as error:
        raise InputError(f"no process to match an expression in: {error}") from error


def _answers(
    child: subprocess.Popen[bytes], head: bytes, text: str
) -> queue.SimpleQueue[bytes | None]:
    """Hand the text over and collect the lines that come back; None is the end."""
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
