"""Traces as Arrow tables: the schema, reading in batches, and what went to quarantine.

`read_batches` streams: it holds one batch of events at a time, so a trace may be larger than
memory wherever its reader streams too (all do but one: vector-clock logs are read
whole, since their expressions span lines). `read` collects everything.

A record that cannot be stored (text that is not Unicode, a number above 64 bits) goes to
quarantine like any other bad record, whichever reader made it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyarrow as pa

from antecede.errors import FormatError, InputError
from antecede.trace import editing, git, irc, lora, mail, reader, schema, shiviz, spans, table
from antecede.trace.own_columns import Own, as_table, together
from antecede.trace.reader import NO_ID, Detail, Item, Reader, ReadOptions
from antecede.trace.schema import Event, Quarantined
from antecede.trace.text import shorten
from antecede.trace.writing import PARQUET, write_table

BATCH_ROWS = 65_536

_TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "list<string>": pa.list_(pa.string()),
    "list<int64>": pa.list_(pa.int64()),
}
_FIELDS: list[Any] = [
    pa.field(c.name, _TYPES[c.type], nullable=c.nullable, metadata={"meaning": c.meaning})
    for c in schema.COLUMNS
]
SCHEMA = pa.schema(_FIELDS)
_QUARANTINE_FIELDS: list[Any] = [
    pa.field("source", pa.string()),
    pa.field("line", pa.int64()),
    pa.field("id", pa.string()),
    pa.field("reason", pa.string(), nullable=False),
    pa.field("raw", pa.string(), nullable=False),
]
QUARANTINE_SCHEMA = pa.schema(_QUARANTINE_FIELDS)

for _reader in (
    shiviz.ShivizReader(),
    mail.MailReader(),
    git.GitReader(),
    spans.SpansReader(),
    irc.IrcReader(),
    editing.EditingReader(),
    lora.LoraReader(),
    table.TableReader(),
):
    reader.register(_reader)


class Batch(NamedTuple):
    """Some events, what went to quarantine between them, and facts on the files so far.

    `own`: the rows of the events as the user's table has them, where that was asked for.
    """

    events: pa.RecordBatch
    quarantine: pa.RecordBatch
    details: dict[str, int | str]
    own: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """What was read: good events, bad records with reasons, and facts on the files."""

    events: pa.Table
    quarantine: pa.Table
    format: str
    details: dict[str, int | str] = field(default_factory=dict)
    own: pa.Table | None = None
    """The rows of `events` with the columns of the user's table; None for other formats."""


def read(
    paths: Sequence[str | Path],
    format: str | None = None,
    options: ReadOptions | None = None,
    *,
    own: bool = False,
) -> Trace:
    """Read one trace from files given in order; see `read_batches` for the errors.

    `own`: keep the columns of the user's table, too. Raise FormatError if not one event could
    be read.
    """
    chosen = _choose(paths, format or _implied(options))
    batches = list(_batches(chosen, _checked(chosen, options), BATCH_ROWS, own))
    events = pa.Table.from_batches([batch.events for batch in batches], SCHEMA)
    quarantine = pa.Table.from_batches([batch.quarantine for batch in batches], QUARANTINE_SCHEMA)
    if not events.num_rows:
        raise _nothing(chosen, quarantine)
    kept = [batch.own for batch in batches if batch.own is not None]
    columns = together(kept) if kept else None
    return Trace(events, quarantine, chosen[0][1].name, batches[-1].details, columns)


def read_batches(
    paths: Sequence[str | Path],
    format: str | None = None,
    options: ReadOptions | None = None,
    batch_rows: int = BATCH_ROWS,
    *,
    own: bool = False,
) -> Iterator[Batch]:
    """Read files given in order, at most `batch_rows` events at a time.

    `own`: keep the columns of the user's table, too.

    Raise InputError if a path cannot be read at all or an option is none of its format's,
    FormatError if its format cannot be told or the paths differ in format. Bad records raise
    nothing: they are in `quarantine`.
    """
    chosen = _choose(paths, format or _implied(options))
    return _batches(chosen, _checked(chosen, options), batch_rows, own)


