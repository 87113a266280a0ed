"""A page handed out by this machine to its own browser: for traces that grow, or fit no one file.

Bound to the loopback interface alone. Two more locks, since any page in the browser can send
requests there: the address holds a random word that only whoever started the server knows, and a
request must name this very host and port (a name that someone else's server resolves to 127.0.0.1
does not). Nothing is ever written or run by a request.
"""

from __future__ import annotations

import secrets
import sys
import zlib
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, urlsplit

from antecede.errors import AntecedeError, InputError
from antecede.view.writing import served_page

HOST: Final = "127.0.0.1"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class Source(Protocol):
    """Where a served page has its data from; called from several threads."""

    @property
    def title(self) -> str:
        """What the page is called."""

    @property
    def grows(self) -> bool:
        """Whether the page should ask again and again."""

    def version(self) -> str:
        """Return a text that changes when there is something new."""

    def block(self, asked: Mapping[str, str]) -> bytes:
        """Return a picture's bytes (`antecede.view.packing`). Raises AntecedeError."""


class Serving:
    """A server of one page; `url` is where. Raises InputError where the port cannot be had."""

    def __init__(self, source: Source, port: int = 0) -> None:
        word = secrets.token_urlsafe(16)
        try:
            self._server = _Server((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(f"port {port} cannot be had: {error}") from error
        self._server.source, self._server.word = source, word
        self.port = int(self._server.server_address[1])
        self.url = f"http://{HOST}:{self.port}/{word}/"

    def serve(self) -> None:
        """Answer requests until `close` is called from elsewhere, or the user interrupts."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop, and give the port back."""
        self._server.shutdown()
        self._server.server_close()

    def given_up(self) -> None:
        """Give the port back of a server that serves no more."""
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    source: Source
    word: str
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a page that was closed or reloaded while it was answered."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        """Answer the page, its data, or what version they are of."""
        known = {f"{name}:{self.server.server_address[1]}" for name in (HOST, "localhost")}
        if self.headers.get("Host") not in known:
            self._answer(403, "text/plain", b"this server answers its own name alone")
            return
        asked = urlsplit(self.path)
        first, _, rest = asked.path.removeprefix("/").partition("/")
        if not secrets.compare_digest(first.encode(), self.server.word.encode()):
            self._answer(404, "text/plain", b"the address is not the one that was printed")
            return
        try:
            self._found(rest, {key: of[-1] for key, of in parse_qs(asked.query).items()})
        except AntecedeError as error:
            self._answer(422, "text/plain", str(error).encode())

    def _found(self, path: str, asked: Mapping[str, str]) -> None:
        if path == "":
            text = served_page(self.server.source.title, "data", grows=self.server.source.grows)
            self._answer(200, "text/html", text.encode())
        elif path == "version":
            self._answer(200, "text/plain", self.server.source.version().encode())
        elif path == "data":
            version = self.server.source.version()  # before it is read: what comes after is new
            body = zlib.compress(self.server.source.block(asked), 1)
            more = {"Content-Encoding": "deflate", "X-Trace-Version": version}
            self._answer(200, "application/octet-stream", body, more)
        else:
            self._answer(404, "text/plain", b"there is nothing of that name")

    def _answer(
        self, status: int, kind: str, body: bytes, more: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in {**_HEADERS, **(more or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal belongs to the command."""
