"""Transitions of single members, run once for each snapshot, message and clock reading.

Snapshots and copies are interned: the search works with their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

from antecede.core.protocols import (
    Deliver,
    DeliverIncomplete,
    Effect,
    MessageId,
    Protocol,
    Transmit,
)
from antecede.lab.check.claims import DeliveryClaim, find_claims, has_claims
from antecede.lab.check.harness.effects import check_effects, check_transmitted
from antecede.lab.check.harness.guarded_calls import call_guarded, in_words, raise_own
from antecede.lab.check.harness.network import make_recipient_arguments
from antecede.lab.check.harness.timing import InFlight, TimingModel
from antecede.lab.check.results import RAISED, SNAPSHOT_CHANGED, classify_error

Key = TypeVar("Key", bound=Hashable)


class Interner(Generic[Key]):
    """Numbering of distinct values, from 0."""

    def __init__(self) -> None:
        self.number: dict[Key, int] = {}
        self.value: list[Key] = []

    def __call__(self, value: Key) -> int:
        """Return the number of a value; new values get the next one."""
        number = self.number.setdefault(value, len(self.value))
        if number == len(self.value):
            self.value.append(value)
        return number


class Recipients(NamedTuple):
    """Receivers of a message: all members, some members, or subscribers of topics."""

    to: tuple[int, ...] = ()
    topics: tuple[str, ...] = ()


class Reaction(NamedTuple):
    """Result of one call of a member: new snapshot, copies and deliveries, by numbers."""

    snapshot: int
    copies: tuple[int, ...]
    delivered: tuple[tuple[int, bool], ...]
    """(label, released without its causes); -1: no application message."""
    error: str = ""
    kind: str = RAISED
    claims: tuple[tuple[DeliveryClaim, int, int], ...] = ()
    """(claim, slot, label); label -1: the message does not exist."""


class TransitionCache:
    """Cache of transitions. One object of each member is restored to any snapshot and called."""

    def __init__(
        self, members: Sequence[Protocol], labels: Sequence[str], timing: TimingModel
    ) -> None:
        self.members = members
        self.addresses = frozenset(member.me for member in members)
        self.labels = labels
        self.label_number = {label: number for number, label in enumerate(labels)}
        self.snapshots: Interner[Hashable] = Interner()
        self.copies: Interner[InFlight] = Interner()
        """Sent at 0 in groups without clocks."""
        self.copy_label: list[int] = []
        """Label of each copy; -1 for control messages."""
        self.is_control: list[bool] = []
        self.ids: dict[int, MessageId] = {}
        self.timing = timing
        self.timed = timing.bounds is not None
        self.claimants = {member.me for member in members if has_claims(member)}
        self.present = [member.me for member in members if member.application]
        self.slots = {member.me: slot for slot, member in enumerate(members)}
        self.send = cache(self._send)
        self.receive = cache(self._receive)
        self.tick = cache(self._tick)

    def _send(
        self, slot: int, snapshot: int, label: int, after: int, recipients: Recipients, now_ns: int
    ) -> Reaction:
        parents = (self.ids[after],) if after >= 0 else ()
        text, now = self.labels[label], self._read_clock(slot, now_ns)
        recipient_arguments = make_recipient_arguments(
            self.members[slot], recipients.to, recipients.topics
        )

        def act(member: Protocol) -> Sequence[Effect]:
            return member.send(text, now=now, after=parents, **recipient_arguments)

        return self._run_member(slot, snapshot, "send", act, now_ns, label)

    def _receive(self, slot: int, snapshot: int, copy: int, now_ns: int) -> Reaction:
        message, now = self.copies.value[copy].message, self._read_clock(slot, now_ns)

        def act(member: Protocol) -> Sequence[Effect]:
            return member.receive(message, now=now)

        return self._run_member(slot, snapshot, "receive", act, now_ns)

    def _tick(self, slot: int, snapshot: int, now_ns: int) -> Reaction:
        now = self._read_clock(slot, now_ns)
        return self._run_member(slot, snapshot, "tick", lambda member: member.tick(now), now_ns)

    def _read_clock(self, slot: int, now_ns: int) -> int:
        return self.timing.read_clock(self.members[slot].me, now_ns) if self.timed else 0

    def _run_member(
        self,
        slot: int,
        snapshot: int,
        method: str,
        act: Callable[[Protocol], Sequence[Effect]],
        now_ns: int,
        label: int = -1,
    ) -> Reaction:
        member, state = self.members[slot], self.snapshots.value[snapshot]
        try:
            call_guarded(member.restore, state)
            if call_guarded(member.snapshot) != state:
                return Reaction(0, (), (), "restore returns another state", SNAPSHOT_CHANGED)
            effects = call_guarded(
                lambda: check_effects(act(member), member, method, self.addresses)
            )
            if label >= 0:
                check_transmitted(effects, self.labels[label], member)
            return self._record_effects(member, effects, now_ns, label)
        except BaseException as error:
            raise_own(error)
            return Reaction(0, (), (), in_words(error), classify_error(error))

    def _record_effects(
        self, member: Protocol, effects: Sequence[Effect], now_ns: int, label: int
    ) -> Reaction:
        copies: list[int] = []
        handed: list[tuple[int, bool]] = []
        for effect in effects:
            if isinstance(effect, Transmit):
                message = effect.message
                if label >= 0 and message.payload == self.labels[label]:
                    self.ids.setdefault(label, MessageId(message.sender, message.seq))
                copies += [
                    self._intern_copy(member, target, message, now_ns) for target in effect.to
                ]
            elif isinstance(effect, Deliver | DeliverIncomplete):
                number = self.label_number.get(effect.message.payload, -1)
                handed.append((number, isinstance(effect, DeliverIncomplete)))
        snapshot = self.snapshots(call_guarded(member.snapshot))
        claims = self._find_claims(member) if member.me in self.claimants else ()
        return Reaction(snapshot, tuple(copies), tuple(handed), claims=claims)

    def _find_claims(self, member: Protocol) -> tuple[tuple[DeliveryClaim, int, int], ...]:
        label_of = {key: label for label, key in self.ids.items()}
        claims: dict[tuple[int, int], DeliveryClaim] = {}
        for one in find_claims(member, self.present, self.present):
            label = label_of.get(MessageId(one.sender, one.number), -1)
            claims.setdefault((self.slots[one.about], label), one)
        return tuple((one, *key) for key, one in claims.items())

    def _intern_copy(self, member: Protocol, target: int, message: Any, now_ns: int) -> int:
        source = member.me if self.timed else -1  # irrelevant without channels
        copy = self.copies(InFlight(source, target, message, now_ns))
        if copy == len(self.copy_label):
            self.copy_label.append(self.label_number.get(message.payload, -1))
            self.is_control.append(member.is_control(message))
        return copy
