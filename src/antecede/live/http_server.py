"""HTTP server in the loop of a peer, for status, metrics and the chat page.

h11 parses HTTP. A connection has one request. Requests beyond a limit of size, time or number are
rejected, so that clients cannot block the peer.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from antecede.errors import MissingExtraError

try:
    import h11
except ImportError as error:
    raise MissingExtraError("status and pages of live peers", "live") from error

MAX_HEAD: Final = 16 << 10
MAX_BODY: Final = 1 << 20
MAX_CONNECTIONS: Final = 64
REQUEST_S: Final = 5.0
WRITE_S: Final = 20.0
TEXT, JSON, HTML = "text/plain; charset=utf-8", "application/json", "text/html; charset=utf-8"
COMMON = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
}


class Request(NamedTuple):
    """Parsed request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


class HttpResponse(NamedTuple):
    """Response, whole or in parts."""

    body: bytes | AsyncIterator[bytes]
    kind: str = TEXT
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = {}


Handler = Callable[[Request], Awaitable[HttpResponse]]


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """Rejected request: a status and a text."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


def as_json(value: Any, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    """Return a JSON response."""
    return HttpResponse(json.dumps(value, ensure_ascii=False).encode(), JSON, status)


def check_host(request: Request, names: Collection[str] = ()) -> None:
    """Reject a request to a foreign host name. A foreign page can point its name at this address
    (DNS rebinding) and read the responses in a browser. Its requests then have that name as Host.
    Accepted are addresses, localhost and `names`. A request without Host (HTTP/1.0) does not come
    from a browser.
    """
    given = request.headers.get("host")
    if given is None or host_of(given) in {"localhost", *(name.lower() for name in names)}:
        return
    try:
        ipaddress.ip_address(host_of(given))
    except ValueError as error:
        raise Refused(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"unknown host {given!r:.80}; use an address, localhost, or the name of the "
            "listening address",
        ) from error


def host_of(text: str) -> str:
    """Return the host of HOST, HOST:PORT or [IPv6]:PORT in lower case."""
    host, colon, port = text.strip().lower().rpartition(":")
    if not colon or not port.isdecimal() or (":" in host and not host.startswith("[")):
        host = text.strip().lower()
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


class HttpServer:
    """Server that answers requests with a handler, which may raise Refused."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], _Exchange] = {}
        """Connections, oldest first."""

    async def open(self, host: str, port: int) -> int:
        """Listen; return the port. Raises OSError."""
        self._server = await asyncio.start_server(
            self._handle_connection, host, port, limit=MAX_HEAD
        )
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening and close the open connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._open):
            task.cancel()

    async def _handle_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        too_many = len(self._open) >= MAX_CONNECTIONS and not self._end_idle()
        exchange = self._open[task] = _Exchange(reader, writer, self._handler, too_many)
        try:
            await exchange.run()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client has disconnected or is too slow
        except asyncio.CancelledError:
            pass  # by `close`, or for a newer connection; asyncio would log a failure
        finally:
            self._open.pop(task, None)
            with contextlib.suppress(OSError):
                writer.transport.abort() if writer.is_closing() else writer.close()

    def _end_idle(self) -> bool:
        """Close the oldest connection without a complete request. False: none. So idle connections
        do not block others.
        """
        for task, exchange in self._open.items():
            if exchange.is_idle:
                del self._open[task]
                task.cancel()
                return True
        return False


class _Exchange:
    """Connection with one request and one response."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handler: Handler,
        too_many: bool,
    ) -> None:
        self._reader, self._writer, self._handler = reader, writer, handler
        self._too_many = too_many
        self.is_idle = not too_many
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)

    async def run(self) -> None:
        """Read the request and write the response."""
        head = ""
        try:
            if self._too_many:
                raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")
            async with asyncio.timeout(REQUEST_S):
                request = await self._request()
            self.is_idle = False
            head = request.method
            answer = await self._handler(request)
        except Refused as refused:
            self.is_idle = False
            answer = HttpResponse(f"{refused}\n".encode(), TEXT, refused.status)
        except TimeoutError:
            answer = HttpResponse(
                b"the request came too slowly\n", TEXT, HTTPStatus.REQUEST_TIMEOUT
            )
        except h11.RemoteProtocolError as error:
            status = HTTPStatus(error.error_status_hint)
            answer = HttpResponse(f"invalid request: {error}\n".encode(), TEXT, status)
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self._answer(answer, bare=head == "HEAD")

    async def _request(self) -> Request:
        start, body = None, bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(1 << 14))
            elif isinstance(event, h11.Request):
                start = event
                if self._http.they_are_waiting_for_100_continue:
                    await self._send(h11.InformationalResponse(status_code=100, headers=[]))
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > MAX_BODY:
                    raise Refused(
                        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body exceeds {MAX_BODY} bytes"
                    )
            elif isinstance(event, h11.EndOfMessage) and start is not None:
                return _request(start, bytes(body))
            else:
                raise ConnectionResetError

    async def _answer(self, answer: HttpResponse, *, bare: bool) -> None:
        headers = {"content-type": answer.kind, "connection": "close", **COMMON, **answer.headers}
        whole = answer.body if isinstance(answer.body, bytes) else None
        if whole is not None:
            headers["content-length"] = str(len(whole))
        fields = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self._send(h11.Response(status_code=answer.status, headers=fields))
        if not bare and whole is not None:
            await self._send(h11.Data(data=whole))
        elif not bare and not isinstance(answer.body, bytes):
            await self._pieces(answer.body)
        await self._send(h11.EndOfMessage())

    async def _pieces(self, pieces: AsyncIterator[bytes]) -> None:
        tasks = {gone := asyncio.ensure_future(self._reader.read())}
        try:
            while True:
                tasks = {gone, following := asyncio.ensure_future(anext(pieces))}
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    raise ConnectionResetError
                await self._send(h11.Data(data=following.result()))
        except StopAsyncIteration:
            return
        finally:
            for task in tasks:
                task.cancel()

    async def _send(self, event: Any) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)
            async with asyncio.timeout(WRITE_S):
                await self._writer.drain()


def _request(start: h11.Request, body: bytes) -> Request:
    try:
        parts = urlsplit(start.target.decode("ascii"))
        query = dict(parse_qsl(parts.query, max_num_fields=50))
    except ValueError as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "invalid request target") from error
    headers = {
        name.decode("ascii", "replace"): value.decode("latin-1") for name, value in start.headers
    }
    return Request(start.method.decode("ascii", "replace"), parts.path, query, headers, body)
