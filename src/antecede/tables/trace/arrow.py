"""Entry points that read traces as Arrow tables.

`read_batches` holds one batch at a time, so a trace may be larger than memory. Only vector-clock
logs are read whole, because their expressions span lines. `read` collects all batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import pyarrow as pa

from antecede.errors import FormatError, InputError
from antecede.formatting import pluralize
from antecede.tables.trace import reader
from antecede.tables.trace.batches import QUARANTINE_SCHEMA as QUARANTINE_SCHEMA
from antecede.tables.trace.batches import SCHEMA as SCHEMA
from antecede.tables.trace.batches import EventBatch, Waiting
from antecede.tables.trace.batches import to_batch as to_batch
from antecede.tables.trace.formats import editing, git, irc, lora, mail, shiviz, spans
from antecede.tables.trace.formats.document_formats import FORMATS
from antecede.tables.trace.formats.documents import DocumentReader
from antecede.tables.trace.paths import Paths, all_inputs
from antecede.tables.trace.reader import Detail, Item, Reader, ReadOptions
from antecede.tables.trace.schema import TIMES, Event
from antecede.tables.trace.user_tables import reader as table
from antecede.tables.trace.user_tables.chosen_columns import name_option
from antecede.tables.trace.user_tables.extra_columns import ExtraRows, together
from antecede.tables.trace.user_tables.vectorized import Chunk
from antecede.tables.trace.user_tables.writing import PARQUET, write_table

BATCH_ROWS = 65_536

_READERS: tuple[Reader, ...] = (
    shiviz.ShivizReader(),
    mail.MailReader(),
    git.GitReader(),
    spans.SpansReader(),
    irc.IrcReader(),
    editing.EditingReader(),
    lora.LoraReader(),
    *map(DocumentReader, FORMATS),
    table.TableReader(),
)
for _reader in _READERS:
    reader.register(_reader)


@dataclass(frozen=True, slots=True)
class Trace:
    """Events, quarantined records, and details of the files."""

    events: pa.Table
    quarantine: pa.Table
    format: str
    details: dict[str, int | str] = field(default_factory=dict)
    own: pa.Table | None = None
    """Extra columns of the user's table, of spans or of logs, row by row (None: none)."""


def read(
    paths: Paths,
    format: str | None = None,
    options: ReadOptions | None = None,
    *,
    own: bool = False,
) -> Trace:
    """Return the trace in `paths`. Raise InputError without any event; see `read_batches`."""
    chosen = choose_readers(paths, format or find_implied_format(options), options)
    batches = list(batches_of(chosen, options, keep_extra=own))
    events = pa.Table.from_batches([batch.events for batch in batches], SCHEMA)
    quarantine = pa.Table.from_batches([batch.quarantine for batch in batches], QUARANTINE_SCHEMA)
    if not events.num_rows:
        raise _make_no_events_error(chosen, quarantine)
    kept = [batch.own for batch in batches if batch.own is not None]
    columns = together(kept) if kept else None
    return Trace(events, quarantine, chosen[0][1].name, batches[-1].details, columns)


def read_batches(
    paths: Paths,
    format: str | None = None,
    options: ReadOptions | None = None,
    batch_rows: int = BATCH_ROWS,
    *,
    own: bool = False,
) -> Iterator[EventBatch]:
    """Yield batches of at most `batch_rows` events, file by file, on request with extra columns.

    Raise InputError for an unreadable path or an option that the format does not use. Raise
    FormatError for an unknown format or for paths of several formats.
    """
    chosen = choose_readers(paths, format or find_implied_format(options), options)
    return batches_of(chosen, options, batch_rows, keep_extra=own)


def batches_of(
    chosen: Sequence[tuple[Path, Reader]],
    options: ReadOptions | None = None,
    batch_rows: int = BATCH_ROWS,
    *,
    keep_extra: bool = False,
) -> Iterator[EventBatch]:
    """Yield the batches of files with their chosen readers; see `read_batches`."""
    return _collect_batches(chosen, _check_options(chosen, options), batch_rows, keep_extra)


