"""Reads that hold a greeting and what follows it: limits apply to each frame in its own phase."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from antecede.live import Peer, keys, wire
from antecede.live.settings import NS, Settings
from antecede.live.tls import Tls
from tests.live.loops import take
from tests.live.memory_network import MS, MemoryNetwork
from tests.live.simulated import Plan, Run

BIG = 2 << 20


def sizes_of(network: MemoryNetwork, name: str) -> list[int]:
    return [len(one) for one in network.payloads(name)]


@pytest.mark.few(6)
@pytest.mark.parametrize("read_every_ms", [1, 50, 1000])
@pytest.mark.parametrize(
    "sizes",
    [(BIG,), (wire.MAX_FIRST,), (10, BIG, 10), (BIG, BIG), (10,) * 50],
    ids=["2 MiB", "1 MiB and a head", "between small ones", "two", "many small ones"],
)
def test_a_returning_member_reads_the_greeting_and_large_batches_at_once(
    sizes: tuple[int, ...], read_every_ms: int
) -> None:
    network = MemoryNetwork(1)
    network.meet("ab", Settings(), durable=True, at_once=True)
    network.hosts["b"].read_every_ns = read_every_ms * MS
    network.run(6 * NS)
    network.crash("b")
    network.run(network.now + NS)
    for size in sizes:
        network.say("a", bytes(size))
        network.run(network.now + 20 * MS)
    network.start("b")
    network.run(network.now + 20 * NS)
    assert sizes_of(network, "b") == list(sizes)
    for host in network.hosts.values():
        assert not host.observe().rejected, host.observe().last_rejection


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("read_every_ms", [1, 50, 1000])
def test_a_joining_member_reads_the_greeting_and_a_large_history_at_once(
    read_every_ms: int, durable: bool
) -> None:
    network = MemoryNetwork(2)
    network.meet("ab", Settings(history=10), durable=durable, at_once=True)
    network.add("c", Settings(history=10), durable=durable).read_every_ns = read_every_ms * MS
    network.run(6 * NS)
    network.say("a", bytes(BIG))
    network.say("b", bytes(BIG + 1))
    network.run(network.now + 6 * NS)
    network.start("c", "a")
    network.at(10 * MS, partial(network.say, "a", bytes(BIG + 2)))
    network.run(network.now + 20 * NS)
    assert sorted(sizes_of(network, "c")) == [BIG, BIG + 1, BIG + 2]
    assert not any(host.observe().rejected for host in network.hosts.values())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("durable", [False, True])
def test_nothing_is_lost_where_bytes_are_read_in_gathers(seed: int, durable: bool) -> None:
    one = Run(Plan(seed, durable=durable))
    for name in one.names[::2]:
        one.network.hosts[name].read_every_ns = 250 * MS
    judgement = one.run()
    assert judgement.clean, judgement


@contextlib.asynccontextmanager
async def gathering_relay(port: int, every_s: float) -> AsyncIterator[str]:
    """Forward to a port what came, every so often and all of it at once; yields the address."""
    ends: set[asyncio.Task[None]] = set()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await asyncio.sleep(every_s)
                while (more := await _at_once(reader)) and len(data) < BIG << 1:
                    data += more
                writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends.add(asyncio.current_task())  # type: ignore[arg-type]
        with contextlib.closing(writer), contextlib.suppress(OSError):
            there = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.closing(there[1]):
                await asyncio.gather(forward(reader, there[1]), forward(there[0], writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=BIG << 1)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for one in ends:
            one.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


async def _at_once(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(0.01):
            return await reader.read(1 << 20)
    except TimeoutError:
        return b""


@pytest.mark.slow
@pytest.mark.parametrize("secure", [False, True])
async def test_a_gathering_tunnel_separates_no_members(tmp_path: Path, secure: bool) -> None:
    keys.make_authority(tmp_path)
    for name in ("alice", "bob"):
        keys.make_member(tmp_path, name)

    def peer(name: str, listen: str | None, address: str | None = None) -> Peer:
        tls = Tls(tmp_path / f"{name}.pem", tmp_path / "ca.pem") if secure else None
        return Peer(
            name,
            listen=listen,
            address=address,
            tls=tls,
            insecure=not secure,
            store=tmp_path / f"{name}.db",
        )

    async with peer("alice", "127.0.0.1:0") as alice:
        await alice.bootstrap()
        port = int(alice.address.rpartition(":")[2])
    async with (
        gathering_relay(port, 0.3) as address,
        peer("alice", f"127.0.0.1:{port}", address) as alice,
    ):
        async with peer("bob", None) as bob:
            await bob.join(address, timeout_s=30)
        sent = [await alice.send(bytes(BIG)), await alice.send(b"small")]
        async with peer("bob", None) as bob:
            assert [one.id for one in await take(bob, 2)] == sent
            back = await bob.send(bytes(BIG + 1))
            assert [one.id for one in await take(alice, 1)] == [back]
            assert not alice.status().rejected
            assert not bob.status().rejected
