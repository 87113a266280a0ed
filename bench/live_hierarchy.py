"""A thousand live peers behind super peers, on this machine, beside the simulator's same group.

    python -m bench.live_hierarchy [--internals 1000] [--supers 2] [--externals 2] [--rate 8]
                                   [--seconds 20] [--delay-ms LOW HIGH] [--tls] [--kill]

A process for each super peer, one for the external peers, one for fifty internal peers; TCP over
loopback. All peers but the super peers send, at random, so many messages of 100 bytes a second in
all. Printed: who joined, what was sent and delivered, what was lost or came twice; whether
`antecede.oracle` finds a delivery before a cause, from all that those saw who sent something and a
sample of the others; latency; bytes of control information a message, by Evropeytsev et al.'s
accounting and as they went over the wire, beside the compiled simulator's figures for the same
groups, rate and time with delays as measured (or as asked for); memory and CPU.

`--delay-ms` holds up what comes over each connection by so much, at random, in order. Without it
hardly two messages are under way at once, and control information is next to nothing. `--kill`
kills the process of one super peer amid the talk: those inside go on at the others.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import resource
import struct
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, cast

from antecede.live.events import Id
from antecede.live.hierarchy.internal import InternalNode
from antecede.live.hierarchy.mesh import MeshNode
from antecede.live.hierarchy.super_peer import SuperNode
from antecede.live.peer import Peer
from antecede.oracle.history import History
from antecede.ranks import quantile
from antecede.simulate.delays import Delay
from antecede.simulate.run import simulate
from antecede.simulate.scenario.model import Links, Scenario, Workload
from antecede.simulate.topology import Hierarchy
from antecede.trace.schema import DELIVER, SEND, Event

A_PROCESS = 50
SIZE = 100
STAMP = struct.Struct(">q")
SETTLE_S, JOIN_S, KILL_S = 5.0, 120.0, 15.0
AT_ONCE = 10
"""Peers of a process that join at the same time."""
SAMPLE = 20
QUANTILES = 500
Row = tuple[str, Id]


class Asked(NamedTuple):
    """What is to be measured."""

    internals: int
    supers: int
    externals: int
    rate_hz: float
    seconds: float
    delay_ms: tuple[float, float] | None
    folder: str | None
    """Of certificates; None: without TLS."""
    kill: bool
    seed: int


class Did(NamedTuple):
    """What the peers of one process did."""

    rows: dict[str, list[Row]]
    latencies_ns: list[int]
    control: dict[str, tuple[int, int, int, int]]
    """Way -> messages, bytes, bytes by the source's accounting, bytes of what is no message."""
    cpu_s: float
    memory: int
    """Bytes of the process that no other shares, beyond those before its peers began."""


