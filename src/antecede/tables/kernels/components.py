"""Strongly connected components of a graph."""

from __future__ import annotations

import numpy as np

from antecede.tables.kernels.arrays import Bools, Ints
from antecede.tables.kernels.jit import njit

OUTSIDE = -1
"""Component of a node that is excluded."""


@njit
def strong_components(first: Ints, last: Ints, neighbour: Ints, inside: Bools) -> Ints:
    """Return the strong component of each node, OUTSIDE where it is not `inside` [n].

    The neighbours of node v are `neighbour[first[v]:last[v]]`; those below 0 or not inside are
    skipped. Tarjan's algorithm (1972) with explicit stacks; O(n + edges).
    """
    n = len(inside)
    component = np.full(n, OUTSIDE, np.int64)
    index = np.full(n, -1, np.int64)
    low = np.zeros(n, np.int64)
    waiting = np.empty(n, np.int64)
    path = np.empty(n, np.int64)
    position = first.copy()
    count = found = waits = 0
    for root in range(n):
        if not inside[root] or index[root] >= 0:
            continue
        path[0] = root
        depth = 1
        while depth > 0:
            node = path[depth - 1]
            if index[node] < 0:
                index[node] = low[node] = count
                count += 1
                waiting[waits] = node
                waits += 1
            if position[node] < last[node]:
                above = neighbour[position[node]]
                position[node] += 1
                if above < 0 or not inside[above]:
                    continue
                if index[above] < 0:
                    path[depth] = above
                    depth += 1
                elif component[above] < 0:
                    low[node] = min(low[node], index[above])
                continue
            depth -= 1
            if depth > 0:
                low[path[depth - 1]] = min(low[path[depth - 1]], low[node])
            if low[node] == index[node]:
                while True:
                    waits -= 1
                    component[waiting[waits]] = found
                    if waiting[waits] == node:
                        break
                found += 1
    return component


@njit
def on_cycles(component: Ints) -> Bools:
    """Mask the nodes whose component has several nodes [n]; loops of one node do not count."""
    size = np.zeros(len(component), np.int64)
    for number in component:
        if number != OUTSIDE:
            size[number] += 1
    found = np.zeros(len(component), np.bool_)
    for node, number in enumerate(component):
        found[node] = number != OUTSIDE and size[number] > 1
    return found
