"""Did the engine release what the processes delivered? Exactly, arrival by arrival."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow

from antecede.trace.schema import DELIVER, RECEIVE, Event


class Agreement(NamedTuple):
    """How many releases were compared, and the first few that differ, in words."""

    compared: int
    differences: tuple[str, ...]

    def __str__(self) -> str:
        if self.differences:
            return f"{len(self.differences):,} of {self.compared:,} differ: {self.differences[0]}"
        return "identical"


def delivered_by(events: Iterable[Event]) -> dict[str, dict[str, int]]:
    """Return, for each member and message, the arrival (counted from 1) that delivered it."""
    arrived: dict[str, int] = defaultdict(int)
    releases: dict[str, dict[str, int]] = defaultdict(dict)
    for event in events:
        member = event.member or ""
        if event.kind == RECEIVE:
            arrived[member] += 1
        elif event.kind == DELIVER:
            releases[member][event.id] = arrived[member]
    return dict(releases)


def released_by(ordered: pyarrow.Table) -> dict[str, dict[str, int]]:
    """Return the same of ordered receipts (columns member, id, parents, file_order, position).

    A message goes with the last arrival among itself and all that it waits for.
    """
    names = ["member", "id", "parents", "file_order", "position"]
    rows = list(zip(*(ordered.column(name).to_pylist() for name in names), strict=True))
    by_member: dict[str, list[tuple[str, Sequence[str], int, int]]] = defaultdict(list)
    for member, name, parents, file_order, position in rows:
        if position is not None:
            by_member[member].append((name, parents, file_order, position))
    return {member: _releases(rows) for member, rows in by_member.items()}


def _releases(rows: list[tuple[str, Sequence[str], int, int]]) -> dict[str, int]:
    in_arrival = sorted(rows, key=lambda row: row[2])
    arrival = {row[0]: number for number, row in enumerate(in_arrival, start=1)}
    release: dict[str, int] = {}
    for name, parents, _, _ in sorted(rows, key=lambda row: row[3]):
        waited = [release[parent] for parent in parents if parent in arrival]
        release[name] = max([arrival[name], *waited])
    return release


def compare(
    ours: Mapping[str, Mapping[str, int]], theirs: Mapping[str, Mapping[str, int]]
) -> Agreement:
    """Compare two answers; a message that only one of them has is a difference."""
    differences = []
    compared = 0
    for member in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(member, {}), theirs.get(member, {})
        for name in sorted(mine.keys() | other.keys()):
            compared += 1
            if mine.get(name) != other.get(name):
                differences.append(
                    f"{name} at {member}: arrival {mine.get(name)} against {other.get(name)}"
                )
    return Agreement(compared, tuple(differences))
