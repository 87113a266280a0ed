"""Causal order of an Arrow table: the engine of local runs and of every Spark task.

Theory of operation
-------------------
1. `keys` numbers ids and causes and marks rows with bad keys.
2. The first row of each identity by (time, content) takes part; the others are marked.
3. Causes are found by binary search; memory depends on rows and causes, not on their numbers.
4. The kernel excludes cycles and computes releases.

**The order is defined.** A row is released at r = max(its time, r of its causes). Its d is 0, or
one more than the largest d of a cause with the same r. Rows are sorted by (r, d, time, identity)
within their group, so every engine and every order of the rows gives the same result. A row without
time takes the r of its causes (the beginning, if it has none). Without any times the order is (d,
identity). Nulls come last among equal (r, d). Identity is the id, or (member, count), or (sender,
number); its order is that of `keys.goes_by_value`.

**Waits.** A row waits from its own time until the last of its causes is released. Only causes
released after it came count as waited for. Rows of equal time came together: neither waits. Without
`time` only missing causes are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from antecede.errors import InputError
from antecede.tables.kernels import (
    BEFORE_ALL,
    MISSING,
    WAITED,
    Bools,
    Bytes,
    Ints,
    by_release,
    causes_first,
    positions,
    release,
)
from antecede.tables.order.keys import STATUSES, Array, RowKeys, code, keys_of, read_tie_columns
from antecede.tables.order.row_hash import content_digests
from antecede.tables.order.spec import OrderSpec, Status
from antecede.tables.trace import warn_none

pa: Any = pyarrow  # its stubs lack some of the types used here
pc: Any = pyarrow.compute
Digests = NDArray[np.int64]
_PER_MS = {"s": 0.001, "ms": 1.0, "us": 1e3, "ns": 1e6}


def order_table(
    table: pyarrow.Table, spec: OrderSpec, digest: Digests | None = None
) -> pyarrow.Table:
    """Return the table, rows in their order, with the added columns of the spec.

    `digest` has two numbers a row, shape (rows, 2): of the content columns, and of the columns that
    the spec reads (None: computed here). Raises InputError for absent columns and unusable types;
    rows with bad values get a status. Warns with `NoEvidenceWarning` if no cell supports an order
    (`antecede.tables.trace.evidence`). O((n + edges) log n) time.
    """
    made, proven = order_rows(table, spec, digest)
    if not proven:
        warn_none(spec.ways)
    return made


def order_rows(
    table: pyarrow.Table, spec: OrderSpec, digest: Digests | None = None
) -> tuple[pyarrow.Table, bool]:
    """Return the table of `order_table`, and whether the cells support the order; never warn."""
    spec.check_columns(table.column_names)
    spec.check_batch()
    if table.num_rows == 0:
        fields = list_added_fields(spec, kind_of(table, spec))
        nothing = [pa.array([], field.type) for field in fields]
        return _append_columns(table, fields, nothing), True
    graph = graph_of(table, spec, digest)
    keys, kinds, alive = graph.keys, graph.kinds, graph.alive
    clocked = alive & (graph.released != BEFORE_ALL) & (graph.per_ms is not None)
    place = positions(graph.order, keys.group, keys.group_count, len(alive))
    columns = [
        pa.array(place, mask=~alive),
        _format_causes(keys, kinds == WAITED, alive),
        _format_causes(keys, kinds == MISSING, alive),
        _compute_waits_ms(graph.released, graph.time, alive & graph.timed, graph.per_ms),
        make_release_column(graph.released, clocked, kind_of(table, spec)),
        graph.format_statuses(),
    ]
    made = _append_columns(table, list_added_fields(spec, kind_of(table, spec)), columns)
    return made, graph.is_supported(spec)


@dataclass(frozen=True, slots=True)
class RowGraph:
    """Rows that take part, their causes, and the defined order; arrays have one entry a row.

    `causes` (row of the cause, -1: nowhere) and `kinds` (THERE, WAITED or MISSING) have one entry
    an edge, grouped by `keys.offsets`. `order` lists the alive rows in order of release.
    """

    keys: RowKeys
    alive: Bools
    causes: Ints
    kinds: Bytes
    order: Ints
    released: Ints
    time: Ints
    timed: Bools
    per_ms: float | None

    def is_supported(self, spec: OrderSpec) -> bool:
        """Return whether another row is a cause, or a clock or number is usable."""
        if spec.id is None:
            return bool(self.alive.any())
        return bool((self.causes >= 0).any())

    def format_statuses(self) -> Array:
        """Return the status of each row as text."""
        return pa.array([str(s) for s in STATUSES]).take(pa.array(self.keys.status))


def graph_of(table: pyarrow.Table, spec: OrderSpec, digest: Digests | None = None) -> RowGraph:
    """Exclude rows without a position, and order the others; see `order_table`."""
    keys = keys_of(table, spec)
    time, timed, per_ms = times_of(table, spec)
    _mark_repeated(keys, time, timed, lambda rows: _hash_rows(table, spec, digest, rows))
    alive = keys.status == code(Status.ORDERED)
    causes, exact = _find_causes(keys, alive)
    order, on_cycle = causes_first(keys.offsets, causes, alive)
    keys.status[on_cycle] = code(Status.CYCLE)
    alive &= ~on_cycle
    released, depth, kinds = release(order, keys.offsets, causes, exact, alive, time, timed)
    order = by_release(order, released, depth, _rank_rows(table, spec, time, timed))
    lacking = np.repeat(np.arange(len(alive)), np.diff(keys.offsets))[kinds == MISSING]
    keys.status[lacking] = code(Status.MISSING_CAUSE)
    return RowGraph(keys, alive, causes, kinds, order, released, time, timed, per_ms)


def list_added_fields(spec: OrderSpec, time: Array) -> tuple[Any, ...]:
    """Return the Arrow fields of the added columns, given the type of the times."""
    names = pa.list_(pa.string())
    kinds = (pa.int64(), names, names, pa.float64(), find_release_type(time), pa.string())
    return tuple(pa.field(n, kind) for n, kind in zip(spec.added, kinds, strict=True))


def kind_of(table: pyarrow.Table, spec: OrderSpec) -> Array:
    """Return the type of the times, None without times."""
    return None if spec.time is None else table.schema.field(spec.time).type


def find_release_type(time: Array) -> Array:
    """Return the type of `released_at` for a type of times: dates become timestamps."""
    if time is None:
        return pa.timestamp("us", "UTC")
    if pa.types.is_date(time):
        return pa.timestamp("us")
    return pa.int64() if pa.types.is_integer(time) else time


def make_release_column(released: Ints, known: Bools, time: Array) -> Array:
    """Return releases, in units of the times, as a column."""
    kind = find_release_type(time)
    if time is None:
        return pa.nulls(len(released), kind)
    unit = pa.timestamp("ms") if pa.types.is_date(time) else kind
    return pa.array(np.where(known, released, 0), mask=~known).cast(unit).cast(kind)


def _append_columns(
    table: pyarrow.Table, fields: tuple[Any, ...], columns: list[Array]
) -> pyarrow.Table:
    for field, column in zip(fields, columns, strict=True):
        table = table.append_column(field, column)
    return table


def times_of(table: pyarrow.Table, spec: OrderSpec) -> tuple[Ints, Bools, float | None]:
    """Return times in their own unit, their mask, and units per ms (None: no unit)."""
    n = table.num_rows
    if spec.time is None:
        return np.zeros(n, np.int64), np.zeros(n, np.bool_), None
    column: Array = table.column(spec.time)
    unit: str | None = spec.time_unit
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    if pa.types.is_timestamp(column.type):
        if unit is not None:
            raise InputError(
                f"time_unit is for integer columns, and column {spec.time} is "
                f"{table.schema.field(spec.time).type}: leave it out"
            )
        unit = column.type.unit
    elif not pa.types.is_integer(column.type):
        raise InputError(f"time column {spec.time} must be a timestamp, not {column.type}")
    timed = column.is_valid().to_numpy()
    whole = pc.fill_null(column.cast(pa.int64()), 0).to_numpy()
    return np.ascontiguousarray(whole), timed, None if unit is None else _PER_MS[unit]


def _rank_rows(table: pyarrow.Table, spec: OrderSpec, time: Ints, timed: Bools) -> Ints:
    columns = {"untimed": pa.array(~timed), "time": pa.array(time)}
    columns |= {f"key{k}": column for k, column in enumerate(read_tie_columns(table, spec))}
    sorting = [(name, "ascending") for name in columns]
    by_rank = pc.sort_indices(pa.table(columns), sort_keys=sorting).to_numpy()
    rank = np.empty(len(by_rank), np.int64)
    rank[by_rank] = np.arange(len(by_rank))
    return rank


def _mark_repeated(
    keys: RowKeys, time: Ints, timed: Bools, digests_of: Callable[[NDArray[np.intp]], Digests]
) -> None:
    """Mark rows after the first of each identity, by (time, content), DUPLICATE or CONFLICT."""
    rows = np.flatnonzero(keys.status == code(Status.ORDERED))
    by_key = rows[np.lexsort((keys.count[rows], keys.actor[rows]))]
    actor, count = keys.actor[by_key], keys.count[by_key]
    same = (actor[1:] == actor[:-1]) & (count[1:] == count[:-1])
    if not same.any():
        return
    repeated = np.concatenate([same, [False]]) | np.concatenate([[False], same])
    suspects = by_key[repeated]
    content, whole = digests_of(suspects).T
    actor, count = keys.actor[suspects], keys.count[suspects]
    ranks = (whole, content, time[suspects], ~timed[suspects], count, actor)
    order = np.lexsort(ranks)
    suspects, content, actor, count = (array[order] for array in (suspects, content, actor, count))
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (actor[1:] != actor[:-1]) | (count[1:] != count[:-1])
    kept = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    equal = content == content[kept]
    keys.status[suspects[~begins & equal]] = code(Status.DUPLICATE)
    keys.status[suspects[~begins & ~equal]] = code(Status.CONFLICT)


def _hash_rows(
    table: pyarrow.Table, spec: OrderSpec, digest: Digests | None, rows: NDArray[np.intp]
) -> Digests:
    """Return two digests of each of these rows: of its content, and of the columns read."""
    if digest is not None:
        return digest[rows]
    some = table.take(pa.array(rows))
    names = [spec.content_of(table.column_names), list(spec.used)]
    return np.stack([content_digests(some.select(columns)) for columns in names], axis=1)


def _find_causes(keys: RowKeys, alive: Bools) -> tuple[Ints, Bools]:
    """Return the row of each cause, and whether it is exact.

    Without an exact row it is that of the nearest earlier count of the actor, or -1.
    """
    rows = np.flatnonzero(alive)
    actors, row_actor = np.unique(keys.actor[rows], return_inverse=True)
    counts, row_count = np.unique(keys.count[rows], return_inverse=True)
    width = len(counts) + 1
    row_key = row_actor * width + row_count + 1
    by_key = np.argsort(row_key)
    row_key, rows = row_key[by_key], rows[by_key]
    actor = np.searchsorted(actors, keys.cause_actor)
    known = actor < len(actors)
    known[known] = actors[actor[known]] == keys.cause_actor[known]
    rank = np.searchsorted(counts, keys.cause_count, side="right")
    at = np.searchsorted(row_key, actor * width + rank, side="right") - 1
    known &= at >= 0
    at = np.where(known, at, 0)
    if len(rows) == 0:
        return np.full(len(at), -1, np.int64), ~keys.required
    known &= keys.actor[rows[at]] == keys.cause_actor
    causes = np.where(known, rows[at], -1)
    exact = known & (keys.count[causes] == keys.cause_count)
    return causes, exact | ~keys.required


def _format_causes(keys: RowKeys, which: Bools, alive: Bools) -> Array:
    edges = np.flatnonzero(which)
    counted = np.concatenate([[0], np.cumsum(which)])
    offsets = counted[keys.offsets].astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), keys.format_causes(edges), mask=pa.array(~alive)
    )


def _compute_waits_ms(released: Ints, time: Ints, known: Bools, per_ms: float | None) -> Array:
    if per_ms is None:
        return pa.nulls(len(time), pa.float64())
    known = known & (released != BEFORE_ALL)
    wait: NDArray[np.float64] = np.where(known, released - time, 0).astype(np.float64)
    far = wait < 0  # the difference exceeds 63 bits
    wait[far] = released[far].astype(np.float64) - time[far].astype(np.float64)
    return pa.array(wait / per_ms, mask=~known)
