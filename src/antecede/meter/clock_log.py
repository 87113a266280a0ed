"""Vector-clock logs as executions: every event is a message that the one observer sees."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from antecede.errors import InputError
from antecede.kernels.clocks import clock_edges, clock_log
from antecede.kernels.graph import graph
from antecede.meter.columns import note, times, whole
from antecede.meter.trace import EVERYTHING, MAX_BYTES, RECEIPT, Run


def logged(name: str | None, table: pa.Table) -> Run:
    """Return a run of a vector-clock log: the vector's entries are numbers of events.

    Left out: events without a clock or without an own entry, and those that repeat a number of
    their member. Raises InputError when the vectors do not fit into memory.
    """
    notes: dict[str, int] = {}
    clocked = table["clock_members"].is_valid().to_numpy()
    note(notes, "no clock", ~clocked)
    table = table.filter(pa.array(clocked)).combine_chunks()
    if "run" in table.column_names:
        table = table.drop_columns(["run"])
    log = clock_log(table)
    rows = np.argsort(log.row)  # the first row of a number counts
    pair = log.member[rows] * (int(log.own.max(initial=0)) + 1) + log.own[rows]
    again = np.ones(len(rows), np.bool_)
    again[rows[np.unique(pair, return_index=True)[1]]] = False
    note(notes, "the clock has no entry of its own member", log.own == 0)
    note(notes, "an earlier event of the member has the same number", again & (log.own > 0))
    good = ~again & (log.own > 0)
    if not good.all():
        keep = np.sort(log.row[good])
        table = table.take(keep).combine_chunks()
        log = clock_log(table)
    members = len(log.start) - 1
    if len(log.own) * members * 4 > MAX_BYTES:
        raise InputError(f"{len(log.own):,} events with clocks of {members:,} members do not fit")
    n = len(log.own)
    back = np.empty(n, np.int64)
    back[log.row] = np.arange(n)
    vector = np.zeros((n, members), np.int32)
    event = np.repeat(np.arange(n), np.diff(log.entry_start))
    vector[event, log.entry_member] = log.entry_count
    edges = clock_edges(log)
    follows = np.flatnonzero(np.diff(log.member) == 0)
    child = log.row[np.r_[edges.receiver, follows + 1]]
    parent = log.row[np.r_[edges.sender, follows]]
    named = table["member"].to_pylist()
    names = [""] * members  # nobody asks for those that have no event
    for row, member in zip(log.row.tolist(), log.member.tolist(), strict=True):
        names[member] = str(named[row])
    order = np.argsort(whole(table["file_order"]), kind="stable")
    return Run(
        name,
        RECEIPT,
        [str(one) for one in table["id"].to_pylist()],
        names,
        log.member[back],
        whole(table["file_order"]),
        times(table),
        None,
        [],
        {EVERYTHING: order.astype(np.int64)},
        past=graph(n, child, parent),
        vector=vector[back],
        notes=notes,
    )
