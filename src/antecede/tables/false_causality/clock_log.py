"""Vector-clock logs as executions: every event is a message that the one observer sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.false_causality.columns import note, times, whole
from antecede.tables.false_causality.executions import EVERYTHING, MAX_BYTES, RECEIPT, Run
from antecede.tables.false_causality.kernels.clock_log import dense_vectors, impossible_claims
from antecede.tables.false_causality.kernels.rule_terms import Counters
from antecede.tables.kernels import (
    Bools,
    ClockLog,
    Graph,
    Ints,
    build_graph,
    clock_defects,
    clock_log,
    nodes_on_cycles,
)

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays

LARGEST = 2**62 - 2  # beyond is no count, and no clock's nanoseconds before the year 2116


def logged(name: str | None, table: pa.Table) -> Run:
    """Return a run of a vector-clock log; an event's number at its member is its rank there.

    Left out, and noted: events without a clock, a member or an own entry, with a repeated number,
    or with an impossible clock (a counter beyond `LARGEST`; a claim that puts the event before
    itself). Raises InputError when the vectors do not fit into memory.
    """
    notes: dict[str, int] = {}
    table = _usable(table, notes)
    table, log = _without_circles(*_numbered(table, notes), notes)
    vector = _vectors(log)
    n, column = len(log.own), _columns(log)
    defects = clock_defects(log)
    wrong = int(np.count_nonzero(defects.lowered)) + defects.mutual
    back = np.empty(n, np.int64)
    back[log.row] = np.arange(n)
    named = table["member"].to_pylist()
    names = [""] * vector.shape[1]
    for row, member in zip(log.row.tolist(), column[log.member].tolist(), strict=True):
        names[member] = str(named[row])
    order = np.argsort(whole(table["file_order"]), kind="stable")
    return Run(
        name,
        RECEIPT,
        [str(one) for one in table["id"].to_pylist()],
        names,
        column[log.member][back],
        times(table),
        None,
        [],
        {EVERYTHING: order.astype(np.int64)},
        past=_past(log, vector),
        vector=vector[back],
        notes=notes,
        contradictions=wrong,
    )


def _usable(table: pa.Table, notes: dict[str, int]) -> pa.Table:
    """Return the rows with clocks of counters that can be; `run` is dropped."""
    clocked = table["clock_members"].is_valid().to_numpy()
    note(notes, "no clock", ~clocked)
    table = table.filter(pa.array(clocked)).combine_chunks()
    told = table["member"].is_valid().to_numpy()
    note(notes, "no member whose clock it is", ~told)
    table = table.filter(pa.array(told)).combine_chunks()
    if "run" in table.column_names:
        table = table.drop_columns(["run"])
    lists: Any = table["clock_counts"].combine_chunks()
    if isinstance(lists, pa.ChunkedArray) or not len(lists):
        return table
    counts = pc.fill_null(pc.list_flatten(lists), 0).to_numpy()
    owner = pc.list_parent_indices(lists).to_numpy()
    absurd = np.zeros(len(table), np.bool_)
    absurd[owner[(counts > LARGEST) | (counts < 0)]] = True
    note(notes, "a counter of the clock is no count (negative, or 2^62 - 1 and more)", absurd)
    return table.filter(pa.array(~absurd)).combine_chunks()


def _numbered(table: pa.Table, notes: dict[str, int]) -> tuple[pa.Table, ClockLog]:
    """Return the events that have a number of their own, the first row of each, and their log."""
    log = clock_log(table)
    order = np.lexsort((log.row, log.own, log.member))
    same = (np.diff(log.member[order]) == 0) & (np.diff(log.own[order]) == 0)
    again = np.zeros(len(log.own), np.bool_)
    again[order[1:][same]] = True
    nameless = log.own <= 0
    note(notes, "the clock has no entry of its own member", nameless)
    note(notes, "an earlier event of the member has the same number", again & ~nameless)
    return _kept(table, log, ~again & ~nameless)


def _without_circles(
    table: pa.Table, log: ClockLog, notes: dict[str, int]
) -> tuple[pa.Table, ClockLog]:
    """Leave out what would come before itself: first what cannot know what it claims to."""
    impossible = impossible_claims(log)
    note(notes, "the clock knows what its member's own past forbids", impossible)
    table, log = _kept(table, log, ~impossible)
    circular = nodes_on_cycles(_past(log, _vectors(log))) >= 0
    note(notes, "clocks put it before itself", circular)
    return _kept(table, log, ~circular[log.row])


def _kept(table: pa.Table, log: ClockLog, good: Bools) -> tuple[pa.Table, ClockLog]:
    """Return table and log with the good events of the log [n]."""
    if good.all():
        return table, log
    table = table.take(np.sort(log.row[good])).combine_chunks()
    return table, clock_log(table)


def _columns(log: ClockLog) -> Ints:
    """Return for each member of the log its number among those that have events, or -1."""
    members = np.unique(log.member)
    column = np.full(len(log.start) - 1, -1, np.int64)
    column[members] = np.arange(len(members))
    return column


def _vectors(log: ClockLog) -> Counters:
    """Return the clocks as ranks [n, members with events]; raises InputError for too many."""
    n, column = len(log.own), _columns(log)
    width = int(column.max(initial=-1)) + 1
    if n * width * 4 > MAX_BYTES:
        raise InputError(f"{n:,} events with clocks of {width:,} members do not fit")
    return dense_vectors(log, column, width)


def _past(log: ClockLog, vector: Counters) -> Graph:
    """Return the edges between rows of the table, by the clocks.

    An event follows its member's event before, and of every other member the last event that it
    knows and that one did not. Logs leave events out, so it need not be named exactly.
    """
    follows = np.flatnonzero(np.diff(log.member) == 0) + 1
    newer = vector > 0
    newer[follows] = vector[follows] > vector[follows - 1]
    newer[np.arange(len(vector)), _columns(log)[log.member]] = False
    receiver, column = np.nonzero(newer)
    begin = log.start[np.unique(log.member)]
    sender = log.sorted_event[begin[column] + vector[receiver, column] - 1]
    child = log.row[np.r_[receiver, follows]]
    parent = log.row[np.r_[sender, follows - 1]]
    return build_graph(len(log.own), child, parent)
