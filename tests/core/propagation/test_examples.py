"""Examples of context propagation over HTTP and with trace context."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from antecede.core.propagation import CausalContext, MessageContext
from antecede.errors import DecodeError

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name))


def test_over_http_each_answer_follows_its_request() -> None:
    assert example("context_over_http.py")["main"]() == [
        MessageContext("shop:demo:1", ()),
        MessageContext("stock:demo:1", ("shop:demo:1",)),
        MessageContext("shop:demo:2", ("stock:demo:1",)),
        MessageContext("till:demo:1", ("shop:demo:2",)),
        MessageContext("shop:demo:3", ("till:demo:1",)),
    ]


def test_with_traces_causes_are_links() -> None:
    found = example("context_with_traces.py")
    spans = [found["span_id"](f"{name}:demo:1") for name in ("gateway", "worker")]
    assert found["main"]() == [
        f"gateway sent gateway:demo:1 as span {spans[0]}",
        "the proxy forwarded baggage tenant=acme,antecede-last=gateway%3Ademo%3A1",
        "worker sent worker:demo:1 after gateway:demo:1",
        f"its span {spans[1]} links to {spans[0]}",
    ]


def test_trace_headers_keep_what_is_not_ours() -> None:
    found = example("context_with_traces.py")
    stamp = MessageContext("abc", ())
    given = "x=1;p=2, antecede-last=old ,y=2"
    assert found["to_baggage"](given, stamp) == "x=1;p=2,y=2,antecede-last=abc"
    assert found["from_baggage"]("x=1, antecede-last = a%3A1;p=2") == CausalContext(("a:1",))
    assert found["from_baggage"]("x=1") == CausalContext()
    with pytest.raises(DecodeError):
        found["from_baggage"]("antecede-last=a%2Cb")
    for wrong in ("", "00-" + "0" * 32 + "-" + "1" * 16 + "-01", "01-" + "1" * 32 + "-1-01"):
        with pytest.raises(DecodeError):
            found["span_of"](stamp, wrong)
