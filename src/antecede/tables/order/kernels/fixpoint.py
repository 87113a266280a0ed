"""Release times and depths of one partition, as packed arrays that fit one task.

Nodes are 0 .. n-1. Results of other partitions are start values of nodes, or edges whose cause is
KNOWN or OPEN. Both results are least fixpoints, so partitions may be settled in any order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import njit

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]

KNOWN, OPEN = -1, -2
"""Replacements of a cause in another partition: its depth is known, or not known yet."""


@njit
def build_out_edges(n: int, cause: Ints, effect: Ints) -> tuple[Longs, Ints]:
    """Return where the effects of each node begin, shape (n + 1,), and the effects."""
    start = np.zeros(n + 1, np.int64)
    for edge in range(len(cause)):
        if cause[edge] >= 0:
            start[cause[edge] + 1] += 1
    for node in range(n):
        start[node + 1] += start[node]
    effects = np.empty(start[n], np.int32)
    for edge in range(len(cause)):
        if cause[edge] >= 0:
            effects[start[cause[edge]]] = effect[edge]
            start[cause[edge]] += 1
    for node in range(n, 0, -1):
        start[node] = start[node - 1]
    start[0] = 0
    return start, effects


@njit
def propagate_releases(start: Longs, effects: Ints, released: Longs, by_time: Longs) -> None:
    """Raise `released` of each node to the greatest value among the node and its causal past.

    `by_time` are the nodes by falling `released`, so each node and edge is visited once.
    """
    done = np.zeros(len(released), np.bool_)
    stack = np.empty(len(released), np.int32)
    for first in by_time:
        if done[first]:
            continue
        value = released[first]
        done[first] = True
        stack[0] = first
        size = 1
        while size:
            size -= 1
            node = stack[size]
            for edge in range(start[node], start[node + 1]):
                effect = effects[edge]
                if not done[effect]:
                    done[effect] = True
                    released[effect] = value
                    stack[size] = effect
                    size += 1


@njit
def propagate_depths(
    start: Longs, effects: Ints, cause: Ints, effect: Ints, known_depths: Ints
) -> Ints:
    """Return the longest chain of causes before each node; -1 where it is not settled.

    The known depths are those of KNOWN causes. Nodes on a cycle, behind a cycle, or behind an OPEN
    cause are not settled.
    """
    n = len(start) - 1
    waiting = np.zeros(n, np.int32)
    depth = np.zeros(n, np.int32)
    for edge in range(len(cause)):
        if cause[edge] == KNOWN:
            depth[effect[edge]] = max(depth[effect[edge]], known_depths[edge])
        else:
            waiting[effect[edge]] += 1
    queue = np.empty(n, np.int32)
    filled = 0
    for node in range(n):
        if waiting[node] == 0:
            queue[filled] = node
            filled += 1
    done = 0
    while done < filled:
        node = queue[done]
        done += 1
        for edge in range(start[node], start[node + 1]):
            after = effects[edge]
            depth[after] = max(depth[after], depth[node] + 1)
            waiting[after] -= 1
            if waiting[after] == 0:
                queue[filled] = after
                filled += 1
    for node in range(n):
        if waiting[node] > 0:
            depth[node] = -1
    return depth
