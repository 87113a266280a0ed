"""Cuts through a run of a scenario: consistent or not, and why.

Source: Sahai et al. 2020, "Global State of a Distributed System"; Mattern 1989. Events are sends
and arrivals. Relayed and control messages belong to the arrival that caused them. A cut is
consistent if it contains the send of every message received inside, and the sponsor's past of every
joining member. With `deliveries`, a delivery counts as the receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.lab.check.harness import ARRIVED, DELIVERED, FORWARDED, JOINED, LOST, RELEASED, SENT
from antecede.lab.check.scenario import CONTROL_SENT, ScenarioEvent, ScenarioRun
from antecede.lab.play.runner import run_protocol
from antecede.lab.play.side_by_side import choose_protocols, find_relation, parse_limited

Cut = Mapping[str, int]
DELIVERIES: Final = "deliveries"


class CutCopy(NamedTuple):
    """Message on one channel; `received` is None if it never arrives."""

    label: str
    source: str
    sent: int
    target: str
    received: int | None
    is_lost: bool = False
    known_by_sponsor: tuple[str, int] | None = None
    """Sponsor, and its number of events at the join, for messages sent before the target joined."""


class CutExecution(NamedTuple):
    """Events of a run, and the copies between them."""

    lengths: Mapping[str, int]
    copies: tuple[CutCopy, ...]
    joins: tuple[tuple[str, int, str], ...]
    """(sponsor, its number of events, joining member)."""

    def list_conditions(self) -> list[tuple[str, int, str, int]]:
        """Return (a, i, b, j): a cut with the j-th event of b must contain the i-th of a."""
        conditions = [(c.source, c.sent, c.target, c.received) for c in self.copies if c.received]
        return conditions + [(sponsor, at, new, 1) for sponsor, at, new in self.joins if at]


def build_execution(
    run: ScenarioRun, members: tuple[str, ...], *, deliveries: bool = False
) -> CutExecution:
    """Return the events of a run; `deliveries`: count deliveries instead of arrivals."""
    builder = _ExecutionBuilder(members, deliveries)
    for result in run.results:
        for event in result.events:
            builder.add_event(event)
    flying = [
        builder.make_copy(label, source, target, None) for source, label, target in run.in_flight
    ]
    copies = (*builder.copies, *flying)
    return CutExecution(builder.count, copies, tuple(builder.joins))


class _ExecutionBuilder:
    def __init__(self, members: tuple[str, ...], deliveries: bool) -> None:
        self.count = dict.fromkeys(members, 0)
        self.deliveries = deliveries
        self.copies: list[CutCopy] = []
        self.joins: list[tuple[str, int, str]] = []
        self.sent: dict[tuple[str, str], int] = {}
        self.own: dict[tuple[str, str, str], list[int]] = {}
        """Positions of control messages by (sender, label, target); several share a label."""
        self.sent_before_join: dict[str, dict[tuple[str, str], tuple[str, int]]] = {}
        """(sponsor, its number of events) by joining member and (member, label) sent before."""
        self.waiting: dict[tuple[str, str], int] = {}

    def add_event(self, event: ScenarioEvent) -> None:
        key = event.at, event.label
        if event.kind == SENT:
            self.sent[key] = self._count_event(event.at)
        elif event.kind == FORWARDED:
            self.sent[key] = self.count[event.at]
        elif event.kind == CONTROL_SENT and key not in self.sent:
            for target in event.others:
                self.own.setdefault((*key, target), []).append(self.count[event.at])
        elif event.kind == ARRIVED:
            self._add_arrival(event)
        elif event.kind in (DELIVERED, RELEASED) and self.deliveries:
            self._add_delivery(key)
        elif event.kind == LOST:
            lost = self.make_copy(event.label, event.others[0], event.at, None)
            self.copies.append(lost._replace(is_lost=True))
        elif event.kind == JOINED:
            sponsor = event.others[0]
            at = sponsor, self.count[sponsor]
            self.joins.append((*at, event.at))
            self.sent_before_join[event.at] = dict.fromkeys(self.sent, at)

    def _count_event(self, at: str) -> int:
        self.count[at] += 1
        return self.count[at]

    def _add_arrival(self, event: ScenarioEvent) -> None:
        position = None if self.deliveries else self._count_event(event.at)
        self.waiting[event.at, event.label] = len(self.copies)
        self.copies.append(self.make_copy(event.label, event.others[0], event.at, position))

    def _add_delivery(self, key: tuple[str, str]) -> None:
        place = self.waiting.pop(key, None)
        if place is not None:
            self.copies[place] = self.copies[place]._replace(received=self._count_event(key[0]))

    def make_copy(self, label: str, source: str, target: str, received: int | None) -> CutCopy:
        waiting = self.own.get((source, label, target))
        sent = waiting.pop(0) if waiting else self.sent.get((source, label), 0)
        owed = self.sent_before_join.get(target, {}).get((source, label))
        return CutCopy(label, source, sent, target, received, known_by_sponsor=owed)


def find_greatest_below(execution: CutExecution, cut: Cut) -> dict[str, int]:
    """Return the greatest consistent cut at or below this one."""
    return _repair_cut(execution, cut, lambda a, i, b, j: (b, j - 1))


def find_least_above(execution: CutExecution, cut: Cut) -> dict[str, int]:
    """Return the least consistent cut at or above this one."""
    return _repair_cut(execution, cut, lambda a, i, b, j: (a, i))


def _repair_cut(
    execution: CutExecution, cut: Cut, moved: Callable[[str, int, str, int], tuple[str, int]]
) -> dict[str, int]:
    found, conditions = dict(cut), execution.list_conditions()
    while broken := [
        one for one in conditions if found[one[2]] >= one[3] and found[one[0]] < one[1]
    ]:
        member, count = moved(*broken[0])
        found[member] = count
    return found


def describe_cut(execution: CutExecution, counts: object) -> dict[str, Any]:
    """Return a cut as plain values; raises InputError. `counts`: events inside by member."""
    cut = _check_counts(execution, counts)
    inside = [
        copy
        for copy in execution.copies
        if copy.sent <= cut[copy.source]
        and (
            copy.known_by_sponsor is None
            or cut[copy.known_by_sponsor[0]] >= copy.known_by_sponsor[1]
        )
    ]
    crossing = [
        copy
        for copy in execution.copies
        if copy.received is not None
        and copy.received <= cut[copy.target]
        and copy.sent > cut[copy.source]
    ]
    early = [
        (sponsor, new) for sponsor, at, new in execution.joins if cut[new] > 0 and cut[sponsor] < at
    ]
    channels: dict[tuple[str, str], list[str]] = {}
    place = {name: k for k, name in enumerate(execution.lengths)}
    for copy in sorted(inside, key=lambda c: (place[c.source], place[c.target], c.sent)):
        if copy.received is None or copy.received > cut[copy.target]:
            name = f"{copy.label} (lost)" if copy.is_lost else copy.label
            channels.setdefault((copy.source, copy.target), []).append(name)
    nearest = {
        "below": find_greatest_below(execution, cut),
        "above": find_least_above(execution, cut),
    }
    return {
        "counts": cut,
        "consistent": not crossing and not early,
        "sentences": _write_sentences(crossing, early, channels, nearest),
        "crossing": [[copy.label, copy.source, copy.target] for copy in crossing],
        "channels": [
            {"source": source, "target": target, "labels": labels}
            for (source, target), labels in channels.items()
        ],
        **nearest,
    }


def compute_cut(
    text: str, protocol: str, relation: str | None, counts: object, by: str, path: str
) -> dict[str, Any]:
    """Return a cut of a text under a protocol; `by`: "arrivals" or "deliveries"."""
    if by not in ("arrivals", DELIVERIES):
        raise InputError(f"by={by!r}: choose from arrivals, {DELIVERIES}")
    scenario = parse_limited(text, path)
    run = run_protocol(scenario, choose_protocols(scenario, [protocol])[0], find_relation(relation))
    if run.run is None:
        raise run.error or InputError("the scenario could not be run")
    execution = build_execution(run.run, scenario.list_members(), deliveries=by == DELIVERIES)
    return describe_cut(execution, counts)


def _check_counts(execution: CutExecution, counts: object) -> dict[str, int]:
    if not isinstance(counts, Mapping):
        raise InputError("counts must be an object of numbers by member")
    lengths = execution.lengths
    for name, count in counts.items():
        if name not in lengths:
            raise InputError(f"unknown member {name}; choose from {', '.join(execution.lengths)}")
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= lengths[name]:
            there = pluralize(lengths[name], "event")
            raise InputError(f"{name}={count!r}: {name} has {there} in this run")
    return {name: counts.get(name, 0) for name in execution.lengths}


def _write_sentences(
    crossing: list[CutCopy],
    early: list[tuple[str, str]],
    channels: Mapping[tuple[str, str], list[str]],
    nearest: Mapping[str, Mapping[str, int]],
) -> list[str]:
    wrong = [
        f"{one.label} is received inside by {one.target}, and sent outside by {one.source}."
        for one in crossing
    ]
    wrong += [
        f"{new} is inside, and the past of its sponsor {sponsor} is not." for sponsor, new in early
    ]
    if wrong:
        near = (f"{side} {_format_counts(nearest[side])}" for side in ("below", "above"))
        return [
            "Not consistent: the group cannot have been in this state.",
            *wrong,
            f"The nearest consistent cuts: {'; '.join(near)}.",
        ]
    way = [
        f"From {source} to {target}: {', '.join(labels)}."
        for (source, target), labels in channels.items()
    ]
    return ["Consistent: the group can have been in this state.",
            *(way or ["The channels are empty."])]  # fmt: skip


def _format_counts(cut: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={count}" for name, count in cut.items())