def to_batch(events: Sequence[Event], first: int = 0) -> pa.RecordBatch:
    """Return events in the schema, `file_order` numbered from `first`.

    Raise pyarrow.ArrowException, UnicodeError, OverflowError or TypeError if a value does not
    fit the schema.
    """
    columns: dict[str, Any] = dict(zip(schema.NAMES, zip(*events, strict=True), strict=False))
    columns["file_order"] = range(first, first + len(events))
    arrays = [pa.array(columns.get(f.name, ()), type=cast("Any", f.type)) for f in SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


TIMES = ("arrival", "send_time", "author_time", "commit_time", "start_time", "end_time")
"""Columns of nanoseconds since 1970, UTC."""


def write_events(events: Sequence[Event], path: str | Path, format: str = PARQUET) -> None:
    """Write events in the schema, in a format of `trace.writing`; `file_order` is their position.

    In texts times are ISO 8601 (a plain number would be read as seconds), and columns that nothing
    stands in are left out. Raise InputError if the file cannot be written.
    """
    table = pa.Table.from_batches([to_batch(events)])
    if format != PARQUET:
        table = table.drop_columns(
            [f.name for f in SCHEMA if table[f.name].null_count == len(table)]
        )
        for at, name in enumerate(table.column_names):
            if name in TIMES:
                moments = table[name].cast(pa.timestamp("ns", "UTC"))
                table = table.set_column(at, name, moments)
    try:
        write_table(table, Path(path), format)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=str(path)) from error


