"""Events of an execution, as the oracle judges them, and their kinds."""

from __future__ import annotations

from typing import NamedTuple, Protocol

SEND = "send"
RECEIVE = "receive"
DELIVER = "deliver"
EVENT = "event"
"""None of the other kinds is known."""


class EventLike(Protocol):
    """An event with the fields that the oracle reads; rows of traces have them too."""

    @property
    def kind(self) -> str:
        """One of the kinds above."""

    @property
    def id(self) -> str:
        """The message's identity."""

    @property
    def member(self) -> str | None:
        """The member of the event."""

    @property
    def parents(self) -> tuple[str, ...]:
        """Ids of declared causes."""

    @property
    def clock_members(self) -> tuple[str, ...] | None:
        """Members of the event's vector clock, if it has one."""

    @property
    def clock_counts(self) -> tuple[int, ...] | None:
        """Their counters, in the same order."""


class Event(NamedTuple):
    """One event."""

    kind: str = EVENT
    id: str = ""
    member: str | None = None
    parents: tuple[str, ...] = ()
    clock_members: tuple[str, ...] | None = None
    clock_counts: tuple[int, ...] | None = None
