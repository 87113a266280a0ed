"""Span as one process reported it, before it becomes an event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from antecede.tables.trace import text
from antecede.tables.trace.formats.spans_ids import (
    SPAN_BYTES,
    TRACE_BYTES,
    is_unreadable,
    make_span_ids,
    normalize_id,
)
from antecede.tables.trace.formats.spans_times import SpanTimes
from antecede.tables.trace.reader import NO_ID
from antecede.tables.trace.schema import Event

CLIENT = "client"
SERVER = "server"
PRODUCER = "producer"
CONSUMER = "consumer"
ROLES = (CLIENT, SERVER, PRODUCER, CONSUMER)
RECEIVER_ROLES = (SERVER, CONSUMER)


class PartialSpan(NamedTuple):
    """Span, or one side of a shared span."""

    trace: str
    span: str
    parent: str | None
    member: str | None
    role: str | None = None
    is_shared: bool = False
    """True if the span began in another process (Zipkin)."""
    start: int | None = None
    """Time by the clock of the process, ns."""
    end: int | None = None
    name: str | None = None
    unreadable_times: int = 0
    actual_unit: str | None = None
    """Unit of the times, if not the declared one."""
    unreadable_causes: int = 0
    """Number of invalid parents and links."""
    extra: Mapping[str, Any] | None = None
    """Status, kind and attributes (None: not requested)."""
    causes: tuple[str, ...] = ()
    """Event ids of parent and links."""

    def to_event(self, identity: str, causes: tuple[str, ...], source: str, line: int) -> Event:
        """Return the span as an event with the given id and causes."""
        return Event(
            id=identity,
            member=self.member,
            causes=causes,
            topics=(self.trace,),
            start_time=self.start,
            end_time=self.end,
            role=self.role,
            text=self.name,
            source=source,
            line=line,
        )


class MalformedSpan(NamedTuple):
    """Record that is not a span."""

    identity: str | None
    reason: str
    raw: str


def make_malformed_span(record: object, key: str, reason: object) -> MalformedSpan:
    """Return a record that is not a span; `key`: key of its id."""
    identity = record.get(key) if isinstance(record, dict) else None
    return MalformedSpan(strip_text(identity), str(reason), text.shorten(repr(record)))


def make_partial_span(
    ids: Iterable[object],
    member: str | None,
    kind: str | None,
    times: SpanTimes,
    name: object,
    links: Iterable[tuple[object, object]] = (),
    extra: Mapping[str, Any] | None = None,
    *,
    links_first: bool = False,
) -> PartialSpan:
    """Return a span; `links`: ids of more causes. Raise ValueError without trace or span id."""
    of_trace, of_span, of_parent = ids
    trace, span = normalize_id(of_trace, TRACE_BYTES), normalize_id(of_span, SPAN_BYTES)
    if trace is None or span is None:
        raise ValueError(NO_ID)
    parent = normalize_id(of_parent, SPAN_BYTES)
    linked, unreadable = make_span_ids(links)
    parents = [make_span_id(trace, parent)] if parent else []
    causes = [*linked, *parents] if links_first else [*parents, *linked]
    return PartialSpan(
        trace=trace,
        span=span,
        parent=parent,
        member=member,
        role=kind if kind in ROLES else None,
        start=times.start,
        end=times.end,
        name=strip_text(name),
        unreadable_times=times.unreadable_times,
        actual_unit=times.actual_unit,
        unreadable_causes=unreadable + is_unreadable(of_parent),
        extra=extra,
        causes=tuple(dict.fromkeys(causes)),
    )


STATUS, KIND = "status", "span_kind"
_STATUSES = {"error": "error", "2": "error", "ok": "ok", "1": "ok"}


def parse_status(code: object) -> str | None:
    """Return `error` or `ok` for a status code of OpenTelemetry, as text or number."""
    plain = str(code).lower().removeprefix("status_code_").removeprefix("statuscode.")
    return _STATUSES.get(plain)


def find_status(attributes: Mapping[str, Any]) -> str | None:
    """Return the status in attributes: `otel.status_code`, else `error` unless it is false."""
    if found := parse_status(attributes.get("otel.status_code")):
        return found
    value = attributes.get("error", False)
    return None if value is False or str(value).lower() == "false" else "error"


def collect_columns(
    status: str | None,
    kind: str | None,
    attributes: Mapping[str, Any],
    resource: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the extra columns of a span; an attribute with a taken name is `attribute.KEY`."""
    found: dict[str, Any] = {STATUS: status, KIND: kind}
    for key, value in attributes.items():
        found[f"attribute.{key}" if key in found else key] = value
    for key, value in (resource or {}).items():
        found[f"resource.{key}"] = value
    return found


INSTANCE = ("service.instance.id", "host.name", "host.id")


def find_process(attributes: Mapping[str, object]) -> str | None:
    """Return the process in resource attributes: the pod, else service and instance."""
    found = {key: strip_text(value) for key, value in attributes.items()}
    instance = next((found[key] for key in INSTANCE if found.get(key)), None)
    return found.get("k8s.pod.name") or make_process_name(found.get("service.name"), instance)


def make_span_id(trace: str, span: str) -> str:
    """Return the event id of a span."""
    return f"{trace}/{span}"


def make_process_name(service: str | None, instance: str | None) -> str | None:
    """Return the name of a process: SERVICE@INSTANCE, or the one that is given."""
    if service and instance and service != instance:
        return f"{service}@{instance}"
    return service or instance or None


def to_list(value: object) -> list[Any]:
    """Return a list as it is, null as an empty list, any other value as one element."""
    return value if isinstance(value, list) else [] if value is None else [value]


def strip_text(value: object) -> str | None:
    """Return stripped text; None for blank text and other values."""
    return value.strip() or None if isinstance(value, str) else None
