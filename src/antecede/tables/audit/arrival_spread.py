"""Several arrivals of one message: spread of its receivers' clocks and arrivals.

Rows of kind `receive` have the arrival at one receiver, by its own clock. An edge of causes is late
at a receiver that has the effect first: a late arrival, or a clock that was set back. It is late
over all receivers where sorting by arrivals puts the effect first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.quantiles import quantile
from antecede.tables.audit.counts import Counts
from antecede.tables.kernels import Ints, encode_column, graph
from antecede.tables.trace import DELIVER, RECEIVE

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays

QUANTILES = {"min": 0.0, "p50": 0.5, "p99": 0.99, "max": 1.0}
PIECE = 1 << 20  # edges that are looked at together


class _Receipts(NamedTuple):
    """The first arrival of each message at each receiver that has a time for it."""

    start: Ints  # [events + 1] where each event's receipts begin
    receiver: Ints  # [receipts] number of the receiver, ascending within an event
    time: Ints  # [receipts] arrival in ns by the receiver's clock


def arrivals(table: pa.Table, counts: Counts) -> dict[str, Any]:
    """Return counts of the receive rows of a table, for its counted events.

    Keys: `receivers`, `receipts_without_time`, `messages_with_several_times` (at two receivers or
    more), `spread_ns` (of these: least, median, 99th percentile and largest difference of arrivals,
    by nearest rank; or None), `edges_late_at_a_receiver`, `edges_late_over_all_receivers`, and
    `offsets_ns`: by receiver, the median of its time less the event's own `arrival`.
    """
    rows = table.filter(pc.equal(table["kind"], RECEIVE))
    rows = rows.filter(pc.and_(rows["member"].is_valid(), rows["id"].is_valid()))
    timed = rows.filter(rows["arrival"].is_valid())
    names, receipts = _receipts(timed, counts.events)
    count = np.diff(receipts.start)
    several = np.flatnonzero(count > 1)
    first, last = _ends(receipts, count)
    spread = np.sort(last[several] - first[several])
    apart = {name: int(quantile(spread, q)) for name, q in QUANTILES.items() if len(several)}
    pieces = range(0, len(counts.sender), PIECE)
    both = (count[counts.sender] > 0) & (count[counts.receiver] > 0)
    late = last[counts.sender[both]] > first[counts.receiver[both]]
    return {
        "receivers": pc.count_distinct(rows["member"]).as_py(),
        "receipts_without_time": len(rows) - len(timed),
        "messages_with_several_times": len(several),
        "spread_ns": apart or None,
        "edges_late_at_a_receiver": sum(
            _late_at_one(counts.sender[k : k + PIECE], counts.receiver[k : k + PIECE], receipts)
            for k in pieces
        ),
        "edges_late_over_all_receivers": int(np.count_nonzero(late)),
        "offsets_ns": _offsets(names, receipts, counts.events),
    }


def _receipts(timed: pa.Table, events: pa.Table) -> tuple[list[str], _Receipts]:
    """Return the receivers' names and their first arrivals of the counted events."""
    at: Any = pc.index_in(graph.keys(timed), value_set=graph.keys(events))
    known = at.is_valid()
    timed, event = timed.filter(known), at.filter(known).to_numpy().astype(np.int64)
    names, receiver = encode_column(timed["member"])
    time = timed["arrival"].to_numpy()
    order = np.lexsort((time, receiver, event))
    event, receiver, time = event[order], receiver[order], time[order]
    again = (event[1:] == event[:-1]) & (receiver[1:] == receiver[:-1])
    keep = np.concatenate((np.ones(min(1, len(event)), np.bool_), ~again))
    start = np.zeros(len(events) + 1, np.int64)
    np.cumsum(np.bincount(event[keep], minlength=len(events)), out=start[1:])
    return names, _Receipts(start, receiver[keep], time[keep])


def _ends(receipts: _Receipts, count: Ints) -> tuple[Ints, Ints]:
    """Return the earliest and the latest arrival of each event; 0 where there is none [events]."""
    first, last = np.zeros(len(count), np.int64), np.zeros(len(count), np.int64)
    heard = np.flatnonzero(count)
    if len(heard):
        first[heard] = np.minimum.reduceat(receipts.time, receipts.start[heard])
        last[heard] = np.maximum.reduceat(receipts.time, receipts.start[heard])
    return first, last


def _late_at_one(cause: Ints, effect: Ints, receipts: _Receipts) -> int:
    """Count edges of which some receiver has the effect before the cause by its own clock."""
    count = receipts.start[effect + 1] - receipts.start[effect]
    edge = np.repeat(np.arange(len(effect)), count)
    before = np.cumsum(count) - count
    at = np.arange(len(edge)) - before[edge] + receipts.start[effect][edge]
    if not len(edge):
        return 0
    width = int(receipts.receiver.max()) + 1
    event = np.repeat(np.arange(len(receipts.start) - 1), np.diff(receipts.start))
    keys = event * width + receipts.receiver  # ascending
    wanted = cause[edge] * width + receipts.receiver[at]
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    late = (keys[place] == wanted) & (receipts.time[place] > receipts.time[at])
    return len(np.unique(edge[late]))


def _offsets(names: list[str], receipts: _Receipts, events: pa.Table) -> dict[str, int]:
    """Return the median lead of each receiver's clock over the archive's, ns."""
    second_hand = pc.is_in(events["kind"], value_set=pa.array([RECEIVE, DELIVER]))
    own = pc.and_(events["arrival"].is_valid(), pc.invert(second_hand)).to_numpy()
    archived = pc.fill_null(events["arrival"], 0).to_numpy()
    event = np.repeat(np.arange(len(events)), np.diff(receipts.start))
    known = own[event]
    ahead = receipts.time[known] - archived[event[known]]
    receiver = receipts.receiver[known]
    order = np.lexsort((ahead, receiver))
    ahead, receiver = ahead[order], receiver[order]
    start = np.searchsorted(receiver, np.arange(len(names) + 1))
    return {
        name: int(quantile(ahead[start[k] : start[k + 1]], 0.5))
        for k, name in enumerate(names)
        if start[k] < start[k + 1]
    }
