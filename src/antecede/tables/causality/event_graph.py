"""Graph of an execution with rows of sends and receipts.

Happened-before of Lamport 1978: a member's events follow each other as listed, and an arrival of a
message follows its sending, within one run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.tables.causality.kernels.reachability import EventGraph
from antecede.tables.kernels import Bools, Ints, causes_first, encode_column
from antecede.tables.trace import DELIVER, RECEIVE, SEND, are_blank

pc: Any = pyarrow.compute
NOWHERE = -1


class ExecutionGraph(NamedTuple):
    """Rows of an execution as a graph, and counts of invalid rows."""

    graph: EventGraph
    never_sent: int  # arrivals of messages without a send row
    on_cycles: int  # rows that precede themselves


def tells_of_arrivals(events: pyarrow.Table) -> bool:
    """Return whether a table in the schema has rows of sends and rows of arrivals."""
    kinds = set(events["kind"].unique().to_pylist())
    return SEND in kinds and bool({RECEIVE, DELIVER} & kinds)


def build_execution(events: pyarrow.Table) -> ExecutionGraph:
    """Return the graph of a table in the schema; every row is an event. O(rows log rows)."""
    run, member, message = (encode_column(events[n])[1] + 1 for n in ("run", "member", "id"))
    kind: Any = events["kind"]
    sends = pc.equal(kind, SEND).to_numpy().astype(np.bool_)
    arrivals = pc.is_in(kind, pyarrow.array([RECEIVE, DELIVER])).to_numpy().astype(np.bool_)
    named = pc.invert(pc.fill_null(are_blank(events["id"]), True)).to_numpy().astype(np.bool_)
    sends &= named
    place = events["file_order"].to_numpy()
    own = find_predecessors(run, member, place)
    copy = run * (int(message.max(initial=0)) + 1) + message
    sent = first_rows(copy, sends)
    sent = np.where(named, sent, NOWHERE)
    never = int(np.count_nonzero(arrivals & (sent == NOWHERE)))
    sent = np.where(arrivals & _find_first_arrivals(copy, member, place, arrivals), sent, NOWHERE)
    # A member's own message precedes its arrival there by the order of its events.
    both = np.stack([own, np.where(sent == own, NOWHERE, sent)], axis=1)
    present = both != NOWHERE
    offsets = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int64)
    causes = both[present]
    alive = np.ones(len(own), np.bool_)
    order, on_cycle = causes_first(offsets, causes, alive)
    steps = EventGraph(offsets, causes, alive & ~on_cycle, order)
    return ExecutionGraph(steps, never, int(on_cycle.sum()))


def _find_first_arrivals(copy: Ints, member: Ints, place: Ints, arrivals: Bools) -> Bools:
    rows = np.flatnonzero(arrivals)
    rows = rows[np.lexsort((place[rows], member[rows], copy[rows]))]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (copy[rows][1:] != copy[rows][:-1]) | (member[rows][1:] != member[rows][:-1])
    new |= member[rows] == 0  # without a member no row follows another
    first = np.zeros(len(arrivals), np.bool_)
    first[rows[new]] = True
    return first


def find_predecessors(run: Ints, member: Ints, place: Ints) -> Ints:
    """Return the preceding row of each row at its member; -1: none. Member 0 is none."""
    line = run * (int(member.max(initial=0)) + 1) + member
    order = np.lexsort((place, line))
    before = np.full(len(line), NOWHERE, np.int64)
    same = (line[order][1:] == line[order][:-1]) & (member[order][1:] > 0)
    before[order[1:][same]] = order[:-1][same]
    return before


def add_predecessors(offsets: Ints, causes: Ints, own: Ints) -> tuple[Ints, Ints]:
    """Return offsets and causes of a graph with the row `own` [rows] as a last cause; -1: none."""
    count = np.diff(offsets)
    more = own >= 0
    wider = np.concatenate([[0], np.cumsum(count + more)]).astype(np.int64)
    found = np.empty(wider[-1], np.int64)
    edge = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(causes)) - offsets[:-1][edge]
    found[wider[:-1][edge] + within] = causes
    found[(wider[1:] - 1)[more]] = own[more]
    return wider, found


def first_rows(key: Ints, among: Bools) -> Ints:
    """Return for each row the first of the rows `among` that has its key; -1: none."""
    rows = np.flatnonzero(among)
    known, first = np.unique(key[rows], return_index=True)
    if not len(known):
        return np.full(len(key), NOWHERE, np.int64)
    at = np.minimum(np.searchsorted(known, key), len(known) - 1)
    return np.where(known[at] == key, rows[first[at]], NOWHERE)
