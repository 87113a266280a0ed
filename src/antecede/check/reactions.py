"""What single members do, run once and remembered: the explorer's engine.

What a member does depends on its snapshot and on the message alone. So each (member, snapshot,
message) is run once and its `Reaction` kept. Snapshots and copies are interned: the search
deals in their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from antecede.check.verdict import RAISED, SNAPSHOT
from antecede.errors import LocalError
from antecede.protocols.base import Deliver, Effect, MessageId, Protocol, Release, Transmit

Key = TypeVar("Key", bound=Hashable)


class Numbers(Generic[Key]):
    """Gives each distinct value a number, from 0."""

    def __init__(self) -> None:
        self.number: dict[Key, int] = {}
        self.value: list[Key] = []

    def __call__(self, value: Key) -> int:
        """Return the number of a value, a new one when it is new."""
        number = self.number.setdefault(value, len(self.value))
        if number == len(self.value):
            self.value.append(value)
        return number


class Reaction(NamedTuple):
    """What one member does in one state with one message, all by number."""

    snapshot: int
    copies: tuple[int, ...]
    handed: tuple[tuple[int, bool], ...]
    """(label, marked as released without its causes); -1: no message of the application."""
    error: str = ""
    what: str = RAISED
    """What kind of finding the error is."""


class Bench:
    """One object of each member, set to any snapshot and made to act."""

    def __init__(self, members: Sequence[Protocol], labels: Sequence[str]) -> None:
        self.members = members
        self.labels = labels
        self.label_number = {label: number for number, label in enumerate(labels)}
        self.snapshots: Numbers[Hashable] = Numbers()
        self.copies: Numbers[tuple[int, Any]] = Numbers()
        """(target, message) of each copy that was ever in flight."""
        self.copy_label: list[int] = []
        """By copy: its label; -1 for what is no message of the application."""
        self.ids: dict[int, MessageId] = {}
        """By label: the id that its sender gave it."""
        self._sent: dict[tuple[int, int, int, int], Reaction] = {}
        self._received: dict[tuple[int, int, int], Reaction] = {}

    def send(self, slot: int, snapshot: int, label: int, after: int) -> Reaction:
        """Let a member send a label in answer to another (-1: to none)."""
        key = (slot, snapshot, label, after)
        reaction = self._sent.get(key)
        if reaction is None:
            parents = (self.ids[after],) if after >= 0 else ()
            text = self.labels[label]
            reaction = self._react(slot, snapshot, lambda m: m.send(text, after=parents), label)
            self._sent[key] = reaction
        return reaction

    def receive(self, slot: int, snapshot: int, copy: int) -> Reaction:
        """Let a copy arrive at a member."""
        key = (slot, snapshot, copy)
        reaction = self._received.get(key)
        if reaction is None:
            message = self.copies.value[copy][1]
            reaction = self._react(slot, snapshot, lambda m: m.receive(message))
            self._received[key] = reaction
        return reaction

    def _react(
        self,
        slot: int,
        snapshot: int,
        act: Callable[[Protocol], Sequence[Effect]],
        label: int = -1,
    ) -> Reaction:
        """Run one member once; whatever it raises is a finding, not our failure."""
        member, state = self.members[slot], self.snapshots.value[snapshot]
        try:
            member.restore(state)
            if member.snapshot() != state:
                return Reaction(0, (), (), "restore does not give back the state", SNAPSHOT)
            return self._noted(member, act(member), label)
        except Exception as error:
            return Reaction(0, (), (), f"{type(error).__name__}: {error}")

    def _noted(self, member: Protocol, effects: Sequence[Effect], label: int) -> Reaction:
        copies: list[int] = []
        handed: list[tuple[int, bool]] = []
        for effect in effects:
            if isinstance(effect, Transmit):
                message = effect.message
                if member.me in effect.to:
                    raise LocalError("a message is transmitted to the member that sends it")
                if label >= 0 and message.payload == self.labels[label]:
                    self.ids.setdefault(label, MessageId(message.sender, message.seq))
                copies += [self._copy(target, message) for target in effect.to]
            elif isinstance(effect, Deliver | Release):
                number = self.label_number.get(effect.message.payload, -1)
                handed.append((number, isinstance(effect, Release)))
        return Reaction(self.snapshots(member.snapshot()), tuple(copies), tuple(handed))

    def _copy(self, target: int, message: Any) -> int:
        copy = self.copies((target, message))
        if copy == len(self.copy_label):
            self.copy_label.append(self.label_number.get(message.payload, -1))
        return copy
