"""All pairs of messages, one by one: oracle of `tables.false_causality.kernels.counts`.

O(n^2 * topics).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from antecede.tables.false_causality.kernels.rule_terms import MessageColumns, RulePlan
from antecede.tables.kernels.arrays import Bools, Ints
from antecede.tables.kernels.jit import njit


def count_all_pairs(
    facts: MessageColumns, plan: RulePlan, *, by_topic: bool
) -> tuple[int, int, int]:
    """Return pairs ordered, pairs causal, and pairs that are both.

    `by_topic`: only pairs with a topic in common count as causal.
    """
    found = _all_pairs(
        facts.sender,
        facts.seq,
        facts.vector,
        facts.topics,
        facts.counts,
        plan.lt,
        plan.value,
        plan.linear,
        plan.low,
        plan.high,
        plan.topics,
        plan.vector,
        plan.total,
        by_topic,
    )
    return int(found[0]), int(found[1]), int(found[2])


@njit
def _all_pairs(
    sender: Ints,
    seq: Ints,
    vector: npt.NDArray[np.int32],
    topics: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int32],
    lt: Ints,
    value: Ints,
    linear: Ints,
    low: Ints,
    high: Ints,
    by_counts: bool,
    by_vector: bool,
    total: bool,
    by_topic: bool,
) -> Ints:
    found = np.zeros(3, np.int64)
    for a in range(len(sender)):
        for b in range(len(sender)):
            if a == b:
                continue
            causal = vector[b, sender[a]] >= seq[a]
            if by_topic and topics[a] & topics[b] == np.uint64(0):
                causal = False
            if total:
                ordered = value[a] < value[b]
            elif sender[a] == sender[b]:
                ordered = seq[a] < seq[b]
            else:
                ordered = _is_ordered_by_term(a, b, sender, lt, value, linear, low, high)
            if by_counts and ordered:
                ordered = _less(topics[a] & topics[b], counts[a], counts[b])
            if by_vector and ordered:
                ordered = vector[b, sender[a]] >= seq[a]
            found[0] += ordered
            found[1] += causal
            found[2] += ordered and causal
    return found


@njit
def _is_ordered_by_term(
    a: int, b: int, sender: Ints, lt: Ints, value: Ints, linear: Ints, low: Ints, high: Ints
) -> bool:
    """Tell whether one of the terms holds."""
    apart = value[b] - value[a]
    for term in range(len(linear)):
        if linear[term] == 1 and lt[a] >= lt[b]:
            continue
        if linear[term] == 2 and lt[a] > lt[b]:
            continue
        i, j = sender[a], sender[b]
        if low[term, i, j] <= apart <= high[term, i, j]:
            return True
    return False


@njit
def _less(common: np.uint64, one: npt.NDArray[np.int32], other: npt.NDArray[np.int32]) -> bool:
    """Tell whether there are common topics, and `one` is less in all of them."""
    if common == np.uint64(0):
        return False
    for topic in range(len(one)):
        if (common >> np.uint64(topic)) & np.uint64(1) and one[topic] >= other[topic]:
            return False
    return True


def past_of(nodes: int, start: Ints, parent: Ints) -> Bools:
    """Return [n, n]: True where the first is in the past of the second; for small graphs."""
    past = np.zeros((nodes, nodes), np.bool_)
    for _ in range(nodes):
        for node in range(nodes):
            for above in parent[start[node] : start[node + 1]]:
                past[above, node] = True
                past[:, node] |= past[:, above]
    return past
