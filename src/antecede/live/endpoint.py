"""HTTP routes of a peer's status: /status, /metrics, /healthz.

A client sees names and addresses of the members, and no messages. On loopback only this machine can
connect. The server answers to addresses, localhost and its own host name. So web pages cannot reach
it by DNS rebinding.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from antecede.live.http_server import (
    HttpResponse,
    HttpServer,
    Refused,
    Request,
    as_json,
    check_host,
)
from antecede.live.metrics import KIND, exposition
from antecede.live.status import Status, status_to_json

PATHS = "/status", "/metrics", "/healthz"


class StatusRoutes:
    """Routes that answer with the status that `look` returns."""

    def __init__(self, look: Callable[[], Status]) -> None:
        self._look = look
        self._server = HttpServer(self._answer)
        self._name = ""

    async def open(self, host: str, port: int) -> int:
        """Listen; return the port. Raises OSError."""
        self._name = host
        return await self._server.open(host, port)

    def close(self) -> None:
        """Stop listening."""
        self._server.close()

    async def _answer(self, request: Request) -> HttpResponse:
        check_host(request, [self._name])
        if request.path not in PATHS:
            raise Refused(HTTPStatus.NOT_FOUND, f"unknown path; choose from {', '.join(PATHS)}")
        if request.method not in ("GET", "HEAD"):
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "use GET")
        status = self._look()
        if request.path == "/status":
            return as_json(status_to_json(status))
        if request.path == "/metrics":
            return HttpResponse(exposition(status), KIND)
        if status.is_healthy:
            return HttpResponse(b"healthy\n")
        return HttpResponse(
            f"{status.unhealthy_reason}\n".encode(), status=HTTPStatus.SERVICE_UNAVAILABLE
        )
