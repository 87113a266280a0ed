"""Pairs that a rule orders and declared causes tie: the meter where no vectors are.

The causal past of an event under declared causes (replies, commits) is a set, not a few counters.
Linear time grows along causes, so what a rule asks of it holds for every causal pair, and what is
left of a rule is a window for the difference of two values. With the events of each sender in the
order of their values, a window is a stretch of these columns for each sender:

| causes | pairs in the windows | work |
|---|---|---|
| one parent each | depth first, a Fenwick tree of ancestors' columns | events * log * senders |
| any | bits of the past by blocks of columns, counted between places | events * edges / 64 |

`senders` is 1 where all are alike. Where a rule has no window the causal pairs are counted alone
(`tables.kernels.pairs`). What the rule orders at all needs no past: the kernel of
`tables.false_causality.kernels.counts` counts it with all events in one lane, by linear time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.false_causality.kernels.rule_terms import FAR, Plan
from antecede.tables.kernels import (
    MAX_BYTES,
    MAX_WORDS,
    Graph,
    Ints,
    add,
    below,
    build_graph,
    inlined,
    njit,
    ones,
    pair_counts,
    sort_causes_first,
)


class _Columns(NamedTuple):
    """Events of each sender in the order of their values."""

    place: Ints  # [n] column of each event
    ascending: Ints  # [n] values by column
    begin: Ints  # [senders + 1] where each sender's columns begin


def linear_times(of: Graph) -> Ints:
    """Return linear times: above the greatest of each node's causes, or 0 [n]; raises
    CycleError.
    """
    return _depths(sort_causes_first(of), of.start, of.parent)


def count_both(of: Graph, sender: Ints, plan: Plan, words: int | None = None) -> tuple[int, int]:
    """Return causal pairs, and those of them that the rule orders; raises CycleError.

    `plan.lt` must grow from every cause to its effect.
    """
    causal = pair_counts(of, words).ordered
    if (plan.low <= -FAR).all() and (plan.high >= FAR).all():
        return causal, causal if len(plan.linear) else 0
    columns = _columns(sender, plan)
    if np.diff(of.start).max(initial=0) <= 1:
        above = np.full(of.nodes, -1, np.int64)
        above[of.child()] = of.parent
        kids = np.argsort(above, kind="stable").astype(np.int64)
        begin = np.searchsorted(above[kids], np.arange(-1, of.nodes + 1)).astype(np.int64)
        return causal, int(_forest(kids, begin, sender, plan, columns))
    inner, order = _causes_first(of)
    width = words or int(min(MAX_WORDS, max(1, MAX_BYTES // (8 * max(of.nodes, 1)))))
    plan = plan._replace(value=plan.value[order])
    columns = columns._replace(place=columns.place[order])
    return causal, int(_by_bits(inner, width, sender[order], plan, columns))


def _columns(sender: Ints, plan: Plan) -> _Columns:
    order = np.lexsort((plan.value, sender))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    begin = np.searchsorted(sender[order], np.arange(plan.low.shape[1] + 1))
    return _Columns(place, plan.value[order].astype(np.int64), begin.astype(np.int64))


def _causes_first(of: Graph) -> tuple[Graph, Ints]:
    """Return the graph numbered so that causes come first, and the node of each number."""
    order = sort_causes_first(of)
    rank = np.empty(of.nodes, np.int64)
    rank[order] = np.arange(of.nodes)
    return build_graph(of.nodes, rank[of.child()], rank[of.parent]), order


@njit
def _forest(kids: Ints, kid_begin: Ints, sender: Ints, plan: Plan, columns: _Columns) -> int:
    """Count pairs of an event and an ancestor in the windows; `kid_begin[v + 1]`: kids of v.

    Depth first: the tree holds the columns of the ancestors of the event at hand.
    """
    value, low, high = plan.value, plan.low, plan.high
    place, ascending, begin = columns
    n = len(sender)
    tree = np.zeros(n + 1, np.int64)
    stack = np.empty(2 * n + 1, np.int64)
    found = depth = 0
    for at in range(kid_begin[0], kid_begin[1]):
        stack[depth] = kids[at]
        depth += 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if node < 0:  # all below it is done
            add(tree, n, place[-node - 1], -1)
            continue
        for term in range(len(low)):
            for source in range(len(begin) - 1):
                least, most = low[term, source, sender[node]], high[term, source, sender[node]]
                first, after = _stretch(ascending, begin, source, value[node], least, most)
                if after > first:
                    found += below(tree, after) - below(tree, first)
        if kid_begin[node + 1] < kid_begin[node + 2]:
            add(tree, n, place[node], 1)
            stack[depth] = -node - 1
            depth += 1
            for at in range(kid_begin[node + 1], kid_begin[node + 2]):
                stack[depth] = kids[at]
                depth += 1
    return found


@inlined
def _stretch(ascending, begin, source, value, least, most):  # type: ignore[no-untyped-def]
    """Return the columns of a sender that `value` exceeds by `least` to `most`."""
    own = ascending[begin[source] : begin[source + 1]]
    first = begin[source] + np.searchsorted(own, value - most)
    after = begin[source] + np.searchsorted(own, value - least, side="right")
    return first, after


@njit
def _by_bits(of: Graph, words: int, sender: Ints, plan: Plan, columns: _Columns) -> int:
    """Count causal pairs in the windows; a bit is a column, a row an event, causes first."""
    start, parent = of.start, of.parent
    value, low, high = plan.value, plan.low, plan.high
    place, ascending, begin = columns
    n = len(start) - 1
    past = np.zeros((n, words), np.uint64)
    found = first_source = 0
    for block in range(0, n, 64 * words):
        end = min(n, block + 64 * words)
        while begin[first_source + 1] <= block:
            first_source += 1
        for b in range(n):
            row = past[b]
            row[:] = 0
            for edge in range(start[b], start[b + 1]):
                above = parent[edge]
                for word in range(words):
                    row[word] |= past[above, word]
                column = place[above] - block
                if 0 <= column < 64 * words:
                    row[column >> 6] |= np.uint64(1) << np.uint64(column & 63)
            if start[b] == start[b + 1]:
                continue
            source = first_source
            while source < len(begin) - 1 and begin[source] < end:
                for term in range(len(low)):
                    least, most = low[term, source, sender[b]], high[term, source, sender[b]]
                    first, after = _stretch(ascending, begin, source, value[b], least, most)
                    first, after = max(first, block) - block, min(after, end) - block
                    if after > first:
                        found += _between(row, first, after)
                source += 1
    return found


@inlined
def _between(row, first, after):  # type: ignore[no-untyped-def]
    """Count the bits from one place up to another."""
    everything = ~np.uint64(0)
    found = 0
    for word in range(first >> 6, (after + 63) >> 6):
        bits = row[word]
        if word == first >> 6:
            bits &= everything << np.uint64(first & 63)
        if word == after >> 6:
            bits &= ~(everything << np.uint64(after & 63))
        found += int(ones(bits))
    return found


@njit
def _depths(order: Ints, start: Ints, parent: Ints) -> Ints:
    depth = np.zeros(len(start) - 1, np.int64)
    for node in order:
        for edge in range(start[node], start[node + 1]):
            depth[node] = max(depth[node], depth[parent[edge]] + 1)
    return depth
