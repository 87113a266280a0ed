"""Live peers and raw TCP: n processes on this machine, all to all, 100 bytes.

    python -m bench.live_rate [KIND ...]

Kinds: raw, peer, peer batches, peer tls, peer batches tls, each also with uvloop. Without any:
ratios to raw TCP, in turns, with TLS. Raw is asyncio TCP with length-prefixed messages and one
write per loop iteration. It preserves the order of each sender while a connection lasts. The others
are `antecede.live.Peer`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import struct
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.queues import Queue
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, cast

from bench.live_figures import Figure

MEMBERS, SIZE = 4, 100
HEADER = struct.Struct(">I")
PENDING = 1 << 18


class ProcessRate(NamedTuple):
    deliveries: int
    seconds: float
    cpu: float


class RawConnection(asyncio.Protocol):
    def __init__(self, mesh: RawMesh) -> None:
        self.mesh, self.rest, self.paused = mesh, b"", False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's has another class
        self.transport.set_write_buffer_limits(high=PENDING)
        self.mesh.connections.append(self)

    def data_received(self, data: bytes) -> None:
        data = self.rest + data if self.rest else data
        offset, end, got = 0, len(data), self.mesh.got
        while offset + 4 <= end:
            (size,) = HEADER.unpack_from(data, offset)
            if offset + 4 + size > end:
                break
            got.append(data[offset + 4 : offset + 4 + size])
            offset += 4 + size
        self.rest = data[offset:]
        self.mesh.wake()

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self.mesh.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.mesh.connections.remove(self)


class RawMesh:
    def __init__(self) -> None:
        self.connections: list[RawConnection] = []
        self.got: deque[bytes] = deque()
        self.pending: list[bytes] = []
        self.due = False
        self.waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def send(self, payload: bytes) -> None:
        self.pending += (HEADER.pack(len(payload)), payload)
        if not self.due:
            self.due = True
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        self.due = False
        data = b"".join(self.pending)
        self.pending.clear()
        for one in self.connections:
            one.transport.write(data)

    async def messages(self) -> Any:
        while True:
            while self.got:
                yield self.got.popleft()
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter


async def run_raw_member(
    me: int, ports: list[int], ready: Any, burst: int, seconds: float
) -> ProcessRate:
    mesh, loop = RawMesh(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: RawConnection(mesh), "127.0.0.1", ports[me])
    await asyncio.to_thread(ready.wait)
    for port in ports[:me]:
        await loop.create_connection(lambda: RawConnection(mesh), "127.0.0.1", port)
    while len(mesh.connections) < len(ports) - 1:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(ready.wait)

    count = 0

    async def receive() -> None:
        nonlocal count
        async for _ in mesh.messages():
            count += 1

    async def send() -> None:
        payload = b"x" * SIZE
        while True:
            if 2 * sum(one.paused for one in mesh.connections) <= len(mesh.connections) - 1:
                for _ in range(burst):
                    mesh.send(payload)
            await asyncio.sleep(0)

    tasks = [loop.create_task(receive()), loop.create_task(send())]
    rate = await _measure(lambda: count, seconds)
    for task in tasks:
        task.cancel()
    await asyncio.to_thread(ready.wait)
    server.close()
    return rate


async def _measure(count: Any, seconds: float) -> ProcessRate:
    await asyncio.sleep(0.5)
    before, start, cpu = count(), time.perf_counter(), time.process_time()
    await asyncio.sleep(seconds)
    return ProcessRate(count() - before, time.perf_counter() - start, time.process_time() - cpu)


async def run_peer_member(
    me: int, ports: list[int], ready: Any, burst: int, seconds: float, folder: str, kind: str
) -> ProcessRate:
    from antecede.live import Peer

    options: dict[str, Any] = {"insecure": True}
    if "tls" in kind:
        options = {"tls": _make_tls(folder, me)}
    if "store" in kind:
        options["store"] = f"{folder}/{me}.db"
    if os.environ.get("GATHER"):
        options["linger_s"] = float(os.environ["GATHER"])
    listen = f"127.0.0.1:{ports[me]}"
    async with Peer(f"m{me}", listen=listen, failure_timeout_s=60, **options) as peer:
        await asyncio.to_thread(ready.wait)
        if me == 0:
            await peer.bootstrap()
        else:
            await peer.join(f"127.0.0.1:{ports[0]}")
        while len(peer.node.greeted) < len(ports) - 1:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(ready.wait)
        count = 0

        async def receive() -> None:
            nonlocal count
            if "batches" in kind:
                async for batch in peer.batches():
                    for _ in batch.payloads:
                        count += 1
            else:
                async for _ in peer:
                    count += 1

        async def send() -> None:
            payload = b"x" * SIZE
            while True:
                await peer.drain()
                for _ in range(burst):
                    peer.send_nowait(payload)
                await asyncio.sleep(0)

        tasks = [asyncio.create_task(receive()), asyncio.create_task(send())]
        if os.environ.get("PROFILE") and me == 0:
            import cProfile

            profile = cProfile.Profile()
            profile.enable()
        rate = await _measure(lambda: count, seconds)
        if os.environ.get("PROFILE") and me == 0:
            profile.disable()
            profile.dump_stats(os.environ["PROFILE"])
        for task in tasks:
            task.cancel()
        await asyncio.to_thread(ready.wait)
        await peer.close()
    return rate


def _make_tls(folder: str, me: int) -> Any:
    from antecede.live import Tls

    return Tls(f"{folder}/m{me}.pem", f"{folder}/ca.pem")


def _run_process(
    me: int,
    ports: list[int],
    ready: Any,
    out: Queue[ProcessRate],
    kind: str,
    burst: int,
    *more: Any,
) -> None:
    if "uvloop" in kind:
        import uvloop

        uvloop.install()
    seconds, folder = more
    if kind.startswith("raw"):
        out.put(asyncio.run(run_raw_member(me, ports, ready, burst, seconds)))
    else:
        out.put(asyncio.run(run_peer_member(me, ports, ready, burst, seconds, folder, kind)))


def find_free_ports(count: int) -> list[int]:
    """Return unused ports of this machine."""
    import socket

    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def measure_mesh(
    kind: str, burst: int, seconds: float = 3.0, members: int = MEMBERS
) -> tuple[float, float]:
    """Return deliveries per second of all processes, and processor microseconds per delivery."""
    context = multiprocessing.get_context("spawn")
    out: Queue[ProcessRate] = context.Queue()
    ready = context.Barrier(members)
    with tempfile.TemporaryDirectory() as folder:
        if "tls" in kind:
            from antecede.live import keys

            keys.make_authority(Path(folder))
            for me in range(members):
                keys.make_member(Path(folder), f"m{me}")
        ports = find_free_ports(members)
        arguments = ports, ready, out, kind, burst, seconds, folder
        processes = [
            context.Process(target=_run_process, args=(me, *arguments)) for me in range(members)
        ]
        for one in processes:
            one.start()
        rates = [out.get(timeout=120) for _ in processes]
        for one in processes:
            one.join(20)
    deliveries = sum(rate.deliveries for rate in rates)
    return (
        sum(rate.deliveries / rate.seconds for rate in rates),
        1e6 * sum(rate.cpu for rate in rates) / max(1, deliveries),
    )


def measure_figures(
    bursts: Sequence[int] = (16, 64, 256), seconds: float = 2.0, turns: int = 3
) -> Iterator[Figure]:
    """Measure peers with TLS and causal order in turns with raw TCP, over both event loops.

    The ratio is to raw TCP of the same turn and loop, so other load affects both.
    """
    for burst in bursts:
        for loop in ("", " uvloop"):
            kinds = [f"{kind}{loop}" for kind in ("raw", *TARGET_KINDS)]
            runs: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
            for _ in range(turns):
                for kind in kinds:
                    runs[kind].append(measure_mesh(kind, burst, seconds))
            for kind, how in zip(kinds[1:], TARGET_KINDS.values(), strict=True):
                yield from _compare(runs[kinds[0]], runs[kind], f"{how}, {_name_loop(loop)}", burst)


TARGET_KINDS = {"peer batches tls": "peer.batches()", "peer tls": "message by message"}


def _name_loop(loop: str) -> str:
    return loop.strip() or "asyncio"


def _compare(
    raw: list[tuple[float, float]], runs: list[tuple[float, float]], how: str, burst: int
) -> Iterator[Figure]:
    rates = [ours[0] / theirs[0] for ours, theirs in zip(runs, raw, strict=True)]
    costs = [ours[1] / theirs[1] for ours, theirs in zip(runs, raw, strict=True)]
    row = f"bursts of {burst}"
    yield Figure(
        row, f"share of raw, {how}", median(rates), at_least=0.45, spread=(min(rates), max(rates))
    )
    yield Figure(
        row,
        f"CPU a delivery to raw, {how}",
        median(costs),
        at_most=2.2,
        spread=(min(costs), max(costs)),
    )


def main() -> None:
    kinds = sys.argv[1:]
    if not kinds:
        for figure in measure_figures():
            print(figure.format_line(), flush=True)
        return
    for burst in (16, 64, 256):
        base = None
        for kind in kinds:
            rate, cpu = measure_mesh(kind, burst)
            base = base or (rate, cpu)
            print(
                f"{burst:4}  {kind:24} {rate / 1e3:8.0f} k/s {rate / base[0]:5.2f}   "
                f"{cpu:6.2f} us a delivery {cpu / base[1]:5.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
