"""Causes and W3C trace context (OpenTelemetry's headers) together; needs neither package.

    traceparent: 00-<trace id, 32 digits>-<span id, 16 digits>-<flags>
    baggage:     key=value,key=value

Three things that go well together:

- A message's span id is a digest of its id (`span_id`), so its causes are links of its span: a
  trace backend then shows what a message followed; parents alone cannot (a span has one).
- `make_headers` returns all three headers from the context that the instrumentation put there.
- Services that forward baggage but know nothing of stamps still carry the id of the last stamped
  message on their way (`to_baggage`): whoever learns it (`from_baggage`) follows that message.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from antecede.core.propagation import CAUSES, ID, ContextPropagator, Past, Stamp, read
from antecede.errors import DecodeError

MEMBER = "antecede-last"
"""Key of our entry in the baggage."""
_PARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")


class Span(NamedTuple):
    """What a tracer would be told of one message."""

    trace_id: str
    span_id: str
    parent: str
    """Span id of the incoming context."""
    links: tuple[str, ...]
    """Span ids of the message's causes."""


def span_id(message_id: str) -> str:
    """Return 16 hexadecimal digits, the same for the same message everywhere; never all zero."""
    found = hashlib.sha256(message_id.encode()).hexdigest()[:16]
    return found if int(found, 16) else "1".zfill(16)


def span_of(stamp: Stamp, traceparent: str) -> Span:
    """Return the span of a message in the trace of a context; other texts raise DecodeError."""
    match = _PARENT.fullmatch(traceparent.strip())
    if match is None:
        raise DecodeError(f"{traceparent!r} is no traceparent of version 00")
    return Span(match[1], span_id(stamp.id), match[2], tuple(map(span_id, stamp.causes)))


def make_headers(
    stamp: ContextPropagator, context: Mapping[str, str]
) -> tuple[dict[str, str], Span]:
    """Return the headers of a new message, and its span: the incoming trace goes on.

    `context` holds `traceparent` and perhaps `baggage`, as OpenTelemetry's propagators write them.
    """
    headers = stamp.outgoing(context)
    sent = read(headers)
    assert sent is not None
    span = span_of(sent, context["traceparent"])
    flags = context["traceparent"].strip()[-2:]
    headers["traceparent"] = f"00-{span.trace_id}-{span.span_id}-{flags}"
    headers["baggage"] = to_baggage(context.get("baggage", ""), sent)
    return headers, span


def to_baggage(baggage: str, stamp: Stamp) -> str:
    """Return the baggage with this message as the last stamped one, other entries as they were."""
    others = [entry.strip() for entry in baggage.split(",") if entry.strip()]
    kept = [entry for entry in others if entry.partition("=")[0].strip() != MEMBER]
    return ",".join([*kept, f"{MEMBER}={quote(stamp.id, safe='')}"])


def from_baggage(baggage: str) -> Past:
    """Return the past in the baggage, for `ContextPropagator.join`; empty where it has none.

    Raises DecodeError when our entry is no id of a message.
    """
    for entry in baggage.split(","):
        key, _, value = entry.strip().partition("=")
        if key.strip() == MEMBER:
            last = read({ID: unquote(value.partition(";")[0].strip()), CAUSES: ""})
            assert last is not None
            return Past((last.id,))
    return Past()


def main() -> list[str]:
    """A gateway, a proxy that only forwards baggage, and a worker: lines that say what followed."""
    incoming = {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "baggage": "tenant=acme",
    }
    gateway, worker = (
        ContextPropagator("gateway", incarnation="demo"),
        ContextPropagator("worker", incarnation="demo"),
    )
    headers, first = make_headers(gateway, incoming)
    forwarded = {name: headers[name] for name in ("traceparent", "baggage")}  # by the proxy
    with worker.beginning():
        worker.join(from_baggage(forwarded["baggage"]))
        answer, second = make_headers(worker, forwarded)
    told = read(answer)
    assert told is not None
    return [
        f"gateway sent {headers['antecede-id']} as span {first.span_id}",
        f"the proxy forwarded baggage {forwarded['baggage']}",
        f"worker sent {told.id} after {', '.join(told.causes)}",
        f"its span {second.span_id} links to {', '.join(second.links)}",
    ]


if __name__ == "__main__":
    print("\n".join(main()))
