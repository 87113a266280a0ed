"""Recording of a run, event by event, for checks, traces and differential tests.

Messages are identified by their number in the schedule, members by address. Super peers have no
application, so their events are not recorded.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from antecede.core.protocols import Relation
from antecede.lab.check import ARRIVED, DELIVERED, RELEASED, SENT
from antecede.lab.simulate.config.model import SimulationConfig

__all__ = [
    "ARRIVED",
    "DELIVERED",
    "RECORDED",
    "RELEASED",
    "SENT",
    "FirstTransmission",
    "InternalMessage",
    "Recording",
    "RunEvent",
    "StateMark",
]

RECORDED = RELEASED + 1  # Kind of `Recording.rows` only: a member recorded its state


class RunEvent(NamedTuple):
    """An event of a run."""

    time_us: int
    kind: int
    member: int
    message: int


class StateMark(NamedTuple):
    """Recording of a member's state for a snapshot."""

    row: int  # Number of events of the run before it
    time_us: int
    member: int
    snapshot: int


class FirstTransmission(NamedTuple):
    """A Transmit effect that contained a message of the application for the first time."""

    time_us: int
    source: int
    message: int
    targets: tuple[int, ...]
    control_bytes: int
    wire_bytes: int | None  # None: the protocol has no wire format


class InternalMessage(NamedTuple):
    """A message in an internal group."""

    super_peer: int
    number: int  # Number that the super peer gave it
    message: int
    dv: tuple[int, int]  # (base, bits): numbers of its dependencies
    own: bool
    """True: a peer of this group sent it and made `dv`. False: the super peer translated it."""


@dataclass
class Recording:
    """A run. Lists by message are as long as the schedule."""

    config: SimulationConfig
    seed: int
    relation: Relation  # Relation that the protocol promises
    sender: list[int]
    sent_us: list[int | None]  # None: never sent, because its parent never arrived
    parents: list[tuple[int, ...]]  # Messages that a message replies to
    addressees: list[tuple[int, ...] | None]
    """Addressees, ascending (None: all others with an application)."""
    topics: list[tuple[str, ...]]
    subscriptions: tuple[frozenset[str], ...] = ()
    transmissions: list[FirstTransmission] = field(default_factory=list)
    """Only recorded with `record`."""
    numbered_messages: list[InternalMessage] = field(default_factory=list)
    """Messages of super peers into their groups."""
    marks: list[StateMark] = field(default_factory=list)  # Recorded local states, in their order
    _times: array[int] = field(default_factory=lambda: array("q"))
    _kinds: bytearray = field(default_factory=bytearray)
    _members: array[int] = field(default_factory=lambda: array("l"))
    _messages: array[int] = field(default_factory=lambda: array("l"))

    def record(self, time_us: int, kind: int, member: int, message: int) -> None:
        """Append an event."""
        self._times.append(time_us)
        self._kinds.append(kind)
        self._members.append(member)
        self._messages.append(message)

    def __len__(self) -> int:
        """Return the number of events so far."""
        return len(self._times)

    def events(self) -> Iterator[RunEvent]:
        """Yield all events in their order."""
        columns = self._times, self._kinds, self._members, self._messages
        return map(RunEvent, *columns)

    def rows(self) -> Iterator[RunEvent]:
        """Yield the rows of a trace: all events, and the marks as `RECORDED` with a snapshot."""
        marks = ((mark.row, RunEvent(mark.time_us, RECORDED, *mark[2:])) for mark in self.marks)
        events = enumerate(self.events())
        # For equal keys `merge` prefers the first iterable: a mark precedes the event of its row.
        for _, row in heapq.merge(marks, events, key=lambda pair: pair[0]):
            yield row

    def deliveries(self) -> list[tuple[int, int, int]]:
        """Return (time_us, member, message) of all deliveries in order, also incomplete ones."""
        return [
            (time_us, member, message)
            for time_us, kind, member, message in self.events()
            if kind in (DELIVERED, RELEASED)
        ]

    def receivers(self, message: int) -> tuple[int, ...]:
        """Return the receivers of a message, ascending."""
        given = self.addressees[message]
        if given is not None:
            return given
        sender = self.sender[message]
        return tuple(at for at in self.config.topology.senders() if at != sender)
