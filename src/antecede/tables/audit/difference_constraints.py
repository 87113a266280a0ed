"""Systems of bounds on differences: solutions, those nearest to zero, or a contradiction.

Theory of operation
-------------------
An arc x -> y of weight w stands for s[y] <= s[x] + w. Shortest paths (Bellman and Ford) solve the
system; a cycle of negative weight is a contradiction, and its arcs are the witness.

Of all solutions, one with the least sum of absolute values is told: the dual problem is a flow of
least cost in which each process may feed or take one unit, found by augmenting along shortest
paths; the distances at the end are the shifts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MAX_STEPS = 2_000_000
"""Arcs looked at for shifts of least sum; 300 processes that are all off take as many."""


class Arc(NamedTuple):
    """The tightest bound in one direction: s[after] <= s[before] + weight, in ns."""

    before: int
    after: int
    weight: int
    edge: int = -1  # edge of the trace that it comes from
    rule: str = ""


class Solution(NamedTuple):
    """Shifts that keep all bounds, or the contradiction."""

    shifts: list[int] | None  # [processes] of least sum of absolute values; None: a contradiction
    least_largest: int | None  # least possible largest absolute value, ns
    contradiction: list[Arc]  # arcs of a cycle of negative weight
    least: bool = True  # False: the least sum would have taken too long


def solve(processes: int, arcs: Sequence[Arc]) -> Solution:
    """Return shifts with s[after] <= s[before] + weight for all arcs, or a contradiction."""
    ways = by_begin(processes, arcs)
    distance, _, cycle = shortest([0] * processes, ways)
    if cycle:
        return Solution(None, None, cycle)
    # From least to most, every solution spans at least as far as the shortest distance.
    largest = (1 - min(distance, default=0)) // 2
    least = least_total(processes, arcs)
    if least is not None:
        return Solution(least, largest, [])
    middle = sorted(distance)[processes // 2]  # a solution stays one when all move by the same
    return Solution([shift - middle for shift in distance], largest, [], False)


def by_begin(processes: int, arcs: Sequence[Arc]) -> list[list[Arc]]:
    """Return the arcs that begin at each process."""
    ways: list[list[Arc]] = [[] for _ in range(processes)]
    for arc in arcs:
        ways[arc.before].append(arc)
    return ways


def shortest(
    start: Sequence[float], ways: Sequence[Sequence[Arc]]
) -> tuple[list[Any], dict[int, Arc], list[Arc]]:
    """Return shortest distances from given ones, the last arc to each node, a negative cycle.

    `ways` are the arcs that begin at each node. A cycle among the last arcs is negative.
    """
    distance: list[Any] = list(start)
    last: dict[int, Arc] = {}
    changed = [node for node, known in enumerate(start) if known != math.inf]
    while changed:
        reached: dict[int, None] = {}
        for node in changed:
            base = distance[node]
            for arc in ways[node]:
                _, after, weight, _, _ = arc
                if base + weight < distance[after]:
                    distance[after] = base + weight
                    last[after] = arc
                    reached[after] = None
        if cycle := _cycle(last):
            return distance, last, cycle
        changed = list(reached)
    return distance, last, []


def _cycle(last: Mapping[int, Arc]) -> list[Arc]:
    """Return a cycle among arcs, one of which ends at each node; empty if there is none."""
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


def least_total(processes: int, arcs: Sequence[Arc]) -> list[int] | None:
    """Return the shifts of least sum of absolute values; None if that takes too long.

    The arcs have no negative cycle. A unit of flow feeds a process and is taken from another; `fed`
    is the balance of each, -1 to 1. While a path of negative length leads from a possible taker to
    a possible giver, a unit flows along it. Then the distances keep all bounds, and are 0 where fed
    is 0.
    """
    flow = [0] * len(arcs)
    fed = [0] * processes
    ways = by_begin(processes, [a._replace(edge=number) for number, a in enumerate(arcs)])
    for _ in range(2 + MAX_STEPS // (1 + processes + len(arcs))):
        start = [0 if units < 1 else math.inf for units in fed]
        distance, last, _ = shortest(start, ways)
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
