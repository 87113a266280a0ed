"""Distinct events of a table: default columns, duplicates, conflicts, declared causes.

`audit`, `false_causality` and `order` share this definition on every engine:

- The first row of an id is the event. Later rows are duplicates; rows that contradict the first
  are quarantined, as are rows without an id.
- Receipts and deliveries are copies of a message. One represents it only if it has no other row.
- The causes of an event are its declared ids: each once, without blanks, without its own id.

Summaries count what is ignored. The graph of causes removes longer cycles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.trace.batches import QUARANTINE_SCHEMA, SCHEMA, quarantine_to_batch
from antecede.tables.trace.causes import Causes
from antecede.tables.trace.identities import (
    are_blank,
    column_to_causes,
    flatten_column,
    ids_of,
    is_blank,
    keys,
)
from antecede.tables.trace.reader import NO_ID
from antecede.tables.trace.schema import DELIVER, RECEIVE, Quarantined, check_cause_column
from antecede.tables.trace.text import shorten

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays

CONTENT = ("member", "causes", "clock_members", "clock_counts")
"""Columns in which all rows of a message must agree; times may differ."""

CLOCK_CONTENT_COLUMNS = ("clock_members", "clock_counts", "text")
"""Columns in which rows of one event of a vector-clock log agree, beside the id."""

NO_CLOCK = "no clock"
BAD_CLOCK = "invalid clock; expected one count of at least 0 for each of its members"

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class DistinctRows(NamedTuple):
    """Distinct events of a table, and counts of the other rows."""

    events: pa.Table
    quarantine: pa.Table
    duplicates: int
    """Later rows of an id, including conflicts."""
    conflicts: int
    """Later rows that contradict the first, quarantined."""
    receipts: int
    deliveries: int
    selfish: Bools
    """Mask of events that list themselves as a cause [events]."""
    causes: Causes


def conform(table: pa.Table) -> pa.Table:
    """Return a table with the schema's columns. Raise InputError without `id` or for a bad type."""
    if "id" not in table.column_names:
        raise InputError("the table has no column id; add or rename one")
    check_cause_column(table.column_names)
    n = len(table)
    columns: list[Any] = []
    for field in SCHEMA:
        if field.name in table.column_names:
            try:
                column = _conform_column(table[field.name], field)
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


def _conform_column(column: Any, field: Any) -> Any:
    """Return a column in the schema's type, null for blanks ("" for a blank id)."""
    if field.name == "id":
        return pc.fill_null(ids_of(column), "")
    if field.name in ("member", "run"):
        return ids_of(column)
    kind = column.type
    if field.name in ("causes", "clock_members") and pa.types.is_floating(
        getattr(kind, "value_type", kind)
    ):
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
        offsets: Any = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        values = _concat_chunks(column_to_causes(pc.list_flatten(column)), pa.string())
        missing = _concat_chunks(column.is_null(), pa.bool_())
        return pa.chunked_array([pa.ListArray.from_arrays(offsets, values, mask=missing)])
    return column.cast(field.type)


def _concat_chunks(column: Any, kind: Any) -> Any:
    return pa.concat_arrays([pa.array([], kind), *column.cast(kind).chunks])


def distinct(table: pa.Table, by_clock: bool) -> DistinctRows:
    """Return the events of a table in the schema.

    `by_clock` (vector-clock logs): rows of one event also agree in text and clock, because a
    restarted member counts from 1 again.
    """
    named = pc.fill_null(pc.invert(are_blank(table["id"])), False)
    bad = [_quarantine_row(row, NO_ID) for row in table.filter(pc.invert(named)).to_pylist()]
    table = table.filter(named)
    kind = table["kind"]
    receipt = pc.equal(kind, RECEIVE).to_numpy()
    delivery = pc.equal(kind, DELIVER).to_numpy()
    second_hand = receipt | delivery
    first = _find_first_rows(table, second_hand, by_clock)
    own = np.arange(len(table))
    later = np.flatnonzero((first != own) & ~second_hand)
    conflicts = [] if by_clock else _find_conflicts(table, later, first)
    bad += conflicts
    chosen = table if not len(table) else table.take(np.flatnonzero(first == own))
    quarantine = pa.Table.from_batches([quarantine_to_batch(bad)], QUARANTINE_SCHEMA)
    second = int(receipt.sum()), int(delivery.sum())
    selfish, causes = np.zeros(len(chosen), np.bool_), Causes()
    if not by_clock:
        chosen, selfish, causes = _clean_causes(chosen)
    return DistinctRows(chosen, quarantine, len(later), len(conflicts), *second, selfish, causes)


