"""Pairs of messages that a rule orders, counted without pairs.

Theory of operation
-------------------
Messages are put into lanes: one a sender, or one a sender and set of topics. Along a lane its own
numbers, linear times and counts of its topics grow, so each of these conditions on (a, b) holds
for the first so many messages a of a lane, and all together for the least of these numbers: the
limit of b in that lane. From one b to the next of its lane a limit moves little, and is found from
where it stood. So is a window of values (physical times), where the clock of a's sender never went
back: then the pairs are limit and window intersected. Where it did, and for the arrivals of a
total order, the values of the lane are kept in a Fenwick tree up to the limit.

Work: O(messages * lanes * conditions), for the tree times the logarithm of a lane. Senders are few
beside messages; so are lanes by topics where the observer's subscription is small. With as many
lanes as messages this is no better than all pairs; no better form is known to us then.

The oracle beside this is `tests/reference/meter_pairs.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.false_causality.kernels.rule_terms import (
    ANY,
    LESS,
    Conditions,
    Counters,
    Facts,
    Plan,
    Words,
)
from antecede.tables.kernels import Bools, Ints, add, below, inlined, njit


class Lanes(NamedTuple):
    """Messages by lane, in the order of their numbers."""

    row: Ints  # [m] row of the facts
    start: Ints  # [lanes + 1]
    sender: Ints  # [lanes]
    topics: Words  # [lanes] topics that all messages of the lane have; 0 where lanes are senders
    seq: Ints  # [m]
    vector: Counters  # [senders, m]
    counts: Counters  # [topics, m]; no topics where lanes are senders


class _Values(NamedTuple):
    """Values of a plan in the order of the lanes."""

    value: Ints  # [m]
    rising: Bools  # [lanes] values never fall along the lane
    ascending: Ints  # [m] values in ascending order within each lane
    rank: Ints  # [m] place of each value there, from 0


def lanes_of(facts: Facts, *, by_topic: bool) -> Lanes:
    """Return the messages by sender, or those with topics by sender and topics."""
    topics = facts.topics if by_topic else np.zeros(len(facts.sender), np.uint64)
    row = np.lexsort((facts.seq, topics, facts.sender))
    if by_topic:
        row = row[topics[row] != 0]
    sender, topics = facts.sender[row], topics[row]
    new = np.ones(len(row), np.bool_)
    new[1:] = (np.diff(sender) != 0) | (topics[1:] != topics[:-1])
    first = np.flatnonzero(new)
    counts = facts.counts[row] if by_topic else np.zeros((len(row), 0), np.int32)
    return Lanes(
        row.astype(np.int64),
        np.r_[first, len(row)].astype(np.int64),
        sender[first].astype(np.int64),
        topics[first].astype(np.uint64),
        facts.seq[row].astype(np.int64),
        np.ascontiguousarray(facts.vector[row].T, dtype=np.int32),
        np.ascontiguousarray(counts.T, dtype=np.int32),
    )


def lane_by_time(facts: Facts, lt: Ints) -> Lanes:
    """Return the messages by sender and linear time, for declared causes: `count_unowned`."""
    row = np.lexsort((lt, facts.sender))
    sender = facts.sender[row]
    first = np.flatnonzero(np.r_[True, np.diff(sender) != 0][: len(row)])
    senders = int(sender.max(initial=-1)) + 1
    return Lanes(
        row.astype(np.int64),
        np.r_[first, len(row)].astype(np.int64),
        sender[first].astype(np.int64),
        np.zeros(len(first), np.uint64),
        np.arange(len(row)),
        np.zeros((senders, len(row)), np.int32),
        np.zeros((0, len(row)), np.int32),
    )


def count_unowned(lanes: Lanes, plan: Plan) -> int:
    """Count what a plan orders where a sender's own messages are like any other's.

    For lanes by time; the plan reads neither topics nor vectors.
    """
    # As a total order: no pair goes by the numbers.
    conditions = Conditions(total=True)
    if plan.total:
        return len(lanes.row) * (len(lanes.row) - 1) // 2
    found = 0
    size = np.diff(lanes.start)
    for term in range(len(plan.linear)):
        found += _count(lanes, plan, term, conditions)
        if plan.linear[term] != LESS:  # a message was compared with itself
            low, high = (side[term][lanes.sender, lanes.sender] for side in (plan.low, plan.high))
            found -= int(size[(low <= 0) & (high >= 0)].sum())
    return found


def count_causal(lanes: Lanes) -> int:
    """Count the pairs with the first in the past of the second (and a topic in common)."""
    everything = np.zeros((lanes.vector.shape[0],) * 2, np.int64)
    nothing = np.zeros(int(lanes.row.max(initial=-1)) + 1, np.int64)
    plan = Plan(nothing, nothing, np.zeros(1, np.int64), everything[None], everything[None])
    return _count(lanes, plan, 0, Conditions(causal=True, ruled=False))


def count_ordered(lanes: Lanes, plan: Plan, *, causal: bool) -> int:
    """Count the pairs that a rule orders; `causal`: only those that are causal, too.

    `lanes` must be by topic where the plan reads topics.
    """
    m = len(lanes.row)
    if plan.total and not causal:
        return m * (m - 1) // 2
    conditions = Conditions(causal or plan.vector, counts=plan.topics, total=plan.total)
    # Pairs of one sender belong to the rule, not to a term: the first one counts them.
    return sum(
        _count(lanes, plan, term, conditions._replace(own=term == 0))
        for term in range(len(plan.linear))
    )


def _count(lanes: Lanes, plan: Plan, term: int, conditions: Conditions) -> int:
    conditions = conditions._replace(windowed=conditions.ruled and plan.is_windowed(term))
    values = _values(lanes, plan.value[lanes.row])
    lt, linear = plan.lt[lanes.row], int(plan.linear[term])
    return int(_pairs(lanes, values, lt, linear, plan.low[term], plan.high[term], conditions))


def _values(lanes: Lanes, value: Ints) -> _Values:
    lane = np.repeat(np.arange(len(lanes.sender)), np.diff(lanes.start))
    falls = (np.diff(value) < 0) & (np.diff(lane) == 0)
    rising = np.ones(len(lanes.sender), np.bool_)
    rising[lane[1:][falls]] = False
    order = np.lexsort((value, lane))
    rank = np.empty(len(value), np.int64)
    rank[order] = np.arange(len(value)) - lanes.start[lane]
    return _Values(value, rising, value[order], rank)


@njit
def _pairs(
    lanes: Lanes,
    values: _Values,
    lt: Ints,
    linear: int,
    low: Ints,
    high: Ints,
    conditions: Conditions,
) -> int:
    start, sender, topics, seq = lanes.start, lanes.sender, lanes.topics, lanes.seq
    vector, counts = lanes.vector, lanes.counts
    value, rising, ascending, rank = values
    causal, ruled, by_counts, total_order, own, windowed = conditions
    largest = 0
    for lane in range(len(sender)):
        largest = max(largest, start[lane + 1] - start[lane])
    limit = np.empty(largest, np.int64)
    tree = np.empty(largest + 1, np.int64)
    found = 0
    for b in range(len(sender)):
        bs = slice(start[b], start[b + 1])
        size = start[b + 1] - start[b]
        for a in range(len(sender)):
            common = topics[a] & topics[b]
            if topics[b] != np.uint64(0) and common == np.uint64(0):
                continue
            same = sender[a] == sender[b]
            if same and not own:
                continue
            ones = slice(start[a], start[a + 1])
            limit[:size] = start[a + 1] - start[a]
            if same and (causal or not total_order):
                _limit(limit, seq[ones], seq[bs], 1)
            elif causal:
                _limit(limit, seq[ones], vector[sender[a], bs], 0)
            if ruled and (total_order or not same):
                if linear != ANY:
                    _limit(limit, lt[ones], lt[bs], 1 if linear == LESS else 0)
                if by_counts and not same:
                    for topic in range(len(counts)):
                        if (common >> np.uint64(topic)) & np.uint64(1):
                            _limit(limit, counts[topic, ones], counts[topic, bs], 1)
            if not windowed or (same and not total_order):
                for at in range(size):
                    found += limit[at]
                continue
            least, most = low[sender[a], sender[b]], high[sender[a], sender[b]]
            if rising[a]:
                found += _inside(limit, value[ones], value[bs], least, most, rising[b])
            else:
                found += _tree(limit, rank[ones], ascending[ones], value[bs], least, most, tree)
    return found


@inlined
def _limit(limit, keys, bounds, less):  # type: ignore[no-untyped-def]
    """Lower each limit to the number of keys that are at most the bound less `less`."""
    place = 0
    for at in range(len(bounds)):
        bound = bounds[at] - less
        while place < len(keys) and keys[place] <= bound:
            place += 1
        while place > 0 and keys[place - 1] > bound:
            place -= 1
        limit[at] = min(limit[at], place)


@inlined
def _inside(limit, values, bounds, least, most, rising):  # type: ignore[no-untyped-def]
    """Count below each limit the values that bounds exceed by `least` to `most`; they ascend."""
    found = 0
    first = after = 0
    for at in range(len(bounds)):
        low, high = bounds[at] - most, bounds[at] - least
        if not rising:
            first = np.searchsorted(values, low)
            after = np.searchsorted(values, high, side="right")
        while first < len(values) and values[first] < low:
            first += 1
        while after < len(values) and values[after] <= high:
            after += 1
        found += max(0, min(limit[at], after) - first)
    return found


@inlined
def _tree(limit, rank, ascending, bounds, least, most, tree):  # type: ignore[no-untyped-def]
    """Count the same where values go up and down."""
    found = inside = 0
    tree[: len(rank) + 1] = 0
    for at in range(len(bounds)):
        while inside < limit[at]:
            add(tree, len(rank), rank[inside], 1)
            inside += 1
        while inside > limit[at]:
            inside -= 1
            add(tree, len(rank), rank[inside], -1)
        first = np.searchsorted(ascending, bounds[at] - most)
        after = np.searchsorted(ascending, bounds[at] - least, side="right")
        if after > first:
            found += below(tree, after) - below(tree, first)
    return found
