"""Pairs that a rule orders and declared causes tie: the meter where no vectors are.

The causal past of an event under declared causes (replies, commits) is a set, not a few counters.
It is kept as a bitset for blocks of columns, as in `kernels.pairs`, and every causal pair is then
asked for the rule: O(events * edges / 64 + causal pairs). What the rule orders at all needs no
past: the kernel of `kernels.meter` counts it with all events in one lane, by linear time.
"""

from __future__ import annotations

import numpy as np

from antecede.kernels.graph import Graph, Ints, causes_first, graph
from antecede.kernels.jit import inlined, njit
from antecede.kernels.meter_terms import LESS, NOT_MORE, Plan
from antecede.kernels.pairs import MAX_BYTES, MAX_WORDS, _ones


def depths(of: Graph) -> Ints:
    """Return the linear time of each node: one more than the greatest of its causes, or 0 [n].

    Raises CycleError.
    """
    return _depths(causes_first(of), of.start, of.parent)


def count_both(of: Graph, sender: Ints, plan: Plan, words: int | None = None) -> tuple[int, int]:
    """Return causal pairs, and those of them that the rule orders; raises CycleError."""
    n = of.nodes
    order = causes_first(of)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    inner = graph(n, rank[of.child()], rank[of.parent])
    width = words or int(min(MAX_WORDS, max(1, MAX_BYTES // (8 * max(n, 1)))))
    causal, both = _both(
        inner.start,
        inner.parent,
        width,
        sender[order],
        plan.lt[order],
        plan.value[order],
        plan.linear,
        plan.low,
        plan.high,
    )
    return int(causal), int(both)


@njit
def _depths(order: Ints, start: Ints, parent: Ints) -> Ints:
    depth = np.zeros(len(start) - 1, np.int64)
    for node in order:
        for edge in range(start[node], start[node + 1]):
            depth[node] = max(depth[node], depth[parent[edge]] + 1)
    return depth


@njit
def _both(
    start: Ints,
    parent: Ints,
    words: int,
    sender: Ints,
    lt: Ints,
    value: Ints,
    linear: Ints,
    low: Ints,
    high: Ints,
) -> tuple[int, int]:
    n = len(start) - 1
    past = np.zeros((n, words), np.uint64)
    causal = both = 0
    for first in range(0, n, 64 * words):
        for b in range(first, n):  # nodes before the block have no past in it
            row = past[b]
            row[:] = 0
            for edge in range(start[b], start[b + 1]):
                above = parent[edge]
                if above >= first:
                    for word in range(words):
                        row[word] |= past[above, word]
                column = above - first
                if 0 <= column < 64 * words:
                    row[column >> 6] |= np.uint64(1) << np.uint64(column & 63)
            for word in range(words):
                left = row[word]
                while left != np.uint64(0):
                    lowest = left & (~left + np.uint64(1))
                    left ^= lowest
                    a = first + 64 * word + int(_ones(lowest - np.uint64(1)))
                    causal += 1
                    both += _holds(a, b, sender, lt, value, linear, low, high)
    return causal, both


@inlined
def _holds(a, b, sender, lt, value, linear, low, high):  # type: ignore[no-untyped-def]
    """Tell whether a term orders a before b; declared causes know no order within a sender."""
    apart = value[b] - value[a]
    for term in range(len(linear)):
        if linear[term] == LESS and lt[a] >= lt[b]:
            continue
        if linear[term] == NOT_MORE and lt[a] > lt[b]:
            continue
        i, j = sender[a], sender[b]
        if low[term, i, j] <= apart <= high[term, i, j]:
            return True
    return False
