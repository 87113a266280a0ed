"""A peer's address for those who look from outside: /status, /metrics, /healthz.

Whoever reaches it sees names and addresses of the members, and no message. It listens where it is
told to; on loopback it is for this machine alone. Pages of others that a browser shows do not get
at it by a name of theirs: it answers to addresses, localhost and its own name alone.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from antecede.live.http_server import Answer, HttpServer, Refused, Request, as_json, check_host
from antecede.live.metrics import KIND, exposition
from antecede.live.status import Status, status_to_json

PATHS = "/status", "/metrics", "/healthz"


class StatusRoutes:
    """Answers with what `look` returns."""

    def __init__(self, look: Callable[[], Status]) -> None:
        self._look = look
        self._server = HttpServer(self._answer)
        self._name = ""

    async def open(self, host: str, port: int) -> int:
        """Listen from now on; returns the port. Raises OSError where that cannot be."""
        self._name = host
        return await self._server.open(host, port)

    def close(self) -> None:
        """Answer no more."""
        self._server.close()

    async def _answer(self, request: Request) -> Answer:
        check_host(request, [self._name])
        if request.path not in PATHS:
            raise Refused(HTTPStatus.NOT_FOUND, f"there are {', '.join(PATHS)}")
        if request.method not in ("GET", "HEAD"):
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "this is to look at: GET")
        status = self._look()
        if request.path == "/status":
            return as_json(status_to_json(status))
        if request.path == "/metrics":
            return Answer(exposition(status), KIND)
        if status.is_healthy:
            return Answer(b"well\n")
        return Answer(
            f"{status.unhealthy_reason}\n".encode(), status=HTTPStatus.SERVICE_UNAVAILABLE
        )
