"""How a peer is doing, seen from outside."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from antecede.cli import main
from antecede.errors import PeerError
from antecede.live import http_server
from antecede.live.chat.words import cells
from antecede.live.peer import Peer
from antecede.live.settings import NS, Settings
from antecede.live.status import (
    MemberStatus,
    format_status,
    status_from_json,
    status_to_json,
)
from tests.live.loops import until
from tests.live.memory_network import MS, MemoryNetwork


def peer(name: str, **more: Any) -> Peer:
    return Peer(name, listen="127.0.0.1:0", insecure=True, group_name='the "room"', **more)


async def fetched(address: str, path: str, **more: Any) -> tuple[int, str]:
    def fetch() -> tuple[int, str]:
        try:
            with urlopen(Request(f"http://{address}{path}", **more), timeout=10) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    return await asyncio.to_thread(fetch)


# -- what is told, in the simulated network --------------------------------------------------------


def held_up() -> MemoryNetwork:
    """A group in which c has what b answered, and not what a said before that."""
    network = MemoryNetwork(1)
    network.meet("abc", Settings(group_name="r", repair_delay_ns=5 * NS), at_once=True)
    network.run(15 * NS)
    network.cut("a", "c")
    network.say("a", b"first")
    network.run(network.now + NS)
    network.say("b", b"second")
    network.run(network.now + NS)
    return network


def test_round_trips_of_busy_links_are_measured_at_once_and_again() -> None:
    network = MemoryNetwork(1)
    network.meet("abc", Settings(), at_once=True)
    network.run(NS)
    trips: list[float | None] = []
    for k in range(100):  # nobody is ever quiet for long enough to be asked for a sign of life
        for name in "abc":
            network.say(name, b"%d" % k)
        network.run(network.now + 100 * MS)
        trips += [one.round_trip_s for one in network.status("a").members]
    assert None not in trips
    assert len(set(trips)) >= 4


def test_wide_names_keep_the_columns() -> None:
    one = MemberStatus("名前", "名前~00000000", "h:1", "live", 3, 0.001, 0.2)
    members = one, one._replace(name="bob")
    text = format_status(dataclasses.replace(held_up().status("c"), members=members))
    [head] = [line for line in text.splitlines() if "round trip" in line]
    rows = [line for line in text.splitlines() if "h:1" in line]
    at = [cells(line[: line.index("live")]) for line in rows]
    assert at == [head.index("state")] * 2


def test_what_is_held_and_why_and_since_when() -> None:
    network = held_up()
    status = network.status("c")
    assert status.held == 1
    [held] = status.oldest_held
    assert held.sender == "b"
    first = network.observe("a")
    assert held.waits_for == (f"{first.sender_id}:{first.newest(first.sender_id)}",)
    assert 0.5 <= held.held_s <= 1.1
    assert {one.name: one.state for one in status.members} == {"a": "live", "b": "live"}
    [from_a] = [one for one in network.status("a").members if one.name == "c"]
    assert from_a.lag == 2, "its own batch, and b's, which c cannot acknowledge to it"
    text = format_status(status)
    assert "1 held" in text
    assert f"{held.id}  held for 0.9 s, waits for {held.waits_for[0]}" in text
    network.heal()
    network.run(network.now + 10 * NS)
    status = network.status("c")
    assert (status.held, status.oldest_held, status.delivered) == (0, (), 2)


def test_who_is_away_is_said() -> None:
    network = held_up()
    network.run(network.now + 20 * NS)
    status = network.status("c")
    [a, b] = status.members
    assert (a.state, a.last_heard_s_ago, b.state) == ("away", None, "live")
    assert b.round_trip_s is not None
    assert 2 * MS <= b.round_trip_s * NS <= 200 * MS
    assert "1 live, 1 away" in format_status(status)


def test_a_status_comes_back_from_json() -> None:
    status = held_up().status("c")
    assert status_from_json(json.loads(json.dumps(status_to_json(status)))) == status


def test_words_of_others_reach_no_terminal_as_they_are() -> None:
    words = {"last_rejection": "\x1b[2Jgone\r\n", "rejected": {"x": 1}}
    assert "\x1b" not in format_status(dataclasses.replace(held_up().status("c"), **words))  # type: ignore[arg-type]


# -- what is served --------------------------------------------------------------------------------


async def test_a_peer_serves_how_it_is_doing(capsys: pytest.CaptureFixture[str]) -> None:
    async with peer("a", status="127.0.0.1:0") as a, peer("b") as b:
        code, text = await fetched(a.status_address, "/healthz")
        assert (code, text) == (503, "not in a group yet\n")
        await a.bootstrap()
        await b.join(a.address)
        for _ in range(3):
            await b.send(b"x")
        await until(lambda: a.status().delivered == 3)
        assert (await fetched(a.status_address, "/healthz")) == (200, "healthy\n")
        told = json.loads((await fetched(a.status_address, "/status"))[1])
        assert (told["delivered"], told["pending_messages"]) == (3, 3)
        assert [one["name"] for one in told["members"]] == ["b"]
        taken = 0
        async for _ in a:
            taken += 1
            if taken == 3:
                break
        assert a.status().pending_messages == 1, "the last one, until the next is asked"
        metrics = samples((await fetched(a.status_address, "/metrics"))[1])
        assert metrics["antecede_live_delivered_messages_total"] == 3
        assert metrics["antecede_live_up"] == 1
        assert metrics["antecede_live_lag_batches"] == 0
        assert metrics["antecede_live_received_bytes_total"] == a.status().bytes_in > 100
        assert await asyncio.to_thread(main, ["peer-status", a.status_address]) == 0
        assert "a in group 'the \"room\"', order causal" in capsys.readouterr().out
        assert await asyncio.to_thread(main, ["peer-status", a.status_address, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["name"] == "a"
        b.evict("a", "for the test")
        await until(lambda: not a.status().is_healthy)
        code, text = await fetched(a.status_address, "/healthz")
        assert (code, text) == (503, "evicted from the group by b: for the test\n")
        assert await asyncio.to_thread(main, ["peer-status", a.status_address]) == 1
        assert "UNHEALTHY: evicted from the group by b: for the test" in capsys.readouterr().out


def samples(text: str) -> dict[str, float]:
    """Return the figures; those with labels of their own are summed."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            if sample.name.endswith("_created"):
                continue
            assert sample.labels["group_name"] == 'the "room"'
            found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


