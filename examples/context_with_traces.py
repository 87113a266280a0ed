"""Causes and W3C trace context (OpenTelemetry's headers) together, without either package.

    traceparent: 00-<trace id, 32 digits>-<span id, 16 digits>-<flags>
    baggage:     key=value,key=value

- A message's span id is a hash of its id (`span_id`), so its causes are links of its span, and a
  trace backend shows them. A span has only one parent.
- `make_headers` returns all three headers from the context of the instrumentation.
- Services that only forward baggage carry the id of the last message on their way (`to_baggage`); a
  receiver that reads it (`from_baggage`) follows that message.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from antecede.core.propagation import (
    CAUSES,
    ID,
    CausalContext,
    ContextPropagator,
    MessageContext,
    read,
)
from antecede.errors import DecodeError

MEMBER = "antecede-last"
"""Key of this package's entry in the baggage."""
_PARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")


class Span(NamedTuple):
    """Data of a message for a tracer."""

    trace_id: str
    span_id: str
    parent: str
    """Span id of the incoming context."""
    links: tuple[str, ...]
    """Span ids of the message's causes."""


def span_id(message_id: str) -> str:
    """Return 16 hexadecimal digits, a function of the message id; never all zero."""
    found = hashlib.sha256(message_id.encode()).hexdigest()[:16]
    return found if int(found, 16) else "1".zfill(16)


def span_of(message: MessageContext, traceparent: str) -> Span:
    """Return the span of a message in a context's trace. Raises DecodeError for invalid text."""
    match = _PARENT.fullmatch(traceparent.strip())
    if match is None:
        raise DecodeError(f"{traceparent!r} is no traceparent of version 00")
    return Span(match[1], span_id(message.id), match[2], tuple(map(span_id, message.causes)))


def make_headers(
    propagator: ContextPropagator, context: Mapping[str, str]
) -> tuple[dict[str, str], Span]:
    """Return the headers of a new message, and its span in the incoming trace.

    `context` holds `traceparent` and optionally `baggage`, as OpenTelemetry's propagators write
    them.
    """
    headers = propagator.make_headers(context)
    sent = read(headers)
    assert sent is not None
    span = span_of(sent, context["traceparent"])
    flags = context["traceparent"].strip()[-2:]
    headers["traceparent"] = f"00-{span.trace_id}-{span.span_id}-{flags}"
    headers["baggage"] = to_baggage(context.get("baggage", ""), sent)
    return headers, span


def to_baggage(baggage: str, message: MessageContext) -> str:
    """Return the baggage with this message as the last one; other entries are unchanged."""
    others = [entry.strip() for entry in baggage.split(",") if entry.strip()]
    kept = [entry for entry in others if entry.partition("=")[0].strip() != MEMBER]
    return ",".join([*kept, f"{MEMBER}={quote(message.id, safe='')}"])


def from_baggage(baggage: str) -> CausalContext:
    """Return the past in the baggage, for `ContextPropagator.join`; empty without one.

    Raises DecodeError if the entry is not a message id.
    """
    for entry in baggage.split(","):
        key, _, value = entry.strip().partition("=")
        if key.strip() == MEMBER:
            last = read({ID: unquote(value.partition(";")[0].strip()), CAUSES: ""})
            assert last is not None
            return CausalContext((last.id,))
    return CausalContext()


def main() -> list[str]:
    """Return the lines of a gateway, a proxy that forwards baggage, and a worker."""
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
    with worker.begin():
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
