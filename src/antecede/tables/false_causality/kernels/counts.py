"""Number of pairs of messages that a rule orders, without enumerating pairs.

Messages are grouped by sender, or by sender and set of topics. Within a group, numbers, linear
times and counts of its topics grow. So each of these conditions on (a, b) holds for a prefix of the
messages a of a group, and all together for the shortest prefix: the limit of b in that group. From
one b to the next a limit moves little, and is searched from its last value. The same holds for a
window of values (physical times), if the clock of a's sender never went back. Otherwise, and for
the arrivals of a total order, a Fenwick tree contains the values of the group up to the limit.

Work: O(messages * groups * conditions), for the tree times the logarithm of a group. With as many
groups as messages this is no better than all pairs; we know no better form.
`tests/reference/meter_pairs.py` is the oracle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.false_causality.kernels.rule_terms import (
    ANY,
    LESS,
    Conditions,
    Counters,
    MessageColumns,
    RulePlan,
    Words,
)
from antecede.tables.kernels import Bools, Ints, add, count_below, inline, njit


class SenderColumns(NamedTuple):
    """Messages by sender (and topics), in the order of their numbers."""

    row: Ints  # [m] row of the messages
    start: Ints  # [groups + 1]
    sender: Ints  # [groups]
    topics: Words  # [groups] topics of all its messages; 0 if grouped by sender alone
    seq: Ints  # [m]
    vector: Counters  # [senders, m]
    counts: Counters  # [topics, m]; no topics if grouped by sender alone


class _Values(NamedTuple):
    value: Ints  # [m]
    rising: Bools  # [groups] values never fall
    ascending: Ints  # [m] values ascending within each group
    rank: Ints  # [m] index of each value there, from 0


def group_by_sender(messages: MessageColumns, *, by_topic: bool) -> SenderColumns:
    """Return the messages by sender; with `by_topic`, those with topics by sender and topics."""
    topics = messages.topics if by_topic else np.zeros(len(messages.sender), np.uint64)
    row = np.lexsort((messages.seq, topics, messages.sender))
    if by_topic:
        row = row[topics[row] != 0]
    sender, topics = messages.sender[row], topics[row]
    new = np.ones(len(row), np.bool_)
    new[1:] = (np.diff(sender) != 0) | (topics[1:] != topics[:-1])
    first = np.flatnonzero(new)
    counts = messages.counts[row] if by_topic else np.zeros((len(row), 0), np.int32)
    return SenderColumns(
        row.astype(np.int64),
        np.r_[first, len(row)].astype(np.int64),
        sender[first].astype(np.int64),
        topics[first].astype(np.uint64),
        messages.seq[row].astype(np.int64),
        np.ascontiguousarray(messages.vector[row].T, dtype=np.int32),
        np.ascontiguousarray(counts.T, dtype=np.int32),
    )


def group_by_time(messages: MessageColumns, lt: Ints) -> SenderColumns:
    """Return the messages by sender and linear time, for `count_ignoring_senders`."""
    row = np.lexsort((lt, messages.sender))
    sender = messages.sender[row]
    first = np.flatnonzero(np.r_[True, np.diff(sender) != 0][: len(row)])
    senders = int(sender.max(initial=-1)) + 1
    return SenderColumns(
        row.astype(np.int64),
        np.r_[first, len(row)].astype(np.int64),
        sender[first].astype(np.int64),
        np.zeros(len(first), np.uint64),
        np.arange(len(row)),
        np.zeros((senders, len(row)), np.int32),
        np.zeros((0, len(row)), np.int32),
    )


def count_ignoring_senders(columns: SenderColumns, plan: RulePlan) -> int:
    """Count the pairs that a plan without topics and vectors orders; senders do not matter."""
    # As a total order: no pair goes by the numbers.
    conditions = Conditions(total=True)
    if plan.total:
        return len(columns.row) * (len(columns.row) - 1) // 2
    found = 0
    size = np.diff(columns.start)
    for term in range(len(plan.linear)):
        found += _count_term(columns, plan, term, conditions)
        if plan.linear[term] != LESS:  # messages were compared with themselves
            low, high = (
                side[term][columns.sender, columns.sender] for side in (plan.low, plan.high)
            )
            found -= int(size[(low <= 0) & (high >= 0)].sum())
    return found


def count_causal(columns: SenderColumns) -> int:
    """Count the pairs with the first in the past of the second (and a topic in common)."""
    everything = np.zeros((columns.vector.shape[0],) * 2, np.int64)
    nothing = np.zeros(int(columns.row.max(initial=-1)) + 1, np.int64)
    plan = RulePlan(nothing, nothing, np.zeros(1, np.int64), everything[None], everything[None])
    return _count_term(columns, plan, 0, Conditions(causal=True, ruled=False))


def count_ordered(columns: SenderColumns, plan: RulePlan, *, causal: bool) -> int:
    """Count the pairs that a rule orders (`causal`: only causal ones); group by topic if it reads
    topics.
    """
    m = len(columns.row)
    if plan.total and not causal:
        return m * (m - 1) // 2
    conditions = Conditions(causal or plan.vector, counts=plan.topics, total=plan.total)
    # Pairs of one sender belong to the rule, not to a term: the first one counts them.
    return sum(
        _count_term(columns, plan, term, conditions._replace(own=term == 0))
        for term in range(len(plan.linear))
    )


def _count_term(columns: SenderColumns, plan: RulePlan, term: int, conditions: Conditions) -> int:
    conditions = conditions._replace(windowed=conditions.ruled and plan.is_windowed(term))
    values = _sort_values(columns, plan.value[columns.row])
    lt, linear = plan.lt[columns.row], int(plan.linear[term])
    return int(
        _count_pairs(columns, values, lt, linear, plan.low[term], plan.high[term], conditions)
    )


def _sort_values(columns: SenderColumns, value: Ints) -> _Values:
    lane = np.repeat(np.arange(len(columns.sender)), np.diff(columns.start))
    falls = (np.diff(value) < 0) & (np.diff(lane) == 0)
    rising = np.ones(len(columns.sender), np.bool_)
    rising[lane[1:][falls]] = False
    order = np.lexsort((value, lane))
    rank = np.empty(len(value), np.int64)
    rank[order] = np.arange(len(value)) - columns.start[lane]
    return _Values(value, rising, value[order], rank)


@njit
def _count_pairs(
    columns: SenderColumns,
    values: _Values,
    lt: Ints,
    linear: int,
    low: Ints,
    high: Ints,
    conditions: Conditions,
) -> int:
    start, sender, topics, seq = columns.start, columns.sender, columns.topics, columns.seq
    vector, counts = columns.vector, columns.counts
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
                _lower_limits(limit, seq[ones], seq[bs], 1)
            elif causal:
                _lower_limits(limit, seq[ones], vector[sender[a], bs], 0)
            if ruled and (total_order or not same):
                if linear != ANY:
                    _lower_limits(limit, lt[ones], lt[bs], 1 if linear == LESS else 0)
                if by_counts and not same:
                    for topic in range(len(counts)):
                        if (common >> np.uint64(topic)) & np.uint64(1):
                            _lower_limits(limit, counts[topic, ones], counts[topic, bs], 1)
            if not windowed or (same and not total_order):
                for at in range(size):
                    found += limit[at]
                continue
            least, most = low[sender[a], sender[b]], high[sender[a], sender[b]]
            if rising[a]:
                found += _count_in_windows(limit, value[ones], value[bs], least, most, rising[b])
            else:
                found += _count_with_tree(
                    limit, rank[ones], ascending[ones], value[bs], least, most, tree
                )
    return found


@inline
def _lower_limits(limit, keys, bounds, less):  # type: ignore[no-untyped-def]
    """Lower each limit to the number of keys that are at most the bound less `less`."""
    place = 0
    for at in range(len(bounds)):
        bound = bounds[at] - less
        while place < len(keys) and keys[place] <= bound:
            place += 1
        while place > 0 and keys[place - 1] > bound:
            place -= 1
        limit[at] = min(limit[at], place)


@inline
def _count_in_windows(limit, values, bounds, least, most, rising):  # type: ignore[no-untyped-def]
    """Count below each limit the ascending values that bounds exceed by `least` to `most`."""
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


@inline
def _count_with_tree(limit, rank, ascending, bounds, least, most, tree):  # type: ignore[no-untyped-def]
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
            found += count_below(tree, after) - count_below(tree, first)
    return found
