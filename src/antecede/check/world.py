"""A group of protocol objects and the messages in flight between them, moved by hand.

The explorer, the conformance suite and the scenarios all drive members through this one
class. It knows nothing of any protocol: it carries out effects, keeps what is in flight, and
writes down every step. Messages of the application are named by labels (short strings), which
travel as payloads and so survive any renumbering on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from antecede.errors import LocalError
from antecede.protocols.base import (
    Deliver,
    Discard,
    Effect,
    Hold,
    MessageId,
    Protocol,
    Release,
    Transmit,
)

SENT, ARRIVED, DELIVERED, HELD, RELEASED, DISCARDED, FORWARDED = (
    "send",
    "arrive",
    "deliver",
    "hold",
    "release",
    "discard",
    "forward",
)
JOINED, LEFT = "join", "leave"


class Step(NamedTuple):
    """One thing that happened at one member."""

    at: int
    """Address of the member."""
    kind: str
    """One of the constants above."""
    label: str
    """Label of the message (of the member, for join and leave)."""
    detail: tuple[str, ...] = ()
    """hold, release: labels of the missing messages; discard: the reason; send: labels it answers;
    join: the sponsor's address."""


class InFlight(NamedTuple):
    """One copy of a message on its way."""

    source: int
    target: int
    message: Any


class World:
    """Members by address, copies in flight, and the steps taken so far."""

    def __init__(self, members: Mapping[int, Protocol]) -> None:
        self.members = dict(members)
        self.in_flight: list[InFlight] = []
        self.steps: list[Step] = []
        self.ids: dict[str, MessageId] = {}
        """Label -> id by which its sender numbered it."""
        self.known: dict[tuple[int, MessageId], str] = {}
        """(receiver, id as that receiver calls it) -> label."""
        self.covered: dict[int, set[str]] = {at: set() for at in self.members}
        """Member -> labels it has sent or delivered, or adopted from its sponsor."""
        self.sent: dict[str, list[tuple[int, Any]]] = {}
        """Label -> (source, message) of each transmission: what a newcomer may be owed."""

    def send(
        self, at: int, label: str, *, after: Iterable[str] = (), now: float = 0.0
    ) -> list[Step]:
        """Let a member send a message; returns the steps this caused."""
        if label in self.ids:
            raise LocalError(f"message {label} has been sent already")
        after = tuple(after)
        parents = tuple(self.ids[parent] for parent in after)
        mark = len(self.steps)
        effects = self.members[at].send(label, now=now, after=parents)
        self.steps.append(Step(at, SENT, label, after))
        self.covered[at].add(label)
        self._carry_out(at, effects)
        return self.steps[mark:]

    def arrive(self, at: int, label: str, *, now: float = 0.0) -> list[Step]:
        """Let the oldest copy of the message in flight to that member arrive."""
        for position, copy in enumerate(self.in_flight):
            if copy.target == at and copy.message.payload == label:
                del self.in_flight[position]
                return self.hand_over(copy, now=now)
        raise LocalError(f"no copy of {label} is in flight to member {at}")

    def hand_over(self, copy: InFlight, *, now: float = 0.0) -> list[Step]:
        """Give a copy to its target, whether or not it was in flight (for duplicates)."""
        mark = len(self.steps)
        self.steps.append(Step(copy.target, ARRIVED, copy.message.payload))
        self._carry_out(copy.target, self.members[copy.target].receive(copy.message, now=now))
        return self.steps[mark:]

    def tick(self, now: float) -> list[Step]:
        """Let time pass at every member."""
        mark = len(self.steps)
        for at, member in self.members.items():
            self._carry_out(at, member.tick(now))
        return self.steps[mark:]

    def join(self, at: int, newcomer: Protocol, sponsor: int, *, name: str = "") -> list[Step]:
        """Let a member join with its sponsor's frontier; the others hear of it at once.

        As the transport owes it (see `protocols.base`), a copy of every message that the
        frontier does not cover is then in flight to the newcomer. Raises LocalError when the
        address is or was taken: numbers are never reused.
        """
        if at in self.covered:
            raise LocalError(f"member {at} is or was in the group; numbers are never reused")
        mark = len(self.steps)
        newcomer.adopt(self.members[sponsor].frontier())
        self.covered[at] = set(self.covered[sponsor])
        self.steps.append(Step(at, JOINED, name or str(at), (str(sponsor),)))
        owed = [copies[0] for copies in self.sent.values()]
        for other, member in self.members.items():
            self._carry_out(other, member.join(at))
        self.members[at] = newcomer
        for source, message in owed:
            if message.payload in self.covered[at]:
                self.known[at, newcomer.identity(message)] = message.payload
            else:
                self._put(source, at, message)
        return self.steps[mark:]

    def leave(self, at: int, *, name: str = "") -> list[Step]:
        """Let a member leave; the others hear of it, and of its last message, at once.

        Copies in flight to it vanish, copies from it still arrive.
        """
        if at not in self.members:
            raise LocalError(f"member {at} is not in the group")
        mark = len(self.steps)
        del self.members[at]
        self.steps.append(Step(at, LEFT, name or str(at)))
        last = max((own.seq for own in self.ids.values() if own.sender == at), default=0)
        self.in_flight = [copy for copy in self.in_flight if copy.target != at]
        for other, member in self.members.items():
            self._carry_out(other, member.leave(at, last))
        return self.steps[mark:]

    def _carry_out(self, at: int, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                self.steps.append(Step(at, DELIVERED, effect.message.payload))
                self.covered[at].add(effect.message.payload)
            elif isinstance(effect, Transmit):
                self._transmit(at, effect)
            elif isinstance(effect, Hold):
                names = tuple(self.name(at, missing) for missing in effect.missing)
                self.steps.append(Step(at, HELD, effect.message.payload, names))
            elif isinstance(effect, Release):
                names = tuple(self.name(at, missing) for missing in effect.missing)
                self.steps.append(Step(at, RELEASED, effect.message.payload, names))
                self.covered[at].add(effect.message.payload)
            elif isinstance(effect, Discard):
                reason = (effect.reason,)
                self.steps.append(Step(at, DISCARDED, effect.message.payload, reason))

    def _transmit(self, at: int, effect: Transmit) -> None:
        message = effect.message
        label = message.payload
        if label not in self.ids:
            self.ids[label] = MessageId(message.sender, message.seq)
        elif self.steps[-1].kind == ARRIVED:
            self.steps.append(Step(at, FORWARDED, label))
        self.sent.setdefault(label, []).append((at, message))
        for target in effect.to:
            if target in self.members:
                self._put(at, target, message)

    def _put(self, source: int, target: int, message: Any) -> None:
        self.known[target, self.members[target].identity(message)] = message.payload
        self.in_flight.append(InFlight(source, target, message))

    def name(self, at: int, missing: MessageId) -> str:
        """Return the label that a member's id stands for, or the id itself where unknown."""
        return self.known.get((at, missing), f"{missing.sender}:{missing.seq}")
