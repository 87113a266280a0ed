"""Difference constraints (CLRS 24.4): solutions with least sum, or a contradiction.

An arc x -> y of weight w stands for s[y] <= s[x] + w. Shortest paths (Bellman and Ford) solve the
system; a cycle of negative weight is a contradiction. The solution has the least sum of absolute
values. Its dual is a flow of least cost in which each process may supply or take one unit, solved
by augmenting along shortest paths; the final distances are the shifts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MAX_STEPS = 2_000_000
"""Arcs visited for shifts of least sum; 300 processes with wrong clocks take as many."""


class Arc(NamedTuple):
    """Tightest bound in one direction: s[after] <= s[before] + weight, in ns."""

    before: int
    after: int
    weight: int
    edge: int = -1  # edge of the trace
    rule: str = ""


class Solution(NamedTuple):
    """Shifts that satisfy all bounds, or a contradiction."""

    shifts: (
        list[int] | None
    )  # [processes] ns, of least sum of absolute values; None: a contradiction
    least_largest: int | None  # least possible largest absolute value, ns
    contradiction: list[Arc]  # cycle of negative weight
    has_least_sum: bool = True  # False: not of least sum, as that takes too long


def solve(processes: int, arcs: Sequence[Arc]) -> Solution:
    """Return shifts with s[after] <= s[before] + weight for all arcs, or a contradiction."""
    ways = group_by_start(processes, arcs)
    distance, _, cycle = find_shortest_paths([0] * processes, ways)
    if cycle:
        return Solution(None, None, cycle)
    # From least to most, every solution spans at least as far as the shortest distance.
    largest = (1 - min(distance, default=0)) // 2
    least = minimize_total(processes, arcs)
    if least is not None:
        return Solution(least, largest, [])
    middle = sorted(distance)[processes // 2]  # adding a constant keeps a solution
    return Solution([shift - middle for shift in distance], largest, [], False)


def group_by_start(processes: int, arcs: Sequence[Arc]) -> list[list[Arc]]:
    """Return the arcs that begin at each process."""
    ways: list[list[Arc]] = [[] for _ in range(processes)]
    for arc in arcs:
        ways[arc.before].append(arc)
    return ways


def find_shortest_paths(
    start: Sequence[float], outgoing: Sequence[Sequence[Arc]]
) -> tuple[list[Any], dict[int, Arc], list[Arc]]:
    """Return shortest distances, the last arc to each node, and a negative cycle or [].

    `start` are initial distances; `outgoing` are the arcs that begin at each node. A cycle among
    the last arcs is negative.
    """
    distance: list[Any] = list(start)
    last: dict[int, Arc] = {}
    changed = [node for node, known in enumerate(start) if known != math.inf]
    while changed:
        reached: dict[int, None] = {}
        for node in changed:
            base = distance[node]
            for arc in outgoing[node]:
                _, after, weight, _, _ = arc
                if base + weight < distance[after]:
                    distance[after] = base + weight
                    last[after] = arc
                    reached[after] = None
        if cycle := _find_cycle(last):
            return distance, last, cycle
        changed = list(reached)
    return distance, last, []


def _find_cycle(last: Mapping[int, Arc]) -> list[Arc]:
    """Return a cycle among arcs, one of which ends at each node; [] without one."""
    seen: dict[int, int] = {}
    for number, begin in enumerate(last):
        node = begin
        while node in last and node not in seen:
            seen[node] = number
            node = last[node].before
        if seen.get(node) == number:
            circle = [last[node]]
            while circle[-1].before != node:
                circle.append(last[circle[-1].before])
            return circle[::-1]
    return []


def minimize_total(processes: int, arcs: Sequence[Arc]) -> list[int] | None:
    """Return the shifts of least sum of absolute values; None if that takes too long.

    The arcs have no negative cycle. `fed` is the balance of each process, -1 to 1. While a path of
    negative length leads from a possible taker to a possible giver, a unit flows along it. In the
    end the distances satisfy all bounds, and are 0 where `fed` is 0.
    """
    flow = [0] * len(arcs)
    fed = [0] * processes
    ways = group_by_start(processes, [a._replace(edge=number) for number, a in enumerate(arcs)])
    for _ in range(2 + MAX_STEPS // (1 + processes + len(arcs))):
        start = [0 if units < 1 else math.inf for units in fed]
        distance, last, _ = find_shortest_paths(start, ways)
        givers = (node for node in range(processes) if fed[node] > -1)
        node = min(givers, key=distance.__getitem__, default=-1)
        if node < 0 or distance[node] >= 0:
            return [int(shift) for shift in distance]
        fed[node] -= 1
        while node in last:
            arc = last[node]
            back = Arc(arc.after, arc.before, -arc.weight, -1 - arc.edge)
            forward = arc.edge >= 0
            number = arc.edge if forward else back.edge
            flow[number] += 1 if forward else -1
            if forward and flow[number] == 1:
                ways[back.before].append(back)
            elif not forward and not flow[number]:
                ways[arc.before].remove(arc)
            node = arc.before
        fed[node] += 1
    return None
