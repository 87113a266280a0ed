"""Interface of global-snapshot algorithms: an event-driven state machine per member.

Snapshots are numbered 1, 2, ... in the whole group. For each, every member records its own state
once. It also records the messages in transit on each incoming channel: sent before the sender
recorded, received after this member recorded. States and channels form a consistent global state
(Chandy and Lamport 1985).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from antecede.errors import LocalError, SequenceError, UnknownMemberError

MAX_AHEAD = 64
"""Maximum number of snapshots that another member may be ahead."""


class Marker(NamedTuple):
    """Control message: the sender has recorded this snapshot."""

    number: int
    sent: int = 0
    """Number of messages sent on this channel before (Lai and Yang)."""


class Record(NamedTuple):
    """Record the own state now, before anything else."""

    number: int


class Tell(NamedTuple):
    """Send a marker to a member, before any other message."""

    to: str
    marker: Marker


class Content(NamedTuple):
    """Messages in transit on the channel from a member, now complete."""

    number: int
    source: str
    messages: tuple[Hashable, ...]


class Complete(NamedTuple):
    """All of this member's part is recorded: state and channels."""

    number: int


Effect = Record | Tell | Content | Complete


class Algorithm(ABC):
    """One member's state machine. Raises LocalError if `members` lacks `me`."""

    needs_fifo = True
    """True if channels must be FIFO."""
    stamped = False
    """True if application messages carry a number."""

    def __init__(self, me: str, members: Iterable[str]) -> None:
        self.me, self.members = me, tuple(sorted({*members}))
        if me not in self.members:
            raise LocalError(f"members= lacks this member, {me!r}")
        self.others = tuple(name for name in self.members if name != me)
        self.number = 0
        """Newest snapshot recorded here."""
        self._open_channels: dict[int, dict[str, Any]] = {}
        """Snapshot -> channel that may have messages in transit -> messages so far."""

    def begin(self) -> Sequence[Effect]:
        """Begin a snapshot. Members that begin concurrently begin the same one."""
        return self._record_up_to(self.number + 1)

    @abstractmethod
    def send(self, to: str) -> int:
        """Return the snapshot number to attach to the next application message to a member."""

    @abstractmethod
    def arrive(self, sender: str, snapshot_number: int, message: Hashable) -> Sequence[Effect]:
        """Record an application message first. Raise UnknownMemberError or SequenceError."""

    @abstractmethod
    def marker(self, sender: str, marker: Marker) -> Sequence[Effect]:
        """Process a marker. Raise UnknownMemberError or SequenceError."""

    def open_channels(self, number: int) -> tuple[str, ...]:
        """Return the members with messages possibly in transit for a snapshot recorded here."""
        return tuple(self._open_channels.get(number, ()))

    @abstractmethod
    def snapshot(self) -> Hashable:
        """Return the state of the algorithm as plain values."""

    @abstractmethod
    def restore(self, state: Hashable) -> None:
        """Restore a state of `snapshot`."""

    @abstractmethod
    def _record(self, number: int) -> list[Effect]:
        """Record the next snapshot."""

    def _record_up_to(self, number: int) -> list[Effect]:
        effects: list[Effect] = []
        while self.number < number:
            self.number += 1
            effects += self._record(self.number)
        return effects

    def _complete_if_closed(self, number: int) -> list[Effect]:
        if self._open_channels[number]:
            return []
        del self._open_channels[number]
        return [Complete(number)]

    def _check(self, sender: str, number: int) -> None:
        if sender not in self.others:
            raise UnknownMemberError(f"unknown sender {sender!r}; choose from {list(self.others)}")
        if not 0 <= number <= self.number + MAX_AHEAD:
            raise SequenceError(
                f"snapshot {number} of {sender} is too far ahead: {self.number} is the newest "
                f"here, and the limit is {MAX_AHEAD} more"
            )


Make: TypeAlias = type[Algorithm]
