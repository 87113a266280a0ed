"""A network: hosts by name, the relay between them, and what can be done to its links."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from tests.live.networks import relay
from tests.live.networks.namespaces import END_TIMEOUT_S, Host
from tests.live.networks.relay import Counts, Link

MOST = 254
"""Hosts that have an address in 10.x.y.0/24."""
ANSWER_TIMEOUT_S = 30

numbers = itertools.count()


@dataclass(frozen=True)
class Stats:
    """What became of packets."""

    lanes: Mapping[tuple[str, str], Counts]
    strays: int
    """Packets to nobody: other addresses, broadcasts, other protocols than IPv4."""
    overruns: Mapping[str, int]
    """Packets that a host's device dropped before the relay saw them; such a loss is not asked."""

    def __getitem__(self, lane: tuple[str, str]) -> Counts:
        return self.lanes[lane]


class Control:
    """The relay's process, and questions to it."""

    def __init__(self, fds: Iterable[int]) -> None:
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-P", relay.__file__, str(theirs.fileno())]
        with theirs:
            self.process = subprocess.Popen(argv, pass_fds=[theirs.fileno(), *fds])
        ours.settimeout(ANSWER_TIMEOUT_S)
        self.socket, self.lines = ours, ours.makefile("rw")

    def ask(self, do: str, **arguments: Any) -> Any:
        """Return the answer to a command, which then is in force."""
        answer = ""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.lines.write(json.dumps({"do": do, **arguments}) + "\n")
            self.lines.flush()
            answer = self.lines.readline()
        if not answer:
            raise RuntimeError("the relay has ended; what it says of it is on stderr")
        return json.loads(answer)

    def close(self) -> None:
        """End the relay: its devices go with it."""
        with contextlib.suppress(OSError):  # a line that a dead relay did not take
            self.lines.close()
        self.socket.close()
        try:
            self.process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Network:
    """Hosts that reach each other and nothing else, while the `with` lasts."""

    def __init__(self, names: Sequence[str], seed: int = 0) -> None:
        if len(set(names)) != len(names) or not 0 < len(names) <= MOST:
            raise ValueError(f"a network has 1 to {MOST} different names: {names}")
        number = next(numbers)
        prefix = f"10.{number // 256 % 256}.{number % 256}"
        self.pid, self.seed = os.getpid(), seed
        self.hosts = {
            name: Host(name, f"{prefix}.{place}", number)
            for place, name in enumerate(names, start=1)
        }
        self.links = {(a, b): Link() for a, b in itertools.product(names, repeat=2) if a != b}
        self.stack = ExitStack()

    def __getitem__(self, name: str) -> Host:
        return self.hosts[name]

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            fds = {}
            with ExitStack() as opened:  # the relay has its own copies of them
                for name, host in self.hosts.items():
                    fds[name] = host.make()
                    stack.callback(host.remove)
                    opened.callback(os.close, fds[name])
                self.control = Control(fds.values())
                stack.callback(self.control.close)
            # Removed last first: while a device is open its namespace stays, though without a name.
            rows = [(name, host.address, fds[name]) for name, host in self.hosts.items()]
            self.control.ask("begin", seed=self.seed, hosts=rows)
            self.stack = stack.pop_all()
        atexit.register(self.close)
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill what runs in the hosts, end the relay and remove the namespaces."""
        atexit.unregister(self.close)
        if os.getpid() == self.pid:  # a fork of this process has no right to
            self.stack.close()

    def set(self, a: str, b: str, link: Link, *, one_way: bool = False) -> None:
        """Give the way from `a` to `b` a link, and the way back too unless `one_way`."""
        ways = [(a, b)] if one_way else [(a, b), (b, a)]
        self.change(ways, lambda old: link)

    def set_all(self, link: Link) -> None:
        """Give all ways a link."""
        self.change(self.links, lambda old: link)

    def cut(self, some: Iterable[str], others: Iterable[str], *, one_way: bool = False) -> None:
        """Let nothing pass from some to others, nor back unless `one_way`; as of the return.

        Links keep their other settings, and what is under way is lost.
        """
        ways = list(itertools.product(set(some), set(others)))
        back = [] if one_way else [(b, a) for a, b in ways]
        self.change([*ways, *back], lambda old: replace(old, up=False))

    def heal(self) -> None:
        """Let everything pass again, by the other settings of its link."""
        self.change(self.links, lambda old: replace(old, up=True))

    def change(self, ways: Iterable[tuple[str, str]], new: Callable[[Link], Link]) -> None:
        """Change links, all at once; it is in force when this returns."""
        changed = {way: new(self.links[way]) for way in ways}
        rows = [(a, b, asdict(link)) for (a, b), link in changed.items()]
        self.control.ask("set", links=rows)
        self.links.update(changed)

    def stats(self) -> Stats:
        """Return what became of packets until now."""
        answer = self.control.ask("stats")
        lanes = {(a, b): Counts(**counts) for a, b, counts in answer["lanes"]}
        overruns = {name: host.overruns() for name, host in self.hosts.items()}
        return Stats(lanes, answer["strays"], overruns)
