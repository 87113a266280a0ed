"""Estimates of ordered pairs: sizes of causal pasts by reachability sketches (Cohen 1997).

Every event draws `ranks` exponential numbers. The least of each over an event's past is propagated
from causes to effects, in edges times ranks steps; exact counts take edges times events / 64. The
least of n such numbers is exponential of rate n. So (ranks - 1) / (sum of the least ones) estimates
n without bias, with relative deviation 1 / sqrt(ranks - 2). An event with one cause has its cause's
past and one more event, so its past is exact relative to the nearest event with several causes.

The interval. Each estimate is its true value times a variable of one known distribution, (ranks -
1) / Gamma(ranks). Whatever their dependence, a sum of such variables is at most as spread, in
convex order, as if all were equal (Meilijson and Nadas 1979; Kaas, Dhaene and Goovaerts 2000). So
no quantile of the sum is beyond the expected shortfall of that distribution; both tails have closed
forms (`compute_factors`). The interval holds with at least the stated confidence for every graph.
It is about 1.2 times as wide as a normal approximation for equal pasts.

Ranks are hashes of an event's key, a seed and the rank's number: the order of rows does not matter.
They are freed after their last use and computed in blocks. So memory is `MAX_BYTES`, or 8 bytes for
each open event if that is more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antecede.tables.kernels.arrays import Bools, Ints
from antecede.tables.kernels.graph import Graph, build_graph, sort_causes_first
from antecede.tables.kernels.jit import njit

CONFIDENCE = 0.95
RANKS = 1024
"""Ranks of an event: the interval is about 7.6 % on both sides."""
LEAST_RANKS = 16
MAX_BYTES = 128 << 20
MAX_WIDTH = 64
"""Ranks of a block."""

Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]


class PairEstimate(NamedTuple):
    """Ordered pairs of a graph, within bounds that hold with `confidence` or more."""

    ordered: int
    low: int
    high: int
    confidence: float


class PastSums(NamedTuple):
    """Sum of the sizes of all pasts: exact part, estimate and certain bounds."""

    exact: int
    estimated: float  # unbiased estimate of the rest; 0 if all is exact
    least: int
    most: int  # certain bounds of the whole


class _Plan(NamedTuple):
    """Exact parts, and the nodes that need a sketch; nodes follow their causes."""

    offset: Ints  # [n] size of a node's past beyond that of its base
    base: Ints  # [n] nearest node with several causes; -1: the past is exactly `offset`
    least: Ints
    most: Ints  # [n] bounds of the size of the past
    slot: Ints  # [n] row of its ranks, reused by other nodes after its last use; -1: none
    slots: int


def estimate_pairs(
    graph: Graph,
    key: Ints,
    *,
    ranks: int = RANKS,
    seed: int = 0,
    width: int | None = None,
) -> PairEstimate:
    """Estimate the pairs of which one event is in the causal past of the other.

    `key` [nodes]: distinct numbers from which ranks are drawn. Raise CycleError.
    """
    exact, found, least, most = sum_pasts(graph, key, ranks=ranks, seed=seed, width=width)
    if not found:
        return PairEstimate(exact, exact, exact, CONFIDENCE)
    below, above = compute_factors(ranks)
    low, high = exact + math.floor(found * below), exact + math.ceil(found * above)
    # An end beyond the certain bounds is wrong: use the certain bound instead.
    low = max(least, low) if low <= most else least
    high = min(most, high) if high >= least else most
    return PairEstimate(min(max(exact + round(found), low), high), low, high, CONFIDENCE)


def sum_pasts(
    graph: Graph, key: Ints, *, ranks: int, seed: int, width: int | None = None
) -> PastSums:
    """Return the parts of `estimate_pairs`; raise CycleError if the graph has a cycle."""
    n = graph.nodes
    order = sort_causes_first(graph)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    inner = build_graph(n, place[graph.effect()], place[graph.cause])
    touched = int(np.count_nonzero(_mask_connected(inner)))
    plan = _Plan(*_make_plan(inner.start, inner.cause, touched))
    exact = int(plan.offset.sum())
    least, most = int(plan.least.sum()), min(int(plan.most.sum()), touched * (touched - 1) // 2)
    estimated = plan.base == np.arange(n)
    if not estimated.any():
        return PastSums(exact, 0.0, exact, exact)
    wide = width or int(min(MAX_WIDTH, ranks, max(1, MAX_BYTES // (8 * max(plan.slots, 1)))))
    drawn = np.ascontiguousarray(key[order]).view(np.uint64)
    total = _sum_sketches(
        *inner, plan.slot, estimated, drawn, np.uint64(seed), ranks, wide, max(plan.slots, 1)
    )
    weight = np.bincount(plan.base[plan.base >= 0], minlength=n)[estimated]
    found = math.fsum((weight * ((ranks - 1) / total[estimated])).tolist())  # exact in any order
    return PastSums(exact, found, least, most)


def steps_needed(graph: Graph) -> int:
    """Return edges times events with an edge / 64; 0 if each event has one cause."""
    if np.diff(graph.start).max(initial=0) <= 1:
        return 0
    return len(graph.cause) * (int(np.count_nonzero(_mask_connected(graph))) // 64 + 1)


def compute_factors(ranks: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the factors of an estimate for the ends of its interval.

    With X = (ranks - 1) / Gamma(ranks), these are 1 / E[X | X in a tail] of (1 - confidence) / 2.
    As E[X; Gamma <= g] = P(Gamma(ranks - 1) <= g), they follow from terms of the Poisson
    distribution.
    """
    tail = (1 - confidence) / 2
    few = _gamma_quantile(ranks, tail)
    many = _gamma_quantile(ranks, 1 - tail)
    upper = 1 + _poisson(ranks - 1, few) / tail
    lower = 1 - _poisson(ranks - 1, many) / tail
    return 1 / upper, 1 / lower


