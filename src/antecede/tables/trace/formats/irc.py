"""Reader of chat logs with annotated replies: `NAME.annotation.txt` beside `NAME.ascii.txt`.

Kummerfeld et al., "A Large-Scale Corpus for Conversation Disentanglement" (ACL 2019). A line `N M
-` of the annotation says that line M of the log replies to line N; lines count from 0. `N N -` says
that N is no reply. The input is either file, or a folder. The log may also be `NAME.raw.txt`.

Annotated lines are events, others are only counted. The id is the line number, the run is NAME, the
member is the nick. A system line (`=== x has joined`) is an event only if a link connects it to
another line. Times are null: `[HH:MM]` has no date and no zone.

All links are in memory; the log is read line by line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from antecede.errors import FormatError
from antecede.tables.trace import text
from antecede.tables.trace.reader import Detail, Item, ReadOptions, quarantine_break
from antecede.tables.trace.schema import SEND, Event, Quarantined

LOGS = (".raw.txt", ".ascii.txt")
SAMPLE_LINES = 20
MAX_LINKS = 1 << 20
"""Limit of links of a log: half a gigabyte of memory."""

_NAME = re.compile(r"(?P<name>.+)\.annotation(?P<by>\.[\w-]+)?\.txt(\.gz)?")
_LOG_NAME = re.compile(r"(?P<name>.+)\.(raw|ascii)\.txt(\.gz)?")
_LINK = re.compile(r"(\d{1,9})\s+(\d{1,9})\s+-")
_MESSAGE = re.compile(r"\[\d\d:\d\d(?::\d\d)?\] <(?P<nick>[^>\s]+)> ?(?P<text>.*)")
_ACTION = re.compile(r"\[\d\d:\d\d(?::\d\d)?\] +\* (?P<nick>\S+) ?(?P<text>.*)")
_SYSTEM = "==="


class IrcReader:
    """Reader of annotated chat logs."""

    name = "irc"
    uses: tuple[str, ...] = ()

    def sniff(self, path: Path, head: bytes) -> float:
        """Recognize links, chat lines, or a folder with an annotation."""
        if path.is_dir():
            return 0.9 if next(_find_annotations(path), None) else 0.0
        lines = [line.strip() for line in text.decode(head).lstrip("\ufeff").splitlines()]
        first = [line for line in lines if line][:SAMPLE_LINES]
        if 2 * sum(bool(_LINK.fullmatch(line)) for line in first) > len(first):
            return 0.9
        chat = sum(bool(_parse_message(line)) or line.startswith(_SYSTEM + " ") for line in first)
        stamped = any(_parse_message(line) for line in first)
        return 0.8 if stamped and 2 * chat > len(first) else 0.0

    def find_canonical_path(self, path: Path) -> Path:
        """Return the annotation of a log, so that each pair of files is read once."""
        try:
            return path if path.is_dir() else _find_pair(path)[1]
        except FormatError:
            return path

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield the annotated lines, log by log."""
        if not path.is_dir():
            yield from _AnnotatedLog(*_find_pair(path)).read()
            return
        annotations = sorted(_find_annotations(path))
        if not annotations:
            raise FormatError("the folder contains no NAME.annotation.txt", path=str(path))
        for annotation in annotations:
            yield from _AnnotatedLog(*_find_pair(annotation)).read()


def _find_annotations(folder: Path) -> Iterator[Path]:
    return (found for found in folder.rglob("*.annotation*") if _NAME.fullmatch(found.name))


def _find_pair(path: Path) -> tuple[str, Path, Path]:
    """Return (run, annotation, log) for either file. Raise FormatError without the other."""
    if match := _NAME.fullmatch(path.name):
        log = _find_beside(path, [match["name"] + ending for ending in LOGS])
        return match["name"] + (match["by"] or ""), path, log
    if match := _LOG_NAME.fullmatch(path.name):
        name = match["name"]
        same = [p for p in _find_annotations(path.parent) if p.parent == path.parent]
        found = sorted(p for p in same if p.name.startswith(f"{name}.annotation."))
        if len(found) > 1:
            shown = ", ".join(p.name for p in found[:5])
            raise FormatError(
                f"the log has several annotations ({shown}); give one of them", path=str(path)
            )
        annotation = found[0] if found else _find_beside(path, [f"{name}.annotation.txt"])
        return _find_pair(annotation)[0], annotation, path
    message = "not a chat log; expected NAME.annotation.txt and NAME.ascii.txt (or NAME.raw.txt)"
    raise FormatError(message, path=str(path))


