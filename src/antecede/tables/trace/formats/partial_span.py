"""One span, or one side of a span that two processes share, before it becomes an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from antecede.tables.trace.schema import Event

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
    taken: str | None = None
    """Unit in which times were read, if it is not the one that the format declares."""
    unreadable_causes: int = 0
    """Parents and links that name no span."""
    own: Mapping[str, Any] | None = None
    """Status, kind and attributes; None if they were not asked for."""

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


STATUS, KIND = "status", "span_kind"
"""Columns that every span has beside those of the event schema."""
_STATUSES = {"error": "error", "2": "error", "ok": "ok", "1": "ok"}


def status_of(code: object) -> str | None:
    """Return `error` or `ok` for a status code of OpenTelemetry, a word or a number; else None."""
    plain = str(code).lower().removeprefix("status_code_").removeprefix("statuscode.")
    return _STATUSES.get(plain)


def status_in(attributes: Mapping[str, Any]) -> str | None:
    """Return the status that attributes give: OpenTelemetry's mapping to Zipkin and Jaeger.

    `otel.status_code` counts, else the presence of `error` with another value than false.
    """
    if found := status_of(attributes.get("otel.status_code")):
        return found
    value = attributes.get("error", False)
    return None if value is False or str(value).lower() == "false" else "error"


def columns_of(
    status: str | None,
    kind: str | None,
    attributes: Mapping[str, Any],
    resource: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the further columns of a span: status, kind, attributes, those of its resource.

    The latter are called `resource.KEY`; an attribute called like another column `attribute.KEY`.
    """
    found: dict[str, Any] = {STATUS: status, KIND: kind}
    for key, value in attributes.items():
        found[f"attribute.{key}" if key in found else key] = value
    for key, value in (resource or {}).items():
        found[f"resource.{key}"] = value
    return found


INSTANCE = ("service.instance.id", "host.name", "host.id")


def process_of(attributes: Mapping[str, object]) -> str | None:
    """Name the process by a resource's attributes: the pod, else service and instance."""
    found = {key: words(value) for key, value in attributes.items()}
    instance = next((found[key] for key in INSTANCE if found.get(key)), None)
    return found.get("k8s.pod.name") or process(found.get("service.name"), instance)


def name_of(trace: str, span: str) -> str:
    """Return the identity of a span's event."""
    return f"{trace}/{span}"


def process(service: str | None, instance: str | None) -> str | None:
    """Name the process whose clock timed a span: the service, and which of its instances."""
    if service and instance and service != instance:
        return f"{service}@{instance}"
    return service or instance or None


def words(value: object) -> str | None:
    """Return text that is not blank, else None."""
    return value.strip() or None if isinstance(value, str) else None
