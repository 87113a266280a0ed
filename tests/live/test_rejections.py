"""Members that reject each other: both are told, dial ever less often, and an old copy ends."""

from __future__ import annotations

import asyncio
import copy
import logging
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import PeerError
from antecede.live import Peer
from antecede.live.settings import NS, Settings
from antecede.live.status import format_status
from tests.live.loops import run, take, until
from tests.live.memory_network import MS, MemoryNetwork

OTHERS = {"one other": "a", "two others": "ac", "three others": "acd"}


def group(names: str, seed: int = 1, **settings: Any) -> MemoryNetwork:
    """A group with stores, all connected."""
    network = MemoryNetwork(seed)
    network.meet(names, Settings(**settings), durable=True)
    network.run(3 * NS)
    return network


def later(network: MemoryNetwork, seconds: float) -> None:
    network.run(network.now + round(seconds * NS))


def payloads(network: MemoryNetwork, name: str) -> list[bytes]:
    """What a member was handed, without what came again after a crash."""
    return list(dict.fromkeys(network.payloads(name)))


def restore_b(network: MemoryNetwork, *, away: str = "") -> None:
    """Let b say one thing more, and then begin again from a store that does not have it.

    `away`: members that do not get it.
    """
    network.say("b", b"one")
    later(network, 1)
    backup = copy.deepcopy(network.hosts["b"].store)
    for name in away:
        network.crash(name)
    network.say("b", b"two")
    later(network, 1)
    network.crash("b")
    network.hosts["b"].store = backup


@pytest.mark.few(5)
@pytest.mark.parametrize("talks", ["before it meets the others", "afterwards", "never"])
@pytest.mark.parametrize(
    ("others", "order"),
    [*((one, "causal") for one in OTHERS), *(("one other", order) for order in ("reply", "none"))],
)
def test_an_old_copy_is_told_and_ends(others: str, talks: str, order: str) -> None:
    names = OTHERS[others]
    network = group("b" + names, order=order)
    restore_b(network)
    if talks == "before it meets the others":
        for name in names:
            network.crash(name)
        network.start("b")
        later(network, 1)
        network.say("b", b"another two")
        later(network, 1)
        for name in names:
            network.start(name)
    else:
        network.start("b")
        later(network, 1)
        if talks == "afterwards":
            network.say("b", b"another two")
    later(network, 6)
    assert "old copy" in network.status("b").unhealthy_reason
    assert not network.status("b").is_healthy
    assert network.say("b", b"three") is None
    for name in names:
        assert payloads(network, name) == [b"one", b"two"]
        assert network.status(name).is_healthy


@pytest.mark.few(1)
@pytest.mark.parametrize("certain", ["a", "c"], ids=["its own batch is proof", "few know better"])
def test_an_old_copy_ends_that_has_deceived_others_before(certain: str) -> None:
    network = group("bacde")
    restore_b(network, away="de")
    for name in "ac":
        network.crash(name)
    network.start("b")
    for name in "de":
        network.start(name)
    later(network, 3)
    network.say("b", b"another two")
    later(network, 2)
    network.start(certain)
    network.say("b", b"another three")
    later(network, 20)
    assert "old copy" in network.status("b").unhealthy_reason


def test_a_member_that_all_reject_is_unhealthy_and_says_why() -> None:
    network = group("ab")
    store = network.hosts["b"].store
    network.crash("b")
    assert network.status("a").is_healthy
    network.add("b", Settings(partition="majority"), durable=True)
    network.start("b", "a")
    later(network, 5)
    assert not network.status("a").is_healthy
    assert "rejected by b: b is of another group" in network.status("a").unhealthy_reason
    assert "rejected by b: b is of another group" in format_status(network.status("a"))
    assert network.say("a", b"kept for b") is not None
    network.crash("b")
    network.add("b", Settings(), durable=True).store = store
    network.start("b")
    later(network, 10)
    assert network.status("a").is_healthy
    assert not network.status("a").rejected_by


def test_a_member_that_some_reject_is_healthy() -> None:
    network = group("abc")
    network.crash("b")
    network.add("b", Settings(), durable=True)
    network.start("b")
    later(network, 5)
    assert network.status("a").is_healthy
    assert list(network.status("a").rejected_by) == ["b"]


@pytest.mark.few(1)
@pytest.mark.parametrize("durable", [False, True])
def test_members_of_two_groups_of_one_name_dial_ever_less_often(durable: bool) -> None:
    network = group("ab")
    network.crash("b")
    network.add("b", Settings(), durable=durable)
    network.start("b")  # founds a group of its own
    later(network, 20)
    first = sum(network.status("a").rejected.values())
    later(network, 300)
    last = sum(network.status("a").rejected.values())
    assert 1 <= first <= 6
    assert last - first <= 5
    assert "bootstrapped separately" in network.status("a").last_rejection


