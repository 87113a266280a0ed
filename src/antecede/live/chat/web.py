"""The chat as a page for one's own browser: the page itself, news as they come, words to say.

The page speaks for the member, so only its owner may have it: it is at a path that was drawn at
random, on loopback unless somebody asks for more, and what is asked of it must come from the page
itself (Host, Origin, what the browser says of the origin). The page loads nothing from elsewhere
and runs no script but its own (Content-Security-Policy); words of others reach it as JSON and
become text, never markup.
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
from antecede.live.chat.drawing import held
from antecede.live.chat.room import Post, Room, Waiting
from antecede.live.chat.session import Changed, Chat, Held, News, Notice, Said
from antecede.live.chat.words import harmless, name_of, one_line
from antecede.live.drivers.addresses import joined_address, reached_at, split_address
from antecede.live.http_server import (
    HTML,
    Answer,
    HttpServer,
    Refused,
    Request,
    as_json,
    check_host,
)

HERE: Final = "127.0.0.1:0"
ALIVE_S: Final = 15.0
"""So often a browser is told that one is there, when nothing happens."""
MOST_NEWS: Final = 1000
"""News that wait for a browser: with more it is sent away, and begins anew."""
EVENTS: Final = "text/event-stream"


def checked_place(place: str, *, for_others: bool) -> tuple[str, int]:
    """Return host and port of the page. Raises LocalError for one that other machines reach."""
    host, port = split_address(place)
    if not (for_others or _is_loopback(host)):
        raise LocalError(
            f"--web {place}: the page speaks for you, and at {host} other machines reach it. Give "
            "127.0.0.1:PORT, or --web-public too"
        )
    return host, port


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Page:
    """Serves the page of one chat; an asynchronous context manager."""

    def __init__(self, chat: Chat, host: str, port: int) -> None:
        self._chat, self._host, self._port = chat, host, port
        self._token = secrets.token_urlsafe(24)
        self._server = HttpServer(self._answer)
        self._page, self._policy = _page()
        self.url = ""
        """Where the page is, with what only its owner knows."""

    async def __aenter__(self) -> Page:
        """Listen. Raises PeerError where that cannot be."""
        try:
            port = await self._server.open(self._host, self._port)
        except OSError as error:
            where = joined_address(self._host, self._port)
            raise PeerError(f"the page cannot be served at {where}: {error}") from error
        self.url = f"http://{joined_address(reached_at(self._host), port)}/{self._token}/"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Serve no more."""
        self._server.close()

    # -- what is asked -----------------------------------------------------------------------------

    async def _answer(self, request: Request) -> Answer:
        check_host(request, [self._host])
        what = self._path(request)
        self._check_origin(request)
        if what in ("say", "ask"):
            if request.method != "POST":
                raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "words are sent by POST")
            return await self._asked(what, _body(request))
        if request.method not in ("GET", "HEAD"):
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "this is to look at: GET")
        if what == "events":
            return Answer(self._news(), EVENTS)
        return Answer(self._page, HTML, headers={"content-security-policy": self._policy})

    def _path(self, request: Request) -> str:
        """Return what is asked for. Refuses whoever does not know the path."""
        _, token, *rest = f"{request.path}/".split("/")
        known = hmac.compare_digest(token.encode(), self._token.encode())
        what = rest[0] if rest else ""
        if not known or what not in ("", "events", "say", "ask") or not request.headers.get("host"):
            raise Refused(HTTPStatus.NOT_FOUND, "there is nothing here")
        return what

    def _check_origin(self, request: Request) -> None:
        """Refuse what a page of others asks of us."""
        origin = request.headers.get("origin")
        ours = f"http://{request.headers['host']}"
        site = request.headers.get("sec-fetch-site", "same-origin")
        if origin not in (None, ours) or site not in ("same-origin", "none"):
            raise Refused(HTTPStatus.FORBIDDEN, "this is for its own page alone")
        if request.method == "POST" and origin is None:
            raise Refused(HTTPStatus.FORBIDDEN, "who sends words says where from (Origin)")

    async def _asked(self, what: str, body: dict[str, Any]) -> Answer:
        if what == "ask":
            return as_json({"told": self._chat.ask()})
        text, number = body.get("text"), body.get("answers")
        if not isinstance(text, str) or type(number) not in (int, type(None)):
            raise Refused(HTTPStatus.BAD_REQUEST, "words are a text, and the number they answer")
        try:
            post = await self._chat.say(text, number)
        except (LocalError, PeerError) as error:
            return as_json({"error": str(error)}, HTTPStatus.UNPROCESSABLE_ENTITY)
        return as_json({"number": post.number})

    # -- news --------------------------------------------------------------------------------------

    async def _news(self) -> AsyncIterator[bytes]:
        """Yield the whole room, then what happens, as server-sent events."""
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
                yield _told(room, news)
        finally:
            detach()


def _told(room: Room, news: News) -> bytes:
    match news:
        case Said(post):
            return _event("said", plain(room, post))
        case Notice(text):
            return _event("notice", text)
        case Held() | Changed():
            return _event("changed", {"members": _members(room), "held": _held(room)})


def whole(room: Room) -> dict[str, Any]:
    """Return the room as what JSON can say."""
    return {
        "room": one_line(room.name),
        "me": room.me,
        "posts": [plain(room, post) for post in room.posts.values()],
        "members": _members(room),
        "held": _held(room),
    }


def plain(room: Room, post: Post) -> dict[str, Any]:
    """Return a message as what JSON can say."""
    parent = room.parent(post)
    unknown = post.parent if parent is None else None
    return {
        "number": post.number,
        "sender": one_line(post.sender),
        "text": harmless(post.text),
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


def _held(room: Room) -> list[dict[str, Any]]:
    now_s = time.monotonic()
    return [_waiting(one, now_s) for one in room.held]


def _waiting(one: Waiting, now_s: float) -> dict[str, Any]:
    return {"text": held(one), "for": round(now_s - one.since_s, 1)}


def _event(kind: str, data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


def _body(request: Request) -> dict[str, Any]:
    """Return what is sent; a form of another page cannot send this kind without asking first."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    try:
        body = json.loads(request.body) if kind == "application/json" else None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refused(HTTPStatus.BAD_REQUEST, "words are sent as an object in JSON")
    return body


def _page() -> tuple[bytes, str]:
    """Return the page, and the policy under which a browser shows it: its own script and style,
    known by their hashes, and talk with where it came from.
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
