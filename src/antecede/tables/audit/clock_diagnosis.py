"""Minimal diagnosis of wrong clocks (Reiter 1987): the fewest hosts whose shifts explain a trace.

Let S be the hosts that may shift; the others are one node of shift 0. If a path of negative length
leads from one unshifted host to another (`difference_constraints`), one of the two must be in S:
each is tried, 2^k leaves for k hosts. Small sets come first, and all sets of minimal size are
found. If that takes too long, hosts of a solution of least sum are dropped one by one, and
`is_minimal` is false.

The shifts of S have the least sum of absolute values. The range of a shift is what the bounds allow
while every host outside S keeps its time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from antecede.tables.audit.difference_constraints import (
    Arc,
    find_shortest_paths,
    group_by_start,
    minimize_total,
)

MAX_STEPS = 500_000  # arcs visited by the search
MAX_SETS = 16  # sets of minimal size, compared by the sum of their shifts

Hosts = frozenset[int]


class Diagnosis(NamedTuple):
    """Hosts that must shift, by how much and within which range."""

    shifts: dict[int, int]  # host -> shift in ns; all others keep their times
    ranges: dict[
        int, tuple[int | None, int | None]
    ]  # host -> bounds of its shift, in ns; None: no bound
    is_minimal: bool  # no smaller set satisfies the bounds
    other_choices: int  # other sets of this size, at most `MAX_SETS`


def diagnose_clocks(hosts: int, arcs: Sequence[Arc], known_shifts: Sequence[int]) -> Diagnosis:
    """Return the fewest hosts whose shifts satisfy all bounds, as `known_shifts` do."""
    search = _Search(hosts, arcs)
    sets = search.find_smallest_sets()
    if not sets:
        sets = [_drop_unneeded(arcs, known_shifts)]
    solved = [(_solve_shifts(arcs, chosen), chosen) for chosen in sets]
    usual = frozenset(host for host, shift in enumerate(known_shifts) if shift)
    shifts, chosen = min(
        solved,
        key=lambda one: (sum(map(abs, one[0].values())), one[1] != usual, sorted(one[1])),
    )
    return Diagnosis(shifts, _compute_ranges(arcs, chosen), search.is_finished, len(sets) - 1)


class _Search:
    def __init__(self, hosts: int, arcs: Sequence[Arc]) -> None:
        self.hosts = hosts
        self.arcs = arcs
        self.steps_left = MAX_STEPS // (1 + hosts + len(arcs))
        self.is_finished = True

    def find_smallest_sets(self) -> list[Hosts]:
        for size in range(self.hosts + 1):
            found: dict[Hosts, None] = {}
            self._grow(frozenset(), size, found, set())
            if not self.is_finished:
                return []
            if found:
                return list(found)
        return []

    def _grow(self, chosen: Hosts, size: int, found: dict[Hosts, None], seen: set[Hosts]) -> None:
        if chosen in seen or not self.is_finished or len(found) > MAX_SETS:
            return
        seen.add(chosen)
        self.steps_left -= 1
        if self.steps_left < 0:
            self.is_finished = False
            return
        between = find_conflict(self.arcs, chosen)
        if between is None:
            found[chosen] = None
        elif len(chosen) < size:
            for host in sorted(between):
                self._grow(chosen | {host}, size, found, seen)


def find_conflict(arcs: Sequence[Arc], chosen: Hosts) -> Hosts | None:
    """Return one or two hosts outside `chosen` of which one must shift; None without a conflict."""
    number, reduced = _merge_fixed_hosts(arcs, chosen)
    for arc in reduced:
        if arc.before == arc.after and arc.weight < 0:
            return frozenset((arcs[arc.edge].before, arcs[arc.edge].after))
    proper = [arc for arc in reduced if arc.before != arc.after]
    _, _, cycle = find_shortest_paths(
        [0] * (len(number) + 1), group_by_start(len(number) + 1, proper)
    )
    ends = [arcs[arc.edge].before for arc in cycle if arc.before == 0]
    ends += [arcs[arc.edge].after for arc in cycle if arc.after == 0]
    return frozenset(ends) if cycle else None


def _merge_fixed_hosts(arcs: Iterable[Arc], chosen: Hosts) -> tuple[dict[int, int], list[Arc]]:
    """Merge all hosts outside `chosen` into node 0; `edge` becomes the index of the arc."""
    number = {host: place for place, host in enumerate(sorted(chosen), start=1)}
    reduced = [
        Arc(number.get(arc.before, 0), number.get(arc.after, 0), arc.weight, place, arc.rule)
        for place, arc in enumerate(arcs)
    ]
    return number, reduced


def _drop_unneeded(arcs: Sequence[Arc], known_shifts: Sequence[int]) -> Hosts:
    chosen = frozenset(host for host, shift in enumerate(known_shifts) if shift)
    for host in sorted(chosen, key=lambda host: (abs(known_shifts[host]), host)):
        if find_conflict(arcs, chosen - {host}) is None:
            chosen -= {host}
    return chosen


def _solve_shifts(arcs: Sequence[Arc], chosen: Hosts) -> dict[int, int]:
    number, reduced = _merge_fixed_hosts(arcs, chosen)
    proper = [arc for arc in reduced if arc.before != arc.after]
    # Nodes tied to node 0, one more than may shift: moving them never reduces the sum.
    tied = range(len(number) + 1, 2 * len(number) + 2)
    proper += [Arc(*ends, 0) for node in tied for ends in ((0, node), (node, 0))]
    nodes = 2 * len(number) + 2
    found = minimize_total(nodes, proper)
    if found is None:
        found, _, _ = find_shortest_paths([0] * nodes, group_by_start(nodes, proper))
    return {host: int(found[place] - found[0]) for host, place in number.items()}


def _compute_ranges(arcs: Sequence[Arc], chosen: Hosts) -> dict[int, tuple[int | None, int | None]]:
    number, reduced = _merge_fixed_hosts(arcs, chosen)
    proper = [arc for arc in reduced if arc.before != arc.after]
    nodes = len(number) + 1
    back = [arc._replace(before=arc.after, after=arc.before) for arc in proper]
    start = [0.0] + [math.inf] * (nodes - 1)
    most, _, _ = find_shortest_paths(start, group_by_start(nodes, proper))
    least, _, _ = find_shortest_paths(start, group_by_start(nodes, back))

    def to_bound(value: float, sign: int) -> int | None:
        return None if value == math.inf else sign * int(value)

    return {
        host: (to_bound(least[place], -1), to_bound(most[place], 1))
        for host, place in number.items()
    }
