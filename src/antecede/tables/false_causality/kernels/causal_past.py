"""Pairs that are both causal and ordered by a rule, for declared causes (without vectors).

Linear time grows along causes, so a comparison of linear times holds for every causal pair. What
remains of a rule is a window for the difference of two values. With the events of each sender
sorted by value, a window is a range of these columns for each sender:

- One cause each: depth first, with a Fenwick tree of ancestors' columns; events * log * senders.
- Any graph: bits of the past by blocks of columns, counted between indices; events * edges / 64.

`senders` is 1 if all have the same windows. All pairs that a rule orders are counted without a
past, by `tables.false_causality.kernels.counts`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.false_causality.kernels.rule_terms import FAR, RulePlan
from antecede.tables.kernels import (
    MAX_BYTES,
    MAX_WORDS,
    Graph,
    Ints,
    add,
    build_graph,
    count_below,
    count_pairs,
    inline,
    njit,
    ones,
    sort_causes_first,
)


class _Columns(NamedTuple):
    place: Ints  # [n] column of each event
    ascending: Ints  # [n] values by column
    begin: Ints  # [senders + 1] begin of each sender's columns


def compute_linear_times(graph: Graph) -> Ints:
    """Return linear times, above the greatest of each node's causes, or 0 [n]; raise CycleError."""
    return _compute_depths(sort_causes_first(graph), graph.start, graph.cause)


def count_causal_pairs(
    graph: Graph, sender: Ints, plan: RulePlan, words: int | None = None
) -> tuple[int, int]:
    """Return the causal pairs, and those of them that the rule orders; raise CycleError.

    `plan.lt` must grow from every cause to its effect.
    """
    causal = count_pairs(graph, words).ordered
    if (plan.low <= -FAR).all() and (plan.high >= FAR).all():
        return causal, causal if len(plan.linear) else 0
    columns = _sort_columns(sender, plan)
    if np.diff(graph.start).max(initial=0) <= 1:
        above = np.full(graph.nodes, -1, np.int64)
        above[graph.effect()] = graph.cause
        kids = np.argsort(above, kind="stable").astype(np.int64)
        begin = np.searchsorted(above[kids], np.arange(-1, graph.nodes + 1)).astype(np.int64)
        return causal, int(_count_in_forest(kids, begin, sender, plan, columns))
    inner, order = _renumber_causes_first(graph)
    width = words or int(min(MAX_WORDS, max(1, MAX_BYTES // (8 * max(graph.nodes, 1)))))
    plan = plan._replace(value=plan.value[order])
    columns = columns._replace(place=columns.place[order])
    return causal, int(_count_by_bits(inner, width, sender[order], plan, columns))


def _sort_columns(sender: Ints, plan: RulePlan) -> _Columns:
    order = np.lexsort((plan.value, sender))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    begin = np.searchsorted(sender[order], np.arange(plan.low.shape[1] + 1))
    return _Columns(place, plan.value[order].astype(np.int64), begin.astype(np.int64))


def _renumber_causes_first(graph: Graph) -> tuple[Graph, Ints]:
    order = sort_causes_first(graph)
    rank = np.empty(graph.nodes, np.int64)
    rank[order] = np.arange(graph.nodes)
    return build_graph(graph.nodes, rank[graph.effect()], rank[graph.cause]), order


@njit
def _count_in_forest(
    kids: Ints, kid_begin: Ints, sender: Ints, plan: RulePlan, columns: _Columns
) -> int:
    """Count pairs depth first; `tree` has the ancestors' columns, `kid_begin[v + 1]` v's kids."""
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
        if node < 0:  # its subtree is done
            add(tree, n, place[-node - 1], -1)
            continue
        for term in range(len(low)):
            for source in range(len(begin) - 1):
                least, most = low[term, source, sender[node]], high[term, source, sender[node]]
                first, after = _find_columns(ascending, begin, source, value[node], least, most)
                if after > first:
                    found += count_below(tree, after) - count_below(tree, first)
        if kid_begin[node + 1] < kid_begin[node + 2]:
            add(tree, n, place[node], 1)
            stack[depth] = -node - 1
            depth += 1
            for at in range(kid_begin[node + 1], kid_begin[node + 2]):
                stack[depth] = kids[at]
                depth += 1
    return found


@inline
def _find_columns(ascending, begin, source, value, least, most):  # type: ignore[no-untyped-def]
    own = ascending[begin[source] : begin[source + 1]]
    first = begin[source] + np.searchsorted(own, value - most)
    after = begin[source] + np.searchsorted(own, value - least, side="right")
    return first, after


@njit
def _count_by_bits(
    graph: Graph, words: int, sender: Ints, plan: RulePlan, columns: _Columns
) -> int:
    """Count causal pairs in the windows; a bit is a column, a row an event, causes first."""
    start, cause = graph.start, graph.cause
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
                above = cause[edge]
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
                    first, after = _find_columns(ascending, begin, source, value[b], least, most)
                    first, after = max(first, block) - block, min(after, end) - block
                    if after > first:
                        found += _count_bits_between(row, first, after)
                source += 1
    return found


@inline
def _count_bits_between(row, first, after):  # type: ignore[no-untyped-def]
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
def _compute_depths(order: Ints, start: Ints, cause: Ints) -> Ints:
    depth = np.zeros(len(start) - 1, np.int64)
    for node in order:
        for edge in range(start[node], start[node + 1]):
            depth[node] = max(depth[node], depth[cause[edge]] + 1)
    return depth
