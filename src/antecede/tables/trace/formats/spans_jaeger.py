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
    MalformedSpan,
    PartialSpan,
    collect_columns,
    find_process,
    find_status,
    make_malformed_span,
    make_partial_span,
    make_process_name,
    strip_text,
    to_list,
)
from antecede.tables.trace.formats.spans_times import Unit, read_times

LISTS = (("data",), ("hits", "hits"))
SHAPE = re.compile(r'"(operationName|operationname)"\s*:')
HOSTS = ("hostname", "ip", "jaeger.hostname")
"""Tags with the instance of a process, beside OpenTelemetry's attributes."""
_KIND = "span.kind"
_DURATION = re.compile(r"\A([0-9]+(?:\.[0-9]+)?)s\Z")
_VALUES = ("value", "vStr", "vBool", "vInt64", "vFloat64", "vBinary")


def read_spans(
    element: object, unit: Unit, keep_extra: bool
) -> Iterator[PartialSpan | MalformedSpan]:
    """Yield the spans of a trace, or of a span with its process."""
    inner = element.get("_source", element) if isinstance(element, dict) else element
    if not isinstance(inner, dict):
        yield make_malformed_span(inner, "", "expected a JSON object with a trace or a span")
        return
    spans = inner.get("spans")
    processes = inner.get("processes")
    processes = processes if isinstance(processes, dict) else {}
    for record in spans if isinstance(spans, list) else [inner]:
        try:
            yield read_span(record, processes, unit, keep_extra)
        except ValueError as error:
            yield make_malformed_span(record, "spanID", error)


def read_span(
    record: object, processes: Mapping[str, Any], unit: Unit, keep_extra: bool = False
) -> PartialSpan:
    """Return the span of a record; `processes`: by id. Raise ValueError if it is not a span."""
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    where = record.get("process") or processes.get(str(record.get("processID")))
    where = where if isinstance(where, dict) else {}
    tags, of_process = read_tags(record), read_tags(where)
    kind = (strip_text(tags.pop(_KIND, None)) or "").lower() or None
    start, duration = _parse_time(record.get("startTime")), _parse_duration(record.get("duration"))
    in_ns = isinstance(record.get("startTime"), str) and isinstance(start, int)
    times = read_times(
        Unit("ns", is_fixed=True) if in_ns else unit,
        start,
        None,
        duration,
        "ns" if duration != record.get("duration") else None,
    )
    return make_partial_span(
        [*_read_ids(record), record.get("parentSpanID") or record.get("parentSpanId")],
        find_member(where.get("serviceName"), of_process),
        kind,
        times,
        record.get("operationName"),
        map(_read_ids, to_list(record.get("references"))),
        collect_columns(find_status(tags), kind, tags, of_process) if keep_extra else None,
        links_first=True,
    )


def find_member(service: object, tags: Mapping[str, Any]) -> str | None:
    """Return the process of a service and its tags."""
    named = find_process({**tags, "service.name": strip_text(service)})
    if named is None or named != strip_text(service):
        return named
    return make_process_name(
        named, next((strip_text(tags.get(key)) for key in HOSTS if strip_text(tags.get(key))), None)
    )


def read_tags(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tags of a span or process, from a list or a map (Elasticsearch: `@` for dots)."""
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


def _read_ids(record: object) -> tuple[object, object]:
    if not isinstance(record, dict):
        return None, None
    trace = record.get("traceID") or record.get("traceId")
    return trace, record.get("spanID") or record.get("spanId")


def _parse_time(value: object) -> object:
    """Return an ISO 8601 time as ns, other values unchanged."""
    found = text.parse_iso_time(value) if isinstance(value, str) and "T" in value else None
    return value if found is None else found


def _parse_duration(value: object) -> object:
    """Return a duration such as `0.05s` as ns, other values unchanged."""
    found = _DURATION.match(value.strip()) if isinstance(value, str) else None
    return text.parse_nanoseconds(found[1], "s") if found else value
