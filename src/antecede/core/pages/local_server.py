"""HTTP server for the browser of this machine.

It listens on the loopback interface only. Any page in the browser can send requests there, so:

- The URL contains a random token, known only to the process that started the server.
- The Host header must name this host and port. So a foreign name that resolves to 127.0.0.1 fails.
- Changes are POST requests with content type JSON, which no form can send, and from this origin.
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
JSON: Final = "application/json"
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class Answer(NamedTuple):
    """HTTP response."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = {}


def plain(status: int, text: str) -> Answer:
    """Return a text response."""
    return Answer(status, "text/plain", text.encode())


NOTHING: Final = plain(404, "not found")


class Site(Protocol):
    """Handler of requests; called from several threads."""

    def get(self, path: str, query: Mapping[str, str]) -> Answer:
        """Return the response to a GET. `path` is the part after the token."""

    def post(self, path: str, body: bytes) -> Answer:
        """Return the response to a POST of JSON."""


class LocalServer:
    """Server of one site at `url`. Raises InputError if the port is not available."""

    def __init__(self, site: Site, port: int = 0) -> None:
        word = secrets.token_urlsafe(16)
        try:
            self._server = _Server((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(f"port {port} is not available: {error}") from error
        self._server.site, self._server.token = site, word
        self.port = int(self._server.server_address[1])
        self.url = f"http://{HOST}:{self.port}/{word}/"

    def serve(self) -> None:
        """Serve until `close` is called from another thread, or Ctrl-C."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop serving and release the port."""
        self._server.shutdown()
        self._server.server_close()

    def release_port(self) -> None:
        """Release the port of a server that has stopped serving."""
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    site: Site
    token: str
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print the error, unless the browser disconnected."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        path = self._check_path()
        if path is not None:
            query = parse_qs(self.path.partition("#")[0].partition("?")[2])
            self._respond(
                self.server.site.get(path, {key: values[-1] for key, values in query.items()})
            )

    def do_POST(self) -> None:
        path = self._check_path()
        if path is None:
            return
        refusal = self._check_post()
        if refusal is not None:
            self.close_connection = True  # the body is not read
            self._respond(refusal)
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._respond(self.server.site.post(path, body))

    def _list_own_hosts(self) -> set[str]:
        return {f"{name}:{self.server.server_address[1]}" for name in (HOST, "localhost")}

    def _check_path(self) -> str | None:
        """Return the path after the token; None: the request was rejected."""
        refusal = None
        path = self.path.partition("#")[0].partition("?")[0]
        first, _, rest = path.removeprefix("/").partition("/")
        if self.headers.get("Host") not in self._list_own_hosts():
            refusal = plain(403, "unexpected Host header; use the printed address")
        elif not secrets.compare_digest(first.encode(), self.server.token.encode()):
            refusal = plain(404, "unknown address; use the printed one")
        if refusal is None:
            return rest
        self.close_connection = True
        self._respond(refusal)
        return None

    def _check_post(self) -> Answer | None:
        """Return the rejection of a POST; None: it is valid."""
        origin = self.headers.get("Origin")
        if origin is not None and origin not in {
            f"http://{name}" for name in self._list_own_hosts()
        }:
            return plain(403, "requests from another origin are rejected")
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            return plain(415, f"expected content type {JSON}")
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            return plain(411, "expected a Content-Length header")
        if len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            return plain(413, f"body exceeds {MOST_BYTES:,} bytes")
        return None

    def _respond(self, response: Answer) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", f"{response.content_type}; charset=utf-8")
        self.send_header("Content-Length", str(len(response.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in {**_HEADERS, **response.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the terminal belongs to the command."""
