"""The relay: reads IP packets from every host's TUN device and writes them to their target's.

It is a process of its own (this file is its program, of the standard library alone), so that a busy
test does not hold packets up; and it ends as its starter does, for that closes its control socket.
Commands are lines of JSON, each answered when it is in force.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import random
import selectors
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

BATCH = 64
"""Packets of one host before another's turn; they also bound how late a due one can be."""
LONGEST = 65_536
ASIDE_S = 0.01
"""A packet out of order comes up to this much later, or up to the jitter where that is more."""


@dataclass(frozen=True)
class Link:
    """What befalls packets from one host to another."""

    delay_ms: float = 0
    """What every packet takes at least."""
    jitter_ms: float = 0
    """Up to how much longer it takes, evenly drawn; this alone keeps packets in their order."""
    loss: float = 0.0
    """The share that is lost; so with the next two: shares, drawn for each packet."""
    duplicate: float = 0.0
    """Comes twice, each with its own jitter."""
    reorder: float = 0.0
    """Is set aside for up to 10 ms (or the jitter), while those behind it pass."""
    up: bool = True
    """Otherwise nothing passes; what is under way at that time is lost as well."""

    def __post_init__(self) -> None:
        if self.delay_ms < 0 or self.jitter_ms < 0:
            raise ValueError(f"a negative time: {self}")
        if not all(0 <= share <= 1 for share in (self.loss, self.duplicate, self.reorder)):
            raise ValueError(f"a share is between 0 and 1: {self}")


class Counts(NamedTuple):
    """Packets from one host to another: sent + duplicated are the sum of all after `reordered`."""

    sent: int = 0
    duplicated: int = 0
    reordered: int = 0
    delivered: int = 0
    lost: int = 0
    cut: int = 0
    """Met a link that was not up."""
    failed: int = 0
    """Refused by the target's device."""
    waiting: int = 0


class Lane:
    """One direction between two hosts: its link, its own draws, and what became of packets."""

    def __init__(self, target: int, seed: str) -> None:
        self.target = target
        self.draw = random.Random(seed)  # its own: traffic elsewhere does not shift its draws
        self.counts: Counter[str] = Counter()
        self.waiting = 0
        self.last = 0.0
        """When the last packet in order is due."""
        self.set(Link())

    def set(self, link: Link) -> None:
        """Treat packets by this from now on."""
        self.link, self.plain = link, link == Link()

    def copies(self) -> int:
        """Draw how many of a packet go on."""
        if not self.link.up:
            self.counts["cut"] += 1
            return 0
        if self.draw.random() < self.link.loss:
            self.counts["lost"] += 1
            return 0
        twice = self.draw.random() < self.link.duplicate
        self.counts["duplicated"] += twice
        return 1 + twice

    def due(self, now: float) -> float:
        """Draw when a copy arrives."""
        link = self.link
        own = now + (link.delay_ms + self.draw.random() * link.jitter_ms) / 1000
        due = max(own, self.last)
        if self.draw.random() < link.reorder:
            self.counts["reordered"] += 1
            return due + self.draw.random() * max(ASIDE_S, link.jitter_ms / 1000)
        self.last = due
        return due


class Relay:
    """All lanes, and what is under way by the time it is due."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control.makefile("rw")
        self.selector = selectors.DefaultSelector()
        self.selector.register(control, selectors.EVENT_READ, self.obey)
        self.lanes: dict[bytes, Lane] = {}
        """By source and destination address, as they stand in a packet."""
        self.names: dict[tuple[str, str], Lane] = {}
        self.heap: list[tuple[float, int, Lane, bytes]] = []
        self.serial = itertools.count()  # those due at one time leave in the order they came
        self.strays = 0
        """Packets to nobody: other addresses, broadcasts, other protocols."""
        self.running = True

    # -- commands -----------------------------------------------------------------------------

    def obey(self) -> None:
        """Carry out one command and answer; the end of the socket is the end."""
        line = self.control.readline()
        if not line:
            self.running = False
            return
        command = json.loads(line)
        answers: dict[str, Callable[..., Any]] = {
            "begin": self.begin,
            "set": self.set,
            "stats": self.stats,
        }
        answer = answers[command.pop("do")](**command)
        self.control.write(json.dumps(answer) + "\n")
        self.control.flush()

    def begin(self, seed: int, hosts: list[tuple[str, str, int]]) -> None:
        """Join hosts: their names, addresses and descriptors."""
        for source, address, fd in hosts:
            self.selector.register(fd, selectors.EVENT_READ, partial(self.drain, fd))
            for target, other, other_fd in hosts:
                if source == target:  # goes by `lo`, and never comes here
                    continue
                lane = Lane(other_fd, f"{seed} {source} {target}")
                self.names[source, target] = lane
                self.lanes[socket.inet_aton(address) + socket.inet_aton(other)] = lane

    def set(self, links: list[tuple[str, str, dict[str, Any]]]) -> None:
        """Change links, all at once."""
        for source, target, link in links:
            self.names[source, target].set(Link(**link))

    def stats(self) -> dict[str, Any]:
        """Return what became of packets."""
        lanes = [
            (source, target, {**lane.counts, "waiting": lane.waiting})
            for (source, target), lane in self.names.items()
        ]
        return {"lanes": lanes, "strays": self.strays}

    # -- packets ------------------------------------------------------------------------------

    def run(self) -> None:
        """Carry packets until the control socket ends."""
        while self.running:
            for key, _ in self.selector.select(self.patience()):
                key.data()
            self.release()

    def patience(self) -> float | None:
        """Return how long nothing is due."""
        return max(0.0, self.heap[0][0] - time.monotonic()) if self.heap else None

    def drain(self, fd: int) -> None:
        """Take what a host has sent, though not so much that others starve."""
        for _ in range(BATCH):
            try:
                packet = os.read(fd, LONGEST)
            except BlockingIOError:
                return
            self.take(packet)

    def take(self, packet: bytes) -> None:
        """Pass a packet on, at once or at its time."""
        lane = self.lanes.get(packet[12:20])
        if lane is None or packet[0] >> 4 != 4:
            self.strays += 1
            return
        lane.counts["sent"] += 1
        if lane.plain and not lane.waiting:
            self.deliver(lane, packet)
            return
        now = time.monotonic()
        for _ in range(lane.copies()):
            heapq.heappush(self.heap, (lane.due(now), next(self.serial), lane, packet))
            lane.waiting += 1

    def release(self) -> None:
        """Deliver what is due."""
        now = time.monotonic()
        while self.heap and self.heap[0][0] <= now:
            _, _, lane, packet = heapq.heappop(self.heap)
            lane.waiting -= 1
            if lane.link.up:
                self.deliver(lane, packet)
            else:
                lane.counts["cut"] += 1

    def deliver(self, lane: Lane, packet: bytes) -> None:
        """Write a packet to its target's device."""
        try:
            os.write(lane.target, packet)
        except OSError:  # a test may set a device down
            lane.counts["failed"] += 1
        else:
            lane.counts["delivered"] += 1


def main() -> None:
    """Serve the control socket whose descriptor is the argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal interrupts all; our starter ends us
    with socket.socket(fileno=int(sys.argv[1])) as control:
        Relay(control).run()


if __name__ == "__main__":
    main()