def private_bytes() -> int:
    """Return how much memory only this process has."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        rows = [line.split() for line in file if line.startswith(("Private_", "Swap:"))]
    return 1024 * sum(int(row[1]) for row in rows)


def made(asked: Asked, name: str, role: str) -> Peer:
    """Return one peer."""
    more: dict[str, Any] = {} if role == "internal" else {"listen": "127.0.0.1:0"}
    if asked.folder is None:
        more["insecure"] = True
    else:
        from antecede.live.tls import Tls

        folder = Path(asked.folder)
        more["tls"] = Tls(folder / f"{name}.pem", folder / "ca.pem")
    return Peer(
        *(name,),
        room="bench",
        order="hierarchical",
        role=role,
        heartbeat_s=5,
        silence_s=30,
        put_out_s=3 if asked.kill else None,
        **more,
    )


def hold_up(peer: Peer, delay_ms: tuple[float, float], draw: random.Random) -> None:
    """Give what comes over each connection of a peer a delay, in order."""
    driver, loop = peer._running, asyncio.get_running_loop()
    arrives, last = driver.received, dict[int, float]()

    def received(connection: Any, data: bytes) -> None:
        due = loop.time() + draw.uniform(*delay_ms) / 1000
        due = last[connection.number] = max(due, last.get(connection.number, 0.0) + 1e-6)
        loop.call_at(due, arrives, connection, data)

    cast(Any, driver).received = received


async def listen(peer: Peer, rows: list[Row], latencies: list[int]) -> None:
    """Note what is delivered."""
    async for message in peer:
        latencies.append(time.monotonic_ns() - STAMP.unpack_from(message.payload)[0])
        rows.append((DELIVER, message.id))


async def talk(peers: Sequence[Peer], rows: dict[str, list[Row]], asked: Asked, seed: int) -> None:
    """Send at random times, from random peers of this process, at its share of the rate."""
    draw = random.Random(seed)
    share = asked.rate_hz * len(peers) / (asked.internals + asked.externals)
    due, end = time.monotonic(), time.monotonic() + asked.seconds
    while True:
        due += draw.expovariate(share)
        if due > end:
            break
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        peer = draw.choice(peers)
        stamp = STAMP.pack(time.monotonic_ns())
        rows[peer.node.lane].append((SEND, peer.send_nowait(stamp.ljust(SIZE, b"."))))
    await asyncio.sleep(max(0.0, end - time.monotonic()))


def control_of(peers: Sequence[Peer]) -> dict[str, tuple[int, int, int, int]]:
    """Return the bytes of control information that these peers counted."""
    found: dict[str, list[int]] = {}
    for peer in peers:
        node = peer.node
        parts: list[tuple[str, Any]] = []
        if isinstance(node, InternalNode):
            parts.append(("up", node.up))
        if isinstance(node, SuperNode):
            parts.append(("down", node.hub.down))
        if isinstance(node, MeshNode):
            parts.append(("outside", node.mesh_ordering.mesh.out))
        for way, traffic in parts:
            counts = traffic.messages, traffic.control, traffic.accounted, traffic.notes
            found[way] = [a + b for a, b in zip(found.get(way, [0] * 4), counts, strict=True)]
    return {way: (a, b, c, d) for way, (a, b, c, d) in found.items()}


async def run(asked: Asked, names: Sequence[str], role: str, pipe: Connection, seed: int) -> None:
    """Be some peers: join, talk when told, and say what was seen."""
    loop = asyncio.get_running_loop()
    before = private_bytes()
    peers = [made(asked, name, role) for name in names]
    addresses: list[str] = await loop.run_in_executor(None, pipe.recv)
    draw = random.Random(seed)
    rows: dict[str, list[Row]] = {}
    latencies: list[int] = []
    tasks = []
    gate = asyncio.Semaphore(AT_ONCE)

    async def begin(at: int, peer: Peer) -> None:
        async with gate:
            await peer.__aenter__()
            if asked.delay_ms is not None:
                hold_up(peer, asked.delay_ms, draw)
            if addresses:
                turned = at % len(addresses)
                await peer.join(addresses[turned:] + addresses[:turned], timeout_s=JOIN_S)
            else:
                await peer.found()
            rows[peer.node.lane] = []
            tasks.append(asyncio.create_task(listen(peer, rows[peer.node.lane], latencies)))

    await asyncio.gather(*(begin(seed + at, peer) for at, peer in enumerate(peers)))
    pipe.send([peer.address for peer in peers])
    await loop.run_in_executor(None, pipe.recv)
    latencies.clear()
    cpu = time.process_time()
    if role != "super":
        await talk(peers, rows, asked, seed)
    await loop.run_in_executor(None, pipe.recv)
    used = time.process_time() - cpu
    pipe.send(Did(rows, latencies, control_of(peers), used, private_bytes() - before))
    await loop.run_in_executor(None, pipe.recv)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*(peer.close() for peer in peers))


def process(asked: Asked, names: Sequence[str], role: str, pipe: Connection, seed: int) -> None:
    """Be one process of the benchmark."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(run(asked, names, role, pipe, seed))


