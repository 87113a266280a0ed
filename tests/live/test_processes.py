"""Members in processes of their own, which are killed and stopped while they talk."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

import pytest

from antecede.core.oracle.history import History
from antecede.live import keys
from antecede.tables.trace.schema import DELIVER, SEND, Event

NAMES = ("ann", "bob", "cat", "dan")
RATE = 30.0


class Members:
    """The processes of a group, their logs, and what is done to them."""

    def __init__(self, folder: Path, order: str) -> None:
        self.folder, self.order = folder, order
        keys.make_authority(folder)
        for name in NAMES:
            keys.make_member(folder, name)
        ports = free_ports(len(NAMES))
        self.addresses = {n: f"127.0.0.1:{port}" for n, port in zip(NAMES, ports, strict=True)}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.lives: dict[str, int] = {}
        """How many lives of each had begun when its newest was started."""

    def start(self, name: str) -> None:
        self.lives[name] = self.begun(name)
        join = "-" if name == NAMES[0] else self.addresses[NAMES[0]]
        arguments = [str(self.folder), name, self.addresses[name], join, str(RATE), self.order]
        command = [sys.executable, "-m", "tests.live.member", *arguments]
        with (self.folder / f"{name}.err").open("ab") as errors:
            self.running[name] = self.launch(name, command, errors)

    def launch(self, name: str, command: list[str], errors: BinaryIO) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stderr=errors)

    def go(self) -> None:
        """Let them talk once all see all."""
        end = time.monotonic() + 30
        everybody = ["V", str(len(NAMES))]
        while not all(everybody in self.log(name) for name in NAMES):
            assert time.monotonic() < end, self.errors()
            time.sleep(0.05)
        (self.folder / "go").touch()

    def signal(self, name: str, number: signal.Signals) -> None:
        self.running[name].send_signal(number)
        if number == signal.SIGKILL:
            self.running[name].wait()

    def stop(self) -> None:
        (self.folder / "stop").touch()

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()

    def errors(self) -> str:
        return "".join(
            (self.folder / f"{name}.err").read_text(errors="replace") for name in self.running
        )

    def log(self, name: str) -> list[list[str]]:
        path = self.folder / f"{name}.log"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def counts(self) -> list[int]:
        return [len(self.log(name)) for name in NAMES]

    def begun(self, name: str) -> int:
        """Return how many lives of a member have said that they begin."""
        return sum(line[:1] == ["R"] for line in self.log(name))

    def all_begun(self) -> bool:
        """Return whether the newest life of each has begun: a busy machine takes a while."""
        return all(self.begun(name) > before for name, before in self.lives.items())

    def rest(self, seconds: float = 60.0) -> None:
        """Wait until all that were started have begun, and nothing more is logged for a while."""
        end, before, since = time.monotonic() + seconds, self.counts(), time.monotonic()
        while time.monotonic() - since < 4:
            assert time.monotonic() < end, "they do not come to rest"
            time.sleep(0.1)
            now = self.counts()
            if now != before or not self.all_begun():
                before, since = now, time.monotonic()


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def seen(log: list[list[str]]) -> tuple[list[tuple[str, str]], int]:
    """Return (kind, payload) as the stored state has it, and how many came twice in one life.

    What a life delivered and did not store before it was killed, it delivers again.
    """
    rows: list[tuple[str, str, int]] = []
    twice, life, delivered = 0, set[str](), list[str]()
    for fields in log:
        if fields[0] == "R":
            rows = [row for row in rows if row[2] <= int(fields[1])]
            life = set()
            del delivered[int(fields[1]) :]
        elif fields[0] == "s":
            rows.append((SEND, fields[1], 0))
        elif fields[0] == "D":
            twice += fields[1] in life
            life.add(fields[1])
            if fields[1] not in delivered:
                delivered.append(fields[1])
                rows.append((DELIVER, fields[1], len(delivered)))
    return [(kind, payload) for kind, payload, _ in rows], twice


def judge(members: Members) -> tuple[int, int]:
    """Assert that nothing is lost, early or twice; return how much was sent and delivered."""
    logs = {name: seen(members.log(name)) for name in NAMES}
    acknowledged = {f[1] for name in NAMES for f in members.log(name) if f[0] == "S"}
    delivered = {
        name: {payload for kind, payload in rows if kind == DELIVER}
        for name, (rows, _) in logs.items()
    }
    anywhere = set().union(*delivered.values())
    happened = acknowledged | anywhere
    for name, (_, twice) in logs.items():
        assert not twice, (name, twice)
        owed = {payload for payload in happened if not payload.startswith(f"{name}-")}
        assert not owed - delivered[name], (name, sorted(owed - delivered[name])[:5])
        assert not delivered[name] - owed
    events = [
        Event(kind=kind, id=payload, member=name)
        for name, (rows, _) in logs.items()
        for kind, payload in dict.fromkeys(rows)
        if payload in happened
    ]
    relation = {"causal": "delivery", "fifo": "fifo"}[members.order]
    assert not History(events).early(relation)
    return len(happened), sum(map(len, delivered.values()))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_killed_and_stopped_members_lose_nothing(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    members = Members(tmp_path, "causal")
    try:
        for name in NAMES:
            members.start(name)
        members.go()
        time.sleep(1)
        for _ in range(8):
            name = draw.choice(NAMES)
            if draw.random() < 0.65:
                members.signal(name, signal.SIGKILL)
                time.sleep(draw.uniform(0, 0.5))
                members.start(name)
            else:
                members.signal(name, signal.SIGSTOP)
                time.sleep(draw.uniform(0.2, 2.5))
                members.signal(name, signal.SIGCONT)
            time.sleep(draw.uniform(0.1, 0.6))
        members.stop()
        members.rest()
        sent, delivered = judge(members)
        assert sent > 300, members.errors()
        assert delivered == 3 * sent
        assert "Traceback" not in members.errors()
    finally:
        members.end()
