"""The fewest clocks that must be wrong, and by how much each may be.

Theory of operation
-------------------
Many shifts satisfy the bounds (`difference_constraints`). A report names the hosts to look at, so
the fewest are searched; all others keep their times. Let S be those that may shift; the others are
one node of shift 0. Where a path of negative length leads from one unshifted host to another, one
of the two must be in S: each is tried (a tree of depth k has 2^k leaves for k hosts). Small sets
come first, and all of the least size are found, so other choices are counted. Where that takes too
long, hosts of a solution of least sum are taken back one by one, and `fewest` is false.

The shifts of a set S have the least sum of absolute values. The range of each is what the bounds
leave it while every host outside S keeps its time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from antecede.tables.audit.difference_constraints import Arc, by_begin, least_total, shortest

MAX_STEPS = 500_000  # arcs looked at in search of the fewest
MAX_SETS = 16  # sets of the least size that are compared by the sum of their shifts

Hosts = frozenset[int]


class Blame(NamedTuple):
    """Hosts that must shift, by how much and within which range."""

    shifts: dict[int, int]  # by host; all others keep their times
    ranges: dict[int, tuple[int | None, int | None]]  # least and most of each; None: no bound
    fewest: bool  # no smaller set of hosts would do
    others: int  # number of other sets of this size that would do, at most `MAX_SETS`


def blame(hosts: int, arcs: Sequence[Arc], known: Sequence[int]) -> Blame:
    """Return the fewest hosts whose shifts keep all bounds; `known` are shifts that do."""
    search = _Search(hosts, arcs)
    sets = search.least_sets()
    if not sets:
        sets = [_taken_back(arcs, known)]
    solved = [(_shifts(arcs, chosen), chosen) for chosen in sets]
    usual = frozenset(host for host, shift in enumerate(known) if shift)
    shifts, chosen = min(
        solved,
        key=lambda one: (sum(map(abs, one[0].values())), one[1] != usual, sorted(one[1])),
    )
    return Blame(shifts, _ranges(arcs, chosen), search.finished, len(sets) - 1)


class _Search:
    """All sets of the least size, as long as that is not too much work."""

    def __init__(self, hosts: int, arcs: Sequence[Arc]) -> None:
        self.hosts = hosts
        self.arcs = arcs
        self.left = MAX_STEPS // (1 + hosts + len(arcs))
        self.finished = True

    def least_sets(self) -> list[Hosts]:
        """Return every set of the least size, [] where that is too much work."""
        for size in range(self.hosts + 1):
            found: dict[Hosts, None] = {}
            self._grow(frozenset(), size, found, set())
            if not self.finished:
                return []
            if found:
                return list(found)
        return []

    def _grow(self, chosen: Hosts, size: int, found: dict[Hosts, None], seen: set[Hosts]) -> None:
        if chosen in seen or not self.finished or len(found) > MAX_SETS:
            return
        seen.add(chosen)
        self.left -= 1
        if self.left < 0:
            self.finished = False
            return
        between = conflict(self.arcs, chosen)
        if between is None:
            found[chosen] = None
        elif len(chosen) < size:
            for host in sorted(between):
                self._grow(chosen | {host}, size, found, seen)


def conflict(arcs: Sequence[Arc], chosen: Hosts) -> Hosts | None:
    """Return one or two hosts outside `chosen` of which one must shift; None if none must."""
    number, reduced = _reduced(arcs, chosen)
    for arc in reduced:
        if arc.before == arc.after and arc.weight < 0:
            return frozenset((arcs[arc.edge].before, arcs[arc.edge].after))
    proper = [arc for arc in reduced if arc.before != arc.after]
    _, _, cycle = shortest([0] * (len(number) + 1), by_begin(len(number) + 1, proper))
    ends = [arcs[arc.edge].before for arc in cycle if arc.before == 0]
    ends += [arcs[arc.edge].after for arc in cycle if arc.after == 0]
    return frozenset(ends) if cycle else None


def _reduced(arcs: Iterable[Arc], chosen: Hosts) -> tuple[dict[int, int], list[Arc]]:
    """Make all hosts outside `chosen` node 0; `edge` is then the number of the arc."""
    number = {host: place for place, host in enumerate(sorted(chosen), start=1)}
    reduced = [
        Arc(number.get(arc.before, 0), number.get(arc.after, 0), arc.weight, place, arc.rule)
        for place, arc in enumerate(arcs)
    ]
    return number, reduced


def _taken_back(arcs: Sequence[Arc], known: Sequence[int]) -> Hosts:
    """Return the hosts of a solution without those that need not shift, smallest shifts first."""
    chosen = frozenset(host for host, shift in enumerate(known) if shift)
    for host in sorted(chosen, key=lambda host: (abs(known[host]), host)):
        if conflict(arcs, chosen - {host}) is None:
            chosen -= {host}
    return chosen


def _shifts(arcs: Sequence[Arc], chosen: Hosts) -> dict[int, int]:
    number, reduced = _reduced(arcs, chosen)
    proper = [arc for arc in reduced if arc.before != arc.after]
    # Nodes tied to node 0, one more than may shift: it never pays to move them.
    tied = range(len(number) + 1, 2 * len(number) + 2)
    proper += [Arc(*ends, 0) for node in tied for ends in ((0, node), (node, 0))]
    nodes = 2 * len(number) + 2
    found = least_total(nodes, proper)
    if found is None:
        found, _, _ = shortest([0] * nodes, by_begin(nodes, proper))
    return {host: int(found[place] - found[0]) for host, place in number.items()}


def _ranges(arcs: Sequence[Arc], chosen: Hosts) -> dict[int, tuple[int | None, int | None]]:
    number, reduced = _reduced(arcs, chosen)
    proper = [arc for arc in reduced if arc.before != arc.after]
    nodes = len(number) + 1
    back = [arc._replace(before=arc.after, after=arc.before) for arc in proper]
    start = [0.0] + [math.inf] * (nodes - 1)
    most, _, _ = shortest(start, by_begin(nodes, proper))
    least, _, _ = shortest(start, by_begin(nodes, back))

    def known(value: float, sign: int) -> int | None:
        return None if value == math.inf else sign * int(value)

    return {
        host: (known(least[place], -1), known(most[place], 1)) for host, place in number.items()
    }
