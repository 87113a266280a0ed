"""Vector-clock logs as runs: every event is a message, received by one observer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.false_causality.columns import count_excluded, read_send_times, to_integers
from antecede.tables.false_causality.executions import FILE_ORDER, MAX_BYTES, RECEIPT, TraceRun
from antecede.tables.false_causality.kernels.clock_log import (
    compute_rank_vectors,
    mask_impossible_claims,
)
from antecede.tables.false_causality.kernels.rule_terms import Counters
from antecede.tables.kernels import (
    Bools,
    ClockLog,
    Graph,
    Ints,
    build_graph,
    clock_log,
    find_clock_inconsistencies,
    nodes_on_cycles,
)

pc: Any = pyarrow.compute  # incomplete stubs

MAX_COUNTER = 2**62 - 2  # larger values are neither counts nor nanoseconds before the year 2116


def read_clock_log(name: str | None, table: pa.Table) -> TraceRun:
    """Return a run of a vector-clock log; an event's number at its member becomes its rank.

    Excluded and counted: events without a clock, a member or an own entry, with a repeated number
    or an impossible clock. Raise InputError if the vectors do not fit into memory.
    """
    notes: dict[str, int] = {}
    table = _keep_usable(table, notes)
    table, log = _drop_cycles(*_keep_numbered(table, notes), notes)
    vector = _compute_vectors(log)
    n, column = len(log.own), _number_members(log)
    defects = find_clock_inconsistencies(log)
    wrong = int(np.count_nonzero(defects.lowered)) + defects.mutual
    back = np.empty(n, np.int64)
    back[log.row] = np.arange(n)
    named = table["member"].to_pylist()
    names = [""] * vector.shape[1]
    for row, member in zip(log.row.tolist(), column[log.member].tolist(), strict=True):
        names[member] = str(named[row])
    order = np.argsort(to_integers(table["file_order"]), kind="stable")
    return TraceRun(
        name,
        RECEIPT,
        [str(one) for one in table["id"].to_pylist()],
        names,
        column[log.member][back],
        read_send_times(table),
        None,
        [],
        {FILE_ORDER: order.astype(np.int64)},
        past=_build_past(log, vector),
        vector=vector[back],
        excluded_rows=notes,
        clock_inconsistencies=wrong,
    )


def _keep_usable(table: pa.Table, excluded: dict[str, int]) -> pa.Table:
    clocked = table["clock_members"].is_valid().to_numpy()
    count_excluded(excluded, "no clock", ~clocked)
    table = table.filter(pa.array(clocked)).combine_chunks()
    has_member = table["member"].is_valid().to_numpy()
    count_excluded(excluded, "no member whose clock it is", ~has_member)
    table = table.filter(pa.array(has_member)).combine_chunks()
    if "run" in table.column_names:
        table = table.drop_columns(["run"])
    lists: Any = table["clock_counts"].combine_chunks()
    if isinstance(lists, pa.ChunkedArray) or not len(lists):
        return table
    counts = pc.fill_null(pc.list_flatten(lists), 0).to_numpy()
    owner = pc.list_parent_indices(lists).to_numpy()
    absurd = np.zeros(len(table), np.bool_)
    absurd[owner[(counts > MAX_COUNTER) | (counts < 0)]] = True
    count_excluded(
        excluded, "a counter of the clock is no count (negative, or 2^62 - 1 and more)", absurd
    )
    return table.filter(pa.array(~absurd)).combine_chunks()


def _keep_numbered(table: pa.Table, excluded: dict[str, int]) -> tuple[pa.Table, ClockLog]:
    log = clock_log(table)
    order = np.lexsort((log.row, log.own, log.member))
    same = (np.diff(log.member[order]) == 0) & (np.diff(log.own[order]) == 0)
    again = np.zeros(len(log.own), np.bool_)
    again[order[1:][same]] = True
    nameless = log.own <= 0
    count_excluded(excluded, "the clock has no entry of its own member", nameless)
    count_excluded(
        excluded, "an earlier event of the member has the same number", again & ~nameless
    )
    return _filter_log(table, log, ~again & ~nameless)


def _drop_cycles(
    table: pa.Table, log: ClockLog, excluded: dict[str, int]
) -> tuple[pa.Table, ClockLog]:
    impossible = mask_impossible_claims(log)
    count_excluded(excluded, "the clock knows what its member's own past forbids", impossible)
    table, log = _filter_log(table, log, ~impossible)
    circular = nodes_on_cycles(_build_past(log, _compute_vectors(log))) >= 0
    count_excluded(excluded, "clocks put it before itself", circular)
    return _filter_log(table, log, ~circular[log.row])


def _filter_log(table: pa.Table, log: ClockLog, good: Bools) -> tuple[pa.Table, ClockLog]:
    if good.all():
        return table, log
    table = table.take(np.sort(log.row[good])).combine_chunks()
    return table, clock_log(table)


def _number_members(log: ClockLog) -> Ints:
    """Return the index of each member of the log among those with events, or -1."""
    members = np.unique(log.member)
    column = np.full(len(log.start) - 1, -1, np.int64)
    column[members] = np.arange(len(members))
    return column


def _compute_vectors(log: ClockLog) -> Counters:
    n, column = len(log.own), _number_members(log)
    width = int(column.max(initial=-1)) + 1
    if n * width * 4 > MAX_BYTES:
        raise InputError(f"{n:,} events with clocks of {width:,} members do not fit")
    return compute_rank_vectors(log, column, width)


def _build_past(log: ClockLog, vector: Counters) -> Graph:
    """Return the edges between rows of the table, by the clocks.

    An event follows its member's previous event, and the last event of each other member that is
    new in its clock. Logs omit events, so the clock need not name it exactly.
    """
    follows = np.flatnonzero(np.diff(log.member) == 0) + 1
    newer = vector > 0
    newer[follows] = vector[follows] > vector[follows - 1]
    newer[np.arange(len(vector)), _number_members(log)[log.member]] = False
    receiver, column = np.nonzero(newer)
    begin = log.start[np.unique(log.member)]
    sender = log.sorted_event[begin[column] + vector[receiver, column] - 1]
    effect = log.row[np.r_[receiver, follows]]
    cause = log.row[np.r_[sender, follows - 1]]
    return build_graph(len(log.own), effect, cause)
