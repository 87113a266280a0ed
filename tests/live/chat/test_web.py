"""What the page's server answers, and to whom: one's own page alone."""

from __future__ import annotations

import asyncio
import json
import re
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from antecede.errors import LocalError, PeerError
from antecede.live.chat import web
from antecede.live.chat.session import Notice
from antecede.live.chat.web import Page, check_address
from tests.live.chat.people import People, people
from tests.live.loops import until
from tests.live.peer_control import count_views, find_server


async def asked(
    url: str, what: str = "", method: str = "GET", body: Any = None, **headers: str
) -> tuple[int, str, dict[str, str]]:
    """Ask as a browser would that shows the page; headers given stand for its own."""
    parts = urlsplit(url)
    own = {"origin": f"http://{parts.netloc}", "content-type": "application/json"}
    sent = {
        **(own if method == "POST" else {}),
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }

    def ask() -> tuple[int, str, dict[str, str]]:
        connection = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=10)
        try:
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(
                method, parts.path + what, data, {k: v for k, v in sent.items() if v}
            )
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, answer.read().decode(), names
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


def url_of(room: People) -> str:
    return room.pages["alice"].url


async def test_the_page_is_whole_and_says_what_may_run() -> None:
    async with people("alice", page=True) as room:
        code, text, headers = await asked(url_of(room))
        assert (code, headers["content-type"]) == (200, "text/html; charset=utf-8")
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert not re.search(r"(src|href)=[\"']?(?!data:,)[a-z]+:", text)
        assert "//" not in text.replace("// ", "")
        assert "alice" not in text


async def test_words_are_said_and_wrong_ones_are_sentences() -> None:
    async with people("alice", page=True) as room:
        url = url_of(room)
        code, text, _ = await asked(url, "say", "POST", {"text": "lunch?", "answers": None})
        assert (code, json.loads(text)) == (200, {"number": 1})
        code, text, _ = await asked(url, "say", "POST", {"text": "yes", "answers": 1})
        assert (code, json.loads(text)) == (200, {"number": 2})
        posts = list(room["alice"].room.posts.values())
        assert posts[1].parent == posts[0].id
        wrong: list[tuple[Any, int, str]] = [
            ({"text": "x", "answers": 7}, 422, "no message 7"),
            ({"text": "x" * 70_000}, 422, "the limit is 65,536"),
            ({"text": 5}, 400, "invalid body; expected text"),
            ({"text": "x", "answers": True}, 400, "invalid body; expected text"),
            ({"text": "x", "answers": "1"}, 400, "invalid body; expected text"),
            ([], 400, "a JSON object"),
            (b"{", 400, "a JSON object"),
            (b"[" * 100_000, 400, "a JSON object"),
            (b"x" * (2 << 20), 413, "1048576 bytes"),
        ]
        for body, code, why in wrong:
            got, text, _ = await asked(url, "say", "POST", body)
            assert (got, why in text) == (code, True), text
        assert len(room["alice"].room.posts) == 2
        code, text, _ = await asked(url, "ask", "POST", {})
        assert (code, "no reply is held" in text) == (200, True)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({}, 200),
        ({"origin": ""}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "https://127.0.0.1"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "same-origin"}, 200),
        ({"content_type": "text/plain"}, 400),
        ({"content_type": "application/x-www-form-urlencoded"}, 400),
        ({"host": "evil.example", "origin": "http://evil.example"}, 421),
    ],
)
async def test_pages_of_others_say_nothing(more: dict[str, str], code: int) -> None:
    async with people("alice", page=True) as room:
        got, _, _ = await asked(url_of(room), "say", "POST", {"text": "x"}, **more)
        assert got == code
        assert len(room["alice"].room.posts) == (code == 200)


async def test_pages_of_others_read_nothing() -> None:
    async with people("alice", page=True) as room:
        url = url_of(room)
        for what in ("", "events"):
            for more in (
                {"host": "evil.example"},
                {"sec_fetch_site": "cross-site"},
                {"origin": "http://evil.example"},
            ):
                code, text, _ = await asked(url, what, **more)
                assert code in (403, 421)
                assert "alice" not in text


