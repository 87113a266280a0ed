"""Snapshot algorithm: a state machine told of the events on a member's channels.

A snapshot has a number, 1, 2, ... in the whole group. Each member *records* its own state once for
each, and of every channel that leads to it what was under way: sent before its sender recorded, and
here after oneself did. States and channels together are a global state that can have been (Chandy
and Lamport 1985): sent after means received after.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from antecede.errors import LocalError, SequenceError, UnknownMemberError

AHEAD = 64
"""By how many snapshots another member may be ahead."""


class Marker(NamedTuple):
    """A control message: its sender has recorded this snapshot."""

    number: int
    sent: int = 0
    """How many messages its sender had sent on this channel until then (Lai and Yang)."""


class Record(NamedTuple):
    """Record the own state now, before anything else is done."""

    number: int


class Tell(NamedTuple):
    """Send a marker on the channel to a member, before anything else goes there."""

    to: str
    marker: Marker


class Content(NamedTuple):
    """What was under way on the channel from a member is known."""

    number: int
    source: str
    messages: tuple[Hashable, ...]


class Complete(NamedTuple):
    """The own part of a snapshot is known: state and all channels."""

    number: int


Effect = Record | Tell | Content | Complete


class Algorithm(ABC):
    """One member's end. `me` and `members`: names; every member has a channel to every other.

    Messages are whatever stands for them: only put into `Content`. Raises LocalError for a list of
    members without `me`.
    """

    needs_fifo = True
    """Whether channels must keep their order."""
    stamped = False
    """Whether messages of the application carry a number."""

    def __init__(self, me: str, members: Iterable[str]) -> None:
        self.me, self.members = me, tuple(sorted({*members}))
        if me not in self.members:
            raise LocalError(f"{me!r} is not among the members")
        self.others = tuple(name for name in self.members if name != me)
        self.number = 0
        """Of the newest snapshot that was recorded here."""
        self._open: dict[int, dict[str, Any]] = {}
        """Snapshot -> channel on which something may lack -> what has come of it."""

    def begin(self) -> Sequence[Effect]:
        """Begin a snapshot here; of several who begin the same one at once, all begin that one."""
        return self._record_up_to(self.number + 1)

    @abstractmethod
    def send(self, to: str) -> int:
        """Return the stamp that travels with the application's next message to a member."""

    @abstractmethod
    def arrive(self, sender: str, stamp: int, message: Hashable) -> Sequence[Effect]:
        """Take note of the application's next message from a member, before that is handed over.

        Raises UnknownMemberError, SequenceError for what cannot be.
        """

    @abstractmethod
    def marker(self, sender: str, marker: Marker) -> Sequence[Effect]:
        """Take in a marker. Raises UnknownMemberError, SequenceError for one that cannot be."""

    def open_channels(self, number: int) -> tuple[str, ...]:
        """Return from whom something may still be under way of a snapshot recorded here."""
        return tuple(self._open.get(number, ()))

    @abstractmethod
    def snapshot(self) -> Hashable:
        """Return the state of the algorithm as plain values."""

    @abstractmethod
    def restore(self, state: Hashable) -> None:
        """Become what `snapshot` returned."""

    @abstractmethod
    def _record(self, number: int) -> list[Effect]:
        """Record the next snapshot."""

    def _record_up_to(self, number: int) -> list[Effect]:
        effects: list[Effect] = []
        while self.number < number:
            self.number += 1
            effects += self._record(self.number)
        return effects

    def _completed(self, number: int) -> list[Effect]:
        if self._open[number]:
            return []
        del self._open[number]
        return [Complete(number)]

    def _check(self, sender: str, number: int) -> None:
        if sender not in self.others:
            raise UnknownMemberError(f"{sender!r} is not another member")
        if not 0 <= number <= self.number + AHEAD:
            raise SequenceError(
                f"snapshot {number} of {sender}; {self.number} is the newest here, and at most "
                f"{AHEAD} more can be under way"
            )


Make: TypeAlias = type[Algorithm]
"""A class of algorithms: makes one member's end."""
