"""Peers over UDP beside peers over TCP: four processes on this machine, everybody to everybody.

What is lost is drawn where datagrams come in, so it is asked of UDP alone; over TCP the system
would send again. Both are encrypted. Bytes are what the peers wrote, without IP, UDP, TCP and TLS.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any, NamedTuple

from bench.live_mesh import _tls, free_ports

MEMBERS, SIZE = 4, 100
MATRIX = {"recovering": True, "heartbeat_s": 0.05, "retry_s": 0.05}


class Found(NamedTuple):
    """What one process did in the measured time."""

    deliveries: int
    seconds: float
    bytes_out: int
    cpu: float


def lose(share: float, seed: int) -> None:
    """Let datagrams that come in be lost."""
    from antecede.live.datagrams.envelopes import Envelopes

    draw, take_in = random.Random(seed), Envelopes.open

    def lossy(self: Envelopes, datagram: bytes) -> tuple[int, bytes] | None:
        return None if draw.random() < share else take_in(self, datagram)

    Envelopes.open = lossy  # type: ignore[method-assign]


@asynccontextmanager
async def member(
    me: int, ports: list[int], ready: Any, folder: str, options: dict[str, Any]
) -> AsyncIterator[Any]:
    """Give a peer that is in the group with all others."""
    from antecede.live.peer import Peer

    listen, tls = f"127.0.0.1:{ports[me]}", _tls(folder, me)
    async with Peer(f"m{me}", listen=listen, tls=tls, silence_s=60, **options) as peer:
        await asyncio.to_thread(ready.wait)
        if me == 0:
            await peer.found()
        else:
            await peer.join(f"127.0.0.1:{ports[0]}", timeout_s=30)
        while len(peer.members) < len(ports):
            await asyncio.sleep(0.01)
        await asyncio.to_thread(ready.wait)
        yield peer
        await asyncio.to_thread(ready.wait)
        await peer.close()


async def measured(peer: Any, pace: float, seconds: float) -> Found:
    """Send as fast as the others keep up, or so many messages a second."""

    def count() -> int:
        node = peer.node
        return int(node.ordering.place if hasattr(node, "ordering") else node.place)

    async def receive() -> None:
        async for _ in peer.batches():
            pass

    async def send() -> None:
        payload, due = b"x" * SIZE, time.monotonic()
        while True:
            await peer.room()
            for _ in range(1 if pace else 16):
                peer.send_nowait(payload)
            due += 1 / pace if pace else 0
            await asyncio.sleep(max(0.0, due - time.monotonic()) if pace else 0)

    tasks = [asyncio.create_task(receive()), asyncio.create_task(send())]
    await asyncio.sleep(1)
    before, start, cpu, wrote = (
        count(),
        time.perf_counter(),
        time.process_time(),
        peer.node.bytes_out,
    )
    await asyncio.sleep(seconds)
    made = count() - before
    took, spent = time.perf_counter() - start, time.process_time() - cpu
    for task in tasks:
        task.cancel()
    return Found(made, took, peer.node.bytes_out - wrote, spent)


def process(
    me: int, ports: list[int], ready: Any, out: Queue[Found], folder: str, *more: Any
) -> None:
    loss, pace, seconds, options = more
    if loss:
        lose(loss, me)

    async def run() -> None:
        async with member(me, ports, ready, folder, options) as peer:
            out.put(await measured(peer, pace, seconds))

    asyncio.run(run())


def mesh(
    options: dict[str, Any], loss: float, pace: float, seconds: float
) -> tuple[float, float, float]:
    """Return deliveries a second of all, bytes written and microseconds of a core for each."""
    from antecede.live import keys

    context = multiprocessing.get_context("spawn")
    out: Queue[Found] = context.Queue()
    ready = context.Barrier(MEMBERS)
    with tempfile.TemporaryDirectory() as folder:
        keys.make_authority(Path(folder))
        for me in range(MEMBERS):
            keys.make_member(Path(folder), f"m{me}")
        common = free_ports(MEMBERS), ready, out, folder, loss, pace, seconds, options
        running = [context.Process(target=process, args=(me, *common)) for me in range(MEMBERS)]
        for one in running:
            one.start()
        found = [out.get(timeout=60) for _ in running]
        for one in running:
            one.join(20)
    deliveries = max(1, sum(one.deliveries for one in found))
    return (
        sum(one.deliveries / one.seconds for one in found),
        sum(one.bytes_out for one in found) / deliveries,
        1e6 * sum(one.cpu for one in found) / deliveries,
    )


def main() -> None:
    """Print each beside TCP of the same run."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    udp = {"transport": "udp", "order": "matrix", "options": MATRIX}
    kinds: list[tuple[str, dict[str, Any], float]] = [("tcp, causal", {}, 0.0)]
    kinds += [(f"udp, matrix, {loss:.0%} lost", udp, loss) for loss in (0.0, 0.01, 0.1)]
    for title, pace in (("as fast as they keep up", 0.0), ("200 messages a second each", 200.0)):
        print(title)
        base: tuple[float, float, float] | None = None
        for name, options, loss in kinds:
            rate, size, cpu = found = mesh(options, loss, pace, seconds)
            base = base or found
            print(
                f"  {name:24} {rate / 1e3:7.1f} k/s {rate / base[0]:5.2f}   {size:6.0f} bytes "
                f"a delivery {size / base[1]:5.2f}   {cpu:6.1f} us {cpu / base[2]:5.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
