"""Who stands at the door: half-open connections without end, certificates that expire or are new,
clocks that jump.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import resource
import socket
import ssl
import time
from pathlib import Path
from typing import Any

import pytest

from antecede.live import keys
from antecede.live.peer import Peer
from tests.live import peer_control
from tests.live.attacker import Attacker, honest, make_keys, peer, talk, tls
from tests.live.certificates import set_validity
from tests.live.loops import until
from tests.live.observation import observe
from tests.live.peer_control import HALF_OPEN, count_clients

CALLERS = 10_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_keys(tmp_path)


@pytest.fixture
def descriptors() -> Any:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CALLERS + 2000:
        pytest.skip(f"{hard} files may be open here; {CALLERS + 2000} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (CALLERS + 2000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
async def test_callers_that_say_nothing_leave_no_memory_behind(folder: Path) -> None:
    async with honest(folder, "alice", "bob") as (alice, bob):
        await talk((alice, bob))
        host, port = alice.address.rsplit(":", 1)
        before = resident_mb()
        for _ in range(6):
            callers = [socket.create_connection((host, int(port))) for _ in range(200)]
            await asyncio.sleep(0.2)
            for one in callers:
                one.close()
        await talk((alice, bob))
        assert resident_mb() - before < 30


@pytest.mark.slow
async def test_ten_thousand_half_open_connections_keep_nobody_out(
    folder: Path, descriptors: Any
) -> None:
    async with honest(folder, "alice", "bob") as (alice, bob):
        loop = asyncio.get_running_loop()
        host, port = alice.address.rsplit(":", 1)
        sockets: list[socket.socket] = []
        most = 0

        async def call() -> None:
            one = socket.socket()
            one.setblocking(False)
            sockets.append(one)
            await loop.sock_connect(one, (host, int(port)))

        async def flood() -> None:
            nonlocal most
            while len(sockets) < CALLERS:
                await asyncio.gather(*(call() for _ in range(100)))
                most = max(most, count_clients(alice)[0])

        flooding = asyncio.create_task(flood())
        await asyncio.sleep(0.2)
        async with peer(folder, "carol") as carol:
            await carol.join(alice.address, timeout_s=15)
            await until(lambda: len(observe(carol).connected) == 2)
            await talk((alice, bob, carol))
            await flooding
            await talk((alice, bob, carol))
        assert len(sockets) == CALLERS
        assert most <= HALF_OPEN
        assert len(observe(alice).connections) <= 3
        closed = CALLERS - HALF_OPEN - 512
        await until(lambda: count_clients(alice)[1] + observe(alice).rejected.total() >= closed)
        for one in sockets:
            one.close()


async def test_bytes_that_drip_into_a_handshake_are_given_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_control.HANDSHAKE_S, 0.5)
    async with honest(folder, "alice", "bob") as (alice, bob):
        host, port = alice.address.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        hello = ssl.MemoryBIO()
        context = tls(folder, "mallory").client()
        half = context.wrap_bio(ssl.MemoryBIO(), hello, server_side=False)
        with pytest.raises(ssl.SSLWantReadError):
            half.do_handshake()
        for byte in hello.read()[:200]:
            if observe(alice).rejected["handshake"]:
                break
            writer.write(bytes([byte]))
            await asyncio.sleep(0.02)
        await until(lambda: observe(alice).rejected["handshake"] == 1)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        await talk((alice, bob))
        writer.close()


# -- certificates ----------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_certificate_that_expires_ends_no_connection_and_opens_none(folder: Path) -> None:
    set_validity(folder, "bob", datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=3))
    async with honest(folder, "alice", "bob") as (alice, bob):
        end = time.time() + 3.2
        await talk((alice, bob))
        while time.time() < end:
            await asyncio.sleep(0.05)
        await talk((alice, bob))
        await until(lambda: not observe(bob).unacknowledged_by)
        async with peer(folder, "carol") as carol:
            await carol.join(alice.address)
            await talk((alice, carol))
            lane = bob.status().sender_id
            peer_control.disconnect(alice, lane)
            await until(lambda: lane not in observe(alice).connected)
            await until(lambda: observe(alice).rejected["certificate"] > 0)
            assert lane not in observe(alice).connected
            await talk((alice, carol))


async def test_a_renewed_certificate_counts_from_the_next_start(
    folder: Path, tmp_path: Path
) -> None:
    store = tmp_path / "bob.db"
    async with peer(folder, "alice") as alice:
        await alice.bootstrap()
        async with peer(folder, "bob", store=store) as bob:
            await bob.join(alice.address)
            lane = bob.status().sender_id
            await until(lambda: "bob" in alice.members)
            await talk((alice, bob))
            before = observe(bob).logs[lane].signer
            keys.make_member(folder, "bob", force=True)
            await talk((alice, bob))
            assert observe(bob).logs[lane].signer == before
        async with peer(folder, "bob", store=store) as bob:
            assert bob.status().sender_id == lane
            assert observe(bob).logs[lane].signer != before
            await until(lambda: lane in observe(alice).connected)
            await bob.send(b"renewed")
            async for message in alice:
                if message.payload == b"renewed":
                    break
            assert observe(alice).logs[lane].signer == observe(bob).logs[lane].signer


async def test_a_key_of_another_life_is_no_second_owner(folder: Path) -> None:
    async with honest(folder, "alice", "bob") as (alice, bob):
        mallory, twin = Attacker(folder), Attacker(folder)
        await mallory.join(alice, bob)
        line = await twin.call(bob)
        await line.say(twin.hello(group=observe(bob).group_id))
        assert "second key" in await line.last_word()
        await talk((alice, bob))
        mallory.close()
        twin.close()


# -- clocks ----------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("days", [-100, 100])
async def test_a_wall_clock_that_jumps_changes_nothing(
    folder: Path, days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    offset = 0.0
    monkeypatch.setattr(time, "time", lambda: real() + offset)
    more = {"heartbeat_s": 0.2, "failure_timeout_s": 1}
    async with honest(folder, "alice", "bob", **more) as (alice, bob):
        before = observe(alice)
        await talk((alice, bob))
        offset = max(days, 0) * 86400.0 or -200.0
        await talk((alice, bob))
        await asyncio.sleep(1.5)
        await talk((alice, bob))
        after = observe(alice)
        assert (after.connections, after.connected) == (before.connections, before.connected)
        assert not after.rejected


# -- batches that can not be handed on -------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("check_all", [False, True])
async def test_a_wrong_seal_over_its_owners_link(folder: Path, check_all: bool) -> None:
    more = {"verify_all_signatures": check_all, "repair_delay_s": 0.1}
    async with honest(folder, "alice", "bob", **more) as (alice, bob):
        mallory = Attacker(folder)
        mallory.settings = type(mallory.settings)(
            group_name="attacked", verify_all_signatures=check_all
        )
        _, to_bob = await mallory.join(alice, bob)
        mallory.say(b"sealed wrongly")
        sealed = mallory.sealed(2)
        await to_bob.say(mallory.batch(mallory.lane, 2, sealed._replace(seal=b"x" * 64)))
        if check_all:
            assert "invalid signature" in await to_bob.last_word()
            await talk((alice, bob))
            return
        await until(lambda: observe(bob).newest(mallory.lane) == 2)
        await until(lambda: observe(alice).rejected["DecodeError"] > 0)
        assert alice.status().last_rejection.startswith("bob: batch 2 of mallory")
        assert bob.status().sender_id in observe(alice).connected, "who hands it on is not blamed"
        await bob.send(b"depends on it")
        await alice.send(b"depends on nothing")
        async for message in bob:
            if message.payload == b"depends on nothing":
                break
        await asyncio.sleep(0.3)
        assert alice.status().held == 1, "as the page on trust says"
        mallory.close()


def test_a_peer_needs_certificates_or_says_that_it_has_none(folder: Path) -> None:
    with pytest.raises(Exception, match="needs tls="):
        Peer("alice", listen="127.0.0.1:0")