async def test_who_does_not_know_the_path_finds_nothing() -> None:
    async with people("alice", page=True) as room:
        url = url_of(room)
        root = url.rsplit("/", 2)[0] + "/"
        token = url.split("/")[3]
        assert len(token) >= 32
        wrong = (
            "",
            "events",
            "x/events",
            token[:-1] + "/",
            f"{token}x/",
            f"{token}/else",
            "%C3%A9/",
        )
        for path in wrong:
            code, text, _ = await asked(root, path)
            assert (code, text) == (404, "unknown path\n")
        assert (await asked(url, "say"))[0] == 405
        assert (await asked(url, "", "POST", {}))[0] == 405
        assert (await asked(url, "events", "DELETE"))[0] == 405


async def _events(url: str, count: int) -> list[tuple[str, Any]]:
    """Return the next so many events."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 22)
    try:
        writer.write(f"GET {parts.path}events HTTP/1.1\r\nhost: {parts.netloc}\r\n\r\n".encode())
        found: list[tuple[str, Any]] = []
        kind = ""
        while len(found) < count:
            line = (await reader.readline()).decode().strip()
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                found.append((kind, json.loads(line[6:])))
        return found
    finally:
        writer.close()


async def test_news_come_as_they_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "ALIVE_S", 0.05)
    async with people("alice", "bob", page=True) as room:
        await room["alice"].say("before\x1b[2J")
        news = asyncio.ensure_future(_events(url_of(room), 3))
        await until(lambda: count_views(room["alice"]) == 1)
        await asyncio.sleep(0.2)  # some signs of life
        await room["bob"].say("one line\nanother </script>")
        await until(lambda: len(room["alice"].room.posts) == 2)
        room["alice"].notify(Notice("told"))
        (first, whole), (second, said), (third, notice) = await news
        assert (first, second, third) == ("room", "said", "notice")
        assert whole["posts"][0]["text"] == "before␛[2J"
        assert [one["name"] for one in whole["members"]] == ["alice", "bob"]
        assert (said["sender"], said["text"]) == ("bob", "one line\nanother </script>")
        assert notice == "told"
        await until(lambda: not count_views(room["alice"]))


async def test_a_browser_that_takes_nothing_is_sent_away_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web, "MOST_NEWS", 3)
    async with people("alice", page=True) as room:
        parts = urlsplit(url_of(room))
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(f"GET {parts.path}events HTTP/1.1\r\nhost: {parts.netloc}\r\n\r\n".encode())
        await until(lambda: count_views(room["alice"]))
        for k in range(10):
            room["alice"].notify(Notice(f"{k}"))
        whole = (await reader.read()).decode()
        assert 'data: "2"' in whole
        assert 'data: "3"' not in whole
        writer.close()
        await until(lambda: not count_views(room["alice"]))


async def test_a_page_that_ends_while_somebody_looks_ends_quietly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with people("alice", page=True) as room:
        looking = asyncio.ensure_future(_events(url_of(room), 1))
        await looking
        parts = urlsplit(url_of(room))
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        writer.write(f"GET {parts.path}events HTTP/1.1\r\nhost: {parts.netloc}\r\n\r\n".encode())
        await reader.readuntil(b"event: room")
        find_server(room.pages["alice"]).close()
        await reader.read()
        writer.close()
    await asyncio.sleep(0.05)
    assert not [one for one in caplog.records if one.name == "asyncio"]


@pytest.mark.parametrize("place", ["127.0.0.1:0", "localhost:80", "[::1]:8000", "127.9.9.9:1"])
def test_places_on_this_machine(place: str) -> None:
    check_address(place, for_others=False)


@pytest.mark.parametrize("place", ["0.0.0.0:0", "[::]:80", "192.0.2.1:8000", "peer.example:1"])
def test_places_that_others_reach_need_to_be_meant(place: str) -> None:
    with pytest.raises(LocalError, match="--web-public"):
        check_address(place, for_others=False)
    check_address(place, for_others=True)
    with pytest.raises(LocalError, match="HOST:PORT"):
        check_address("nonsense", for_others=True)


async def test_a_port_that_is_taken_is_said() -> None:
    async with people("alice", page=True) as room:
        port = int(urlsplit(url_of(room)).port or 0)
        with pytest.raises(PeerError, match=f"cannot serve the page at 127.0.0.1:{port}"):
            async with Page(room["alice"], "127.0.0.1", port):
                pass


def test_the_page_has_no_way_to_make_markup_of_words() -> None:
    text = Path(web.__file__).with_name("page.html").read_text(encoding="utf-8")
    for sink in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
    ):
        assert sink not in text
