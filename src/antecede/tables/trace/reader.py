"""Interface of readers of traces, and the choice of the reader for a file.

A reader turns a path into `Event`s (good records), `Quarantined` (bad ones, with reasons) and
`Detail`s (facts on the file). It never raises for a bad record; it raises InputError for an
unusable path. `file_order` is numbered later.

Readers of other packages: `register`, or an entry point of the group `antecede.readers`. See
docs/own-reader.md.
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
"""Reasons of bad records without an identity, or without a group where one was named."""


class Detail(NamedTuple):
    """A fact on a file as a whole; numbers of several files are added up."""

    name: str
    value: int | str


Item = Event | Quarantined | Detail


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of the input; each has a default."""

    regex: str | None = None
    """shiviz: expression with the groups host, clock and event."""
    delimiter: str | None = None
    """shiviz: expression between executions; its group `trace` names them."""
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """table: the user's columns, by column of the schema."""
    time_unit: str | None = None
    """table: unit of numeric times: s, ms, us or ns (default: by size)."""
    separator: str | None = None
    """table: text between several parents in one cell."""
    needs_run: bool = False
    """table: whether a row without a run is a bad row (default: such rows are one run)."""


class Reader(Protocol):
    """Format of traces.

    Optional attributes: `uses` (fields of `ReadOptions` that it reads; others are refused) and
    `gives_way_to_columns` (the file is a table if the user names columns).
    """

    name: str

    def sniff(self, path: Path, head: bytes) -> float:
        """Return the certainty of this format, 0 to 1, from the first bytes (none of a folder)."""

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yield all good and bad records, in the order of the file."""


ENTRY_POINTS = "antecede.readers"

_READERS: dict[str, Reader] = {}
_LOADED: list[bool] = []
_BROKEN: dict[str, str] = {}
"""Entry points that failed to load, with the error."""


def register(reader: Reader) -> None:
    """Add a reader under its name; a later one of the same name replaces it.

    Raise InputError if the object is no reader.
    """
    name = getattr(reader, "name", None)
    has_methods = all(callable(getattr(reader, one, None)) for one in ("sniff", "read"))
    if not (isinstance(name, str) and name and has_methods) or isinstance(reader, type):
        raise InputError(f"{reader!r} is no reader: register an object with name, sniff and read")
    _READERS[name] = reader


def load_entry_points() -> None:
    """Register the readers of installed packages, once.

    The value of an entry point is a reader or a class. Known names stay as they are. Failures are
    kept for the message of `by_name`.
    """
    if _LOADED:  # a reader that is being imported may ask for names
        return
    _LOADED.append(True)
    found = importlib.metadata.entry_points(group=ENTRY_POINTS)
    for entry in sorted(found, key=lambda entry: (entry.name, entry.value)):
        try:
            loaded = entry.load()
            reader = loaded() if isinstance(loaded, type) else loaded
            if getattr(reader, "name", None) not in _READERS:
                register(reader)
        except Exception as error:  # foreign code: whatever it raises must not stop the others
            _BROKEN[entry.name] = f"{entry.value}: {type(error).__name__}: {error}"


def to_the_break(items: Iterable[_T], path: Path) -> Iterator[_T | Quarantined]:
    """Yield items of a file. A file that breaks off on a line ends with a bad record."""
    try:
        yield from items
    except FormatError:
        raise
    except InputError as error:
        if error.line is None:
            raise
        yield Quarantined(str(path), error.line, None, error.message, "")


def names() -> list[str]:
    """Return the names of all known formats."""
    load_entry_points()
    return sorted(_READERS)


def by_name(name: str) -> Reader:
    """Return the reader of a name; FormatError naming the known ones if there is none."""
    load_entry_points()
    reader = _READERS.get(name)
    if reader is None and name in _BROKEN:
        raise FormatError(f"the reader {name!r} cannot be loaded from {_BROKEN[name]}")
    if reader is None:
        raise FormatError(f"no format is called {name!r}; known are {', '.join(names())}")
    return reader


def choose(path: Path, options: ReadOptions | None = None) -> Reader:
    """Return the reader that recognizes the file best; FormatError if none does."""
    if not path.exists():
        raise InputError("no such file or folder", path=str(path))
    head = b"" if path.is_dir() else text.read_up_to(path, text.HEAD_BYTES)[0]
    if not head.strip() and not path.is_dir():
        raise InputError("the file is empty", path=str(path))
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        message = "is UTF-16 text; make it UTF-8 first, for example: iconv -f UTF-16 -t UTF-8"
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
        raise FormatError(_unknown(path, head), path=str(path))
    return _READERS[best]


def _unknown(path: Path, head: bytes) -> str:
    if path.is_dir():
        return "the folder is no git repository and holds no Parquet"
    if nested := describe_document(text.decode(head), path):
        return nested
    if head.lstrip().startswith(b"["):
        return "looks like one JSON array; put one object on each line (jq -c '.[]' does it)"
    known = ", ".join(names())
    return (
        f"the first lines follow none of the known formats ({known}); say --format, or of a log "
        r"with vector clocks --regex R, with the groups host, clock and event, as "
        r"--regex '(?<host>\S+) (?<clock>{.*}) (?<event>.*)'"
    )
