"""A member in a process of its own that logs what it sends and is handed, one JSON object a line.

    python -m tests.live.chaos.member FOLDER NAME LISTEN CONFIG [JOIN ...]

CONFIG is JSON: `members`, the number to wait for; `rate`, messages a second; `order`; `partition`.
Each message names the previous message of its sender (`p`) and the messages that the sender was
handed since then (`a`): these are its causes, whatever the library says. Entries of the log, each
written before anything else happens:

    start  a run of the program begins
    s      a message is about to be sent;  S  it is acknowledged;  f  it was refused
    D      a message was handed over
    st     figures of the process and of its status
    die    the program ends with an error
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from antecede.errors import PeerError
from antecede.live import Message, Peer
from antecede.live.tls import Tls

CAUSES = 60
"""Causes at most that a message names beside the previous one of its sender."""
SIZES = (0.5, 0), (0.95, 300), (0.998, 100_000), (1.0, 5_000_000)
"""Up to which draw -> the largest payload, bytes."""


class Member:
    """Sends, takes, and logs both."""

    def __init__(self, folder: Path, name: str, config: dict[str, Any]) -> None:
        self.folder, self.name, self.config = folder, name, config
        path = folder / f"{name}.log"
        self.previous = _last_acknowledged(path)
        self._log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._life = time.time_ns()
        self._handed: list[str] = []

    def log(self, event: str, **fields: Any) -> None:
        os.write(self._log, (json.dumps({"e": event, **fields}) + "\n").encode())

    async def send(self, peer: Peer) -> None:
        """Send at random moments, from when all are there until the file `stop` exists."""
        while len(peer.members) < self.config["members"]:
            await asyncio.sleep(0.1)
        number = 0
        while not (self.folder / "stop").exists():
            number += 1
            key = f"{self.name}:{self._life}:{number}"
            causes, self._handed = self._handed, []
            head = json.dumps({"k": key, "p": self.previous, "a": causes[-CAUSES:]}).encode()
            self.log("s", k=key)
            try:
                sent = await peer.send(head + b"\n" + bytes(_size()))
            except PeerError as error:  # no majority is heard: later
                self.log("f", k=key, why=str(error))
                self._handed = causes + self._handed
                await asyncio.sleep(0.5)
                continue
            self.previous = key
            self.log("S", k=key, id=str(sent))
            await asyncio.sleep(random.expovariate(self.config["rate"]))

    async def take(self, peer: Peer) -> None:
        async for event in peer.events():
            if isinstance(event, Message):
                head = json.loads(event.payload.partition(b"\n")[0])
                self.log("D", id=str(event.id), **head)
                self._handed.append(head["k"])
                peer.acknowledge(event)

    async def report(self, peer: Peer) -> None:
        while True:
            status = peer.status()
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self.log("st", rss=pages * 4096, held=status.held, others=status.others)
            await asyncio.sleep(1)

    async def live(self, listen: str, addresses: list[str]) -> None:
        """Be a member until SIGTERM."""
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        async with Peer(
            self.name,
            group_name="chaos",
            order=self.config["order"],
            partition=self.config["partition"],
            listen=listen,
            tls=Tls(self.folder / f"{self.name}.pem", self.folder / "ca.pem"),
            store=self.folder / f"{self.name}.db",
            acknowledge="explicit",
        ) as peer:
            if addresses:
                await peer.join(addresses, timeout_s=60)
            else:
                await peer.bootstrap()
            works = [self.send(peer), self.take(peer), self.report(peer)]
            tasks = [asyncio.create_task(one) for one in works]
            waiting = asyncio.create_task(ended.wait())
            tasks[0].add_done_callback(lambda task: task.cancelled() or task.result())
            await asyncio.wait({waiting, *tasks[1:]}, return_when=asyncio.FIRST_COMPLETED)
            for task in (waiting, *tasks):
                if task.done():
                    task.result()
                task.cancel()


def _size() -> int:
    draw = random.random()
    largest = next(size for upto, size in SIZES if draw < upto)
    return random.randrange(largest) if 0 < largest <= 300 else largest


def _last_acknowledged(path: Path) -> str:
    """Return the key of the newest message that a former run logged as acknowledged."""
    if not path.exists():
        return ""
    entries = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return next((one["k"] for one in reversed(entries) if one["e"] == "S"), "")


def main() -> None:
    folder, name, listen, config, *addresses = sys.argv[1:]
    member = Member(Path(folder), name, json.loads(config))
    member.log("start")
    try:
        asyncio.run(member.live(listen, addresses))
    except BaseException as error:
        member.log("die", why=f"{type(error).__name__}: {error}")
        raise


if __name__ == "__main__":
    main()
