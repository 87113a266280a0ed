"""A member in a process of its own, for tests that kill it: says things, and logs what it sees.

    python -m tests.live.member FOLDER NAME LISTEN JOIN RATE ORDER

A line of the log FOLDER/NAME.log is written whole before anything else happens:
`R delivered lane` a life begins, `s payload` it is about to be sent, `S payload` it was sent for
good, `D payload sender time` delivered, `V n` it sees n members, `C time names` with whom it is
connected by now. It talks from when FOLDER/go exists until FOLDER/stop does.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from antecede.live.events import Message, View
from antecede.live.peer import Peer
from antecede.live.tls import Tls


async def talk(peer: Peer, folder: Path, log: int, rate: float) -> None:
    """Send at a pace, from when everybody is there until told to stop."""
    while not (folder / "go").exists():
        await asyncio.sleep(0.02)
    life, number, due = time.time_ns(), 0, time.monotonic()
    while not (folder / "stop").exists():
        number += 1
        payload = f"{peer.name}-{life}-{number}"
        os.write(log, f"s {payload}\n".encode())
        await peer.send(payload.encode())
        os.write(log, f"S {payload}\n".encode())
        due += 1 / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))


async def listen(peer: Peer, log: int) -> None:
    """Log what is delivered."""
    async for event in peer.events():
        if isinstance(event, Message):
            os.write(log, _line(event))
        elif isinstance(event, View):
            os.write(log, f"V {len(event.sender_ids)}\n".encode())


async def look(peer: Peer, log: int) -> None:
    """Log with whom it is connected, when that changes."""
    before = ""
    while True:
        others = peer.status().members
        now = ",".join(sorted(one.name for one in others if one.state != "away"))
        if now != before:
            os.write(log, f"C {time.monotonic_ns()} {now or '-'}\n".encode())
        before = now
        await asyncio.sleep(0.05)


def _line(message: Message) -> bytes:
    at = time.monotonic_ns()
    return f"D {message.payload.decode()} {message.sender} {at}\n".encode()


async def live(folder: Path, name: str, listen_at: str, join: str, rate: float, order: str) -> None:
    log = os.open(folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    async with Peer(
        name,
        group_name="processes",
        order=order,
        listen=listen_at,
        tls=Tls(folder / f"{name}.pem", folder / "ca.pem"),
        store=folder / f"{name}.db",
        heartbeat_s=0.2,
        failure_timeout_s=1.5,
    ) as peer:
        os.write(log, f"R {peer.status().delivered} {peer.status().sender_id}\n".encode())
        if join == "-":
            await peer.bootstrap()
        else:
            await peer.join(join, timeout_s=20)
        await asyncio.gather(talk(peer, folder, log, rate), listen(peer, log), look(peer, log))


if __name__ == "__main__":
    where, who, at, to, pace, kind = sys.argv[1:]
    asyncio.run(live(Path(where), who, at, to, float(pace), kind))
