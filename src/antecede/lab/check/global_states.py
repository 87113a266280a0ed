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
from antecede.core.oracle import RECEIVE, SEND, Channel, Cuts, Event, Witness
from antecede.errors import LimitError

FIFO, ANY = "fifo", "any"
CHANNELS: Final = (FIFO, ANY)
MOST_STATES: Final = 2_000_000
UNFINISHED = "the snapshot was never complete"


class Copy(NamedTuple):
    """Copy of an application message or of a marker on a channel."""

    sender: str
    to: str
    name: str
    """Label of the message, or "snapshot N" for a marker."""
    stamp: int = 0
    marker: Marker | None = None


class Move(NamedTuple):
    """Action: "begin" or "send" of a member, or "arrive" of a copy."""

    kind: str
    member: str
    copy: Copy | None = None


class Plan(NamedTuple):
    """Sends of each member in order, and the members that start a snapshot."""

    members: tuple[str, ...]
    sends: tuple[tuple[str, str], ...]
    begins: tuple[str, ...]


class StateFailure(NamedTuple):
    """Run whose recorded global state is inconsistent or incomplete."""

    plan: Plan
    moves: tuple[Move, ...]
    why: str
    witness: Witness | None = None


class Explored(NamedTuple):
    """Sizes of a search, and the smallest failure or None."""

    plans: int
    states: int
    ends: int
    """Final states; each was checked."""
    failure: StateFailure | None


