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
from antecede.formatting import counted
from antecede.lab.check.harness import ARRIVED, DELIVERED, FORWARDED, JOINED, LOST, RELEASED, SENT
from antecede.lab.check.scenario import ACKNOWLEDGED, Occurrence, ScriptRun
from antecede.lab.play.runner import play
from antecede.lab.play.side_by_side import chosen, parsed, relation_of

Cut = Mapping[str, int]
DELIVERIES: Final = "deliveries"


class Copy(NamedTuple):
    """Message on one channel; `received` is None if it never arrives."""

    label: str
    source: str
    sent: int
    """Position of its send; 0: before all events."""
    target: str
    received: int | None
    lost: bool = False
    owed: tuple[str, int] | None = None
    """Sponsor, and its number of events at the join, for messages sent before the target joined."""


class Execution(NamedTuple):
    """Events of a run, and the copies between them."""

    lengths: Mapping[str, int]
    copies: tuple[Copy, ...]
    joins: tuple[tuple[str, int, str], ...]
    """(sponsor, its number of events, joining member)."""

    def conditions(self) -> list[tuple[str, int, str, int]]:
        """Return (a, i, b, j): a cut with the j-th event of b must contain the i-th of a."""
        found = [(c.source, c.sent, c.target, c.received) for c in self.copies if c.received]
        return found + [(sponsor, at, new, 1) for sponsor, at, new in self.joins if at]


def execution(run: ScriptRun, members: tuple[str, ...], *, deliveries: bool = False) -> Execution:
    """Return the events of a run; `deliveries`: count deliveries instead of arrivals."""
    made = _Reading(members, deliveries)
    for result in run.results:
        for one in result.occurrences:
            made.take(one)
    flying = [made.copy(label, source, target, None) for source, label, target in run.flying]
    copies = (*made.copies, *flying)
    return Execution(made.count, copies, tuple(made.joins))


class _Reading:
    def __init__(self, members: tuple[str, ...], deliveries: bool) -> None:
        self.count = dict.fromkeys(members, 0)
        self.deliveries = deliveries
        self.copies: list[Copy] = []
        self.joins: list[tuple[str, int, str]] = []
        self.sent: dict[tuple[str, str], int] = {}
        self.own: dict[tuple[str, str, str], list[int]] = {}
        """Positions of control messages by (sender, label, target); several share a label."""
        self.owed: dict[str, dict[tuple[str, str], tuple[str, int]]] = {}
        """(sponsor, its number of events) by joining member and (member, label) sent before."""
        self.waiting: dict[tuple[str, str], int] = {}
        """Index of the arrived and undelivered copy, by (member, label)."""

    def take(self, one: Occurrence) -> None:
        key = one.at, one.label
        if one.kind == SENT:
            self.sent[key] = self._next(one.at)
        elif one.kind == FORWARDED:
            self.sent[key] = self.count[one.at]
        elif one.kind == ACKNOWLEDGED and key not in self.sent:
            for target in one.others:
                self.own.setdefault((*key, target), []).append(self.count[one.at])
        elif one.kind == ARRIVED:
            self._arrived(one)
        elif one.kind in (DELIVERED, RELEASED) and self.deliveries:
            self._delivered(key)
        elif one.kind == LOST:
            lost = self.copy(one.label, one.others[0], one.at, None)
            self.copies.append(lost._replace(lost=True))
        elif one.kind == JOINED:
            sponsor = one.others[0]
            at = sponsor, self.count[sponsor]
            self.joins.append((*at, one.at))
            self.owed[one.at] = dict.fromkeys(self.sent, at)

    def _next(self, at: str) -> int:
        self.count[at] += 1
        return self.count[at]

    def _arrived(self, one: Occurrence) -> None:
        position = None if self.deliveries else self._next(one.at)
        self.waiting[one.at, one.label] = len(self.copies)
        self.copies.append(self.copy(one.label, one.others[0], one.at, position))

    def _delivered(self, key: tuple[str, str]) -> None:
        place = self.waiting.pop(key, None)
        if place is not None:
            self.copies[place] = self.copies[place]._replace(received=self._next(key[0]))

    def copy(self, label: str, source: str, target: str, received: int | None) -> Copy:
        waiting = self.own.get((source, label, target))
        sent = waiting.pop(0) if waiting else self.sent.get((source, label), 0)
        owed = self.owed.get(target, {}).get((source, label))
        return Copy(label, source, sent, target, received, owed=owed)