def test_members_that_were_rejected_once_are_dialed_at_once_again() -> None:
    network = group("ab")
    store = network.hosts["b"].store
    network.crash("b")
    network.add("b", Settings(), durable=True)
    network.start("b")
    later(network, 60)
    network.crash("b")
    network.hosts["b"].store = store
    network.start("b")
    later(network, 5)
    network.say("a", b"welcome back")
    later(network, 1)
    assert payloads(network, "b") == [b"welcome back"]
    network.crash("b")
    later(network, 30)
    network.start("b")
    later(network, 1.5)
    assert network.status("a").others == "1 live"


@pytest.mark.slow
def test_a_member_without_a_store_joins_anew_over_slow_ways() -> None:
    for seed in range(6):
        network = MemoryNetwork(seed, least_ns=200 * MS, most_ns=450 * MS)
        network.meet("dabc", Settings(), at_once=True)
        later(network, 8)
        network.crash("a")
        later(network, 2)
        network.start("a", "d")
        later(network, 8)
        assert network.status("a").others == "3 live"


@pytest.mark.slow
async def test_a_peer_on_an_old_copy_ends_and_says_so(tmp_path: Path) -> None:
    def peer(name: str, port: int = 0, **more: Any) -> Peer:
        more = {"listen": f"127.0.0.1:{port}", "store": tmp_path / f"{name}.db", **more}
        return Peer(name, insecure=True, **more)

    def health(address: str) -> int:
        try:
            with urllib.request.urlopen(f"http://{address}/healthz", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    async with peer("alice") as alice:
        await alice.bootstrap()
        alice_at = int(alice.address.rpartition(":")[2])
        async with peer("bob") as bob:
            await bob.join(alice.address)
            bob_at = int(bob.address.rpartition(":")[2])
            await bob.send(b"one")
            await take(alice, 1)
        shutil.copy(tmp_path / "bob.db", tmp_path / "backup.db")
        async with peer("bob", bob_at) as bob:
            await bob.send(b"two")
            await take(alice, 1)
    shutil.copy(tmp_path / "backup.db", tmp_path / "bob.db")
    async with peer("bob", bob_at, status="127.0.0.1:0") as bob:
        await bob.send(b"another two")
        assert await asyncio.to_thread(health, bob.status_address) == 200
        async with peer("alice", alice_at):
            with pytest.raises(PeerError, match="old copy"):
                async for _ in bob.events():
                    pass
            with pytest.raises(PeerError, match="old copy"):
                await bob.send(b"three")
            assert await asyncio.to_thread(health, bob.status_address) == 503


@pytest.mark.slow
async def test_a_rejection_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "antecede.live")

    def peer(name: str, port: int = 0, **more: Any) -> Peer:
        return Peer(name, insecure=True, listen=f"127.0.0.1:{port}", **more)

    async with peer("alice", store=tmp_path / "alice.db") as alice:
        await alice.bootstrap()
        async with peer("bob", store=tmp_path / "bob.db") as bob:
            await bob.join(alice.address)
            port = int(bob.address.rpartition(":")[2])
        async with peer("bob", port) as bob:
            await bob.bootstrap()
            await until(lambda: sum(alice.status().rejected.values()) >= 3)
    said = [
        one.getMessage() for one in caplog.records if "bootstrapped separately" in one.getMessage()
    ]
    assert len([one for one in said if one.startswith("alice")]) == 1, said


@pytest.mark.parametrize("away", [False, True])
def test_an_evicted_member_learns_by_whom_and_why(tmp_path: Path, away: bool) -> None:
    async def work() -> None:
        def peer(name: str, **more: Any) -> Peer:
            return Peer(name, insecure=True, listen="127.0.0.1:0", **more)

        async with peer("alice") as alice:
            await alice.bootstrap()
            async with peer("bob", store=tmp_path / "bob.db") as bob:
                await bob.join(alice.address)
                await until(lambda: alice.members == ("alice", "bob"))
                if not away:
                    alice.evict("bob", "sold the laptop")
                    with pytest.raises(PeerError, match="by alice: sold the laptop"):
                        await take(bob, 1)
                    return
            await until(lambda: alice.status().others == "1 away")
            alice.evict("bob", "sold the laptop")
            async with peer("bob", store=tmp_path / "bob.db") as bob:
                with pytest.raises(PeerError, match="by alice: sold the laptop"):
                    await take(bob, 1)

    run(work)
