"""Parser of spans in Jaeger's JSON (version 1.x).

- The user interface and `/api/traces` write `{"data": [{"spans", "processes"}]}`.
- Storage (Elasticsearch, OpenSearch) has one document per span with its `process`, optionally in
  `_source`, one per line or in an array.
- The JSON of `model.proto` (Kafka) has `traceId`, `spanId`, ISO 8601 times, `vStr` in tags.

Causes are `references` (CHILD_OF and FOLLOWS_FROM), and `parentSpanID` of older versions. Times are
in microseconds. The process is the service with its instance, host or address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from antecede.tables.trace import text
from antecede.tables.trace.formats.partial_span import (
    Bad,
    Part,
    bad_span,
    columns_of,
    listed,
    make_part,
    process,
    process_of,
    status_in,
    words,
)
from antecede.tables.trace.formats.spans_times import Unit, read_times

LISTS = (("data",), ("hits", "hits"))
"""Paths to the list of traces or documents."""
SHAPE = re.compile(r'"(operationName|operationname)"\s*:')
HOSTS = ("hostname", "ip", "jaeger.hostname")
"""Tags with the instance of a process, beside OpenTelemetry's attributes."""
_KIND = "span.kind"
_DURATION = re.compile(r"\A([0-9]+(?:\.[0-9]+)?)s\Z")
_VALUES = ("value", "vStr", "vBool", "vInt64", "vFloat64", "vBinary")


def spans_in(element: object, unit: Unit, own: bool) -> Iterator[Part | Bad]:
    """Yield the spans of a trace, or of a span with its process; `own`: with status and tags."""
    inner = element.get("_source", element) if isinstance(element, dict) else element
    if not isinstance(inner, dict):
        yield bad_span(inner, "", "expected a JSON object with a trace or a span")
        return
    spans = inner.get("spans")
    processes = inner.get("processes")
    processes = processes if isinstance(processes, dict) else {}
    for record in spans if isinstance(spans, list) else [inner]:
        try:
            yield span_of(record, processes, unit, own)
        except ValueError as error:
            yield bad_span(record, "spanID", error)


def span_of(record: object, processes: Mapping[str, Any], unit: Unit, own: bool = False) -> Part:
    """Return the span of a record; `processes`: processes of the trace by id.

    Raise ValueError with the reason if the record is not a span.
    """
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    where = record.get("process") or processes.get(str(record.get("processID")))
    where = where if isinstance(where, dict) else {}
    tags, of_process = tags_in(record), tags_in(where)
    kind = (words(tags.pop(_KIND, None)) or "").lower() or None
    start, duration = _moment(record.get("startTime")), _length(record.get("duration"))
    in_ns = isinstance(record.get("startTime"), str) and isinstance(start, int)
    times = read_times(
        Unit("ns", is_fixed=True) if in_ns else unit,
        start,
        None,
        duration,
        "ns" if duration != record.get("duration") else None,
    )
    return make_part(
        [*_ids_in(record), record.get("parentSpanID") or record.get("parentSpanId")],
        member_of(where.get("serviceName"), of_process),
        kind,
        times,
        record.get("operationName"),
        map(_ids_in, listed(record.get("references"))),
        columns_of(status_in(tags), kind, tags, of_process) if own else None,
        links_first=True,
    )


def member_of(service: object, tags: Mapping[str, Any]) -> str | None:
    """Return the process of a service and its tags."""
    named = process_of({**tags, "service.name": words(service)})
    if named is None or named != words(service):
        return named
    return process(
        named, next((words(tags.get(key)) for key in HOSTS if words(tags.get(key))), None)
    )


def tags_in(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tags of a span or process: a list of keys and values, or a map.

    Elasticsearch writes `@` for dots in keys of a map.
    """
    found: dict[str, Any] = {}
    tags = record.get("tags")
    for tag in tags if isinstance(tags, list) else ():
        if isinstance(tag, dict) and "key" in tag:
            value = next((tag[name] for name in _VALUES if tag.get(name) is not None), None)
            found.setdefault(str(tag["key"]), value)
    for named in (record.get("tag"), tags):
        if isinstance(named, dict):
            for key, value in named.items():
                found.setdefault(str(key).replace("@", "."), value)
    return found


def _ids_in(record: object) -> tuple[object, object]:
    if not isinstance(record, dict):
        return None, None
    trace = record.get("traceID") or record.get("traceId")
    return trace, record.get("spanID") or record.get("spanId")


def _moment(value: object) -> object:
    """Return an ISO 8601 time as ns, other values unchanged."""
    found = text.iso_time(value) if isinstance(value, str) and "T" in value else None
    return value if found is None else found


def _length(value: object) -> object:
    """Return a duration such as `0.05s` as ns, other values unchanged."""
    found = _DURATION.match(value.strip()) if isinstance(value, str) else None
    return text.nanoseconds(found[1], "s") if found else value
