"""Spread of arrival times of messages with several receivers.

An edge is late at a receiver if the effect arrives there before the cause, by the receiver's clock:
a late arrival, or a clock that was set back. It is late over all receivers if sorting by arrival
puts the effect first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.quantiles import quantile
from antecede.tables.audit.counts import AuditCounts
from antecede.tables.kernels import Ints, encode_column, graph
from antecede.tables.trace import DELIVER, RECEIVE

pc: Any = pyarrow.compute  # incomplete stubs

QUANTILES = {"min": 0.0, "p50": 0.5, "p99": 0.99, "max": 1.0}
EDGES_PER_BLOCK = 1 << 20  # edges


class _Receipts(NamedTuple):
    start: Ints  # [events + 1] begin of each event's receipts
    receiver: Ints  # [receipts] number of the receiver, ascending within an event
    time: Ints  # [receipts] arrival in ns by the receiver's clock


def summarize_arrivals(table: pa.Table, counts: AuditCounts) -> dict[str, Any]:
    """Return counts of the receive rows of a table, for its counted events.

    Keys: `receivers`, `receipts_without_time`, `messages_with_several_times` (at two or more
    receivers), `edges_late_at_a_receiver` and `edges_late_over_all_receivers`. `spread_ns` has the
    differences of arrivals of such messages: minimum, median, 99th percentile and maximum by
    nearest rank, or None. `offsets_ns` has the median of each receiver's time minus the event's own
    `arrival`.
    """
    rows = table.filter(pc.equal(table["kind"], RECEIVE))
    rows = rows.filter(pc.and_(rows["member"].is_valid(), rows["id"].is_valid()))
    timed = rows.filter(rows["arrival"].is_valid())
    names, receipts = _collect_receipts(timed, counts.events)
    count = np.diff(receipts.start)
    several = np.flatnonzero(count > 1)
    first, last = _find_first_and_last(receipts, count)
    spread = np.sort(last[several] - first[several])
    apart = {name: int(quantile(spread, q)) for name, q in QUANTILES.items() if len(several)}
    pieces = range(0, len(counts.sender), EDGES_PER_BLOCK)
    both = (count[counts.sender] > 0) & (count[counts.receiver] > 0)
    late = last[counts.sender[both]] > first[counts.receiver[both]]
    return {
        "receivers": pc.count_distinct(rows["member"]).as_py(),
        "receipts_without_time": len(rows) - len(timed),
        "messages_with_several_times": len(several),
        "spread_ns": apart or None,
        "edges_late_at_a_receiver": sum(
            _count_late_at_one(
                counts.sender[k : k + EDGES_PER_BLOCK],
                counts.receiver[k : k + EDGES_PER_BLOCK],
                receipts,
            )
            for k in pieces
        ),
        "edges_late_over_all_receivers": int(np.count_nonzero(late)),
        "offsets_ns": _compute_offsets(names, receipts, counts.events),
    }


def _collect_receipts(timed: pa.Table, events: pa.Table) -> tuple[list[str], _Receipts]:
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


def _find_first_and_last(receipts: _Receipts, count: Ints) -> tuple[Ints, Ints]:
    first, last = np.zeros(len(count), np.int64), np.zeros(len(count), np.int64)
    received = np.flatnonzero(count)
    if len(received):
        first[received] = np.minimum.reduceat(receipts.time, receipts.start[received])
        last[received] = np.maximum.reduceat(receipts.time, receipts.start[received])
    return first, last


def _count_late_at_one(cause: Ints, effect: Ints, receipts: _Receipts) -> int:
    """Count edges whose effect precedes the cause at some receiver, by its own clock."""
    count = receipts.start[effect + 1] - receipts.start[effect]
    edge = np.repeat(np.arange(len(effect)), count)
    before = np.cumsum(count) - count
    at = np.arange(len(edge)) - before[edge] + receipts.start[effect][edge]
    if not len(edge):
        return 0
    width = int(receipts.receiver.max()) + 1
    event = np.repeat(np.arange(len(receipts.start) - 1), np.diff(receipts.start))
    keys = event * width + receipts.receiver  # ascending
    cause_keys = cause[edge] * width + receipts.receiver[at]
    place = np.minimum(np.searchsorted(keys, cause_keys), len(keys) - 1)
    late = (keys[place] == cause_keys) & (receipts.time[place] > receipts.time[at])
    return len(np.unique(edge[late]))


def _compute_offsets(names: list[str], receipts: _Receipts, events: pa.Table) -> dict[str, int]:
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
