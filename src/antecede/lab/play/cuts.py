"""Cuts through a run of a scene: consistent or not, and why.

Source: Sahai et al. 2020, "Global State of a Distributed System"; Mattern 1989. Events are sends
and arrivals; a message that a member forwards or sends on its own belongs to the arrival before. A
cut is consistent if no message is received inside and sent outside, and newcomers have their
sponsor's past inside. With `deliveries`, the delivery of a message counts as its receipt.
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
    """A message on one way; `received` is None where it never arrives."""

    label: str
    source: str
    sent: int
    """Position of its sending; 0: before all."""
    target: str
    received: int | None
    lost: bool = False
    owed: tuple[str, int] | None = None
    """Sent before the target joined: the sponsor, and its number of events at the join."""


class Execution(NamedTuple):
    """The events of a run, and the copies between them."""

    lengths: Mapping[str, int]
    copies: tuple[Copy, ...]
    joins: tuple[tuple[str, int, str], ...]
    """(sponsor, its number of events, newcomer)."""

    def conditions(self) -> list[tuple[str, int, str, int]]:
        """Return (a, i, b, j): with the j-th event of b inside, the i-th of a must be inside."""
        found = [(c.source, c.sent, c.target, c.received) for c in self.copies if c.received]
        return found + [(sponsor, at, new, 1) for sponsor, at, new in self.joins if at]


def execution(run: ScriptRun, members: tuple[str, ...], *, deliveries: bool = False) -> Execution:
    """Return the events of a run; `deliveries`: of messages that are delivered, that counts."""
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
        """The same for a protocol's own messages, by target; several share a label."""
        self.owed: dict[str, dict[tuple[str, str], tuple[str, int]]] = {}
        """Newcomer -> (member, label) sent before -> sponsor, its number of events."""
        self.waiting: dict[tuple[str, str], int] = {}
        """(member, label) -> index of the copy that arrived and is not delivered."""

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
    """Return the greatest consistent cut at or below this one: effects without causes go out."""
    return _mended(of, cut, lambda a, i, b, j: (b, j - 1))


def above(of: Execution, cut: Cut) -> dict[str, int]:
    """Return the least consistent cut at or above this one: missing causes come in."""
    return _mended(of, cut, lambda a, i, b, j: (a, i))


def _mended(
    of: Execution, cut: Cut, moved: Callable[[str, int, str, int], tuple[str, int]]
) -> dict[str, int]:
    """Return the cut after moving members until no condition is broken."""
    found, conditions = dict(cut), of.conditions()
    while broken := [
        one for one in conditions if found[one[2]] >= one[3] and found[one[0]] < one[1]
    ]:
        member, count = moved(*broken[0])
        found[member] = count
    return found


def cut_of(of: Execution, counts: object) -> dict[str, Any]:
    """Return the description of a cut as plain values; `counts`: member -> events inside (default:
    0).

    Raises InputError for unknown members and impossible numbers.
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
            name = f"{copy.label} (lost on the way)" if copy.lost else copy.label
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
    """Return the description of a cut of a text under a protocol; `by`: "arrivals" or "deliveries".

    Raises InputError, and ScriptError if the text cannot be played.
    """
    if by not in ("arrivals", DELIVERIES):
        raise InputError(f"by={by!r}: a cut counts arrivals or {DELIVERIES}")
    script = parsed(text, path)
    done = play(script, chosen(script, [protocol])[0], relation_of(judge))
    if done.run is None:
        raise done.error or InputError("nothing was played")
    of = execution(done.run, script.everybody(), deliveries=by == DELIVERIES)
    return cut_of(of, counts)


def _checked(of: Execution, counts: object) -> dict[str, int]:
    if not isinstance(counts, Mapping):
        raise InputError("a cut gives each member how many of its events are inside")
    lengths = of.lengths
    for name, count in counts.items():
        if name not in lengths:
            raise InputError(f"there is no member {name}; there are {', '.join(of.lengths)}")
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
        f"{new} is inside, and what its sponsor {sponsor} did before is not."
        for sponsor, new in early
    ]
    if wrong:
        near = (f"{side} {_counts(told[side])}" for side in ("below", "above"))
        return [
            "Not consistent: the group cannot have been in this state.",
            *wrong,
            f"The nearest consistent ones: {'; '.join(near)}.",
        ]
    way = [
        f"From {source} to {target}: {', '.join(labels)}."
        for (source, target), labels in channels.items()
    ]
    return ["Consistent: the group can have been in this state.",
            *(way or ["Nothing is in the channels."])]  # fmt: skip


def _counts(cut: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={count}" for name, count in cut.items())
