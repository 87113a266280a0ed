"""Events of an execution, as input of the oracle."""

from __future__ import annotations

from typing import NamedTuple, Protocol

SEND = "send"
RECEIVE = "receive"
DELIVER = "deliver"
EVENT = "event"
"""Event of unknown kind."""


class EventLike(Protocol):
    """Event with the fields that the oracle reads, such as a trace row."""

    @property
    def kind(self) -> str:
        """One of the kinds above."""

    @property
    def id(self) -> str:
        """Id of the message."""

    @property
    def member(self) -> str | None:
        """Member of the event."""

    @property
    def causes(self) -> tuple[str, ...]:
        """Ids of declared causes."""

    @property
    def clock_members(self) -> tuple[str, ...] | None:
        """Members of the vector clock, if there is one."""

    @property
    def clock_counts(self) -> tuple[int, ...] | None:
        """Their counters, in the same order."""


class OracleEvent(NamedTuple):
    """Plain event."""

    kind: str = EVENT
    id: str = ""
    member: str | None = None
    causes: tuple[str, ...] = ()
    clock_members: tuple[str, ...] | None = None
    clock_counts: tuple[int, ...] | None = None
