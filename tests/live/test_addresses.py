"""Where a peer is reached: what its listening address says to others."""

from __future__ import annotations

import asyncio
import socket

import pytest

from antecede.errors import LocalError
from antecede.live import Peer
from antecede.live.drivers.addresses import (
    find_reachable_host,
    join_address,
    split_address,
    split_listening,
)
from tests.live.observation import observe


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("bob.example:7001", ("bob.example", 7001)),
        ("[::1]:7001", ("::1", 7001)),
        ("[2001:db8::5]:0", ("2001:db8::5", 0)),
    ],
)
def test_an_address_is_split_and_joined(text: str, parts: tuple[str, int]) -> None:
    assert split_address(text) == parts
    assert join_address(*parts) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "bob", ":7001", "bob:", "bob:x", "bob:65536", "bob:-1", "bob:²"),
        *("::1:7001", "[::1:7001", "::1]:7001", "[bob]:7001", "[[::1]]:7001", 7001, None),
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(LocalError, match="HOST:PORT"):
        split_address(text)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("http://127.0.0.1:9", "127.0.0.1:9"),
        ("https://bob.example:7001/metrics?x=1", "bob.example:7001"),
        ("127.0.0.1:9/status", "127.0.0.1:9"),
        ("http://me@[::1]:7001/", "[::1]:7001"),
    ],
)
def test_of_a_url_it_is_said_what_of_it_is_the_address(given: str, meant: str) -> None:
    with pytest.raises(LocalError) as raised:
        split_address(given)
    assert str(raised.value) == (
        f"invalid address {given!r}; expected HOST:PORT without scheme and path: {meant!r}"
    )


def test_where_one_listens_may_be_everywhere() -> None:
    assert split_listening(":7002") == split_listening("0.0.0.0:7002") == ("0.0.0.0", 7002)
    assert split_listening("[::]:0") == ("::", 0)
    for text in ("*:0", "::1:0", "", ":", ":x"):
        with pytest.raises(LocalError, match="HOST:PORT"):
            split_listening(text)


def test_who_listens_everywhere_is_told_by_an_address_that_others_can_call() -> None:
    assert find_reachable_host("bob.example") == "bob.example"
    for everywhere in ("0.0.0.0", "::"):
        found = find_reachable_host(everywhere)
        family = socket.AF_INET6 if ":" in everywhere else socket.AF_INET
        assert found != everywhere
        assert socket.inet_pton(family, found.partition("%")[0])


def test_without_a_way_out_it_is_the_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object) -> None:
        raise OSError("Network is unreachable")

    monkeypatch.setattr("antecede.live.drivers.addresses.socket.socket", nowhere)
    assert (find_reachable_host("0.0.0.0"), find_reachable_host("::")) == ("127.0.0.1", "::1")


def test_a_peer_that_listens_everywhere_advertises_no_wildcard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "antecede.live.peer.find_reachable_host", lambda host: {"0.0.0.0": "10.1.2.3"}[host]
    )

    async def run() -> tuple[str, str]:
        async with Peer("a", insecure=True, listen="0.0.0.0:0") as peer:
            await peer.bootstrap()
            state = observe(peer)
            return peer.address, state.members[state.sender_id]

    address, told = asyncio.run(run())
    assert address == told
    assert address.startswith("10.1.2.3:")
    assert int(address.rpartition(":")[2]) > 0


def test_what_a_peer_says_of_itself_counts() -> None:
    async def run() -> str:
        async with Peer("a", insecure=True, listen="0.0.0.0:0", address="a.example:7") as peer:
            await peer.bootstrap()
            return observe(peer).members[peer.status().sender_id]

    assert asyncio.run(run()) == "a.example:7"
