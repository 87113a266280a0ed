"""Parser of spans in JSON of the OpenTelemetry Protocol and of OpenTelemetry's console exporters.

Three forms, read one block or span at a time:

- OTLP/JSON (opentelemetry-proto 1.x): `resourceSpans` with one block per resource, in one object
  per file or line; older files have `instrumentationLibrarySpans`. The list may be nested, and
  named `batches`: Grafana Tempo 2.x (`/api/traces`, `/api/v2/traces`).
- `ConsoleSpanExporter` of opentelemetry-python 1.x: one object with `context` per span.
- `stdouttrace` of opentelemetry-go 1.x: one object with `SpanContext` per span.

Times are nanoseconds, mostly as text; exporters write ISO 8601. The process is the pod, else the
service with its instance or host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from antecede.tables.trace import text
from antecede.tables.trace.formats.partial_span import (
    STATUS,
    MalformedSpan,
    PartialSpan,
    collect_columns,
    find_process,
    make_malformed_span,
    make_partial_span,
    parse_status,
    strip_text,
    to_list,
)
from antecede.tables.trace.formats.spans_times import Unit, read_times

BLOCKS = ("resourceSpans", "resource_spans", "batches")
SHAPES = re.compile(
    r'"(scopeSpans|scope_spans|instrumentationLibrarySpans|resourceSpans|resource_spans)"\s*:'
)
_CONSOLE = (
    re.compile(r'"context"\s*:\s*\{[^{}]*"span_id"\s*:'),
    re.compile(r'"SpanContext"\s*:\s*\{[^{}]*"SpanID"\s*:'),
)
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
KINDS = {2: "server", 3: "client", 4: "producer", 5: "consumer"}
_NO_SPAN = (None, None)
_ALL_KINDS = {1: "internal", **KINDS}
_PROTOBUF_NAMES = {
    key: re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), key)
    for key in ("traceId", "spanId", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano")
}


def is_console(sample: str) -> bool:
    """Return whether a text contains a span of a console exporter."""
    return any(pattern.search(sample) for pattern in _CONSOLE)


def read_spans(
    element: object, unit: Unit, keep_extra: bool
) -> Iterator[PartialSpan | MalformedSpan]:
    """Yield the spans of a block or of an exporter."""
    if not isinstance(element, dict):
        yield make_malformed_span(
            element, "", "expected a JSON object with the spans of a resource"
        )
        return
    if "context" in element or "SpanContext" in element:
        yield from _try_read(element, _read_console_span, unit, keep_extra)
        return
    resource = _read_attributes(element.get("resource"))
    member = find_process(resource)
    for scope in (scope for key in _SCOPES for scope in _get_list(element.get(key))):
        for record in _get_list(scope.get("spans") if isinstance(scope, dict) else None):
            yield from _try_read(record, read_span, member, unit, resource if keep_extra else None)


def _try_read(record: object, read: Any, *more: Any) -> Iterator[PartialSpan | MalformedSpan]:
    try:
        yield read(record, *more)
    except ValueError as error:
        yield make_malformed_span(record, "spanId", error)


def read_span(
    record: object,
    member: str | None,
    unit: Unit | None = None,
    resource: Mapping[str, Any] | None = None,
    duration_unit: str | None = None,
) -> PartialSpan:
    """Return the span of a record in OTLP's JSON, with extra columns if `resource` is given.

    A row of a table may have a `duration` instead of an end, in `duration_unit` (default: unit of
    the start). Raise ValueError with the reason if the record is not a span.
    """
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    own = None
    if resource is not None:
        status = _get_object(record, "status")
        own = collect_columns(
            parse_status(status.get("code")),
            _parse_kind(record.get("kind")),
            _read_attributes(record),
            resource,
        )
        if message := strip_text(status.get("message")):
            own.setdefault(f"{STATUS}_message", message)
    start, end = (_get_either(record, key) for key in ("startTimeUnixNano", "endTimeUnixNano"))
    return make_partial_span(
        [_get_either(record, key) for key in ("traceId", "spanId", "parentSpanId")],
        member,
        _parse_kind(record.get("kind")),
        read_times(unit or Unit("ns"), start, end, record.get("duration"), duration_unit),
        record.get("name"),
        [
            (_get_either(one, "traceId"), _get_either(one, "spanId"))
            if isinstance(one, dict)
            else _NO_SPAN
            for one in to_list(record.get("links"))
        ],
        own,
    )


def _read_console_span(record: dict[str, Any], unit: Unit, keep_extra: bool) -> PartialSpan:
    record = _rename_go_keys(record) if "SpanContext" in record else record
    context = _get_object(record, "context")
    resource = _get_object(record, "resource")
    resource = resource.get("attributes", resource)
    resource = resource if isinstance(resource, dict) else {}
    status = _get_object(record, "status")
    kind = _parse_kind(record.get("kind"))
    found = None
    if keep_extra:
        attributes = _get_object(record, "attributes")
        found = collect_columns(parse_status(status.get("status_code")), kind, attributes, resource)
        if message := strip_text(status.get("description")):
            found.setdefault(f"{STATUS}_message", message)
    start, end = (_parse_time(record.get(key)) for key in ("start_time", "end_time"))
    contexts = [_get_object(link, "context") for link in to_list(record.get("links"))]
    return make_partial_span(
        [context.get("trace_id"), context.get("span_id"), record.get("parent_id")],
        find_process(resource),
        kind,
        read_times(Unit("ns", is_fixed=True) if isinstance(start, int) else unit, start, end),
        record.get("name"),
        [(one.get("trace_id"), one.get("span_id")) for one in contexts],
        found,
    )


def _rename_go_keys(record: dict[str, Any]) -> dict[str, Any]:
    def context(of: object) -> dict[str, Any]:
        of = of if isinstance(of, dict) else {}
        return {"trace_id": of.get("TraceID"), "span_id": of.get("SpanID")}

    def attributes(key: str) -> dict[str, Any]:
        listed = _get_objects(record, key)
        return {str(one.get("Key")): _get_object(one, "Value").get("Value") for one in listed}

    status = _get_object(record, "Status")
    linked = (_get_object(one, "SpanContext") for one in to_list(record.get("Links")))
    links = [{"context": context(one)} for one in linked]
    parent = record.get("Parent")
    is_readable = isinstance(parent, dict) or parent in (None, "")
    return {
        "name": record.get("Name"),
        "context": context(record.get("SpanContext")),
        "parent_id": context(parent)["span_id"] if is_readable else [parent],  # list: unreadable
        "kind": record.get("SpanKind"),
        "start_time": record.get("StartTime"),
        "end_time": record.get("EndTime"),
        "links": links,
        "attributes": attributes("Attributes"),
        "resource": attributes("Resource"),
        "status": {"status_code": status.get("Code"), "description": status.get("Description")},
    }


def _parse_time(value: object) -> object:
    """Return an ISO 8601 time as ns (year 1: 0), other values unchanged."""
    if not isinstance(value, str) or "T" not in value:
        return value
    if value.startswith("0001-01-01T"):
        return 0
    found = text.parse_iso_time(value)
    return value if found is None else found


def _parse_kind(kind: object) -> str | None:
    if isinstance(kind, str):
        name = kind.strip().lower().removeprefix("span_kind_").removeprefix("spankind.")
        return name if name in _ALL_KINDS.values() else _ALL_KINDS.get(text.parse_int64(kind) or 0)
    return _ALL_KINDS.get(kind) if isinstance(kind, int) else None


def _read_attributes(record: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for attribute in _get_objects(record, "attributes"):
        found.setdefault(str(attribute.get("key")), _read_value(attribute.get("value")))
    return found


def _read_value(value: object, depth: int = 0) -> Any:
    """Return the value of an object such as `{"stringValue": ...}`."""
    if not isinstance(value, dict) or depth > 8:
        return value
    for key, inner in value.items():
        kind = key.replace("_", "").lower()
        if kind == "intvalue":
            number = text.parse_int64(inner)
            return inner if number is None else number
        if kind == "arrayvalue":
            return [
                _read_value(one, depth + 1)
                for one in _get_list(_get_object(value, key).get("values"))
            ]
        if kind == "kvlistvalue":
            listed = _get_objects(inner, "values")
            return {str(one.get("key")): _read_value(one.get("value"), depth + 1) for one in listed}
        if kind.endswith("value"):
            return inner
    return None


def _get_either(record: Mapping[str, Any], key: str) -> object:
    """Return the value of a key, or of its name in Protocol Buffers (trace_id)."""
    found = record.get(key)
    return found if found else record.get(_PROTOBUF_NAMES[key])


def _get_object(record: object, key: str) -> dict[str, Any]:
    found = record.get(key) if isinstance(record, dict) else None
    return found if isinstance(found, dict) else {}


def _get_objects(record: object, key: str) -> list[dict[str, Any]]:
    found = record.get(key) if isinstance(record, dict) else None
    return [one for one in _get_list(found) if isinstance(one, dict)]


def _get_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