def quarantine_batch(rows: Iterable[Quarantined]) -> pa.RecordBatch:
    """Return quarantined records in their schema."""
    columns = list(zip(*rows, strict=True)) or [()] * len(QUARANTINE_SCHEMA)
    arrays = [
        pa.array(column, type=cast("Any", f.type))
        for column, f in zip(columns, QUARANTINE_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=QUARANTINE_SCHEMA)


def _implied(options: ReadOptions | None) -> str | None:
    """Return the format that options stand for: an expression is for vector-clock logs alone."""
    return shiviz.ShivizReader.name if options is not None and options.regex is not None else None


def _choose(paths: Sequence[str | Path], format: str | None) -> list[tuple[Path, Reader]]:
    if not paths:
        raise InputError("no path given")
    chosen: list[tuple[Path, Reader]] = []
    for path in map(Path, paths):
        if not path.exists():
            why = "; standard input is not read, write it to a file" if str(path) == "-" else ""
            raise InputError(f"no such file or folder{why}", path=str(path))
        found = reader.by_name(format) if format is not None else reader.choose(path)
        if chosen and chosen[0][1].name != found.name:
            message = f"is {found.name}, but {chosen[0][0]} is {chosen[0][1].name}: one at a time"
            raise FormatError(message, path=str(path))
        chosen.append((path, found))
    return _once(chosen)


def _checked(chosen: Sequence[tuple[Path, Reader]], options: ReadOptions | None) -> ReadOptions:
    """Return the options; raise InputError for one that the format would not look at."""
    options = options or ReadOptions()
    path, one = chosen[0]
    used = getattr(one, "uses", None)
    if used is not None:
        given = [option.name for option in fields(options) if getattr(options, option.name)]
        if idle := [name for name in given if name not in used]:
            message = f"is read as {one.name}, which has no use for {', '.join(idle)}"
            raise InputError(f"{message}; say --format if it is something else", path=str(path))
    return options


def _once(chosen: list[tuple[Path, Reader]]) -> list[tuple[Path, Reader]]:
    """Leave out a path that stands for the same trace as an earlier one, if its reader knows."""
    kept: dict[Path | int, tuple[Path, Reader]] = {}
    for number, (path, one) in enumerate(chosen):
        same = getattr(one, "stands_for", None)
        kept.setdefault(same(path) if same else number, (path, one))
    return list(kept.values())


def _batches(
    chosen: Sequence[tuple[Path, Reader]], options: ReadOptions, batch_rows: int, own: bool
) -> Iterator[Batch]:
    """Collect what the readers yield; the last batch may be empty and has all details."""
    details: dict[str, int | str] = {}
    done = 0
    events: list[Event] = []
    rows: list[Own] = []
    bad: list[Quarantined] = []
    for path, one in chosen:
        for item, row in _named(_items(one, path, options, own), path):
            if isinstance(item, Event):
                if item.id:
                    events.append(item)
                    if row is not None:
                        rows.append(row)
                else:
                    bad.append(_unusable(item, NO_ID))
            elif isinstance(item, Quarantined):
                bad.append(item)
            else:
                _note(details, item)
            if len(events) >= batch_rows or len(bad) >= batch_rows:
                batch = _batch(events, bad, done, details, rows)
                done += batch.events.num_rows
                events, bad, rows = [], [], []
                yield batch
    yield _batch(events, bad, done, details, rows)


def _items(
    one: Reader, path: Path, options: ReadOptions, own: bool
) -> Iterator[tuple[Item, Own | None]]:
    """Yield what a reader does, with the user's own row where it has one."""
    with_own = getattr(one, "read_with_own", None) if own else None
    if with_own is None:
        yield from ((item, None) for item in one.read(path, options))
    else:
        yield from with_own(path, options)


def _named(
    items: Iterable[tuple[Item, Own | None]], path: Path
) -> Iterator[tuple[Item, Own | None]]:
    """Yield the items; a file name that is not Unicode is spelt so that it can be stored."""
    name = str(path).encode(errors="backslashreplace").decode()
    if name == str(path):
        yield from items
        return
    for item, row in items:
        yield (item if isinstance(item, Detail) else item._replace(source=name)), row


def _batch(
    events: list[Event],
    bad: list[Quarantined],
    done: int,
    details: dict[str, int | str],
    rows: list[Own],
) -> Batch:
    stored, refused, kept = _storable(events, done)
    own = None
    if rows:
        own = as_table(rows if kept is None else [rows[k] for k in kept])
    return Batch(stored, quarantine_batch([*bad, *refused]), dict(details), own)


def _storable(
    events: list[Event], first: int
) -> tuple[pa.RecordBatch, list[Quarantined], list[int] | None]:
    """Return the events as a batch; events with values that cannot be stored are set aside.

    The last are the numbers of those that are kept, None for all.
    """
    try:
        return to_batch(events, first), [], None
    except (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError):
        good: list[int] = []
        refused: list[Quarantined] = []
        for number, event in enumerate(events):
            try:
                to_batch([event])
            except (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError) as error:
                refused.append(_unusable(event, f"cannot be stored: {error}"))
            else:
                good.append(number)
        return to_batch([events[number] for number in good], first), refused, good


def _unusable(event: Event, reason: str) -> Quarantined:
    source = event.source if event.source is None else shorten(event.source)
    shown = {k: v for k, v in event._asdict().items() if v not in (None, ())}
    return Quarantined(source, event.line, None, shorten(reason), shorten(str(shown)))


def _note(details: dict[str, int | str], item: Detail) -> None:
    before = details.get(item.name)
    if isinstance(before, int) and isinstance(item.value, int):
        details[item.name] = before + item.value
    elif before is None or before == item.value:
        details[item.name] = item.value
    else:
        details[item.name] = f"{before}; {item.value}"


def _nothing(chosen: Sequence[tuple[Path, Reader]], quarantine: pa.Table) -> InputError:
    path, one = chosen[0]
    if not quarantine.num_rows:
        return InputError("holds no event", path=str(path))
    first = quarantine.slice(0, 1).to_pylist()[0]
    where = f"line {first['line']}: " if first["line"] else ""
    message = (
        f"nothing in it can be read as {one.name}: {quarantine.num_rows:,} bad "
        f"{'record' if quarantine.num_rows == 1 else 'records'}; "
        f"the first: {where}{first['reason']}"
    )
    return FormatError(message, path=str(path))