def write_events(events: Sequence[Event], path: str | Path, format: str = PARQUET) -> None:
    """Write events to a file; `format` is one of `tables.trace.user_tables.writing`.

    Text formats get ISO 8601 times, because plain numbers would be read as seconds. They omit empty
    columns. Raise InputError if the file cannot be written.
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
        raise InputError(
            f"cannot write the file: {error.strerror or error}", path=str(path)
        ) from error


def find_implied_format(options: ReadOptions | None) -> str | None:
    """Return the format that options imply: `regex` implies a vector-clock log."""
    return shiviz.ShivizReader.name if options is not None and options.regex is not None else None


def choose_readers(
    paths: Paths, format: str | None, options: ReadOptions | None = None
) -> list[tuple[Path, Reader]]:
    """Return the files of paths, each with its reader. Raise as `read_batches` does."""
    chosen: list[tuple[Path, Reader]] = []
    for path in all_inputs(paths, format):
        found = reader.by_name(format) if format is not None else reader.choose(path, options)
        if chosen and chosen[0][1].name != found.name:
            message = (
                f"format {found.name}, but {chosen[0][0]} has format {chosen[0][1].name}; "
                "read one format at a time"
            )
            raise FormatError(message, path=str(path))
        chosen.append((path, found))
    return _drop_repeated_traces(chosen)


_OPTION_NAMES = {
    "regex": "--regex",
    "delimiter": "--run-delimiter",
    "separator": "--list-separator",
    "time_unit": "--time-unit",
    "needs_run": "--group",
}
"""Field of `ReadOptions` -> option of the command line."""


def _check_options(
    chosen: Sequence[tuple[Path, Reader]], options: ReadOptions | None
) -> ReadOptions:
    options = options or ReadOptions()
    path, one = chosen[0]
    used = getattr(one, "uses", None)
    if used is not None:
        given = [option.name for option in fields(options) if getattr(options, option.name)]
        if idle := _name_options([name for name in given if name not in used], options):
            message = f"format {one.name} does not use {', '.join(idle)}"
            omitted = "it" if len(idle) == 1 else "them"
            raise InputError(
                f"{message}; omit {omitted}, or give --format if this is another", path=str(path)
            )
    return options


def _name_options(given: Sequence[str], options: ReadOptions) -> list[str]:
    """Return the options of the command line for fields of `ReadOptions`, each once."""
    named: list[str] = []
    for name in given:
        if name == "columns":
            named += [name_option(column, options) for column in options.columns]
        else:
            named.append(_OPTION_NAMES[name])
    return list(dict.fromkeys(named))  # --group sets two fields


def _drop_repeated_traces(chosen: list[tuple[Path, Reader]]) -> list[tuple[Path, Reader]]:
    """Return each trace once, with a reader of all paths if the format has one."""
    kept: dict[Path | int, tuple[Path, Reader]] = {}
    for number, (path, one) in enumerate(chosen):
        same = getattr(one, "find_canonical_path", None)
        kept.setdefault(same(path) if same else number, (path, one))
    among = getattr(chosen[0][1], "create_for_files", None)
    if among is None:
        return list(kept.values())
    paths = [path for path, _ in kept.values()]
    joined = among(paths)
    return [(path, joined) for path in paths]


def _collect_batches(
    chosen: Sequence[tuple[Path, Reader]], options: ReadOptions, batch_rows: int, keep_extra: bool
) -> Iterator[EventBatch]:
    waiting = Waiting(batch_rows)
    for path, one in chosen:
        for item in _escape_sources(_read_items(one, path, options, keep_extra), path):
            yield from waiting.take(item)
    yield waiting.batch()


def _read_items(
    one: Reader, path: Path, options: ReadOptions, keep_extra: bool
) -> Iterator[Chunk | Detail | tuple[Item, ExtraRows | None]]:
    by_columns = getattr(one, "read_by_columns", None)
    with_own = getattr(one, "read_with_extra", None) if keep_extra else None
    if by_columns is not None:
        yield from by_columns(path, options, keep_extra)
    elif with_own is None:
        yield from ((item, None) for item in one.read(path, options))
    else:
        yield from with_own(path, options)


def _escape_sources(
    items: Iterable[Chunk | Detail | tuple[Item, ExtraRows | None]], path: Path
) -> Iterator[Chunk | Detail | tuple[Item, ExtraRows | None]]:
    """Yield the items with a source that Arrow can store, also for a name that is not Unicode."""
    name = str(path).encode(errors="backslashreplace").decode()
    if name == str(path):
        yield from items
        return
    for item in items:
        if isinstance(item, Detail | Chunk):
            yield item
        else:
            found, row = item
            yield (found if isinstance(found, Detail) else found._replace(source=name)), row


def _make_no_events_error(
    chosen: Sequence[tuple[Path, Reader]], quarantine: pa.Table
) -> InputError:
    path, one = chosen[0]
    if not quarantine.num_rows:
        return InputError("contains no event", path=str(path))
    first = quarantine.slice(0, 1).to_pylist()[0]
    where = f"line {first['line']}: " if first["line"] else ""
    bad = pluralize(quarantine.num_rows, "bad record")
    message = f"no readable record of format {one.name} ({bad}); the first: {where}"
    return FormatError(message + first["reason"], path=str(path))
