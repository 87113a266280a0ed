"""Arrow batches of events and bad records: schemas and the batch builder.

A record that Arrow cannot store (text that is not Unicode, a number above 64 bits) is quarantined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from antecede.tables.trace import schema
from antecede.tables.trace.identities import is_blank
from antecede.tables.trace.reader import NO_ID, Detail, Item
from antecede.tables.trace.schema import Event, Quarantined
from antecede.tables.trace.text import shorten
from antecede.tables.trace.user_tables.extra_columns import ExtraRows, rows_to_table
from antecede.tables.trace.user_tables.vectorized import ARROW_TYPES, Chunk

_STORE_ERRORS = (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError)
_FIELDS: list[Any] = [
    pa.field(c.name, ARROW_TYPES[c.type], nullable=c.nullable, metadata={"meaning": c.meaning})
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


class EventBatch(NamedTuple):
    """Events, the bad records between them, details of the files so far, and extra columns."""

    events: pa.RecordBatch
    quarantine: pa.RecordBatch
    details: dict[str, int | str]
    own: pa.Table | None = None


def to_batch(events: Sequence[Event], first: int = 0) -> pa.RecordBatch:
    """Return events as a batch, numbered from `first`. Raise one of `_STORE_ERRORS`."""
    columns: dict[str, Any] = dict(zip(schema.NAMES, zip(*events, strict=True), strict=False))
    columns["file_order"] = range(first, first + len(events))
    arrays = [pa.array(columns.get(f.name, ()), type=cast("Any", f.type)) for f in SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def quarantine_to_batch(rows: Iterable[Quarantined]) -> pa.RecordBatch:
    """Return quarantined records as a batch."""
    columns = list(zip(*rows, strict=True)) or [()] * len(QUARANTINE_SCHEMA)
    arrays = [
        pa.array(column, type=cast("Any", f.type))
        for column, f in zip(columns, QUARANTINE_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=QUARANTINE_SCHEMA)


class Waiting:
    """Builder of batches of at most `batch_rows` events from the items of readers."""

    def __init__(self, batch_rows: int) -> None:
        self.max_rows = batch_rows
        self.details: dict[str, int | str] = {}
        self.previous_events = 0
        """Events in earlier batches."""
        self._reset()

    def _reset(self) -> None:
        self.rows = 0
        self.parts: list[list[tuple[Event, ExtraRows | None]] | Chunk] = []
        self.bad: list[Quarantined] = []

    def take(self, item: Chunk | Detail | tuple[Item, ExtraRows | None]) -> Iterator[EventBatch]:
        """Add an item of a reader; yield the batches that it fills."""
        if isinstance(item, Detail):
            note(self.details, item)
        elif isinstance(item, Chunk):
            yield from self._add_chunk(item)
        else:
            self._add_item(*item)
        if self.rows >= self.max_rows or len(self.bad) >= self.max_rows:
            yield self.batch()

    def _add_chunk(self, chunk: Chunk) -> Iterator[EventBatch]:
        total = chunk.events.num_rows
        first = 0
        while first < total:
            rows = min(self.max_rows - self.rows, total - first)
            mine = None if chunk.extra is None else chunk.extra[first : first + rows]
            self.parts.append(Chunk(chunk.events.slice(first, rows), mine))
            self.rows += rows
            first += rows
            if self.rows >= self.max_rows and first < total:
                yield self.batch()

    def _add_item(self, item: Item, extra: ExtraRows | None) -> None:
        if isinstance(item, Detail):
            note(self.details, item)
        elif isinstance(item, Quarantined):
            self.bad.append(item)
        elif is_blank(item.id):
            self.bad.append(_quarantine_event(item, NO_ID))
        else:
            if not self.parts or isinstance(self.parts[-1], Chunk):
                self.parts.append([])
            cast("list[Any]", self.parts[-1]).append((item, extra))
            self.rows += 1

    def batch(self) -> EventBatch:
        """Return a batch of the collected items, possibly empty."""
        parts: list[pa.RecordBatch] = []
        rows: list[Any] = []
        refused: list[Quarantined] = []
        for made in self.parts:
            if isinstance(made, Chunk):
                parts.append(made.events)
                if made.extra is not None:
                    rows += made.extra if isinstance(made.extra, list) else [made.extra]
                continue
            stored, unfit, kept = _split_storable([event for event, _ in made])
            parts.append(stored)
            refused += unfit
            rows += [made[k][1] for k in kept if made[k][1] is not None]
        events = _number_rows(parts, self.previous_events)
        bad = quarantine_to_batch([*self.bad, *refused])
        self.previous_events += events.num_rows
        self._reset()
        return EventBatch(events, bad, dict(self.details), rows_to_table(rows) if rows else None)


def _number_rows(parts: Sequence[pa.RecordBatch], first: int) -> pa.RecordBatch:
    if not parts:
        return to_batch([])
    same = [pa.RecordBatch.from_arrays(part.columns, schema=SCHEMA) for part in parts]
    whole: Any = cast("Any", pa).concat_batches(same)
    at = SCHEMA.names.index("file_order")
    numbers = pa.array(np.arange(first, first + whole.num_rows))
    numbered: pa.RecordBatch = whole.set_column(at, SCHEMA.field(at), numbers)
    return numbered


def _split_storable(events: list[Event]) -> tuple[pa.RecordBatch, list[Quarantined], Sequence[int]]:
    """Return a batch of the storable events, the quarantined others, and the stored indices."""
    try:
        return to_batch(events), [], range(len(events))
    except _STORE_ERRORS:
        good: list[int] = []
        refused: list[Quarantined] = []
        for number, event in enumerate(events):
            try:
                to_batch([event])
            except _STORE_ERRORS as error:
                refused.append(
                    _quarantine_event(event, f"a value does not fit the schema: {error}")
                )
            else:
                good.append(number)
        return to_batch([events[number] for number in good]), refused, good


def _quarantine_event(event: Event, reason: str) -> Quarantined:
    source = event.source if event.source is None else shorten(event.source)
    shown = {k: v for k, v in event._asdict().items() if v not in (None, ())}
    return Quarantined(source, event.line, None, shorten(reason), shorten(str(shown)))


def note(details: dict[str, int | str], item: Detail) -> None:
    """Add a detail of a file: numbers are summed, distinct texts are joined by "; "."""
    before = details.get(item.name)
    if isinstance(before, int) and isinstance(item.value, int):
        details[item.name] = before + item.value
    elif before is None:
        details[item.name] = item.value
    elif f"; {item.value}; " not in f"; {before}; ":
        details[item.name] = f"{before}; {item.value}"