def _clean_causes(events: Any) -> tuple[Any, Bools, Causes]:
    """Return events with cleaned causes, a mask of self-references [n], and counts."""
    lists = events["causes"].combine_chunks()
    selfish = np.zeros(len(events), np.bool_)
    if isinstance(lists, pa.ChunkedArray) or not len(lists):
        return events, selfish, Causes()
    names: Any = pc.list_flatten(lists)
    child = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    blank = pc.fill_null(are_blank(names), True)
    blank = blank.to_numpy(zero_copy_only=False)
    own = pc.fill_null(pc.equal(names, flatten_column(events, "id").take(pa.array(child))), False)
    own = own.to_numpy(zero_copy_only=False)
    again = _find_repeats(child, names, ~blank & ~own)
    selfish[child[own]] = True
    causes = Causes(int(np.count_nonzero(selfish)), int(again.sum()), int(blank.sum()))
    left = blank | own | again
    if not left.any():
        return events, selfish, causes
    start = np.zeros(len(events) + 1, np.int32)
    np.cumsum(np.bincount(child[~left], minlength=len(events)), out=start[1:])
    offsets: Any = pa.array(start)
    kept = pa.ListArray.from_arrays(offsets, names.filter(pa.array(~left)))
    at = events.column_names.index("causes")
    field = events.schema.field(at)
    return events.set_column(at, field, kept.cast(field.type)), selfish, causes


def _find_repeats(child: Ints, names: Any, candidates: Bools) -> Bools:
    """Return a mask of names that repeat an earlier one of the same event [names]."""
    code = pc.fill_null(names.dictionary_encode().indices, 0).to_numpy().astype(np.int64)
    at = np.flatnonzero(candidates)
    pair = child[at] * (int(code.max(initial=0)) + 1) + code[at]
    _, first = np.unique(pair, return_index=True)
    again = candidates.copy()
    again[at[first]] = False
    return again


def _find_first_rows(table: pa.Table, is_copy: Bools, has_clocks: bool) -> Ints:
    """Return the representative row of each row's event [n]."""
    of_rows: Any = keys(table)
    if has_clocks:
        rest = zip(
            of_rows.to_pylist(),
            *(table[name].to_pylist() for name in CLOCK_CONTENT_COLUMNS),
            strict=True,
        )
        of_rows = pa.array([repr(row) for row in rest], pa.string())
    codes = of_rows.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    order = np.lexsort((np.arange(len(codes)), is_copy))
    _, at, inverse = np.unique(codes[order], return_index=True, return_inverse=True)
    first = np.empty(len(codes), dtype=np.int64)
    first[order] = order[at][inverse]
    return first


def _find_conflicts(table: pa.Table, later: Ints, first: Ints) -> list[Quarantined]:
    if not len(later):
        return []
    content = table.select(list(CONTENT))
    ours = content.take(later).to_pylist()
    theirs = content.take(first[later]).to_pylist()
    found = []
    for row, mine, other in zip(later.tolist(), ours, theirs, strict=True):
        different = [
            name for name in CONTENT if _to_comparable(mine[name]) != _to_comparable(other[name])
        ]
        if different:
            record = table.slice(row, 1).to_pylist()[0]
            reason = f"an earlier row of this id differs in {', '.join(different)}; that one counts"
            found.append(_quarantine_row(record, reason))
    return found


def _to_comparable(value: Any) -> Any:
    return frozenset(value) if isinstance(value, list) else value


def clock_refusal(member: Any, names: list[Any] | None, counts: list[Any] | None) -> str:
    """Return why a row of a vector-clock log is not an event, "" if it is."""
    if names is None:
        return NO_CLOCK
    counts = counts or []
    if len(names) != len(counts) or len({*names}) != len(names) or any(map(is_blank, names)):
        return BAD_CLOCK
    if any(count is None or count < 0 for count in counts):
        return BAD_CLOCK
    return "" if dict(zip(names, counts, strict=True)).get(member) else no_own_entry(member)


def no_own_entry(member: Any) -> str:
    """Return the reason of a clock without an entry of its own member."""
    return f"the clock has no entry of its own member {member!r}"


def refuse(rows: pa.Table, reasons: list[str]) -> pa.Table:
    """Return events as quarantined records, each with its reason."""
    records = zip(rows.to_pylist(), reasons, strict=True)
    batch = quarantine_to_batch([_quarantine_row(record, reason) for record, reason in records])
    return pa.Table.from_batches([batch], QUARANTINE_SCHEMA)


def _quarantine_row(record: dict[str, Any], reason: str) -> Quarantined:
    shown = {name: value for name, value in record.items() if value not in (None, [])}
    id = None if is_blank(record["id"]) else record["id"]
    return Quarantined(record["source"], record["line"], id, reason, shorten(str(shown)))
