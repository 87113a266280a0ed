"""Example logs of groups on a reordering network, for tests, documentation and benchmarks.

A row is a member's log entry: received or sent bytes with the time of its clock.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow

from antecede.core.group import Group, Message, Packet
from antecede.core.protocols import Addressing, Relation

pa: Any = pyarrow

SCHEMA: Any = pa.schema(
    [
        ("observer", pa.string()),
        ("number", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("wire", pa.binary()),
        ("sent", pa.bool_()),
        ("to", pa.list_(pa.string())),
        ("topics", pa.list_(pa.string())),
    ]
)
START_US = 1_800_000_000_000_000


class Talk(NamedTuple):
    """Size and network of an example log; times in microseconds."""

    messages: int = 100
    pause_us: int = 20_000  # mean time between two sends in the group
    delay_us: tuple[int, int] = (1_000, 200_000)  # minimum and maximum delay of a copy
    duplicate_probability: float = 0.05  # 0 to 1
    lost: float = 0.0  # 0 to 1
    tick_us: int = 10_000  # interval of ticks
    drain_us: int = 1_000_000  # time after the last send


def record_log(
    groups: Mapping[str, Group], workload: Talk | None = None, *, seed: int = 1
) -> pyarrow.Table:
    """Let groups exchange messages and return the log of all members, in columns of `SCHEMA`.

    `number` breaks ties of time. `seed` determines messages, times and delays.
    """
    return _ExampleNetwork(groups, workload or Talk(), random.Random(seed)).run()


class _ExampleNetwork:
    def __init__(self, groups: Mapping[str, Group], workload: Talk, rng: random.Random) -> None:
        self.groups, self.workload, self.rng = dict(groups), workload, rng
        self.in_flight: list[tuple[int, int, str, bytes]] = []
        self.tickets = 0
        self.ticked = START_US // self.workload.tick_us * self.workload.tick_us
        self.rows: list[dict[str, Any]] = []
        self.delivered: dict[str, list[Message]] = {name: [] for name in groups}

    def run(self) -> pyarrow.Table:
        now, names = START_US, sorted(self.groups)
        talkers = [name for name in names if self.groups[name].has_application]
        for k in range(self.workload.messages):
            now += 1 + self.rng.randrange(2 * self.workload.pause_us)
            self._arrive_until(now)
            name = self.rng.choice(talkers)
            self._send(name, f"{k} of {name}".encode(), now)
        self._arrive_until(now + self.workload.drain_us)
        table: pyarrow.Table = pa.Table.from_pylist(self.rows, SCHEMA)
        return table

    def _send(self, name: str, payload: bytes, now: int) -> None:
        """Send to all or to some, about a topic, or in reply to the last delivery."""
        group, chosen = self.groups[name], dict[str, Any]()
        if group.guarantee.relation is Relation.BY_REPLY and self.delivered[name]:
            chosen["reply_to"] = self.delivered[name][-1]
        others = [member for member in group.members if member != name]
        if group.addressing is Addressing.MEMBERS and others and self.rng.random() < 0.3:
            chosen["to"] = [self.rng.choice(others)]
        if group.addressing is Addressing.TOPICS:
            chosen["topics"] = [self.rng.choice([*group.topics(), "unheard of"])]
        packets = group.send_packets(payload, now_ns=now * 1000, **chosen)
        for packet in packets or [Packet((), b"")]:
            self._log(name, now, packet.wire or None, True, chosen)
        # An open group knows only the senders so far; its transport reaches all members.
        if group.is_open and "to" not in chosen:
            everybody = tuple(member for member in self.groups if member != name)
            packets = [packet._replace(to=everybody) for packet in packets]
        self._enqueue(packets, now)

    def _arrive_until(self, now: int) -> None:
        while (tick := self.ticked + self.workload.tick_us) <= now:
            self._deliver_until(tick - 1)
            self.ticked = tick
            for name, group in self.groups.items():
                self.delivered[name] += group.tick(now_ns=tick * 1000)
                self._send_control(name, tick)
        self._deliver_until(now)

    def _deliver_until(self, now: int) -> None:
        while self.in_flight and self.in_flight[0][0] <= now:
            at, _, name, wire = heapq.heappop(self.in_flight)
            self._log(name, at, wire, False)
            self.delivered[name] += self.groups[name].receive(wire, now_ns=at * 1000)
            self._send_control(name, at)

    def _send_control(self, name: str, now: int) -> None:
        packets = self.groups[name].take_control_packets()
        for packet in packets:
            self._log(name, now, packet.wire, True)
        self._enqueue(packets, now)

    def _enqueue(self, packets: list[Packet], now: int) -> None:
        for packet in packets:
            for name in packet.to:
                copies = 0 if self.rng.random() < self.workload.lost else 1
                copies += self.rng.random() < self.workload.duplicate_probability
                for _ in range(copies):
                    self.tickets += 1
                    at = now + self.rng.randint(*self.workload.delay_us)
                    heapq.heappush(self.in_flight, (at, self.tickets, name, packet.wire))

    def _log(
        self, name: str, at: int, wire: bytes | None, sent: bool, chosen: Mapping[str, Any] = {}
    ) -> None:
        row = {"observer": name, "number": len(self.rows), "time": at, "wire": wire, "sent": sent}
        self.rows.append(row | {"to": chosen.get("to"), "topics": chosen.get("topics")})
