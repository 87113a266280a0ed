"""Exact counts over the closure of declared causes: ordered pairs and transitively implied edges.

In a forest the ordered pairs are the sum of the depths. In a graph each past is a bitset, for one
block of columns (possible causes) at a time: memory is n * block / 8 bytes. An edge p -> c is
implied if p is in the past of another cause of c.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antecede.tables.kernels.arrays import Bools, Ints
from antecede.tables.kernels.bits import ones
from antecede.tables.kernels.graph import Graph, build_graph, sort_causes_first
from antecede.tables.kernels.jit import njit

Words = npt.NDArray[np.uint64]
MAX_WORDS = 64
"""Words of 64 columns in a block: 32 KiB for 64 rows, which fit into the processor cache."""
MAX_BYTES = 128 << 20
"""Memory for the bitsets of one block."""


class PairCounts(NamedTuple):
    """Counts over the closure of a graph without cycles."""

    ordered: int  # pairs of which one event is in the causal past of the other
    concurrent: int  # all other pairs
    redundant: Bools  # [edges] implied by other edges


def count_pairs(graph: Graph, words: int | None = None) -> PairCounts:
    """Count pairs and redundant edges, by blocks of `words` (for tests); raise CycleError."""
    n = graph.nodes
    order = sort_causes_first(graph)
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    effect = graph.effect()
    # In the new numbering every cause precedes its effect.
    inner = build_graph(n, rank[effect], rank[graph.cause])
    redundant = np.zeros(len(graph.cause), dtype=np.bool_)
    if np.diff(graph.start).max(initial=0) <= 1:
        ordered = int(_sum_depths(inner.start, inner.cause))
    else:
        width = words or int(min(MAX_WORDS, max(1, MAX_BYTES // (8 * n))))
        ordered, implied = _count_closure(inner.start, inner.cause, width)
        there = np.lexsort((rank[graph.cause], rank[effect]))  # edges in the order of `inner`
        redundant[there] = implied
    return PairCounts(int(ordered), n * (n - 1) // 2 - int(ordered), redundant)


@njit
def _sum_depths(start: Ints, cause: Ints) -> int:
    n = len(start) - 1
    depth = np.zeros(n, np.int64)
    total = 0
    for node in range(n):
        if start[node] < start[node + 1]:
            depth[node] = depth[cause[start[node]]] + 1
            total += depth[node]
    return total


@njit
def _count_closure(start: Ints, cause: Ints, words: int) -> tuple[int, Bools]:
    n = len(start) - 1
    implied = np.zeros(len(cause), np.bool_)
    past = np.zeros((n, words), np.uint64)
    size = np.zeros(n, np.int64)
    total = 0
    for low in range(0, n, 64 * words):
        for node in range(low, n):  # nodes before the block have no past in it
            first, last = start[node], start[node + 1]
            row = past[node]
            row[:] = 0
            for edge in range(first, last):
                above = cause[edge]
                if above >= low:
                    for word in range(words):
                        row[word] |= past[above, word]
            if last - first > 1:
                _mark_implied(cause, first, last, low, row, implied)
            for edge in range(first, last):
                column = cause[edge] - low
                if 0 <= column < 64 * words:
                    row[column >> 6] |= np.uint64(1) << np.uint64(column & 63)
            size[node] = _count_past(cause, first, last, low, row, size)
            total += size[node]
    return total, implied


@njit
def _mark_implied(cause: Ints, first: int, last: int, low: int, row: Words, implied: Bools) -> None:
    """Mark the edges of a node whose cause is in `row`, the union of its causes' pasts."""
    for edge in range(first, last):
        column = cause[edge] - low
        if 0 <= column < 64 * len(row):
            bit = np.uint64(1) << np.uint64(column & 63)
            implied[edge] = (row[column >> 6] & bit) != 0


@njit
def _count_past(cause: Ints, first: int, last: int, low: int, row: Words, size: Ints) -> int:
    """Count the bits of a row; with one cause: the cause's count and the cause itself."""
    if last == first:
        return 0
    if last - first == 1:
        above = cause[first]
        if above < low:
            return 0
        inside = 1 if above - low < 64 * len(row) else 0
        return int(size[above]) + inside
    count = 0
    for word in row:
        count += int(ones(word))
    return count
