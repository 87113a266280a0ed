"""What every member has sent, as far as it is here: a prefix of each lane, and who has what of it.

Batches of a lane are numbered from 1 without gaps and taken in order, so what is here of it is told
by one number. A table of such numbers, a frontier, is all that two members have to exchange to
know what one lacks. What all have is stable and may be freed (Wuu and Bernstein 1984: the
matrix of all members' frontiers).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import NamedTuple

from antecede.errors import SequenceError

Frontier = Mapping[str, int]
"""Lane -> the number of the newest batch."""


NEWEST = 1 << 62
"""No batch has a higher number, whatever somebody says."""
STRANGERS = 4096
"""Lanes of which there is nothing here that one member may speak of."""


class SignedBatch(NamedTuple):
    """A batch as it travels: the bytes of the ordering group, and its owner's seal."""

    seal: bytes
    wire: bytes


class SenderLog:
    """The newest batches of one lane: `first` to `newest`; a store may have older ones."""

    __slots__ = (
        *("batches", "bytes", "fed", "first", "newest", "oldest", "spilled", "spilled_bytes"),
    )

    def __init__(self, first: int = 1) -> None:
        self.first = self.oldest = first
        """The oldest in memory, and the oldest that is not given up: less where a store has it."""
        self.newest = first - 1
        self.batches: deque[SignedBatch] = deque()
        self.spilled: deque[int] = deque()
        """Bytes of those that a store alone has: `oldest` to `first`."""
        self.bytes = self.spilled_bytes = 0
        """Of all batches in memory, and of those that a store alone has."""
        self.fed = first - 1
        """Number of the newest that the ordering group was given."""

    def after(self, number: int) -> Iterator[tuple[int, SignedBatch]]:
        """Yield (number, batch) behind a number, as far as they are in memory."""
        start = max(number + 1, self.first)
        yield from enumerate(islice(self.batches, start - self.first, None), start)

    def get(self, number: int) -> SignedBatch:
        """Return one batch that is in memory."""
        return self.batches[number - self.first]

    def agrees(self, number: int, batch: SignedBatch) -> bool:
        """Return whether a batch is the one in memory, or there is none in memory."""
        return number < self.first or self.get(number).wire == batch.wire


class SenderLogs:
    """All lanes, and how far every other member is known to have them."""

    def __init__(self) -> None:
        self.by_name: dict[str, SenderLog] = {}
        self.bytes = 0
        """Of all batches in memory."""
        self.spilled_bytes = 0
        """Of those that a store alone has."""
        self.heard: dict[str, dict[str, int]] = {}
        """Lane of a member -> its frontier, as it acknowledged it."""
        self.left: set[str] = set()
        """Those whose owner said that it left: what it says behind that nobody heeds."""
        self._ahead: dict[str, int] = {}
        """Lane -> the newest number that somebody had when it was not here."""

    def frontier(self) -> dict[str, int]:
        """Return the newest number of every lane."""
        return {name: lane.newest for name, lane in self.by_name.items()}

    def newest(self, lane: str) -> int:
        """Return the newest number of a lane; 0: none."""
        known = self.by_name.get(lane)
        return known.newest if known is not None else 0

    def begin(self, frontier: Frontier) -> None:
        """As a newcomer: regard everything up to the sponsor's frontier as had."""
        for name, newest in frontier.items():
            self.by_name[name] = SenderLog(newest + 1)

    def take(self, name: str, number: int, batch: SignedBatch) -> bool:
        """Keep a batch; False: it is known. Raises SequenceError for a gap before it."""
        lane = self.by_name.get(name)
        if lane is None:
            lane = self.by_name[name] = SenderLog()
        if number <= lane.newest:
            return False
        if number != lane.newest + 1:
            raise SequenceError(f"batch {number} of {name} behind batch {lane.newest}")
        lane.batches.append(batch)
        lane.newest = number
        self.bytes += len(batch.wire)
        lane.bytes += len(batch.wire)
        return True

    def acknowledged(self, member: str, frontier: Frontier) -> None:
        """Note how far a member has come; numbers never go back.

        What it invents is bounded: of lanes that are not here, so many.
        """
        table, known = self.heard.setdefault(member, {}), self.by_name
        most = len(known) + STRANGERS
        for lane, number in frontier.items():
            if number > table.get(lane, 0) and (
                lane in known or lane in table or len(table) < most
            ):
                table[lane] = min(number, NEWEST)
                if lane not in known or number > known[lane].newest:
                    self._ahead[lane] = max(table[lane], self._ahead.get(lane, 0))

    def met(self, member: str, frontier: Frontier) -> None:
        """Note what a member says that it has, whatever it was known to have."""
        self.heard.pop(member, None)
        self.acknowledged(member, frontier)

    def ahead(self) -> list[str]:
        """Return the lanes of which somebody is known to have more, or to have had it."""
        found = [lane for lane, number in self._ahead.items() if number > self.newest(lane)]
        if len(found) < len(self._ahead):
            self._ahead = {lane: self._ahead[lane] for lane in found}
        return found

    def stable(self, members: Iterable[str]) -> dict[str, int]:
        """Return the newest number that all these members have, and we, of every lane of which
        something is kept.
        """
        tables = {member: self.heard.get(member, {}) for member in members}
        return {
            name: min(
                (table.get(name, 0) for member, table in tables.items() if member != name),
                default=lane.newest,
            )
            for name, lane in self.by_name.items()
            if lane.oldest <= lane.newest
        }

    def free(self, upto: Frontier) -> None:
        """Give up the batches up to these numbers: nobody needs them any more."""
        for name, number in upto.items():
            lane = self.by_name[name]
            while lane.spilled and lane.oldest <= number:
                size = lane.spilled.popleft()
                self.spilled_bytes -= size
                lane.spilled_bytes -= size
                lane.oldest += 1
            lane.oldest = max(lane.oldest, min(number, lane.newest) + 1)
            self._drop(lane, lane.oldest)

    def kept(self, name: str, behind: int, upto: int) -> int:
        """Return the bytes that are kept of a lane behind one number, up to another."""
        lane = self.by_name[name]
        sizes = chain(lane.spilled, (len(batch.wire) for batch in lane.batches))
        start = max(0, behind + 1 - lane.oldest)
        return sum(islice(sizes, start, max(start, upto + 1 - lane.oldest)))

    def spill(self, at_most: int, stored: Frontier) -> None:
        """Drop batches from memory, the largest lanes first, that a store has, to so many bytes."""
        for name in sorted(self.by_name, key=lambda name: -len(self.by_name[name].batches)):
            if self.bytes <= at_most:
                return
            lane = self.by_name[name]
            last = min(stored.get(name, 0), lane.fed)
            sizes = [len(batch.wire) for _, batch in lane.after(lane.first - 1)]
            sizes = sizes[: last - lane.first + 1]
            lane.spilled += sizes
            self.spilled_bytes += sum(sizes)
            lane.spilled_bytes += sum(sizes)
            self._drop(lane, last + 1)

    def _drop(self, lane: SenderLog, first: int) -> None:
        for _ in range(first - lane.first):
            size = len(lane.batches.popleft().wire)
            self.bytes -= size
            lane.bytes -= size
        lane.first = max(lane.first, first)
