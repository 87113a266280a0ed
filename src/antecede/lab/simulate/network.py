"""Channels: delays, loss, duplicates and receive buffers, for each copy.

Theory of operation
-------------------
A copy is identified by its message m and its channel from a to b, j = a * size + b. Loss and delay
are drawn by this name (`random_streams`), so every engine draws the same. The first copy of a
message over a channel uses the streams DELAY, LOSS, DUPLICATE and DUPLICATE_DELAY. Control messages
and further copies over the same channel use CONTROL_DELAY and CONTROL_LOSS, counted by the run, and
are not duplicated. Markers of snapshots use MARKER_DELAY and MARKER_LOSS.

    arrival = departure + matrix + drawn delay
    FIFO:     not before the previous arrival on the channel

A copy departs when it is sent, or at the end of the partition that holds it. The duplicate of a
lost copy may still arrive. `ReceiveQueue` delays copies if receivers take `service_s` for each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antecede.lab.simulate.config.model import Links, SimulationConfig
from antecede.lab.simulate.delays import US, Delay, pick_array
from antecede.lab.simulate.random_streams import (
    Ints,
    Stream,
    Words,
    draw_array,
    draw_unit_array,
    make_key,
)
from antecede.lab.simulate.topology import Topology

ANY = "any"


class Channels(NamedTuple):
    """Delay distributions of the channels, by kinds of addresses."""

    kind: Ints  # [addresses] Numbered from 0. Addresses of one kind have the same channels.
    table: Ints  # [kinds, kinds] From and to: row of `quantiles`
    quantiles: Ints  # [tables, CELLS + 1] microseconds
    location_delays_us: Ints
    """[locations, locations] Added one-way delay, us; [1, 1] zero without a matrix."""

    def bounds_us(self, source: int, target: int) -> tuple[int, int]:
        """Return the smallest and the largest delay of a channel, us."""
        table = self.quantiles[self.table[self.kind[source], self.kind[target]]]
        base = int(
            self.location_delays_us[
                source % len(self.location_delays_us), target % len(self.location_delays_us)
            ]
        )
        return base + int(table[0]), base + int(table[-1])

    def delays_us(self, words: Words, source: Ints | int, target: Ints) -> Ints:
        """Return the delays for words of random bits, one per channel."""
        places = len(self.location_delays_us)
        found: Ints = self.location_delays_us[source % places, target % places]  # a copy
        which = self.table[self.kind[source], self.kind[target]]
        for table in np.unique(which):
            here = which == table
            found[here] += pick_array(self.quantiles[table], words[here])
        return found


def make_channels(topology: Topology, links: Links) -> Channels:
    """Return the channels of a network. `config.compatibility` checks their ends."""
    named = {end for special in links.special for end in (special.source, special.target)}
    kinds: dict[frozenset[str], int] = {}
    kind = np.empty(topology.size, dtype=np.int64)
    for index in range(topology.size):
        meant = named & {ANY, topology.role(index), f"group:{topology.group(index)}", str(index)}
        kind[index] = kinds.setdefault(frozenset(meant), len(kinds))
    delays: dict[Delay, int] = {links.delay: 0}
    table = np.zeros((len(kinds), len(kinds)), dtype=np.int64)
    for source, a in kinds.items():
        for target, b in kinds.items():
            special = (
                rule.delay
                for rule in links.special
                if rule.source in source and rule.target in target
            )
            table[a, b] = delays.setdefault(next(special, links.delay), len(delays))
    places = np.round(np.array(links.matrix or ((0.0,),)) * US).astype(np.int64)
    return Channels(kind, table, np.stack([delay.quantiles() for delay in delays]), places)


class Copy(NamedTuple):
    """A copy in flight."""

    arrival_us: int
    target: int


class Network:
    """Network of a run: determines arrivals, and stores the last arrival of FIFO channels."""

    def __init__(self, config: SimulationConfig, seed: int) -> None:
        self.links, self.size = config.links, config.topology.size
        self.channels = make_channels(config.topology, config.links)
        self.keys = {stream: make_key(seed, stream) for stream in Stream}
        self.last_arrival_us: dict[int, int] = {}  # Channel -> last arrival
        self.lost = self.duplicates = 0
        cuts = sorted(config.links.partitions, key=lambda cut: cut.start_s)
        self.partitions = [
            (round(cut.start_s * US), round(cut.end_s * US), frozenset(cut.side), cut.lost)
            for cut in cuts
        ]

    def send_message(
        self, number: int, now_us: int, source: int, targets: Sequence[int]
    ) -> list[Copy]:
        """Send the first copies of message `number`. Return the arrivals by ascending target."""
        to = np.array(targets, dtype=np.int64)
        channel = source * self.size + to
        delays = self._draw_delays(Stream.DELAY, number, source, to, channel)
        lost = self._draw_events(Stream.LOSS, number, channel, self.links.loss)
        twice = self._draw_events(Stream.DUPLICATE, number, channel, self.links.duplicate)
        late = (
            self._draw_delays(Stream.DUPLICATE_DELAY, number, source, to, channel)
            if any(twice)
            else ()
        )
        found: list[Copy] = []
        for index, target in enumerate(targets):
            if not lost[index]:
                self._depart(found, now_us, source, target, delays[index])
            self.lost += lost[index]
            if twice[index]:
                self.duplicates += 1
                self._depart(found, now_us, source, target, late[index])
        return found

    def send_control(
        self,
        count: int,
        now_us: int,
        source: int,
        targets: Sequence[int],
        streams: tuple[Stream, Stream] = (Stream.CONTROL_DELAY, Stream.CONTROL_LOSS),
    ) -> list[Copy]:
        """Send a control message or further copies. `count`: earlier calls of this kind."""
        to = np.array(targets, dtype=np.int64)
        channel = source * self.size + to
        delays = self._draw_delays(streams[0], count, source, to, channel)
        lost = self._draw_events(streams[1], count, channel, self.links.loss)
        found: list[Copy] = []
        for index, target in enumerate(targets):
            self.lost += lost[index]
            if not lost[index]:
                self._depart(found, now_us, source, target, delays[index])
        return found

    def _draw_delays(
        self, stream: Stream, number: int, source: int, to: Ints, channel: Ints
    ) -> Sequence[int]:
        words = draw_array(self.keys[stream], number, channel)
        delays: list[int] = self.channels.delays_us(words, source, to).tolist()
        return delays

    def _draw_events(
        self, stream: Stream, number: int, channel: Ints, probability: float
    ) -> Sequence[bool]:
        if not probability:
            return [False] * len(channel)
        found: npt.NDArray[np.bool_] = (
            draw_unit_array(self.keys[stream], number, channel) < probability
        )
        chosen: list[bool] = found.tolist()
        return chosen

    def _depart(
        self, copies: list[Copy], now_us: int, source: int, target: int, delay_us: int
    ) -> None:
        # Ordered by start: a copy delayed by one partition may meet the next.
        for start_us, end_us, side, is_lost in self.partitions:
            if start_us <= now_us < end_us and (source in side) != (target in side):
                if is_lost:
                    self.lost += 1
                    return
                now_us = end_us
        arrival_us = now_us + delay_us
        if self.links.fifo:
            channel = source * self.size + target
            arrival_us = max(arrival_us, self.last_arrival_us.get(channel, 0))
            self.last_arrival_us[channel] = arrival_us
        copies.append(Copy(arrival_us, target))


class ReceiveQueue:
    """Receive buffers of `buffer` copies, each taking `service_s`. The copy in service counts."""

    def __init__(self, links: Links, size: int) -> None:
        self.capacity, self.service_us = links.buffer, round(links.service_s * US)
        self.finish_times_us: list[deque[int]] = [deque() for _ in range(size)]
        """By receiver: when it will have taken in each accepted copy."""

    def accept(self, now_us: int, address: int) -> int | None:
        """Return when the receiver has taken in a copy that arrives now (None: no space)."""
        done = self.finish_times_us[address]
        while done and done[0] <= now_us:
            done.popleft()
        if self.capacity is not None and len(done) >= self.capacity:
            return None
        when_us = (done[-1] if done else now_us) + self.service_us
        if self.service_us:
            done.append(when_us)
        return when_us
