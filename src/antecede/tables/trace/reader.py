"""Interface and registry of trace readers, and format detection.

A reader converts a path to items: `Event`, `Quarantined` (a bad record with a reason) and `Detail`
(a fact about the file). It raises InputError for an unusable path, never for a bad record.

Other packages add readers by `register` or by an entry point of the group "antecede.readers"
(docs/own-reader.md).
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from antecede.errors import FormatError, InputError
from antecede.tables.trace import text
from antecede.tables.trace.formats.nested import describe_document
from antecede.tables.trace.schema import Event, Quarantined

_T = TypeVar("_T")
NO_ID, NO_GROUP = "no id", "no group"
"""Reasons of bad records without an id, or without a required group."""


class Detail(NamedTuple):
    """Fact about a file; numbers of several files are summed."""

    name: str
    value: int | str


Item = Event | Quarantined | Detail


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of readers, by format."""

    regex: str | None = None
    """shiviz: regular expression with the groups host, clock and event."""
    delimiter: str | None = None
    """shiviz: regular expression between executions; its group `trace` is their name."""
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """table: the user's columns by column of the schema."""
    time_unit: str | None = None
    """table, shiviz, spans: unit of numeric times: s, ms, us or ns (default: by size)."""
    separator: str | None = None
    """table: text between several causes or topics in one cell."""
    needs_run: bool = False
    """table: quarantine rows without a run (default: such rows form one run)."""


class Reader(Protocol):
    """Reader of one format.

    Optional attributes: `uses` (fields of `ReadOptions` that it reads; others are rejected) and
    `gives_way_to_columns` (the file is read as a table if the user names columns).
    """

    name: str

    def sniff(self, path: Path, head: bytes) -> float:
        """Return the confidence, 0 to 1, in this format; `head`: first bytes (folder: b"")."""

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield all records in the order of the file."""


ENTRY_POINTS = "antecede.readers"

_READERS: dict[str, Reader] = {}
_LOADED: list[bool] = []
_LOAD_ERRORS: dict[str, str] = {}


def register(reader: Reader) -> None:
    """Add a reader; it replaces one of the same name. Raise InputError if it is no reader."""
    name = getattr(reader, "name", None)
    has_methods = all(callable(getattr(reader, one, None)) for one in ("sniff", "read"))
    if not (isinstance(name, str) and name and has_methods) or isinstance(reader, type):
        raise InputError(
            f"not a reader: {reader!r}; register an object with name, sniff() and read()"
        )
    _READERS[name] = reader


def load_entry_points() -> None:
    """Register the readers of installed packages once; they do not replace known names."""
    if _LOADED:  # importing a reader may call this again
        return
    _LOADED.append(True)
    found = importlib.metadata.entry_points(group=ENTRY_POINTS)
    for entry in sorted(found, key=lambda entry: (entry.name, entry.value)):
        try:
            loaded = entry.load()
            reader = loaded() if isinstance(loaded, type) else loaded
            if getattr(reader, "name", None) not in _READERS:
                register(reader)
        except Exception as error:  # an error of foreign code must not stop the other readers
            _LOAD_ERRORS[entry.name] = f"{entry.value}: {type(error).__name__}: {error}"


def quarantine_break(items: Iterable[_T], path: Path) -> Iterator[_T | Quarantined]:
    """Yield the items of a file; a file that breaks off at a line ends with a bad record."""
    try:
        yield from items
    except FormatError:
        raise
    except InputError as error:
        if error.line is None:
            raise
        yield Quarantined(str(path), error.line, None, error.message, "")


def names() -> list[str]:
    """Return the names of all formats."""
    load_entry_points()
    return sorted(_READERS)


def by_name(name: str) -> Reader:
    """Return the reader of a format. Raise FormatError for an unknown name."""
    load_entry_points()
    reader = _READERS.get(name)
    if reader is None and name in _LOAD_ERRORS:
        raise FormatError(f"reader {name!r} failed to load: {_LOAD_ERRORS[name]}")
    if reader is None:
        raise FormatError(f"unknown format {name!r}; choose from {', '.join(names())}")
    return reader


def choose(path: Path, options: ReadOptions | None = None) -> Reader:
    """Return the reader with the highest confidence. Raise FormatError if no reader has any."""
    if not path.exists():
        raise InputError("no such file or folder", path=str(path))
    head = b"" if path.is_dir() else text.read_bytes(path, text.HEAD_BYTES)[0]
    if not head.strip() and not path.is_dir():
        raise InputError("the file is empty", path=str(path))
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        message = "UTF-16 text; convert it to UTF-8 first, for example: iconv -f UTF-16 -t UTF-8"
        raise FormatError(message, path=str(path))
    load_entry_points()
    as_table = options is not None and bool(options.columns)
    scores = {
        reader.name: reader.sniff(path, head)
        for reader in _READERS.values()
        if not (as_table and getattr(reader, "gives_way_to_columns", False))
    }
    best = max(scores, key=lambda name: scores[name])
    if scores[best] <= 0:
        raise FormatError(_describe_unknown(path, head), path=str(path))
    return _READERS[best]


def _describe_unknown(path: Path, head: bytes) -> str:
    if path.is_dir():
        return "the folder is not a git repository and contains no Parquet file"
    if head.lstrip()[:1] in (b"{", b"[") and (defect := text.find_encoding_defect(head)):
        return defect
    if nested := describe_document(text.decode(head), path):
        return nested
    if head.lstrip().startswith(b"["):
        return "looks like one JSON array; write one object per line, for example with jq -c '.[]'"
    known = ", ".join(names())
    return (
        f"unknown format of the first lines; give --format ({known}), or for a log with vector "
        r"clocks --regex with the groups host, clock and event, for example "
        r"--regex '(?<host>\S+) (?<clock>{.*}) (?<event>.*)'"
    )
