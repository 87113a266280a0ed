"""A mesh run in the simplest way: a heap of events, the protocols' own classes, lists.

An independent reading of the contract, for the tests of the compiled engine.
"""

from __future__ import annotations

import heapq
import statistics
from typing import Any, NamedTuple

from antecede.core.protocols.base import Deliver, Protocol, Transmit
from antecede.core.protocols.registry import entry
from antecede.lab.simulate.config.model import Scenario
from antecede.lab.simulate.delays import US, pick
from antecede.lab.simulate.network import channels
from antecede.lab.simulate.random_streams import Stream, draw, key
from antecede.lab.simulate.schedule import build_schedule

SAMPLE, SEND, ARRIVAL = 0, 1, 2


class Run(NamedTuple):
    deliveries: list[tuple[int, int, int]]
    """Member, message, time in us."""
    control_bytes: list[int]
    encoded_bytes: list[int]
    waits_us: list[int]
    """Of counted deliveries, in no order."""
    storage: list[list[int]]
    """By sample and member."""
    held: list[list[int]]
    arrivals: int


def run(scenario: Scenario, seed: int) -> Run:
    made = entry(scenario.protocol)
    size = scenario.topology.size
    options = made.options(scenario.variant)
    members: list[Protocol] = [made.load()(me, range(size), **options) for me in range(size)]
    sends = build_schedule(scenario, seed)
    of, drawn = channels(scenario.topology, scenario.links), key(seed, Stream.DELAY)
    heap: list[tuple[int, int, int, int, Any]] = []
    for m, (time, sender) in enumerate(zip(sends.time_us, sends.sender, strict=True)):
        heap.append((int(time), SEND, m, int(sender), m))
    warm_us, at = round(scenario.warm_s * US), 0
    while (when := warm_us + at * round(scenario.sample_s * US)) < scenario.duration_s * US:
        heap.append((when, SAMPLE, at, 0, None))
        at += 1
    heapq.heapify(heap)
    found = Run([], [], [], [], [], [], 0)
    arrived: dict[tuple[int, int], int] = {}
    newest: dict[tuple[int, int], int] = {}
    ticket = 0
    while heap:
        now, what, _, member, about = heapq.heappop(heap)
        if what == SAMPLE:
            found.storage.append([one.storage_bytes() for one in members])
            found.held.append([len(one.blocked_on()) for one in members])
        elif what == SEND:
            (effect,) = members[member].send(about)
            assert isinstance(effect, Transmit)
            found.control_bytes.append(members[member].control_bytes(effect.message))
            found.encoded_bytes.append(len(members[member].encode(effect.message)))
            for to in sorted(effect.to):
                table = of.quantiles[of.table[of.kind[member], of.kind[to]]]
                delay = pick(table, draw(drawn, about, member * size + to))
                delay += int(of.places[member % len(of.places), to % len(of.places)])
                time = now + delay
                if scenario.links.fifo:
                    time = newest[member, to] = max(time, newest.get((member, to), 0))
                heapq.heappush(heap, (time, ARRIVAL, ticket, to, effect.message))
                ticket += 1
        else:
            arrived[member, about.payload] = now
            for effect in members[member].receive(about):
                if isinstance(effect, Deliver):
                    m = effect.message.payload
                    found.deliveries.append((member, m, now))
                    if sends.time_us[m] >= warm_us:
                        found.waits_us.append(now - arrived[member, m])
    return found._replace(arrivals=len(arrived))


def figures(scenario: Scenario, seed: int, of: Run) -> dict[str, float]:
    """Return the figures of a Result, as its counting rules say."""
    warm_us = round(scenario.warm_s * US)
    times = build_schedule(scenario, seed).time_us.tolist()
    found: dict[str, float] = {
        "sent": len(times),
        "arrivals": of.arrivals,
        "deliveries": len(of.deliveries),
        "held_at_end": of.arrivals - len(of.deliveries),
        "lost": 0,
        "duplicates": 0,
        "peer.storage_bytes": statistics.fmean(map(statistics.fmean, of.storage)),
        "peer.storage_bytes_max": max(map(max, of.storage)),
        "held.mean": statistics.fmean(map(statistics.fmean, of.held)),
        "held.max": max(map(max, of.held)),
    }
    counted = [m for m, time in enumerate(times) if time >= warm_us]
    if counted and scenario.topology.size > 1:  # who is alone transmits nothing
        control = [of.control_bytes[m] for m in counted]
        found["peer.overhead_bytes"] = statistics.fmean(control)
        found["peer.overhead_bytes_sd"] = statistics.pstdev(control)
        found["peer.encoded_bytes"] = statistics.fmean(of.encoded_bytes[m] for m in counted)
    waits = sorted(of.waits_us)
    if waits:
        found["wait_ms.mean"] = statistics.fmean(waits) / 1000
        for name, percent in (("p50", 50), ("p99", 99), ("max", 100)):
            found[f"wait_ms.{name}"] = waits[-(-percent * len(waits) // 100) - 1] / 1000
    return found
