"""Group of live peers in processes of this machine."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bench.live_rate import find_free_ports

Rows = NDArray[np.int64]
ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
TICKS = os.sysconf("SC_CLK_TCK")


class MemberLog(NamedTuple):
    """Messages sent and received by one member; times in ns of the machine's monotonic clock."""

    got: Rows
    """[n, 4]: sender, number, time of `send`, time of receipt."""
    sent: Rows
    """[n, 3]: number, time of `send`, time when it was durable at the sender."""


class MemberProcess:
    def __init__(self, options: dict[str, Any], popen: Callable[..., Any]) -> None:
        self.index, self.lines = options["index"], queue.Queue[str]()
        self.joined = False
        self.connections = 0
        self.states: dict[str, str] = {}
        """States of the other members by name, as reported by this one."""
        self.out = ""
        errors = (Path(options["folder"]) / f"{self.index}.err").open("ab")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCES), str(ROOT)])}
        self.process = popen(
            [sys.executable, "-m", "bench.live_member", json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            cwd=ROOT,
        )
        errors.close()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for raw in self.process.stdout:
            word, _, rest = raw.decode().strip().partition(" ")
            if word == "meets":
                self.connections = int(rest)
            elif word == "states":
                self.states = dict(pair.split("=") for pair in rest.split())
            elif word == "joined":
                self.joined = True
            elif word == "out":
                self.out = rest
            elif word == "done":
                self.lines.put(word)

    def send_command(self, order: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{order}\n".encode())
            self.process.stdin.flush()

    def cpu(self) -> float:
        """Return the used processor seconds."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            stat = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(stat[11]) + int(stat[12])) / TICKS
        return 0.0


class PeerGroup:
    """Context manager of members m0, m1, ...; `hosts`: network namespaces of the members."""

    def __init__(
        self,
        count: int,
        *,
        store: bool = False,
        uvloop: bool = False,
        states: bool = False,
        size: int = 100,
        hosts: Sequence[Any] = (),
        **settings: Any,
    ) -> None:
        self.count, self.hosts = count, hosts
        self._store, self._uvloop, self._settings = store, uvloop, settings
        self._states, self._size = states, size
        self._folder = tempfile.TemporaryDirectory(prefix="bench-live-")
        self.folder = Path(self._folder.name)
        self.members: list[MemberProcess] = []

    def __enter__(self) -> Self:
        from antecede.live import keys

        keys.make_authority(self.folder)
        for index in range(self.count):
            keys.make_member(self.folder, f"m{index}")
        ports = find_free_ports(self.count) if not self.hosts else [7000] * self.count
        hosts = [one.address for one in self.hosts] or ["127.0.0.1"] * self.count
        self.addresses = [f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one in self.members:
            one.process.kill()
            one.process.wait()
        self._folder.cleanup()

    def start(self, index: int) -> MemberProcess:
        options = {
            "index": index,
            "name": f"m{index}",
            "folder": str(self.folder),
            "listen": self.addresses[index],
            "join": self.addresses[0] if index else "",
            "store": self._store,
            "uvloop": self._uvloop,
            "size": self._size,
            "states": self._states,
            "settings": self._settings,
            "join_s": 120,
        }
        popen = self.hosts[index].popen if self.hosts else subprocess.Popen
        process = MemberProcess(options, popen)
        self.members.append(process)
        return process

    def start_all(self, timeout_s: float = 120.0) -> float:
        """Start all members and wait until all are connected; return the seconds."""
        begin = time.monotonic()
        self.start(0)
        self.wait_until(lambda: self.members[0].joined, 30)
        for index in range(1, self.count):
            self.start(index)
        self.wait_until(
            lambda: all(one.connections == self.count - 1 for one in self.members), timeout_s
        )
        return time.monotonic() - begin

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Wait for a condition. Raises TimeoutError with the members' output."""
        end = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"not within {timeout_s:.0f} s. {self.describe_errors()}")
            time.sleep(0.005)

    def describe_errors(self) -> str:
        texts = [f"connected: {[one.connections for one in self.members]}"]
        for one in self.members:
            text = (self.folder / f"{one.index}.err").read_text(errors="replace")[-600:]
            texts += [f"m{one.index}: {text}"] if text else []
        return "\n".join(texts)[:4000]

    def send_command(self, order: str, *but: int) -> None:
        for one in self.members:
            if one.index not in but:
                one.send_command(order)

    def signal(self, index: int, number: signal.Signals) -> int:
        """Send a signal to a member; return the time in ns."""
        now = time.monotonic_ns()
        self.members[index].process.send_signal(number)
        return now

    def stop(self, *but: int, timeout_s: float = 60.0) -> dict[int, MemberLog]:
        """Stop all members but some, and return their logs."""
        found = {}
        asked = [one for one in self.members if one.index not in but]
        for one in asked:
            one.send_command("end")
        for one in asked:
            try:
                one.lines.get(timeout=timeout_s)
            except queue.Empty:
                raise TimeoutError(
                    f"m{one.index} did not finish. {self.describe_errors()}"
                ) from None
            found[one.index] = MemberLog(
                self._read_rows(one.index, "got", 4), self._read_rows(one.index, "sent", 3)
            )
        return found

    def _read_rows(self, index: int, what: str, width: int) -> Rows:
        data = (self.folder / f"{index}.{what}").read_bytes()
        return np.frombuffer(data, dtype=np.int64).reshape(-1, width)


def find_longest_gap_ms(log: MemberLog, start: int, end: int, *but: int) -> float:
    """Return the longest time without a delivery in an interval, without some senders."""
    got = log.got
    times = got[(got[:, 3] >= start) & (got[:, 3] <= end) & ~np.isin(got[:, 0], but), 3]
    return float(np.diff(np.concatenate(([start], times, [end]))).max()) / 1e6


def count_lost(
    logs: dict[int, MemberLog], senders: Sequence[int], receivers: Sequence[int]
) -> tuple[int, int]:
    """Return the numbers of acknowledged messages that receivers lack, and of duplicates."""
    lacking = twice = 0
    for sender in senders:
        acknowledged = logs[sender].sent[:, 0]
        for receiver in receivers:
            if receiver != sender:
                got = logs[receiver].got
                numbers = got[got[:, 0] == sender, 1]
                lacking += len(np.setdiff1d(acknowledged, numbers))
                twice += len(numbers) - len(np.unique(numbers))
    return lacking, twice
