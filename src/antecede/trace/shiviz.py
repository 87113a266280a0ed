"""Vector-clock logs as ShiViz reads them: one regular expression over the whole text.

Which expression: the user's (`regex`), else the one on the file's first line, else the known
dialect that the text follows. Executions in one file are separated by `delimiter`, or by
`=== name ===` where the file begins with such a line. An event is named HOST:COUNTER after its
own entry in its clock; entries of zero are the same as no entry.

Text between events belongs to no event and is only counted, as in ShiViz, unless it looks as
if it held a clock: then it goes to quarantine. The file is read whole: expressions may span
lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from antecede.errors import FormatError
from antecede.trace import dialects, text
from antecede.trace.reader import Detail, Item, ReadOptions
from antecede.trace.schema import Event, Quarantined


class ShivizReader:
    """Reader of vector-clock logs; see the module."""

    name = "shiviz"
    uses = ("regex", "delimiter")

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize a declared expression (certain) or lines of a known dialect."""
        if b'"' not in head and b"(?" not in head:
            return 0.0
        sample = _text(head)[: dialects.SAMPLE]
        if dialects.declared(_first_line(sample)):
            return 1.0
        return 0.9 if dialects.look(sample) else 0.0

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield the events of all executions, file order kept."""
        raw, breaks_off = text.read_up_to(path)
        log = _Log(path, _text(raw), breaks_off, options)
        if log.breaks_off:
            yield log.quarantined(len(log.text), log.breaks_off, "")
        yield Detail("regex", log.dialect.spelling)
        for run, start, end in log.executions():
            yield from log.events(run, start, end)
        yield Detail("unmatched_lines", log.unmatched_lines)


class _Log:
    """The text of one file, its expression, and where its lines begin."""

    def __init__(self, path: Path, whole: str, breaks_off: str, options: ReadOptions) -> None:
        self.source = str(path)
        self.text = whole
        self.breaks_off = breaks_off
        self.unmatched_lines = 0
        self.body = 0
        self.dialect = self._dialect(options)
        self.delimiter = self._delimiter(options)
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", whole))]

    def _dialect(self, options: ReadOptions) -> dialects.Dialect:
        own = dialects.declared(_first_line(self.text))
        if own:  # its line is no event, whichever expression is used
            self.body = self.text.index(own.spelling) + len(own.spelling)
        if options.regex is not None:
            return dialects.compile_expression(options.regex)
        dialect = own or dialects.look(self.text[: dialects.SAMPLE])
        if dialect is None:
            message = (
                "no known dialect of vector-clock logs fits; say --regex with the groups host, "
                r"clock and event, for example --regex '(?<host>\S*) (?<clock>{.*})\n(?<event>.*)'"
            )
            raise FormatError(message, path=self.source)
        return dialect

    def _delimiter(self, options: ReadOptions) -> re.Pattern[str] | None:
        if options.delimiter is not None:
            return dialects.compile_expression(options.delimiter, ()).pattern
        usual = dialects.compile_expression(dialects.DELIMITER, ()).pattern
        return usual if usual.match(_first_line(self.text[self.body :])) else None

    def executions(self) -> Iterator[tuple[str | None, int, int]]:
        """Yield (name, start, end) of each execution; the name is None without delimiters."""
        if self.delimiter is None:
            yield None, self.body, len(self.text)
            return
        name, start = None, self.body
        for number, match in enumerate(self.delimiter.finditer(self.text, self.body), 1):
            yield name, start, match.start()
            groups = match.groupdict()
            name, start = groups.get("trace") or f"execution {number}", match.end()
        yield name, start, len(self.text)

    def events(self, run: str | None, start: int, end: int) -> Iterator[Item]:
        """Yield the events between two positions of the text, and what is wrong between them."""
        done = start
        for match in self.dialect.pattern.finditer(self.text, start, end):
            if match.start() == match.end():
                continue
            yield from self._between(done, match.start())
            done = match.end()
            yield self._event(run, match)
        yield from self._between(done, end)

    def _event(self, run: str | None, match: re.Match[str]) -> Event | Quarantined:
        host = (match["host"] or "").strip()
        clock = dialects.parse_clock(match["clock"] or "")
        if isinstance(clock, str):
            return self.quarantined(match.start(), clock, match[0])
        if not host or host not in clock:
            problem = f"the clock has no entry of its own host {host!r}" if host else "no host"
            return self.quarantined(match.start(), problem, match[0])
        return Event(
            run=run,
            id=f"{host}:{clock[host]}",
            member=host,
            seq=clock[host],
            clock_members=tuple(clock),
            clock_counts=tuple(clock.values()),
            text=match["event"],
            source=self.source,
            line=self._line(match.start()),
        )

    def _between(self, start: int, end: int) -> Iterator[Quarantined]:
        between = self.text[start:end]
        if not between.strip():
            return
        for line in re.finditer(r"[^\n]*\S[^\n]*", between):
            self.unmatched_lines += 1
            if dialects.CLOCK_LIKE.search(line[0]):
                problem = "holds a clock, but does not follow the expression"
                yield self.quarantined(start + line.start(), problem, line[0])

    def quarantined(self, position: int, reason: str, raw: str) -> Quarantined:
        return Quarantined(self.source, self._line(position), None, reason, text.shorten(raw))

    def _line(self, position: int) -> int:
        return bisect_right(self.line_starts, position)


def _text(raw: bytes) -> str:
    return text.decode(raw.removeprefix(b"\xef\xbb\xbf")).replace("\r\n", "\n")


def _first_line(whole: str) -> str:
    start = whole[:4096].lstrip()
    return start.partition("\n")[0]
