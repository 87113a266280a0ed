"""Checker of global-snapshot algorithms: all interleavings of small groups, random runs.

Members send over FIFO ("fifo") or reordering ("any") channels, and start the same snapshot at any
time. `antecede.core.oracle.cuts` checks the recorded state: positions must form a consistent cut,
and channels hold the messages sent inside and received outside.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from antecede.core.global_snapshots import (
    Algorithm,
    Complete,
    Content,
    Effect,
    Make,
    Marker,
    Record,
    Tell,
)
from antecede.core.oracle import RECEIVE, SEND, Channel, Cuts, OracleEvent, Witness
from antecede.errors import LimitError

FIFO, ANY = "fifo", "any"
CHANNELS: Final = (FIFO, ANY)
MOST_STATES: Final = 2_000_000
UNFINISHED = "the snapshot was never complete"


class ChannelCopy(NamedTuple):
    """Copy of an application message or of a marker on a channel."""

    sender: str
    to: str
    name: str
    snapshot_number: int = 0
    marker: Marker | None = None


class SnapshotAction(NamedTuple):
    """Action: "begin" or "send" of a member, or "arrive" of a copy."""

    kind: str
    member: str
    copy: ChannelCopy | None = None


class SnapshotWorkload(NamedTuple):
    """Sends of each member in order, and the members that start a snapshot."""

    members: tuple[str, ...]
    sends: tuple[tuple[str, str], ...]
    initiators: tuple[str, ...]


class StateFailure(NamedTuple):
    """Run whose recorded global state is inconsistent or incomplete."""

    plan: SnapshotWorkload
    moves: tuple[SnapshotAction, ...]
    why: str
    witness: Witness | None = None


class SnapshotSearch(NamedTuple):
    """Sizes of a search, and the smallest failure or None."""

    plans: int
    states: int
    ends: int
    failure: StateFailure | None


class SnapshotRun:
    """State of a run: algorithms, channels, history."""

    def __init__(self, make_algorithm: Make, plan: SnapshotWorkload, channels: str) -> None:
        self.plan, self.fifo = plan, channels == FIFO
        self.algorithms = {name: make_algorithm(name, plan.members) for name in plan.members}
        self.make_algorithm = make_algorithm
        self.in_flight: tuple[ChannelCopy, ...] = ()
        self.next = dict.fromkeys(plan.members, 0)
        self.initiators = set(plan.initiators)
        self.rows: list[OracleEvent] = []
        self.actions: list[SnapshotAction] = []
        self.cut: dict[str, int] = {}
        self.channel_states: dict[tuple[str, str], tuple[str, ...]] = {}
        self.complete: set[str] = set()
        self.cut_sides: dict[str, tuple[bool, bool | None]] = {}
        """Side of the cut by message: (sent inside, received inside; None: in flight)."""

    def copy(self) -> SnapshotRun:
        """Return an independent copy of the run."""
        other = SnapshotRun.__new__(SnapshotRun)
        other.__dict__.update(self.__dict__)
        other.algorithms = {}
        for name, algorithm in self.algorithms.items():
            twin = other.algorithms[name] = self.make_algorithm(name, self.plan.members)
            twin.restore(algorithm.snapshot())
        for name in (
            *("next", "initiators", "rows", "actions"),
            *("cut", "channel_states", "complete", "cut_sides"),
        ):
            setattr(other, name, getattr(self, name).copy())
        return other

    def get_state(self) -> Any:
        """Return a hashable value with all that later actions and the verdict depend on."""
        of = tuple(one.snapshot() for one in self.algorithms.values())
        flying = self.in_flight if self.fifo else tuple(sorted(self.in_flight, key=repr))
        rest = (
            frozenset(self.initiators),
            tuple(sorted(self.cut_sides.items())),
            frozenset(self.complete),
        )
        content = tuple(
            sorted((ends, tuple(sorted(ids))) for ends, ids in self.channel_states.items())
        )
        return of, flying, tuple(self.next.values()), rest, frozenset(self.cut), content

    def list_enabled(self) -> Iterator[SnapshotAction]:
        """Yield the possible next actions."""
        for name in sorted(self.initiators):
            if not self.algorithms[name].number:
                yield SnapshotAction("begin", name)
        for name in self.plan.members:
            if self.next[name] < sum(sender == name for sender, _ in self.plan.sends):
                yield SnapshotAction("send", name)
        seen = set()
        for copy in self.in_flight:
            ends = (copy.sender, copy.to) if self.fifo else copy
            if ends not in seen:
                seen.add(ends)
                yield SnapshotAction("arrive", copy.to, copy)

    def apply(self, action: SnapshotAction) -> None:
        """Execute an action."""
        self.actions.append(action)
        algorithm = self.algorithms[action.member]
        if action.kind == "begin":
            self._apply_effects(action.member, algorithm.begin())
        elif action.kind == "send":
            self._send(action.member, algorithm)
        else:
            self._arrive(action, algorithm)

    def _send(self, sender: str, algorithm: Algorithm) -> None:
        to = [to for one, to in self.plan.sends if one == sender][self.next[sender]]
        self.next[sender] += 1
        name = f"{sender}{self.next[sender]}"
        self.rows.append(OracleEvent(kind=SEND, id=name, member=sender))
        self.cut_sides[name] = sender not in self.cut, None
        self.in_flight += (ChannelCopy(sender, to, name, algorithm.send(to)),)

    def _arrive(self, action: SnapshotAction, algorithm: Algorithm) -> None:
        copy = action.copy
        assert copy is not None
        at = self.in_flight.index(copy)
        self.in_flight = self.in_flight[:at] + self.in_flight[at + 1 :]
        if copy.marker is not None:
            self._apply_effects(action.member, algorithm.marker(copy.sender, copy.marker))
            return
        self._apply_effects(
            action.member, algorithm.arrive(copy.sender, copy.snapshot_number, copy.name)
        )
        self.rows.append(OracleEvent(kind=RECEIVE, id=copy.name, member=action.member))
        self.cut_sides[copy.name] = self.cut_sides[copy.name][0], action.member not in self.cut

    def _apply_effects(self, member: str, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Record):
                self.cut[member] = sum(row.member == member for row in self.rows)
                self.initiators.discard(member)
            elif isinstance(effect, Tell):
                name = f"snapshot {effect.marker.number}"
                self.in_flight += (ChannelCopy(member, effect.to, name, 0, effect.marker),)
            elif isinstance(effect, Content):
                ids = tuple(str(one) for one in effect.messages)
                self.channel_states[effect.source, member] = ids
            elif isinstance(effect, Complete):
                self.complete.add(member)

    def find_failure(self) -> StateFailure | None:
        """Return the failure of a finished run, or None."""
        if len(self.complete) < len(self.plan.members):
            return StateFailure(self.plan, tuple(self.actions), UNFINISHED)
        there = {row.member for row in self.rows}  # members without events have no messages
        cut = {name: position for name, position in self.cut.items() if name in there}
        channels = {Channel(*ends): ids for ends, ids in self.channel_states.items() if ids}
        wrong = Cuts(self.rows).why_not(cut, channels, self._list_recipients())
        if wrong is None:
            return None
        return StateFailure(self.plan, tuple(self.actions), f"{wrong.id}: {wrong.what}", wrong)

    def _list_recipients(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for name in self.plan.members:
            targets = [to for one, to in self.plan.sends if one == name]
            found |= {f"{name}{k}": (to,) for k, to in enumerate(targets, 1)}
        return found


def list_plans(members: int, messages: int) -> Iterator[SnapshotWorkload]:
    """Yield every plan of up to `messages` messages; one or two members start the snapshot."""
    names = tuple("PQRSTUVW"[:members])
    pairs = [(a, b) for a in names for b in names if a != b]
    for count in range(1, messages + 1):
        for sends in product(pairs, repeat=count):
            if list(sends) == sorted(
                sends, key=lambda one: one[0]
            ):  # skip permutations of the same plan
                for begins in (names[:1], names[:2]):
                    yield SnapshotWorkload(names, sends, begins)


def explore(
    make_algorithm: Make,
    channels: str,
    *,
    members: int = 2,
    messages: int = 2,
    most_states: int = MOST_STATES,
) -> SnapshotSearch:
    """Run every interleaving of every plan until the first failure; raises LimitError."""
    looked = ends = count = 0
    for count, plan in enumerate(list_plans(members, messages), 1):
        level, seen = [SnapshotRun(make_algorithm, plan, channels)], set[Any]()
        while level:
            following: list[SnapshotRun] = []
            for world in level:
                moves = list(world.list_enabled())
                if not moves:
                    ends += 1
                    if (failure := world.find_failure()) is not None:
                        return SnapshotSearch(count, looked, ends, failure)
                following += _list_successors(world, moves, seen)
            looked += len(level)
            if looked > most_states:
                raise LimitError(f"more than {most_states:,} states; use fewer members or messages")
            level = following
    return SnapshotSearch(count, looked, ends, None)


def _list_successors(
    run: SnapshotRun, actions: Sequence[SnapshotAction], seen: set[Any]
) -> Iterator[SnapshotRun]:
    for move in actions:
        further = run.copy()
        further.apply(move)
        state = further.get_state()
        if state not in seen:
            seen.add(state)
            yield further


def play(
    make_algorithm: Make, channels: str, *, members: int, messages: int, seed: int
) -> StateFailure | None:
    """Check a random run seeded by `seed`."""
    chance = random.Random(seed)
    names = tuple(f"m{k}" for k in range(members))
    pairs = [(a, b) for a in names for b in names if a != b]
    sends = tuple(sorted((chance.choice(pairs) for _ in range(messages)), key=lambda one: one[0]))
    begins = tuple(chance.sample(names, chance.randint(1, members)))
    world = SnapshotRun(make_algorithm, SnapshotWorkload(names, sends, begins), channels)
    while moves := list(world.list_enabled()):
        world.apply(chance.choice(moves))
    return world.find_failure()
