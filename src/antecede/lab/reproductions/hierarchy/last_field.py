"""Size of internal messages if the field `Last` were inside the span of their bit vector.

Evropeytsev et al. 2016 count no header, and `Last` of a message is one. Their slopes of Figure 7
correspond to one more bit per peer on messages of internal peers. The span grows like that if it
includes the position of `Last`. These runs use the public classes, message by message.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from antecede.core.protocols import Transmit
from antecede.core.protocols.hierarchical import Downward, Topology, hierarchical
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import Metrics
from antecede.lab.simulate import (
    US,
    Delay,
    Hierarchy,
    Stream,
    build_schedule,
    draw_array,
    make_key,
    pick_array,
)
from antecede.lab.simulate.config import SimulationConfig

BLOCK = 1 << 16


class QueuedEvent(NamedTuple):
    """Event: the arrival of a copy, or (without a message) a send."""

    time_us: int
    number: int
    at: int
    message: Any = None


def measure_last_field(run: Run) -> Metrics:
    """Return `last.outside_bytes` and `last.inside_bytes`: bytes per internal message."""
    config = run.load_config()
    topology = config.topology
    assert isinstance(topology, Hierarchy)
    warm_us = round(config.warm_s * US)
    outside, inside = [], []
    for time_us, sender, message in _simulate_downward(config, topology, run.seed):
        if time_us > warm_us:
            base, bits = message.dv
            span = bits.bit_length()
            outside.append(_bits_to_bytes(span))
            inside.append(
                _bits_to_bytes(_span_with_last(base, bits, message.last) if sender else span)
            )
    return {
        "last.outside_bytes": float(np.mean(outside)),
        "last.inside_bytes": float(np.mean(inside)),
    }


def _span_with_last(base: int, bits: int, last: int) -> int:
    positions = [base + 1, base + bits.bit_length()] if bits else []
    positions += [last] if last else []
    return max(positions) - min(positions) + 1 if positions else 0


def _bits_to_bytes(bits: int) -> int:
    return -(-bits // 8)


def _simulate_downward(
    config: SimulationConfig, topology: Hierarchy, seed: int
) -> Iterator[tuple[int, int, Downward]]:
    """Yield (time, sender, message) of messages into the group. Sender 0: the super peer."""
    inside = topology.groups[0]
    everybody = hierarchical(
        Topology({0: tuple(range(1, inside + 1))}, tuple(range(inside + 1, topology.size))),
        ack_after=0,
    )
    delays = _draw_delays(config.links.delay, seed)
    sent = build_schedule(config, seed)
    queue = [
        QueuedEvent(int(at), k, int(who))
        for k, (at, who) in enumerate(zip(sent.time_us, sent.sender, strict=True))
    ]
    heapq.heapify(queue)
    number, end_us = len(queue), round(config.duration_s * US)
    while queue and queue[0].time_us <= end_us:
        now, _, at, message = heapq.heappop(queue)
        one = everybody[at]
        for effect in one.send(b"") if message is None else one.receive(message):
            if isinstance(effect, Transmit):
                if isinstance(effect.message, Downward):
                    yield now, effect.message.sender, effect.message
                for to in effect.to:
                    number += 1
                    heapq.heappush(
                        queue, QueuedEvent(now + next(delays), number, to, effect.message)
                    )


def _draw_delays(delay: Delay, seed: int) -> Iterator[int]:
    quantiles, block = delay.quantiles(), 0
    while True:
        numbers = np.arange(block * BLOCK, (block + 1) * BLOCK)
        yield from pick_array(
            quantiles, draw_array(make_key(seed, Stream.DELAY), numbers, 0)
        ).tolist()
        block += 1
