"""Recording of a run, event by event, for the judge, traces and lockstep tests.

Messages are named by their number in the schedule, members by address. Super peers have no
application, so events at them are left out.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from antecede.core.protocols import Relation
from antecede.lab.check import ARRIVED, DELIVERED, RELEASED, SENT
from antecede.lab.simulate.config.model import Scenario

__all__ = [
    "ARRIVED",
    "DELIVERED",
    "RECORDED",
    "RELEASED",
    "SENT",
    "FirstTransmission",
    "NumberedMessage",
    "Recording",
    "RunEvent",
    "StateMark",
]

RECORDED = RELEASED + 1  # A kind of `Recording.rows` alone: a member recorded its state


class RunEvent(NamedTuple):
    """One event."""

    time_us: int
    kind: int
    member: int
    message: int


class StateMark(NamedTuple):
    """A member recorded its state for a snapshot."""

    row: int  # how many events the whole run had before
    time_us: int
    member: int
    snapshot: int


class FirstTransmission(NamedTuple):
    """One Transmit effect that carried a message of the application for the first time."""

    time_us: int
    source: int
    message: int
    targets: tuple[int, ...]
    control_bytes: int
    wire_bytes: int | None  # None: the protocol has no wire format


class NumberedMessage(NamedTuple):
    """A message in an internal group."""

    super_peer: int
    number: int  # the super peer's number for it
    message: int
    dv: tuple[int, int]  # (base, bits): numbers of what it depends on
    own: bool
    """A peer of this group sent it and made `dv`; else the super peer translated it."""


@dataclass
class Recording:
    """One run; lists by message are as long as the schedule."""

    scenario: Scenario
    seed: int
    relation: Relation  # what the protocol promises to keep
    sender: list[int]
    sent_us: list[int | None]  # None: never sent, because what it answers never came
    parents: list[tuple[int, ...]]  # what a message answers
    addressees: list[tuple[int, ...] | None]
    """Whom it is for, ascending; None: everybody else with an application."""
    topics: list[tuple[str, ...]]
    subscriptions: tuple[frozenset[str], ...] = ()
    transmissions: list[FirstTransmission] = field(default_factory=list)
    """Only where the run was made with `record`."""
    numbered_messages: list[NumberedMessage] = field(default_factory=list)
    """Messages of super peers into their groups."""
    marks: list[StateMark] = field(default_factory=list)
    """Local states that were recorded, in their order."""
    _times: array[int] = field(default_factory=lambda: array("q"))
    _kinds: bytearray = field(default_factory=bytearray)
    _members: array[int] = field(default_factory=lambda: array("l"))
    _messages: array[int] = field(default_factory=lambda: array("l"))

    def record(self, time_us: int, kind: int, member: int, message: int) -> None:
        """Add what happens next."""
        self._times.append(time_us)
        self._kinds.append(kind)
        self._members.append(member)
        self._messages.append(message)

    def __len__(self) -> int:
        """Return how many events there are so far."""
        return len(self._times)

    def events(self) -> Iterator[RunEvent]:
        """Yield everything in the order in which it happened."""
        columns = self._times, self._kinds, self._members, self._messages
        return map(RunEvent, *columns)

    def rows(self) -> Iterator[RunEvent]:
        """Yield the rows of a trace: all events, and the marks as `RECORDED` with a snapshot."""
        marks = ((one.row, RunEvent(one.time_us, RECORDED, *one[2:])) for one in self.marks)
        events = enumerate(self.events())
        # For equal keys `merge` yields the first iterable's: a mark precedes the event of its row.
        for _, row in heapq.merge(marks, events, key=lambda one: one[0]):
            yield row

    def deliveries(self) -> list[tuple[int, int, int]]:
        """Return (time_us, member, message) of all deliveries, marked ones too, in their order."""
        return [
            (time_us, member, message)
            for time_us, kind, member, message in self.events()
            if kind in (DELIVERED, RELEASED)
        ]

    def receivers(self, message: int) -> tuple[int, ...]:
        """Return whom a message is for, ascending."""
        given = self.addressees[message]
        if given is not None:
            return given
        sender = self.sender[message]
        return tuple(at for at in self.scenario.topology.senders() if at != sender)