class Processes:
    """All processes, and the way to each."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.context = multiprocessing.get_context("spawn")
        self.pipes: list[Connection] = []
        self.roles: list[str] = []
        self.running: list[Any] = []

    def begin(self, names: Sequence[str], role: str) -> int:
        """Begin a process; returns which it is."""
        ours, theirs = self.context.Pipe()
        seed = self.asked.seed * 1000 + len(self.pipes)
        arguments = self.asked, names, role, theirs, seed
        one = self.context.Process(target=process, args=arguments, daemon=True)
        one.start()
        self.pipes.append(ours)
        self.roles.append(role)
        self.running.append(one)
        return len(self.pipes) - 1

    def all_join(self) -> float:
        """Begin all and let them join; returns how long those inside took (s)."""
        asked = self.asked
        supers: list[str] = []
        for k in range(asked.supers):
            at = self.begin([f"super{k}"], "super")
            self.pipes[at].send(list(supers))
            supers += self.pipes[at].recv()
        if asked.externals:
            at = self.begin([f"external{k}" for k in range(asked.externals)], "external")
            self.pipes[at].send(list(supers))
            self.pipes[at].recv()
        names = [f"internal{k}" for k in range(asked.internals)]
        inside = [
            self.begin(names[k : k + A_PROCESS], "internal")
            for k in range(0, len(names), A_PROCESS)
        ]
        start = time.monotonic()
        for at in inside:
            self.pipes[at].send(list(supers))
        for at in inside:
            self.pipes[at].recv()
        return time.monotonic() - start

    def talk(self) -> list[Did]:
        """Let all talk, wait until all is delivered, and return what they did."""
        for pipe in self.pipes:
            pipe.send("talk")
        time.sleep(self.asked.seconds / 2)
        if self.asked.kill:
            self.running[0].kill()  # the first super peer
            del self.pipes[0], self.roles[0], self.running[0]
        time.sleep(self.asked.seconds / 2 + SETTLE_S + KILL_S * self.asked.kill)
        for pipe in self.pipes:
            pipe.send("stop")
        found: list[Did] = [pipe.recv() for pipe in self.pipes]
        for pipe in self.pipes:
            pipe.send("end")
        for one in self.running:
            one.join(20)
        return found


def judged(rows: dict[str, list[Row]], seed: int) -> tuple[int, int, int, int]:
    """Return how many peers and deliveries the oracle looked at, early ones, and those twice."""
    talked = [lane for lane, seen in rows.items() if any(row[0] == SEND for row in seen)]
    silent = sorted(rows.keys() - set(talked))
    sample = [*talked, *random.Random(seed).sample(silent, min(SAMPLE, len(silent)))]
    events = [
        Event(kind=kind, id=str(one), member=lane) for lane in sample for kind, one in rows[lane]
    ]
    history = History(events, {})
    early = sum(1 for _ in history.early("delivery"))
    twice = sum(len(list(history._doubled_or_unsent(lane))) for lane in history.by_member)
    return len(sample), sum(event.kind == DELIVER for event in events), early, twice


def simulated(asked: Asked, delay_ms: tuple[float, float]) -> dict[str, float]:
    """Return the compiled simulator's figures for the same group, rate and time."""
    sizes = [asked.internals // asked.supers] * asked.supers
    sizes[0] += asked.internals - sum(sizes)
    peers = asked.internals + asked.externals
    scenario = Scenario(
        Hierarchy(tuple(sizes), asked.externals),
        "hierarchical",
        links=Links(Delay(delay_ms[0] / 1000, delay_ms[1] / 1000, "uniform"), fifo=True),
        workload=Workload(kind="poisson", rate_hz=asked.rate_hz / peers),
        duration_s=asked.seconds,
        name="as the live peers",
    )
    return dict(simulate(scenario, asked.seed, "compiled").figures)


def report(asked: Asked, joined_s: float, found: list[Did], roles: Sequence[str]) -> None:
    """Print what came of it."""
    rows = {
        lane: seen
        for did, role in zip(found, roles, strict=True)
        if role != "super"
        for lane, seen in did.rows.items()
    }
    sent = {row[1] for seen in rows.values() for row in seen if row[0] == SEND}
    lost = twice = 0
    for lane, seen in rows.items():
        got = [row[1] for row in seen if row[0] == DELIVER]
        lost += len({one for one in sent if one.lane != lane} - set(got))
        twice += len(got) - len(set(got))
    deliveries = sum(row[0] == DELIVER for seen in rows.values() for row in seen)
    latencies = sorted(one for did in found for one in did.latencies_ns)
    print(
        f"{asked.internals} internal peers behind {asked.supers} super peers, {asked.externals} "
        f"external; {'mutual TLS' if asked.folder else 'without TLS'}"
    )
    print(f"joined {len(rows)} of {asked.internals + asked.externals}, inside in {joined_s:.1f} s")
    if asked.kill:
        print("the process of one super peer was killed amid the talk")
    print(f"sent {len(sent)}, delivered {deliveries}, lost {lost}, twice {twice}")
    peers, looked, early, again = judged(rows, asked.seed)
    print(f"oracle: {peers} peers, {looked} deliveries, {early} before a cause, {again} twice")
    if not latencies:
        return
    p50, p99 = (quantile(latencies, q) / 1e6 for q in (0.5, 0.99))
    print(f"latency p50 {p50:.1f} ms, p99 {p99:.1f} ms, most {latencies[-1] / 1e6:.1f} ms")
    _print_costs(found, roles, deliveries)
    if not asked.kill:  # what the killed one counted is gone
        low = (quantile(latencies, 0.01) / 3e6, quantile(latencies, 0.99) / 3e6)
        _print_control(found, asked, asked.delay_ms or low)


def _print_costs(found: list[Did], roles: Sequence[str], deliveries: int) -> None:
    for role in ("internal", "external", "super"):
        dids = [did for did, one in zip(found, roles, strict=True) if one == role]
        count = sum(len(did.rows) for did in dids)
        if count:
            memory = sum(did.memory for did in dids) / count / 2**20
            print(f"memory of a peer, {role}: {memory:.2f} MiB")
    cpu = sum(did.cpu_s for did in found)
    print(f"CPU {cpu:.1f} s, {cpu / deliveries * 1e6:.0f} us a delivery, all processes")


def _print_control(found: list[Did], asked: Asked, delay_ms: tuple[float, float]) -> None:
    figures = simulated(asked, delay_ms)
    print(f"control information, bytes a message; simulator: {delay_ms[0]:.1f} to", end=" ")
    print(f"{delay_ms[1]:.1f} ms a way, uniform")
    print(f"{'':10}{'messages':>9}{'live: wire':>12}{'accounted':>11}{'notes':>8}", end="")
    print(f"{'simulated: wire':>18}{'accounted':>11}")
    for way, role in (("up", ""), ("down", "internal"), ("outside", "external")):
        parts = [did.control[way] for did in found if way in did.control]
        messages, control, accounted, notes = (sum(column) for column in zip(*parts, strict=True))
        shown = f"{way:10}{messages:9}{control / messages:12.1f}{accounted / messages:11.1f}"
        other = [figures.get(f"{role}.{what}_bytes") for what in ("encoded", "overhead")]
        texts = [f"{one:.1f}" if one is not None else "-" for one in other]
        print(f"{shown}{notes / messages:8.2f}{texts[0]:>18}{texts[1]:>11}")


def main(args: Sequence[str] | None = None) -> None:
    """Measure, and print."""
    words = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    words.add_argument("--internals", type=int, default=1000)
    words.add_argument("--supers", type=int, default=2)
    words.add_argument("--externals", type=int, default=2)
    words.add_argument("--rate", type=float, default=8.0, help="messages a second, of all")
    words.add_argument("--seconds", type=float, default=20.0)
    words.add_argument("--delay-ms", type=float, nargs=2, metavar=("LOW", "HIGH"))
    words.add_argument("--tls", action="store_true")
    words.add_argument("--kill", action="store_true", help="one super peer, amid the talk")
    words.add_argument("--seed", type=int, default=1)
    given = words.parse_args(args)
    with tempfile.TemporaryDirectory() as folder:
        if given.tls:
            _make_keys(Path(folder), given)
        delay = None if given.delay_ms is None else (given.delay_ms[0], given.delay_ms[1])
        asked = Asked(
            *(given.internals, given.supers, given.externals, given.rate, given.seconds, delay),
            *(folder if given.tls else None, given.kill, given.seed),
        )
        processes = Processes(asked)
        joined_s = processes.all_join()
        report(asked, joined_s, processes.talk(), processes.roles)


def _make_keys(folder: Path, given: Any) -> None:
    from antecede.live.keys import make_authority, make_member

    make_authority(folder)
    for role, count in (
        ("super", given.supers),
        ("external", given.externals),
        ("internal", given.internals),
    ):
        for k in range(count):
            make_member(folder, f"{role}{k}")


if __name__ == "__main__":
    main()
