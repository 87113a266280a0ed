"""Spans in OpenTelemetry's JSON: `resourceSpans`, one object a file or a line.

Also older files with `instrumentationLibrarySpans`. Identities are hexadecimal, or base64 as
plain protobuf writes bytes; times are numbers of nanoseconds, mostly as text. The process is
the pod, else the service with its instance or host. A resource's block is read at a time.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from antecede.trace import text
from antecede.trace.formats.json_stream import Broken, items
from antecede.trace.formats.spans_part import ROLES, Part, name_of, process, time_of, words
from antecede.trace.reader import NO_ID, Detail, Item
from antecede.trace.schema import Quarantined

_KEY = re.compile(r'"(resourceSpans|resource_spans)"\s*:')
_BLOCKS = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
KINDS = {2: "server", 3: "client", 4: "producer", 5: "consumer"}
_HEX = re.compile(r"[0-9a-fA-F]+\Z")
INSTANCE = ("service.instance.id", "host.name", "host.id")
_OWN = {
    key: re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), key)
    for key in (
        *("traceId", "spanId", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano"),
        "stringValue",
    )
}
TRACE_BYTES, SPAN_BYTES = 16, 8


def recognize(sample: str) -> bool:
    """Say whether text holds the key of such a file."""
    return _KEY.search(sample) is not None


def read(path: Path) -> Iterator[Item]:
    """Yield the spans of all blocks."""
    source = str(path)
    head = text.decode(text.read_up_to(path, text.HEAD_BYTES)[0])
    key = _KEY.search(head)
    unreadable = 0
    for found in items(path, (key[1] if key else "resourceSpans",)):
        if isinstance(found, Broken):
            yield Quarantined(source, found.line, None, found.reason, found.raw)
            continue
        for one in _block(found.value):
            if isinstance(one, Span):
                unreadable += one.part.unreadable
                yield one.part.event(
                    name_of(one.part.trace, one.part.span), one.causes, source, found.line
                )
            else:
                yield Quarantined(source, found.line, *one)
    if unreadable:
        yield Detail("unreadable_times", unreadable)


class Span:
    """A span and the identities of its causes: its parent, then its links."""

    def __init__(self, part: Part, causes: tuple[str, ...]) -> None:
        self.part = part
        self.causes = causes


Bad = tuple[str | None, str, str]
"""Identity, reason and text of what is no span."""


def _block(block: object) -> Iterator[Span | Bad]:
    """Yield the spans of one resource."""
    if not isinstance(block, dict):
        yield None, "no JSON object where spans of a resource are", _raw(block)
        return
    member = _process(block.get("resource"))
    for scope in (scope for key in _BLOCKS for scope in _list(block.get(key))):
        for record in _list(scope.get("spans") if isinstance(scope, dict) else None):
            try:
                yield span_of(record, member)
            except ValueError as error:
                identity = record.get("spanId") if isinstance(record, dict) else None
                yield words(identity), str(error), _raw(record)


def span_of(record: object, member: str | None) -> Span:
    """Return the span of one record in OTLP's JSON; ValueError saying why it is none."""
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    trace = _identity(_either(record, "traceId"), TRACE_BYTES)
    span = _identity(_either(record, "spanId"), SPAN_BYTES)
    if trace is None or span is None:
        raise ValueError(NO_ID)
    parent = _identity(_either(record, "parentSpanId"), SPAN_BYTES)
    start, bad_start = time_of(_either(record, "startTimeUnixNano"), "ns")
    end, bad_end = time_of(_either(record, "endTimeUnixNano"), "ns")
    role = _role(record.get("kind"))
    part = Part(trace, span, parent, member, role, False, start, end, words(record.get("name")))
    causes = [name_of(trace, parent)] if parent else []
    causes += [name_of(*link) for link in _links(record.get("links"))]
    return Span(part._replace(unreadable=bad_start + bad_end), tuple(dict.fromkeys(causes)))


def _links(links: object) -> Iterator[tuple[str, str]]:
    for link in _list(links):
        if isinstance(link, dict):
            trace = _identity(_either(link, "traceId"), TRACE_BYTES)
            span = _identity(_either(link, "spanId"), SPAN_BYTES)
            if trace and span:
                yield trace, span


def _identity(value: object, size: int) -> str | None:
    """Return an identity of `size` bytes in hexadecimal; None for none, blank and all zero.

    Text of the right length in hexadecimal is that; else base64 of that many bytes. Other
    text is kept as it is written.
    """
    written = words(value)
    if written is None:
        return None
    if not (len(written) == 2 * size and _HEX.match(written)):
        try:
            raw = base64.b64decode(written, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        written = raw.hex() if len(raw) == size else written
    return written.lower() if written.strip("0") else None


def _role(kind: object) -> str | None:
    if isinstance(kind, str):
        name = kind.lower().removeprefix("span_kind_")
        return name if name in ROLES else KINDS.get(text.int64(kind) or 0)
    return KINDS.get(kind) if isinstance(kind, int) else None


def _process(resource: object) -> str | None:
    """Name the process by the resource's attributes."""
    found: dict[str, str] = {}
    for attribute in _list(resource.get("attributes") if isinstance(resource, dict) else None):
        if isinstance(attribute, dict) and isinstance(attribute.get("value"), dict):
            value = words(_either(attribute["value"], "stringValue"))
            if value:
                found.setdefault(str(attribute.get("key")), value)
    return process_of(found)


def process_of(attributes: Mapping[str, object]) -> str | None:
    """Name the process by a resource's attributes: the pod, else service and instance."""
    found = {key: words(value) for key, value in attributes.items()}
    instance = next((found[key] for key in INSTANCE if found.get(key)), None)
    return found.get("k8s.pod.name") or process(found.get("service.name"), instance)


def _either(record: Mapping[str, Any], key: str) -> object:
    """Return the value of a key in protobuf's JSON spelling, or in its own (trace_id)."""
    found = record.get(key)
    return found if found else record.get(_OWN[key])


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _raw(value: object) -> str:
    return text.shorten(repr(value))
