"""Causal order of numbered rows: earliest releases, cycles, waits.

Rows are 0 .. n-1. The causes of row r are `causes[offsets[r]:offsets[r + 1]]`: row numbers, or -1
for a missing cause. Only `alive` rows take part; causes that are not alive count as missing.

**The order is defined**, independent of the algorithm. A row is released at r = max(its time, r of
its causes); its depth d is 0, or one more than the largest d of a cause with the same r. Rows are
sorted by (r, d, rank), where rank is (time, identity). A cause has a lesser (r, d) than its effect,
so the order is causal; r is the least that causes allow. r and d are a least fixpoint, so every
algorithm computes the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels.arrays import Bools, Bytes, Ints
from antecede.tables.kernels.components import on_cycles, strong_components
from antecede.tables.kernels.jit import njit

THERE, WAITED, MISSING = 0, 1, 2
"""Result of `release` for an edge: the cause was released before, later, or is missing."""
BEFORE_ALL = np.iinfo(np.int64).min
"""Release time of a row without a time that waits for nothing."""


def causes_first(offsets: Ints, causes: Ints, alive: Bools) -> tuple[Ints, Bools]:
    """Return the alive rows, causes before effects, and the mask of rows on a cycle.

    Rows on a cycle are left out; rows that only depend on one are not. O(n + edges).
    """
    order = sort_topologically(offsets, causes, alive)
    on_cycle = np.zeros(len(alive), dtype=np.bool_)
    if len(order) < np.count_nonzero(alive):
        stuck = alive.copy()
        stuck[order] = False
        on_cycle = cycles(offsets, causes, stuck)
        order = sort_topologically(offsets, causes, alive & ~on_cycle)
    return order, on_cycle


def by_release(order: Ints, released: Ints, depth: Ints, rank: Ints) -> Ints:
    """Return the rows of `order` sorted by release: (r, d, rank); O(n log n)."""
    keys = (rank[order], depth[order], released[order])
    return order[np.lexsort(keys)]


@njit
def sort_topologically(offsets: Ints, causes: Ints, alive: Bools) -> Ints:
    """Return the rows that do not depend on a cycle, causes before effects (Kahn's algorithm)."""
    n = len(alive)
    waiting = np.zeros(n, np.int64)
    start = np.zeros(n + 1, np.int64)
    for row in range(n):
        if alive[row]:
            for edge in range(offsets[row], offsets[row + 1]):
                cause = causes[edge]
                if cause >= 0 and alive[cause]:
                    waiting[row] += 1
                    start[cause + 1] += 1
    start = np.cumsum(start)
    fill = start[:-1].copy()
    effects = np.empty(start[n], np.int64)
    order = np.empty(n, np.int64)
    filled = 0
    for row in range(n):
        if alive[row]:
            if waiting[row] == 0:
                order[filled] = row
                filled += 1
            for edge in range(offsets[row], offsets[row + 1]):
                cause = causes[edge]
                if cause >= 0 and alive[cause]:
                    effects[fill[cause]] = row
                    fill[cause] += 1
    done = 0
    while done < filled:
        row = order[done]
        done += 1
        for k in range(start[row], start[row + 1]):
            effect = effects[k]
            waiting[effect] -= 1
            if waiting[effect] == 0:
                order[filled] = effect
                filled += 1
    return order[:filled].copy()


@njit
def cycles(offsets: Ints, causes: Ints, alive: Bools) -> Bools:
    """Mask the alive rows on a cycle; edges of a row to itself do not count."""
    return on_cycles(strong_components(offsets[:-1], offsets[1:], causes, alive))


@njit
def release(
    order: Ints, offsets: Ints, causes: Ints, exact: Bools, alive: Bools, time: Ints, timed: Bools
) -> tuple[Ints, Ints, Bytes]:
    """Return release times, depths, and THERE, WAITED or MISSING for each edge.

    A row is released when it has arrived (`time` where `timed`) and its causes are released;
    missing causes do not delay it. `order` has causes first. An edge with `exact` false is a
    missing cause: its row is the nearest earlier one, or -1. An edge to -1 with `exact` true is
    none.
    """
    released = np.full(len(alive), BEFORE_ALL, np.int64)
    depth = np.zeros(len(alive), np.int64)
    kinds = np.zeros(len(causes), np.int8)
    for row in order:
        latest = time[row] if timed[row] else BEFORE_ALL
        deep = 0
        for edge in range(offsets[row], offsets[row + 1]):
            cause = causes[edge]
            there = cause >= 0 and alive[cause]
            if there:
                if timed[row] and released[cause] > time[row]:
                    kinds[edge] = WAITED
                if released[cause] > latest:
                    latest, deep = released[cause], 0
                if released[cause] == latest:
                    deep = max(deep, depth[cause] + 1)
            if not exact[edge] or (cause >= 0 and not alive[cause]):
                kinds[edge] = MISSING
        released[row] = latest
        depth[row] = deep
    return released, depth, kinds


@njit
def first_mention(offsets: Ints, codes: NDArray[Any], distinct: int) -> Bools:
    """Mask the first edge of each row to each cause; `codes` are below `distinct`."""
    seen = np.full(distinct, -1, np.int64)
    first = np.zeros(len(codes), np.bool_)
    for row in range(len(offsets) - 1):
        for edge in range(offsets[row], offsets[row + 1]):
            if seen[codes[edge]] != row:
                seen[codes[edge]] = row
                first[edge] = True
    return first


@njit
def positions(order: Ints, group: Ints, groups: int, rows: int) -> Ints:
    """Return each row's position within its group, from 0; -1 for rows not in `order`."""
    count = np.zeros(groups, np.int64)
    place = np.full(rows, -1, np.int64)
    for row in order:
        place[row] = count[group[row]]
        count[group[row]] += 1
    return place