def below(of: Execution, cut: Cut) -> dict[str, int]:
    """Return the greatest consistent cut at or below this one."""
    return _mended(of, cut, lambda a, i, b, j: (b, j - 1))


def above(of: Execution, cut: Cut) -> dict[str, int]:
    """Return the least consistent cut at or above this one."""
    return _mended(of, cut, lambda a, i, b, j: (a, i))


def _mended(
    of: Execution, cut: Cut, moved: Callable[[str, int, str, int], tuple[str, int]]
) -> dict[str, int]:
    """Return the cut after moving members until all conditions hold."""
    found, conditions = dict(cut), of.conditions()
    while broken := [
        one for one in conditions if found[one[2]] >= one[3] and found[one[0]] < one[1]
    ]:
        member, count = moved(*broken[0])
        found[member] = count
    return found


def cut_of(of: Execution, counts: object) -> dict[str, Any]:
    """Return a cut as plain values; `counts`: events inside by member (default: 0).

    Raises InputError for unknown members and invalid numbers.
    """
    cut = _checked(of, counts)
    inside = [
        copy
        for copy in of.copies
        if copy.sent <= cut[copy.source]
        and (copy.owed is None or cut[copy.owed[0]] >= copy.owed[1])
    ]
    crossing = [
        copy
        for copy in of.copies
        if copy.received is not None
        and copy.received <= cut[copy.target]
        and copy.sent > cut[copy.source]
    ]
    early = [(sponsor, new) for sponsor, at, new in of.joins if cut[new] > 0 and cut[sponsor] < at]
    channels: dict[tuple[str, str], list[str]] = {}
    place = {name: k for k, name in enumerate(of.lengths)}
    for copy in sorted(inside, key=lambda c: (place[c.source], place[c.target], c.sent)):
        if copy.received is None or copy.received > cut[copy.target]:
            name = f"{copy.label} (lost)" if copy.lost else copy.label
            channels.setdefault((copy.source, copy.target), []).append(name)
    told = {"below": below(of, cut), "above": above(of, cut)}
    return {
        "counts": cut,
        "consistent": not crossing and not early,
        "sentences": _words(crossing, early, channels, told),
        "crossing": [[copy.label, copy.source, copy.target] for copy in crossing],
        "channels": [
            {"source": source, "target": target, "labels": labels}
            for (source, target), labels in channels.items()
        ],
        **told,
    }


def cut_at(
    text: str, protocol: str, judge: str | None, counts: object, by: str, path: str
) -> dict[str, Any]:
    """Return a cut of a text under a protocol; `by`: "arrivals" or "deliveries".

    Raises InputError, and ScenarioError if the text cannot be run.
    """
    if by not in ("arrivals", DELIVERIES):
        raise InputError(f"by={by!r}: choose from arrivals, {DELIVERIES}")
    script = parsed(text, path)
    done = play(script, chosen(script, [protocol])[0], relation_of(judge))
    if done.run is None:
        raise done.error or InputError("the scenario could not be run")
    of = execution(done.run, script.everybody(), deliveries=by == DELIVERIES)
    return cut_of(of, counts)


def _checked(of: Execution, counts: object) -> dict[str, int]:
    if not isinstance(counts, Mapping):
        raise InputError("counts must be an object of numbers by member")
    lengths = of.lengths
    for name, count in counts.items():
        if name not in lengths:
            raise InputError(f"unknown member {name}; choose from {', '.join(of.lengths)}")
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= lengths[name]:
            there = counted(lengths[name], "event")
            raise InputError(f"{name}={count!r}: {name} has {there} in this run")
    return {name: counts.get(name, 0) for name in of.lengths}


def _words(
    crossing: list[Copy],
    early: list[tuple[str, str]],
    channels: Mapping[tuple[str, str], list[str]],
    told: Mapping[str, Mapping[str, int]],
) -> list[str]:
    wrong = [
        f"{one.label} is received inside by {one.target}, and sent outside by {one.source}."
        for one in crossing
    ]
    wrong += [
        f"{new} is inside, and the past of its sponsor {sponsor} is not." for sponsor, new in early
    ]
    if wrong:
        near = (f"{side} {_counts(told[side])}" for side in ("below", "above"))
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


def _counts(cut: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={count}" for name, count in cut.items())
