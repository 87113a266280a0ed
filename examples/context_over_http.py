"""Causes over HTTP, with the standard library: `python examples/context_over_http.py`.

A shop calls a stock and a till, servers with one thread per request, and then sends a receipt.
Requests and replies carry causal contexts, so later messages of the shop follow those of the
servers.
"""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from antecede.core.propagation import ContextPropagator, MessageContext, read


def handler(propagator: ContextPropagator) -> type[BaseHTTPRequestHandler]:
    """Return a request handler of the service with this context propagator."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with propagator.handle(self.headers):
                self.send_response(200)
                for name, value in propagator.make_headers({"Content-Length": "0"}).items():
                    self.send_header(name, value)
                self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler


@contextmanager
def run_server(propagator: ContextPropagator) -> Iterator[str]:
    """Run a service on loopback; yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(propagator))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(propagator: ContextPropagator, address: str) -> tuple[MessageContext, MessageContext]:
    """Send a request, and merge the context of its reply; return both stamps."""
    headers = propagator.make_headers({"Accept": "*/*"})
    request = urllib.request.Request(address, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        answer = propagator.receive(response.headers)
    asked = read(headers)
    assert asked is not None
    assert answer is not None
    return asked, answer


def main() -> list[MessageContext]:
    """Return the stamps of two requests, their replies, and a receipt."""
    shop, stock, till = (
        ContextPropagator(name, incarnation="demo") for name in ("shop", "stock", "till")
    )
    with run_server(stock) as stock_at, run_server(till) as till_at, shop.begin():
        reserved = ask(shop, stock_at)
        paid = ask(shop, till_at)
        receipt = shop.create_message()
    return [*reserved, *paid, receipt]


if __name__ == "__main__":
    for sent in main():
        print(sent.id, "after", ", ".join(sent.causes) or "nothing")