async def test_what_is_none_of_it_is_refused() -> None:
    async with peer("a", status="127.0.0.1:0") as a:
        assert (await fetched(a.status_address, "/else"))[0] == 404
        assert (await fetched(a.status_address, "/status", method="DELETE"))[0] == 405
        code, text = await fetched(a.status_address, "/status", data=bytes(2 << 20))
        assert (code, "1048576 bytes" in text) == (413, True)


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("evil.example", 421),
        ("evil.example:80", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:7", 421),
        ("", 421),
        ("[::1", 421),
        ("LOCALHOST:9", 200),
        ("localhost", 200),
        ("10.1.2.3:80", 200),
        ("[::1]:80", 200),
        ("[fe80::1]", 200),
    ],
)
async def test_a_page_of_others_gets_nothing_by_a_name_of_its_own(host: str, code: int) -> None:
    async with peer("a", status="127.0.0.1:0") as a:
        await a.bootstrap()
        for path in ("/status", "/metrics", "/healthz"):
            got, text = await fetched(a.status_address, path, headers={"host": host})
            assert got == code
            assert (f"{host!r}" in text) == (code != 200)


def test_the_name_at_which_status_was_asked_to_listen_is_its_own() -> None:
    request = http_server.Request("GET", "/", {}, {"host": "Peer.Example:80"}, b"")
    http_server.check_host(request, ["peer.example"])
    http_server.check_host(request._replace(headers={}), [])
    with pytest.raises(http_server.Refused, match=r"Peer\.Example"):
        http_server.check_host(request, ["other.example"])


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nhost: x\r\nlong: " + b"x" * 20_000, b" 431 "),
        (b"\x16\x03\x01 nonsense\r\n\r\n", b" 400 "),
        (b"GET /status HTTP/1.1\r\n", b" 408 "),
        (b"GET /status HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab", b" 408 "),
    ],
)
async def test_requests_that_are_none_or_slow_get_an_answer_and_no_more(
    sent: bytes, status: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "REQUEST_S", 0.2)
    async with peer("a", status="127.0.0.1:0") as a:
        host, _, port = a.status_address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1") or answer == b""
        assert status in answer
        assert (await fetched(a.status_address, "/metrics"))[0] == 200


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: "])
async def test_many_who_say_nothing_keep_nobody_out(sent: bytes) -> None:
    async with peer("a", status="127.0.0.1:0") as a:
        await a.bootstrap()
        host, _, port = a.status_address.rpartition(":")
        idle = []
        for _ in range(500):
            idle.append(await asyncio.open_connection(host, int(port)))
            idle[-1][1].write(sent)
        assert (await fetched(a.status_address, "/healthz"))[0] == 200
        for _, writer in idle:
            writer.transport.abort()
        assert (await fetched(a.status_address, "/healthz"))[0] == 200


async def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PeerError, match=f"cannot serve status at 127.0.0.1:{port}"):
            async with peer("a", status=f"127.0.0.1:{port}"):
                pass


@pytest.fixture
def elsewhere() -> Iterator[int]:
    """A port at which nobody is."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        yield one.getsockname()[1]


def test_the_command_says_when_nobody_is_there(
    elsewhere: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["peer-status", f"127.0.0.1:{elsewhere}"]) == 2
    assert "no response" in capsys.readouterr().err
    assert main(["peer-status", "nonsense"]) == 2
    assert "HOST:PORT" in capsys.readouterr().err
    assert main(["peer-status", "http://h:1/status"]) == 2
    assert "expected HOST:PORT without scheme and path: 'h:1'" in capsys.readouterr().err
    assert main(["peer-status", "h:1", "--watch", "0"]) == 2
    assert "--watch" in capsys.readouterr().err


@pytest.mark.parametrize("answer", [b"hello", b"[]", b'{"name": "x"}', b"[" * 9999])
async def test_the_command_says_when_somebody_else_is_there(
    answer: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    async def handle(_: http_server.Request) -> http_server.HttpResponse:
        return http_server.HttpResponse(answer)

    server = http_server.HttpServer(handle)
    port = await server.open("127.0.0.1", 0)
    assert await asyncio.to_thread(main, ["peer-status", f"127.0.0.1:{port}"]) == 2
    assert "the response is not" in capsys.readouterr().err
    server.close()
