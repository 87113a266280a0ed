"""A site handed out by this machine to its own browser.

Bound to the loopback interface alone. Two more locks, since any page in the browser can send
requests there: the address holds a random word that only whoever started the server knows, and a
request must name this very host and port (a name that someone else's server resolves to 127.0.0.1
does not). A site that takes in something is asked by POST alone, of which two more things are
wanted: JSON by its type, which no form can send, and no other origin than the site's own.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import parse_qs

from antecede.errors import InputError

HOST: Final = "127.0.0.1"
MOST_BYTES: Final = 256 * 1024
"""That a request may carry."""
JSON: Final = "application/json"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class Answer(NamedTuple):
    """What is sent back."""

    status: int
    kind: str
    body: bytes
    headers: Mapping[str, str] = {}


def plain(status: int, text: str) -> Answer:
    """Return an answer in words."""
    return Answer(status, "text/plain", text.encode())


NOTHING: Final = plain(404, "there is nothing of that name")


class Site(Protocol):
    """What is handed out; called from several threads."""

    def got(self, path: str, asked: Mapping[str, str]) -> Answer:
        """Answer a GET of a path behind the word."""

    def posted(self, path: str, body: bytes) -> Answer:
        """Answer a POST of JSON."""


class Guarded:
    """A server of one site; `url` is where. Raises InputError where the port cannot be had."""

    def __init__(self, site: Site, port: int = 0) -> None:
        word = secrets.token_urlsafe(16)
        try:
            self._server = _Server((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(f"port {port} cannot be had: {error}") from error
        self._server.site, self._server.word = site, word
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
    site: Site
    word: str
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong, unless it is that the browser has gone."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        """Answer the page, or what it asks for."""
        path = self._path()
        if path is not None:
            asked = parse_qs(self.path.partition("#")[0].partition("?")[2])
            self._answer(self.server.site.got(path, {key: of[-1] for key, of in asked.items()}))

    def do_POST(self) -> None:
        """Answer what the page says."""
        path = self._path()
        if path is None:
            return
        refusal = self._refusal()
        if refusal is not None:
            self.close_connection = True  # what it carries is not read
            self._answer(refusal)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(self.server.site.posted(path, body))

    def _names(self) -> set[str]:
        return {f"{name}:{self.server.server_address[1]}" for name in (HOST, "localhost")}

    def _path(self) -> str | None:
        """Return the path behind the word; None: it is refused already."""
        refusal = None
        path = self.path.partition("#")[0].partition("?")[0]
        first, _, rest = path.removeprefix("/").partition("/")
        if self.headers.get("Host") not in self._names():
            refusal = plain(403, "this server answers its own name alone")
        elif not secrets.compare_digest(first.encode(), self.server.word.encode()):
            refusal = plain(404, "the address is not the one that was printed")
        if refusal is None:
            return rest
        self.close_connection = True
        self._answer(refusal)
        return None

    def _refusal(self) -> Answer | None:
        """Return why a POST is not looked at; None: it is."""
        origin = self.headers.get("Origin")
        if origin is not None and origin not in {f"http://{name}" for name in self._names()}:
            return plain(403, "this server answers its own page alone")
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            return plain(415, f"what is sent has to be {JSON}")
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            return plain(411, "say how long it is")
        if len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            return plain(413, f"more than {MOST_BYTES:,} bytes at once are not taken")
        return None

    def _answer(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", f"{answer.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(answer.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in {**_HEADERS, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal belongs to the command."""