def _find_beside(path: Path, names: list[str]) -> Path:
    for name in names:
        for candidate in (path.with_name(name), path.with_name(name + ".gz")):
            if candidate.is_file():
                return candidate
    raise FormatError(f"no {' or '.join(names)} in the same folder", path=str(path))


class _AnnotatedLog:
    def __init__(self, run: str, annotation: Path, log: Path) -> None:
        self.run, self.annotation, self.log = run, annotation, log
        self.causes: dict[int, dict[int, int]] = {}
        """Replied-to lines by line, each with its line in the annotation."""
        self.linked_lines: dict[int, int] = {}
        """All linked lines, each with its first line in the annotation."""
        self.annotated_lines: set[int] = set()
        self.last_line = -1
        counted = ("repeated_links", "lines_not_annotated", "system_lines", "context_lines")
        self.counts = dict.fromkeys(counted, 0)

    def read(self) -> Iterator[Item]:
        yield from quarantine_break(self._read_links(), self.annotation)
        yield from quarantine_break(self._read_lines(), self.log)
        for index in sorted(index for index in self.linked_lines if index > self.last_line):
            has = f"has lines 0 to {self.last_line}" if self.last_line >= 0 else "is empty"
            reason = f"link to a line that is not in the log: line {index}; the log {has}"
            yield Quarantined(
                str(self.annotation), self.linked_lines[index], str(index), reason, ""
            )
        later = sum(n > line for line, causes in self.causes.items() for n in causes)
        for name, count in {**self.counts, "links_to_later_lines": later}.items():
            yield Detail(name, count)

    def _read_links(self) -> Iterator[Quarantined]:
        count = 0
        for number, line in text.read_lines(self.annotation):
            if not line.strip():
                continue
            match = _LINK.fullmatch(line.strip())
            if match is None:
                reason = "not a link; expected two line numbers and a dash"
                yield Quarantined(str(self.annotation), number, None, reason, text.shorten(line))
                continue
            count += 1
            if count > MAX_LINKS:
                message = f"more than {MAX_LINKS:,} links; split the log and its annotation"
                raise FormatError(message, path=str(self.annotation), line=number)
            cause, effect = int(match[1]), int(match[2])
            causes = self.causes.setdefault(effect, {}) if cause != effect else {}
            self.counts["repeated_links"] += cause in causes
            causes.setdefault(cause, number)
            self.annotated_lines.add(effect)
            self.linked_lines.setdefault(cause, number)
            self.linked_lines.setdefault(effect, number)

    def _read_lines(self) -> Iterator[Item]:
        tied = {n for line, causes in self.causes.items() for n in (line, *causes)}
        for number, line in text.read_lines(self.log):
            self.last_line = index = number - 1
            parsed = _parse_message(line)
            system = line.startswith(_SYSTEM)
            if parsed is None and not system and (line.strip() or index in self.linked_lines):
                reason = "not a chat line; expected [HH:MM] <nick> TEXT or a system line (=== ...)"
                yield Quarantined(str(self.log), number, str(index), reason, text.shorten(line))
            elif index not in self.linked_lines:
                self.counts["lines_not_annotated"] += 1
            elif parsed is None and index not in tied:
                self.counts["system_lines"] += 1
            else:
                self.counts["context_lines"] += index not in self.annotated_lines
                member, message = parsed or (None, line)
                yield Event(
                    run=self.run,
                    kind=SEND,
                    id=str(index),
                    member=member,
                    causes=tuple(str(cause) for cause in self.causes.get(index, ())),
                    text=message,
                    source=str(self.log),
                    line=number,
                )


def _parse_message(line: str) -> tuple[str, str] | None:
    match = _MESSAGE.fullmatch(line) or _ACTION.fullmatch(line)
    return (match["nick"], match["text"]) if match else None
