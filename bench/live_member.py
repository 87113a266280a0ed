"""Live peer in its own process, controlled over standard input.

    python -m bench.live_member '{"name": "m0", "folder": "out", "listen": "127.0.0.1:7000", ...}'

Input lines: `go RATE SECONDS` sends at a rate, `read RATE` limits the receive rate (0: no limit),
`hush` stops sending, `end` writes the log and exits. Output lines: `joined`, `meets N` (number of
connected members, when it changes), `states NAME=STATE ...`, `out WHY`, and finally `done`. Times
are of the machine's monotonic clock, so they compare between members.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
import sys
import time
from array import array
from pathlib import Path
from typing import Any

HEADER = struct.Struct(">HIQ")
"""Sender, its number, and the time of `send`, ns."""


class BenchMember:
    def __init__(self, options: dict[str, Any]) -> None:
        self.index, self.folder = int(options["index"]), Path(options["folder"])
        self.size = int(options.get("size", 100))
        self.got, self.sent = array("q"), array("q")
        """Rows of (sender, number, sent, received) and of (number, sent, durable here)."""
        self.read_rate = 0.0
        self.number = 0
        self.hushed = False
        self.orders: asyncio.Queue[list[str]] = asyncio.Queue()
        self.tasks: set[asyncio.Task[Any]] = set()

    async def send(self, peer: Any) -> None:
        self.number += 1
        number, called = self.number, time.monotonic_ns()
        await peer.send(HEADER.pack(self.index, number, called).ljust(self.size, b"."))
        self.sent.extend((number, called, time.monotonic_ns()))

    async def send_at_rate(self, peer: Any, rate: float, seconds: float) -> None:
        """Send at a rate that does not depend on completion."""
        start = time.monotonic_ns()
        for count in range(int(rate * seconds)):
            due = start + int(count * 1e9 / rate)
            while (left := due - time.monotonic_ns()) > 0:
                await asyncio.sleep(left / 1e9)
            if self.hushed:
                return
            if len(self.tasks) > 10_000:  # back-pressure of the group
                await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED)
            task = asyncio.create_task(self.send(peer))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def receive(self, peer: Any) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            try:
                async for batch in peer.batches():
                    now = time.monotonic_ns()
                    for payload in batch.payloads:
                        self.got.extend((*HEADER.unpack_from(payload), now))
                    if self.read_rate:
                        await asyncio.sleep(len(batch.payloads) / self.read_rate)
            except Exception as error:
                print("out", str(error).replace("\n", " "), flush=True)

    def read_commands(self) -> None:
        data = os.read(0, 1 << 16)
        if not data:
            self.orders.put_nowait(["end"])
            asyncio.get_running_loop().remove_reader(0)
        for line in data.decode().splitlines():
            self.orders.put_nowait(line.split())

    async def run_commands(self, peer: Any) -> None:
        while (order := await self.orders.get())[0] != "end":
            if order[0] == "go":
                task = asyncio.create_task(
                    self.send_at_rate(peer, float(order[1]), float(order[2]))
                )
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
            elif order[0] == "hush":
                self.hushed = True
            elif order[0] == "read":
                self.read_rate = float(order[1])

    def write_log(self) -> None:
        (self.folder / f"{self.index}.got").write_bytes(self.got.tobytes())
        (self.folder / f"{self.index}.sent").write_bytes(self.sent.tobytes())


async def watch(peer: Any, states: bool) -> None:
    before, states_before = -1, ""
    while True:
        meets = len(peer.node.greeted)
        if meets != before:
            before = meets
            print("meets", meets, flush=True)
        if states:
            found = " ".join(f"{one.name}={one.state}" for one in peer.status().members)
            if found != states_before:
                states_before = found
                print("states", found, flush=True)
        await asyncio.sleep(0.02 if states else 0.2)


async def run_peer(options: dict[str, Any]) -> None:
    from antecede.live import Peer, Tls

    folder, name = Path(options["folder"]), options["name"]
    member = BenchMember(options)
    settings = dict(options.get("settings", {}))
    if options.get("store"):
        settings["store"] = folder / f"{name}.db"
    async with Peer(
        name,
        listen=options["listen"],
        tls=Tls(folder / f"{name}.pem", folder / "ca.pem"),
        **settings,
    ) as peer:
        if options.get("join"):
            await peer.join(options["join"], timeout_s=float(options.get("join_s", 60)))
        else:
            await peer.bootstrap()
        print("joined", flush=True)
        asyncio.get_running_loop().add_reader(0, member.read_commands)
        tasks = [
            asyncio.create_task(one)
            for one in (member.receive(peer), watch(peer, bool(options.get("states"))))
        ]
        await member.run_commands(peer)
        member.write_log()
        print("done", flush=True)
        for task in (*tasks, *member.tasks):
            task.cancel()
        await peer.close()
    os._exit(0)


def main() -> None:
    options = json.loads(sys.argv[1])
    if options.get("uvloop"):
        import uvloop

        uvloop.install()
    asyncio.run(run_peer(options))


if __name__ == "__main__":
    main()
