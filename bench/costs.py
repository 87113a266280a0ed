"""Costs of each protocol by group size: bytes and microseconds.

    python -m bench.costs [NAME ...]     measure these protocols (default: all), then draw
    python -m bench.costs --draw         draw again from docs/figures/costs.csv

Every member but one observer broadcasts every 70 to 90 ms, and each copy takes 50 to 150 ms, both
uniform with a fixed seed. All application messages between WARM_S and END_S count. Messages to some
members (topics) are averaged over their copies. The observer's arrivals are replayed, and the
processor time per message is the time of a receive. `bench.panels` draws.
"""

from __future__ import annotations

import csv
import heapq
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from antecede.core.clocks import NS, Bounds
from antecede.core.protocols import (
    ENTRIES,
    Addressing,
    Deliver,
    Effect,
    MessageId,
    Protocol,
    ProtocolEntry,
    Relation,
    Transmit,
)
from antecede.core.protocols import factory as build
from antecede.core.protocols.options import with_trial

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
SIZES = (5, 10, 20, 50, 100, 200)
QUADRATIC = {"matrix", "sent", "ses"}
"""Protocols whose messages grow with the square of the group size."""
MAX_QUADRATIC_MEMBERS = 100
MAX_TIMED_MEMBERS = 50
"""Limit for protocols that need ticks: each tick checks all held messages."""
VARIANTS = {"bss": ("differences",), "matrix": ("differences",)}
"""Variants with other costs than the protocol itself."""
WARM_S, END_S = 0.6, 1.2
PERIOD_S, DELAY_S = (0.07, 0.09), (0.05, 0.15)
TICK_S = 0.05
BOUNDS: Bounds[int] = Bounds(accuracy_s=0.01, least_s=DELAY_S[0], most_s=DELAY_S[1])
REPLY_FRACTION = 0.7
SEED = 1
REPLAYS = 3


class CostRow(NamedTuple):
    """Costs at one group size."""

    curve: str
    """Protocol, with its variant or role after a slash."""
    members: int
    control_bytes: float
    """Per message, by the source's accounting."""
    wire_bytes: float
    """Per message, as encoded."""
    storage_bytes: float
    """Per member, mean over time and members."""
    receive_us: float


class MeasuredGroup(NamedTuple):
    members: Mapping[int, Protocol]
    senders: tuple[int, ...]
    roles: Mapping[int, str]
    """Address -> curve that its copies and storage count for; absent: none."""
    observers: Mapping[str, int]
    """Curve -> member whose `receive` is timed; it never sends."""
    topics: tuple[str, ...] = ()


def make_group(entry: ProtocolEntry, variant: str, size: int) -> MeasuredGroup:
    if not entry.flat:
        return _make_hierarchy(entry, size)
    cls = entry.load()
    options = with_trial(cls, range(size), entry.options(variant))
    if "bounds" in options:
        options["bounds"] = BOUNDS
    curve = f"{entry.name}/{variant}" if variant else entry.name
    subscribed = options.get("subscriptions")
    return MeasuredGroup(
        build.flat(cls, range(size), options),
        tuple(range(1, size)),
        dict.fromkeys(range(size), curve),
        {curve: 0},
        subscribed.all_topics() if subscribed is not None else (),
    )


