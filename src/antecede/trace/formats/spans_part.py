"""One span, or one side of a span that two processes share, before it becomes an event."""

from __future__ import annotations

from typing import NamedTuple

from antecede.trace import text
from antecede.trace.schema import Event

CLIENT = "client"
SERVER = "server"
PRODUCER = "producer"
CONSUMER = "consumer"
ROLES = (CLIENT, SERVER, PRODUCER, CONSUMER)
RECEIVING = (SERVER, CONSUMER)


class Part(NamedTuple):
    """A span as one process saw it."""

    trace: str
    span: str
    parent: str | None
    member: str | None
    role: str | None = None
    shared: bool = False
    """Whether the process declares that the span began in another process (Zipkin)."""
    start: int | None = None
    """Time by the process's clock, ns."""
    end: int | None = None
    name: str | None = None
    unreadable: int = 0
    """Times that could not be read."""

    def event(self, identity: str, parents: tuple[str, ...], source: str, line: int) -> Event:
        """Return the part as an event with that identity and those causes."""
        return Event(
            id=identity,
            member=self.member,
            parents=parents,
            topics=(self.trace,),
            start_time=self.start,
            end_time=self.end,
            role=self.role,
            text=self.name,
            source=source,
            line=line,
        )


def name_of(trace: str, span: str) -> str:
    """Return the identity of a span's event."""
    return f"{trace}/{span}"


def process(service: str | None, instance: str | None) -> str | None:
    """Name the process whose clock timed a span: the service, and which of its instances."""
    if service and instance and service != instance:
        return f"{service}@{instance}"
    return service or instance or None


def time_of(value: object, unit: str) -> tuple[int | None, int]:
    """Return (a time in ns, 0 or 1 unreadable); none and zero are no time and readable."""
    if value is None or value in (0, "", "0"):
        return None, 0
    found = text.nanoseconds(value, unit)
    return found, int(found is None)


def words(value: object) -> str | None:
    """Return text that is not blank, else None."""
    return value.strip() or None if isinstance(value, str) else None
