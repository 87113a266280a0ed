"""Channels: how long each copy takes, which are lost or doubled, and what finds no room.

Theory of operation
-------------------
A copy is named by its message m and its channel from a to b, as j = a * size + b; what happens to
it is drawn by these names (`random_streams`), so every engine draws the same. The first copy of a
message over a channel has the streams DELAY, LOSS, DUPLICATE and DUPLICATE_DELAY. All else (a
protocol's own messages, and further copies of the same message over the same channel) has
NOTE_DELAY and NOTE_LOSS, counted by the run, and is not doubled; nor are markers of snapshots, with
MARKER_DELAY and MARKER_LOSS.

    arrival = departure + matrix + drawn delay
    FIFO:     not before what was put on the channel last

A copy departs when it is sent, or when the partition ends that holds it. The duplicate of a copy
that is lost may still arrive: it is a copy of its own. Where receivers take `service_s` for a
copy, `Intake` says when they have it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from antecede.lab.simulate.config.model import Links, Partition, Scenario, Special
from antecede.lab.simulate.delays import US, Delay, picks
from antecede.lab.simulate.random_streams import Ints, Stream, draws, key, units
from antecede.lab.simulate.topology import Topology

ANY = "any"


class Channels(NamedTuple):
    """Which distribution of delays each channel has, by kinds of addresses."""

    kind: Ints
    """[addresses] a number from 0; addresses of one kind have the same channels."""
    table: Ints
    """[kinds, kinds] from and to: row of `quantiles`."""
    quantiles: Ints
    """[tables, CELLS + 1] microseconds."""
    places: Ints
    """[places, places] one-way delay in microseconds that is added; [1, 1] zero without matrix."""

    def bounds_us(self, source: int, target: int) -> tuple[int, int]:
        """Return the least and the largest delay of a channel, in microseconds."""
        table = self.quantiles[self.table[self.kind[source], self.kind[target]]]
        base = int(self.places[source % len(self.places), target % len(self.places)])
        return base + int(table[0]), base + int(table[-1])


def channels(topology: Topology, links: Links) -> Channels:
    """Return the channels of a network.

    That its ends are somebody, `scenario.compatibility` checks.
    """
    named = [end for special in links.special for end in (special.source, special.target)]
    kinds: dict[tuple[bool, ...], int] = {}
    ends = _Ends(topology)
    words = tuple(dict.fromkeys(named))
    kind = np.array(
        [
            kinds.setdefault(tuple(ends.is_at(word, at) for word in words), len(kinds))
            for at in range(topology.size)
        ],
        dtype=np.int64,
    )
    delays: dict[Delay, int] = {links.delay: 0}
    table = np.zeros((len(kinds), len(kinds)), dtype=np.int64)
    for one, a in kinds.items():
        for other, b in kinds.items():
            chosen = _first(links, dict(zip(words, one, strict=True)), words, other)
            table[a, b] = delays.setdefault(chosen, len(delays))
    places = np.round(np.array(links.matrix or ((0.0,),)) * US).astype(np.int64)
    return Channels(kind, table, np.stack([delay.quantiles() for delay in delays]), places)


def _first(
    links: Links, source: dict[str, bool], words: Sequence[str], target: Sequence[bool]
) -> Delay:
    at_target = dict(zip(words, target, strict=True))

    def holds(special: Special) -> bool:
        return source[special.source] and at_target[special.target]

    return next((one.delay for one in links.special if holds(one)), links.delay)


class _Ends:
    """What the words for the end of a channel mean on a topology."""

    def __init__(self, topology: Topology) -> None:
        self.groups = [topology.group(at) for at in range(topology.size)]
        self.roles = [topology.role(at) for at in range(topology.size)]

    def is_at(self, word: str, at: int) -> bool:
        """Tell whether a word means an address."""
        return word in (ANY, self.roles[at], f"group:{self.groups[at]}", str(at))


class Copy(NamedTuple):
    """A copy that is under way."""

    arrival_us: int
    target: int


class Network:
    """The network of one run: says when copies arrive; it keeps what FIFO channels need."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.links, self.size = scenario.links, scenario.topology.size
        self.channels = channels(scenario.topology, scenario.links)
        self.keys = {stream: key(seed, stream) for stream in Stream}
        self.newest: dict[int, int] = {}
        """Channel -> arrival of what was put on it last."""
        self.lost = self.duplicates = 0
        cuts = sorted(scenario.links.partitions, key=lambda one: one.start_s)
        self.cuts = [_Cut(one, self.size) for one in cuts]

    def message(self, number: int, now_us: int, source: int, targets: Sequence[int]) -> list[Copy]:
        """Put the first copies of message `number` on the channels; targets are ascending.

        Return what arrives, in the order of the tickets: by receiver, a duplicate after its copy.
        """
        to = np.array(targets, dtype=np.int64)
        channel = source * self.size + to
        delays = self._delays(Stream.DELAY, number, source, to, channel)
        lost = self._chosen(Stream.LOSS, number, channel, self.links.loss)
        twice = self._chosen(Stream.DUPLICATE, number, channel, self.links.duplicate)
        late = (
            self._delays(Stream.DUPLICATE_DELAY, number, source, to, channel) if any(twice) else ()
        )
        found: list[Copy] = []
        for at, target in enumerate(targets):
            if not lost[at]:
                self._depart(found, now_us, source, target, delays[at])
            self.lost += lost[at]
            if twice[at]:
                self.duplicates += 1
                self._depart(found, now_us, source, target, late[at])
        return found

    def note(self, count: int, now_us: int, source: int, targets: Sequence[int]) -> list[Copy]:
        """Put a message between protocols, or a further copy, on the channels: see the module.

        `count` is how many of these the run had before, one a Transmit effect.
        """
        streams = Stream.NOTE_DELAY, Stream.NOTE_LOSS
        return self._besides(streams, count, now_us, source, targets)

    def marker(self, count: int, now_us: int, source: int, targets: Sequence[int]) -> list[Copy]:
        """Put markers of a snapshot on the channels, as `note`; `count`: how many times before."""
        streams = Stream.MARKER_DELAY, Stream.MARKER_LOSS
        return self._besides(streams, count, now_us, source, targets)

    def _besides(
        self,
        streams: tuple[Stream, Stream],
        count: int,
        now_us: int,
        source: int,
        targets: Sequence[int],
    ) -> list[Copy]:
        to = np.array(targets, dtype=np.int64)
        channel = source * self.size + to
        delays = self._delays(streams[0], count, source, to, channel)
        lost = self._chosen(streams[1], count, channel, self.links.loss)
        found: list[Copy] = []
        for at, target in enumerate(targets):
            self.lost += lost[at]
            if not lost[at]:
                self._depart(found, now_us, source, target, delays[at])
        return found

    def _delays(
        self, stream: Stream, number: int, source: int, to: Ints, channel: Ints
    ) -> Sequence[int]:
        words = draws(self.keys[stream], number, channel)
        of = self.channels
        places = len(of.places)
        found = of.places[source % places, to % places]  # a copy
        which = of.table[of.kind[source], of.kind[to]]
        for table in np.unique(which):
            here = which == table
            found[here] += picks(of.quantiles[table], words[here])
        delays: list[int] = found.tolist()
        return delays

    def _chosen(
        self, stream: Stream, number: int, channel: Ints, probability: float
    ) -> Sequence[bool]:
        if not probability:
            return [False] * len(channel)
        found: npt.NDArray[np.bool_] = units(self.keys[stream], number, channel) < probability
        chosen: list[bool] = found.tolist()
        return chosen

    def _depart(
        self, found: list[Copy], now_us: int, source: int, target: int, delay_us: int
    ) -> None:
        for cut in self.cuts:  # by their beginning, so that one may hand over to the next
            if cut.start_us <= now_us < cut.end_us and cut.side[source] != cut.side[target]:
                if cut.lost:
                    self.lost += 1
                    return
                now_us = cut.end_us
        arrival_us = now_us + delay_us
        if self.links.fifo:
            channel = source * self.size + target
            arrival_us = max(arrival_us, self.newest.get(channel, 0))
            self.newest[channel] = arrival_us
        found.append(Copy(arrival_us, target))


class _Cut:
    """A partition in microseconds."""

    def __init__(self, of: Partition, size: int) -> None:
        self.start_us, self.end_us = round(of.start_s * US), round(of.end_s * US)
        self.side = [at in of.side for at in range(size)]
        self.lost = of.lost


class Intake:
    """Receive buffers: a receiver takes `service_s` for a copy and has room for `buffer`.

    The copy that is being taken in fills a place too.
    """

    def __init__(self, links: Links, size: int) -> None:
        self.room, self.service_us = links.buffer, round(links.service_s * US)
        self.done: list[deque[int]] = [deque() for _ in range(size)]
        """By receiver: when it will have taken in each copy that it has room for."""

    def take(self, now_us: int, at: int) -> int | None:
        """Return when the receiver has the copy that comes now; None: there is no room for it."""
        done = self.done[at]
        while done and done[0] <= now_us:
            done.popleft()
        if self.room is not None and len(done) >= self.room:
            return None
        when_us = (done[-1] if done else now_us) + self.service_us
        if self.service_us:
            done.append(when_us)
        return when_us
