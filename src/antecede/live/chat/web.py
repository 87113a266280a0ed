"""Browser page of the chat: the page, events, and input.

The page acts for the member, so only its owner may open it. It has a random path, listens on
loopback unless told otherwise, and accepts requests only from itself (Host, Origin,
Sec-Fetch-Site). It loads nothing from other sites and runs only its own script
(Content-Security-Policy). Texts of other members arrive as JSON and are inserted as text, not as
markup.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from importlib.resources import files
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Final

from antecede.errors import LocalError, PeerError
from antecede.live.chat.drawing import describe_held
from antecede.live.chat.room import HeldPost, Post, Room
from antecede.live.chat.session import Chat, HeldNotice, News, Notice, Posted, RoomChanged
from antecede.live.chat.words import name_of, one_line, sanitize
from antecede.live.drivers.addresses import find_reachable_host, join_address, split_address
from antecede.live.http_server import (
    HTML,
    HttpResponse,
    HttpServer,
    Refused,
    Request,
    as_json,
    check_host,
)

HERE: Final = "127.0.0.1:0"
ALIVE_S: Final = 15.0
"""Interval of keep-alive comments to a browser."""
MOST_NEWS: Final = 1000
"""Events queued for a browser, at most; beyond, it must reconnect."""
EVENTS: Final = "text/event-stream"


def check_address(place: str, *, for_others: bool) -> tuple[str, int]:
    """Return host and port of the page. Raises LocalError for a public one."""
    host, port = split_address(place)
    if not (for_others or _is_loopback(host)):
        raise LocalError(
            f"--web {place}: other machines could read and write as you at {host}; give "
            "127.0.0.1:PORT, or --web-public too"
        )
    return host, port


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Page:
    """Server of one chat's page; an asynchronous context manager."""

    def __init__(self, chat: Chat, host: str, port: int) -> None:
        self._chat, self._host, self._port = chat, host, port
        self._token = secrets.token_urlsafe(24)
        self._server = HttpServer(self._answer)
        self._page, self._policy = _page()
        self.url = ""

    async def __aenter__(self) -> Page:
        try:
            port = await self._server.open(self._host, self._port)
        except OSError as error:
            where = join_address(self._host, self._port)
            raise PeerError(f"cannot serve the page at {where}: {error}") from error
        self.url = f"http://{join_address(find_reachable_host(self._host), port)}/{self._token}/"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()

    # -- requests ----------------------------------------------------------------------------------

    async def _answer(self, request: Request) -> HttpResponse:
        check_host(request, [self._host])
        what = self._path(request)
        self._check_origin(request)
        if what in ("say", "ask"):
            if request.method != "POST":
                raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "use POST")
            return await self._run_request(what, _body(request))
        if request.method not in ("GET", "HEAD"):
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "use GET")
        if what == "events":
            return HttpResponse(self._news(), EVENTS)
        return HttpResponse(self._page, HTML, headers={"content-security-policy": self._policy})

    def _path(self, request: Request) -> str:
        """Return the requested resource. Raises Refused for a wrong path."""
        _, token, *rest = f"{request.path}/".split("/")
        known = hmac.compare_digest(token.encode(), self._token.encode())
        what = rest[0] if rest else ""
        if not known or what not in ("", "events", "say", "ask") or not request.headers.get("host"):
            raise Refused(HTTPStatus.NOT_FOUND, "unknown path")
        return what

    def _check_origin(self, request: Request) -> None:
        origin = request.headers.get("origin")
        ours = f"http://{request.headers['host']}"
        site = request.headers.get("sec-fetch-site", "same-origin")
        if origin not in (None, ours) or site not in ("same-origin", "none"):
            raise Refused(HTTPStatus.FORBIDDEN, "requests of other pages are rejected")
        if request.method == "POST" and origin is None:
            raise Refused(HTTPStatus.FORBIDDEN, "the header Origin is missing")

    async def _run_request(self, what: str, body: dict[str, Any]) -> HttpResponse:
        if what == "ask":
            return as_json({"told": self._chat.request_missing()})
        text, number = body.get("text"), body.get("answers")
        if not isinstance(text, str) or type(number) not in (int, type(None)):
            raise Refused(
                HTTPStatus.BAD_REQUEST, "invalid body; expected text and the number of its parent"
            )
        try:
            post = await self._chat.say(text, number)
        except (LocalError, PeerError) as error:
            return as_json({"error": str(error)}, HTTPStatus.UNPROCESSABLE_ENTITY)
        return as_json({"number": post.number})

    # -- events ------------------------------------------------------------------------------------

    async def _news(self) -> AsyncIterator[bytes]:
        """Yield the room, then events, as server-sent events."""
        queue: asyncio.Queue[News | None] = asyncio.Queue()

        def take(news: News) -> None:
            if queue.qsize() < MOST_NEWS:
                queue.put_nowait(news)
            elif queue.qsize() == MOST_NEWS:
                queue.put_nowait(None)

        room = self._chat.room
        detach = self._chat.attach(take)
        try:
            yield b"retry: 1000\n\n" + _event("room", whole(room))
            while True:
                try:
                    news = await asyncio.wait_for(queue.get(), ALIVE_S)
                except TimeoutError:
                    yield b": alive\n\n"
                    continue
                if news is None:
                    return
                yield _encode_event(room, news)
        finally:
            detach()


def _encode_event(room: Room, news: News) -> bytes:
    match news:
        case Posted(post):
            return _event("said", plain(room, post))
        case Notice(text):
            return _event("notice", text)
        case HeldNotice() | RoomChanged():
            return _event("changed", {"members": _members(room), "held": _encode_held(room)})


def whole(room: Room) -> dict[str, Any]:
    """Return the room as JSON values."""
    return {
        "room": one_line(room.name),
        "me": room.me,
        "posts": [plain(room, post) for post in room.posts.values()],
        "members": _members(room),
        "held": _encode_held(room),
    }


def plain(room: Room, post: Post) -> dict[str, Any]:
    """Return a message as JSON values."""
    parent = room.parent(post)
    unknown = post.parent if parent is None else None
    return {
        "number": post.number,
        "sender": one_line(post.sender),
        "text": sanitize(post.text),
        "parent": None if parent is None else parent.number,
        "unknown": None if unknown is None else {"id": str(unknown), "of": name_of(unknown.sender)},
        "lost": post.lost,
        "mine": post.mine,
        "earlier": post.earlier,
        "at": post.at_s,
        "waited": round(post.waited_s, 3),
    }


def _members(room: Room) -> list[dict[str, Any]]:
    return [{"name": one_line(one.name), "here": one.here, "me": one.me} for one in room.members]


def _encode_held(room: Room) -> list[dict[str, Any]]:
    now_s = time.monotonic()
    return [_encode_wait(one, now_s) for one in room.held]


def _encode_wait(one: HeldPost, now_s: float) -> dict[str, Any]:
    return {"text": describe_held(one), "for": round(now_s - one.since_s, 1)}


def _event(kind: str, data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def _body(request: Request) -> dict[str, Any]:
    """Return the JSON body of a request; other pages cannot send this type without a preflight."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    try:
        body = json.loads(request.body) if kind == "application/json" else None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refused(HTTPStatus.BAD_REQUEST, "invalid body; expected a JSON object")
    return body


def _page() -> tuple[bytes, str]:
    """Return the page and its Content-Security-Policy, which allows only its own script and style
    by hash.
    """
    text = files("antecede.live.chat").joinpath("page.html").read_text(encoding="utf-8")
    hashes = {
        tag: " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'"
            for one in re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        )
        for tag in ("script", "style")
    }
    policy = (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return text.encode(), policy
