"""From rows to events: missing columns, identities, repeated rows.

The first row of an id is the event; later rows are duplicates, and those that contradict the
first one go to quarantine. Rows that tell of a message's receipt or delivery are no further
events; one stands in for the message only when no row tells of its sending.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.errors import InputError
from antecede.kernels import graph
from antecede.trace.arrow import QUARANTINE_SCHEMA, SCHEMA, quarantine_batch
from antecede.trace.reader import NO_ID
from antecede.trace.schema import DELIVER, RECEIVE, Quarantined
from antecede.trace.text import shorten

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays

CONTENT = ("member", "parents", "clock_members", "clock_counts")
"""Columns in which two rows of one message must agree; times may differ from copy to copy."""


class Rows(NamedTuple):
    """A table's distinct events, and what became of the other rows."""

    events: pa.Table
    quarantine: pa.Table
    duplicates: int
    """Later rows of an id, those in conflict with the first among them."""
    conflicts: int
    """Of these, the rows that say something else than the first: they are in the quarantine."""
    receipts: int
    deliveries: int


def conform(table: pa.Table) -> pa.Table:
    """Return the table with exactly the columns of the schema; absent ones get their default.

    Raise InputError if there is no `id`, or a column is not of the schema's type.
    """
    if "id" not in table.column_names:
        raise InputError("the table has no column id")
    n = len(table)
    columns: list[Any] = []
    for field in SCHEMA:
        if field.name in table.column_names:
            try:
                column: Any = table[field.name].cast(field.type)
            except pa.ArrowException as error:
                raise InputError(f"column {field.name}: {error}") from error
        elif field.name == "file_order":
            column = pa.array(np.arange(n))
        elif field.name == "kind":
            column = pa.array(["event"] * n, pa.string())
        elif field.nullable:
            column = pa.nulls(n, field.type)
        else:
            column = pa.array([[]] * n, field.type)
        columns.append(column)
    return pa.table(columns, schema=SCHEMA)


def distinct(table: pa.Table, by_clock: bool) -> Rows:
    """Return the events of a table in the schema.

    In vector-clock logs (`by_clock`) two rows are the same event only if text and clock agree
    too, since a member that restarts counts from one again.
    """
    named = pc.fill_null(pc.greater(pc.utf8_length(table["id"]), 0), False)
    bad = [_refuse(row, NO_ID) for row in table.filter(pc.invert(named)).to_pylist()]
    table = table.filter(named)
    kind = table["kind"]
    receipt = pc.equal(kind, RECEIVE).to_numpy()
    delivery = pc.equal(kind, DELIVER).to_numpy()
    second_hand = receipt | delivery
    first = _first_rows(table, second_hand, by_clock)
    own = np.arange(len(table))
    later = np.flatnonzero((first != own) & ~second_hand)
    conflicts = [] if by_clock else _conflicts(table, later, first)
    bad += conflicts
    chosen = table if not len(table) else table.take(np.flatnonzero(first == own))
    quarantine = pa.Table.from_batches([quarantine_batch(bad)], QUARANTINE_SCHEMA)
    second = int(receipt.sum()), int(delivery.sum())
    return Rows(chosen, quarantine, len(later), len(conflicts), *second)


def _first_rows(table: pa.Table, second_hand: graph.Bools, by_clock: bool) -> graph.Ints:
    """Return for each row the row that stands for the same event [n]."""
    keys: Any = graph.keys(table)
    if by_clock:
        rest = zip(
            keys.to_pylist(),
            *(table[name].to_pylist() for name in ("clock_members", "clock_counts", "text")),
            strict=True,
        )
        keys = pa.array([repr(row) for row in rest], pa.string())
    codes = keys.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    order = np.lexsort((np.arange(len(codes)), second_hand))
    _, at, inverse = np.unique(codes[order], return_index=True, return_inverse=True)
    first = np.empty(len(codes), dtype=np.int64)
    first[order] = order[at][inverse]
    return first


def _conflicts(table: pa.Table, later: graph.Ints, first: graph.Ints) -> list[Quarantined]:
    if not len(later):
        return []
    content = table.select(list(CONTENT))
    ours = content.take(later).to_pylist()
    theirs = content.take(first[later]).to_pylist()
    found = []
    for row, mine, other in zip(later.tolist(), ours, theirs, strict=True):
        different = [name for name in CONTENT if _plain(mine[name]) != _plain(other[name])]
        if different:
            record = table.slice(row, 1).to_pylist()[0]
            reason = f"an earlier row of this id differs in {', '.join(different)}; that one counts"
            found.append(_refuse(record, reason))
    return found


def _plain(value: Any) -> Any:
    return frozenset(value) if isinstance(value, list) else value


def refuse(rows: pa.Table, reasons: list[str]) -> pa.Table:
    """Return rows of the quarantine for events, with the reason of each."""
    records = zip(rows.to_pylist(), reasons, strict=True)
    batch = quarantine_batch([_refuse(record, reason) for record, reason in records])
    return pa.Table.from_batches([batch], QUARANTINE_SCHEMA)


def _refuse(record: dict[str, Any], reason: str) -> Quarantined:
    shown = {name: value for name, value in record.items() if value not in (None, [])}
    return Quarantined(record["source"], record["line"], record["id"], reason, shorten(str(shown)))