def _gamma_quantile(shape: int, share: float) -> float:
    """Return g with P(Gamma(shape) <= g) = share, by bisection."""
    low, high = 0.0, shape + 40 * math.sqrt(shape)
    for _ in range(80):
        middle = (low + high) / 2
        # Gamma(shape) > g where fewer than `shape` events of a Poisson process come before g.
        above = math.fsum(_poisson(k, middle) for k in range(shape))
        if 1 - above < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _poisson(count: int, mean: float) -> float:
    return math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))


def _mask_connected(graph: Graph) -> Bools:
    touched = np.diff(graph.start) > 0
    touched[graph.cause] = True
    return touched


@njit
def _make_plan(start: Ints, cause: Ints, nodes: int) -> tuple[Ints, Ints, Ints, Ints, Ints, int]:
    """Return the fields of `_Plan`; `nodes`: the number of nodes with an edge."""
    n = len(start) - 1
    offset, base = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    least, most = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for node in range(n):
        first, last = start[node], start[node + 1]
        if last - first == 1:
            above = cause[first]
            offset[node], base[node] = offset[above] + 1, base[above]
            least[node], most[node] = least[above] + 1, min(most[above] + 1, nodes - 1)
        elif last > first:
            least[node] = last - first
            for edge in range(first, last):
                above = cause[edge]
                least[node] = max(least[node], least[above] + 1)
                most[node] = min(most[node] + most[above] + 1, nodes - 1)
            if least[node] == most[node]:
                offset[node] = least[node]
            else:
                base[node] = node
    user = np.full(n, -1, np.int64)  # last node that reads a node's ranks
    for back in range(n):
        node = n - 1 - back
        if base[node] == node or user[node] >= 0:
            for edge in range(start[node], start[node + 1]):
                user[cause[edge]] = max(user[cause[edge]], node)
    slot = np.full(n, -1, np.int64)
    free = np.empty(n, np.int64)
    slots = waiting = 0
    for node in range(n):
        if user[node] >= 0:
            if waiting:
                waiting -= 1
                slot[node] = free[waiting]
            else:
                slot[node] = slots
                slots += 1
        for edge in range(start[node], start[node + 1]):
            if user[cause[edge]] == node:
                free[waiting] = slot[cause[edge]]
                waiting += 1
    return offset, base, least, most, slot, slots


@njit
def _mix(word: np.uint64) -> np.uint64:
    """Scramble a word: the last step of SplitMix64 (Steele, Lea and Flood 2014)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit
def _exponential(word: np.uint64) -> float:
    """Return -log(1 - u) of a random word, by its series for small u; it grows with the word."""
    u = (float(word >> np.uint64(11)) + 0.5) * 2.0**-53
    if u < 2.0**-13:
        return u * (1.0 + u * (0.5 + u * (1.0 / 3.0 + u * 0.25)))
    return -math.log1p(-u)


@njit
def _sum_sketches(
    start: Ints,
    cause: Ints,
    slot: Ints,
    estimated: Bools,
    key: Words,
    seed: np.uint64,
    ranks: int,
    width: int,
    slots: int,
) -> Floats:
    """Return, where `estimated`, the sum of the least ranks over a node's past [n]."""
    n = len(start) - 1
    total = np.zeros(n, np.float64)
    rows = np.empty((slots, width), np.uint64)
    row = np.empty(width, np.uint64)
    step = np.uint64(0x9E3779B97F4A7C15)
    salt = _mix(seed + step)
    for low in range(0, ranks, width):
        wide = min(width, ranks - low)
        for node in range(n):
            if slot[node] < 0 and not estimated[node]:
                continue
            row[:] = np.uint64(0xFFFFFFFFFFFFFFFF)
            for edge in range(start[node], start[node + 1]):
                above = rows[slot[cause[edge]]]
                for rank in range(wide):
                    row[rank] = min(row[rank], above[rank])
            if estimated[node]:
                for rank in range(wide):
                    total[node] += _exponential(row[rank])
            if slot[node] >= 0:
                own = _mix(np.uint64(key[node]) ^ salt)
                mine = rows[slot[node]]
                for rank in range(wide):
                    drawn = _mix(own + np.uint64(low + rank + 1) * step)
                    mine[rank] = min(row[rank], drawn)
    return total