def _make_hierarchy(entry: ProtocolEntry, size: int) -> MeasuredGroup:
    """One super peer; the peers are divided equally (Evropeytsev et al. 2016)."""
    inside = tuple(range(1, 1 + size // 2))
    outside = tuple(range(1 + size // 2, 1 + size))
    members = build.hierarchy(entry.load(), {0: inside}, outside, {})
    inner, outer = f"{entry.name}/internal", f"{entry.name}/external"
    roles = {**dict.fromkeys(inside, inner), **dict.fromkeys(outside, outer)}
    senders = (*inside[1:], *outside[1:])
    return MeasuredGroup(members, senders, roles, {inner: inside[0], outer: outside[0]})


class GroupRun:
    def __init__(self, group: MeasuredGroup) -> None:
        self.group = group
        self.rng = random.Random(SEED)
        self.heap: list[tuple[float, int, str, int, Any]] = []
        self.ticket = 0
        self.control: dict[str, list[tuple[int, int, int]]] = {}
        """Curve -> (copies, control bytes, wire bytes) of each message."""
        self.storage: dict[str, list[int]] = {}
        self.arrivals: dict[int, list[tuple[int, Any]]] = {
            at: [] for at in group.observers.values()
        }
        """Observer -> (time, message; None: a tick)."""
        self.before = {at: group.members[at].snapshot() for at in self.arrivals}
        self.recent: dict[int, list[MessageId]] = {at: [] for at in group.members}
        self.timed = any(member.guarantee.needs_time for member in group.members.values())

    def run(self) -> None:
        for at in self.group.senders:
            self._plan(self.rng.uniform(0, PERIOD_S[1]), "send", at)
        if self.timed:
            for at in self.group.members:
                self._plan(self.rng.uniform(0, TICK_S), "tick", at)
        self._plan(WARM_S, "sample", 0)
        while self.heap and self.heap[0][0] < END_S:
            now, _, what, at, message = heapq.heappop(self.heap)
            if what == "send":
                self._send(now, at)
            elif what == "arrive":
                self._record(at, now, message)
                self._carry_out(
                    now, at, self.group.members[at].receive(message, now=round(now * NS))
                )
            elif what == "tick":
                self._record(at, now, None)
                self._carry_out(now, at, self.group.members[at].tick(round(now * NS)))
                self._plan(now + TICK_S, "tick", at)
            else:
                self._sample(now)

    def _plan(self, when: float, what: str, at: int, message: Any = None) -> None:
        self.ticket += 1
        heapq.heappush(self.heap, (when, self.ticket, what, at, message))

    def _record(self, at: int, now: float, message: Any) -> None:
        if at in self.arrivals:
            self.arrivals[at].append((round(now * NS), message))

    def _send(self, now: float, at: int) -> None:
        member = self.group.members[at]
        options: dict[str, Any] = {}
        if member.addressing is Addressing.TOPICS:
            topics = self.group.topics
            options["topics"] = self.rng.sample(topics, min(len(topics), self.rng.randint(1, 2)))
        recent = self.recent[at]
        replies = member.guarantee.relation is Relation.BY_REPLY
        if replies and recent and self.rng.random() < REPLY_FRACTION:
            options["after"] = (self.rng.choice(recent[-50:]),)
        self._carry_out(now, at, member.send(b"", now=round(now * NS), **options))
        self._plan(now + self.rng.uniform(*PERIOD_S), "send", at)

    def _carry_out(self, now: float, at: int, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Deliver):
                self.recent[at].append(MessageId(effect.message.sender, effect.message.seq))
            elif isinstance(effect, Transmit):
                self._measure(now, self.group.members[at], effect)
                for target in effect.to:
                    self._plan(now + self.rng.uniform(*DELAY_S), "arrive", target, effect.message)

    def _measure(self, now: float, member: Protocol, effect: Transmit) -> None:
        if now < WARM_S or member.is_control(effect.message):
            return
        size = member.control_bytes(effect.message), len(member.encode(effect.message))
        for curve in {self.group.roles[to] for to in effect.to if to in self.group.roles}:
            copies = sum(self.group.roles.get(to) == curve for to in effect.to)
            self.control.setdefault(curve, []).append((copies, *size))

    def _sample(self, now: float) -> None:
        for at, curve in self.group.roles.items():
            if at % max(1, len(self.group.members) // 10) == 0:
                self.storage.setdefault(curve, []).append(self.group.members[at].storage_bytes())
        self._plan(now + 0.01, "sample", 0)

    def make_rows(self) -> Iterator[CostRow]:
        for curve, observer in self.group.observers.items():
            copies = [copies for copies, _, _ in self.control[curve]]
            control, wire = (
                sum(row[0] * row[k] for row in self.control[curve]) / sum(copies) for k in (1, 2)
            )
            stored = self.storage[curve]
            spent = min(self._replay(observer) for _ in range(REPLAYS))
            yield CostRow(
                curve,
                len(self.group.members) - (not self.group.members[0].application),
                round(control, 1),
                round(wire, 1),
                round(sum(stored) / len(stored), 1),
                round(spent * 1e6, 2),
            )

    def _replay(self, observer: int) -> float:
        """Return the seconds per arrival at the observer, ticks included."""
        member, arrivals = self.group.members[observer], self.arrivals[observer]
        member.restore(self.before[observer])
        begin = time.process_time()
        for now, message in arrivals:
            if message is None:
                member.tick(now)
            else:
                member.receive(message, now=now)
        spent = time.process_time() - begin
        return spent / sum(message is not None for _, message in arrivals)


def measure(names: Sequence[str]) -> Iterator[CostRow]:
    for name in names:
        entry = ENTRIES[name]
        for variant in ("", *VARIANTS.get(name, ())):
            for size in SIZES:
                if name in QUADRATIC and size > MAX_QUADRATIC_MEMBERS:
                    continue
                run = GroupRun(make_group(entry, variant, size))
                if run.timed and size > MAX_TIMED_MEMBERS:
                    continue
                run.run()
                for row in run.make_rows():
                    print(f"{row.curve:24}{row.members:5}", *row[2:], flush=True)
                    yield row


def load() -> list[CostRow]:
    path = FIGURES / "costs.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        return [
            CostRow(
                row["curve"], int(row["members"]), *(float(row[k]) for k in CostRow._fields[2:])
            )
            for row in csv.DictReader(lines)
        ]


def save(rows: Iterable[CostRow]) -> None:
    with (FIGURES / "costs.csv").open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(CostRow._fields)
        writer.writerows(rows)


def main(arguments: Sequence[str]) -> None:
    from bench.costs_figures import draw

    if list(arguments) != ["--draw"]:
        names = list(arguments) or list(ENTRIES)
        kept = [row for row in load() if row.curve.partition("/")[0] not in names]
        order = list(ENTRIES)
        save(
            sorted(
                (*kept, *measure(names)),
                key=lambda row: order.index(row.curve.partition("/")[0]),
            )
        )
    draw(load())


if __name__ == "__main__":
    main(sys.argv[1:])