class World:
    """State of a run: algorithms, channels, history."""

    def __init__(self, kind: Make, plan: Plan, channels: str) -> None:
        self.plan, self.fifo = plan, channels == FIFO
        self.algorithms = {name: kind(name, plan.members) for name in plan.members}
        self.kind = kind
        self.flying: tuple[Copy, ...] = ()
        """Copies in flight, in the order of sending."""
        self.next = dict.fromkeys(plan.members, 0)
        self.begins = set(plan.begins)
        self.rows: list[Event] = []
        """Events for the oracle; not part of the state."""
        self.moves: list[Move] = []
        self.cut: dict[str, int] = {}
        self.content: dict[tuple[str, str], tuple[str, ...]] = {}
        self.complete: set[str] = set()
        self.said: dict[str, tuple[bool, bool | None]] = {}
        """Side of the cut by message: (sent inside, received inside; None: in flight)."""

    def copy(self) -> World:
        """Return an independent copy of the run."""
        other = World.__new__(World)
        other.__dict__.update(self.__dict__)
        other.algorithms = {}
        for name, algorithm in self.algorithms.items():
            twin = other.algorithms[name] = self.kind(name, self.plan.members)
            twin.restore(algorithm.snapshot())
        for name in ("next", "begins", "rows", "moves", "cut", "content", "complete", "said"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def state(self) -> Any:
        """Return a hashable value with all that later actions and the verdict depend on."""
        of = tuple(one.snapshot() for one in self.algorithms.values())
        flying = self.flying if self.fifo else tuple(sorted(self.flying, key=repr))
        rest = frozenset(self.begins), tuple(sorted(self.said.items())), frozenset(self.complete)
        content = tuple(sorted((ends, tuple(sorted(ids))) for ends, ids in self.content.items()))
        return of, flying, tuple(self.next.values()), rest, frozenset(self.cut), content

    def moves_now(self) -> Iterator[Move]:
        """Yield the possible next actions."""
        for name in sorted(self.begins):
            if not self.algorithms[name].number:
                yield Move("begin", name)
        for name in self.plan.members:
            if self.next[name] < sum(sender == name for sender, _ in self.plan.sends):
                yield Move("send", name)
        seen = set()
        for one in self.flying:
            ends = (one.sender, one.to) if self.fifo else one
            if ends not in seen:
                seen.add(ends)
                yield Move("arrive", one.to, one)

    def make(self, move: Move) -> None:
        """Execute an action."""
        self.moves.append(move)
        algorithm = self.algorithms[move.member]
        if move.kind == "begin":
            self._do(move.member, algorithm.begin())
        elif move.kind == "send":
            self._send(move.member, algorithm)
        else:
            self._arrive(move, algorithm)

    def _send(self, sender: str, algorithm: Algorithm) -> None:
        to = [to for one, to in self.plan.sends if one == sender][self.next[sender]]
        self.next[sender] += 1
        name = f"{sender}{self.next[sender]}"
        self.rows.append(Event(kind=SEND, id=name, member=sender))
        self.said[name] = sender not in self.cut, None
        self.flying += (Copy(sender, to, name, algorithm.send(to)),)

    def _arrive(self, move: Move, algorithm: Algorithm) -> None:
        copy = move.copy
        assert copy is not None
        at = self.flying.index(copy)
        self.flying = self.flying[:at] + self.flying[at + 1 :]
        if copy.marker is not None:
            self._do(move.member, algorithm.marker(copy.sender, copy.marker))
            return
        self._do(move.member, algorithm.arrive(copy.sender, copy.stamp, copy.name))
        self.rows.append(Event(kind=RECEIVE, id=copy.name, member=move.member))
        self.said[copy.name] = self.said[copy.name][0], move.member not in self.cut

    def _do(self, member: str, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Record):
                self.cut[member] = sum(row.member == member for row in self.rows)
                self.begins.discard(member)
            elif isinstance(effect, Tell):
                name = f"snapshot {effect.marker.number}"
                self.flying += (Copy(member, effect.to, name, 0, effect.marker),)
            elif isinstance(effect, Content):
                ids = tuple(str(one) for one in effect.messages)
                self.content[effect.source, member] = ids
            elif isinstance(effect, Complete):
                self.complete.add(member)

    def failure(self) -> StateFailure | None:
        """Return the failure of a finished run, or None."""
        if len(self.complete) < len(self.plan.members):
            return StateFailure(self.plan, tuple(self.moves), UNFINISHED)
        there = {row.member for row in self.rows}  # members without events have no messages
        cut = {name: position for name, position in self.cut.items() if name in there}
        channels = {Channel(*ends): ids for ends, ids in self.content.items() if ids}
        wrong = Cuts(self.rows).why_not(cut, channels, self._addressed())
        if wrong is None:
            return None
        return StateFailure(self.plan, tuple(self.moves), f"{wrong.id}: {wrong.what}", wrong)

    def _addressed(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for name in self.plan.members:
            targets = [to for one, to in self.plan.sends if one == name]
            found |= {f"{name}{k}": (to,) for k, to in enumerate(targets, 1)}
        return found


def plans(members: int, messages: int) -> Iterator[Plan]:
    """Yield every plan of up to `messages` messages; one or two members start the snapshot."""
    names = tuple("PQRSTUVW"[:members])
    pairs = [(a, b) for a in names for b in names if a != b]
    for count in range(1, messages + 1):
        for sends in product(pairs, repeat=count):
            if list(sends) == sorted(
                sends, key=lambda one: one[0]
            ):  # skip permutations of the same plan
                for begins in (names[:1], names[:2]):
                    yield Plan(names, sends, begins)


def explore(
    kind: Make,
    channels: str,
    *,
    members: int = 2,
    messages: int = 2,
    most_states: int = MOST_STATES,
) -> Explored:
    """Run every interleaving of every plan; stop at the first and smallest failure.

    `channels`: "fifo" or "any". Raises LimitError above `max_states` states.
    """
    looked = ends = count = 0
    for count, plan in enumerate(plans(members, messages), 1):
        level, seen = [World(kind, plan, channels)], set[Any]()
        while level:
            following: list[World] = []
            for world in level:
                moves = list(world.moves_now())
                if not moves:
                    ends += 1
                    if (failure := world.failure()) is not None:
                        return Explored(count, looked, ends, failure)
                following += _after(world, moves, seen)
            looked += len(level)
            if looked > most_states:
                raise LimitError(f"more than {most_states:,} states; use fewer members or messages")
            level = following
    return Explored(count, looked, ends, None)


def _after(world: World, moves: Sequence[Move], seen: set[Any]) -> Iterator[World]:
    for move in moves:
        further = world.copy()
        further.make(move)
        state = further.state()
        if state not in seen:
            seen.add(state)
            yield further


def play(
    kind: Make, channels: str, *, members: int, messages: int, seed: int
) -> StateFailure | None:
    """Check a random run seeded by `seed`."""
    chance = random.Random(seed)
    names = tuple(f"m{k}" for k in range(members))
    pairs = [(a, b) for a in names for b in names if a != b]
    sends = tuple(sorted((chance.choice(pairs) for _ in range(messages)), key=lambda one: one[0]))
    begins = tuple(chance.sample(names, chance.randint(1, members)))
    world = World(kind, Plan(names, sends, begins), channels)
    while moves := list(world.moves_now()):
        world.make(chance.choice(moves))
    return world.failure()
