"""Sender logs: the prefix of each that is here, and the known frontiers of other members.

Batches of a log are numbered from 1 and received in order, so one number describes a prefix. Two
members compare frontiers, tables of such numbers, to find what one lacks. Batches that all members
have are stable and can be freed (Wuu and Bernstein 1984).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import NamedTuple

from antecede.errors import SequenceError

Frontier = Mapping[str, int]
"""Sender id -> number of the newest batch."""


NEWEST = 1 << 62
"""Largest accepted batch number."""
STRANGERS = 4096
"""Unknown senders that one member may report, at most."""


class SignedBatch(NamedTuple):
    """Bytes of the ordering group and the sender's signature."""

    seal: bytes
    wire: bytes


class SenderLog:
    """Newest batches of one sender, `first` to `newest`. A store may have older ones."""

    __slots__ = (
        *("batches", "bytes", "fed", "first", "newest", "oldest", "spilled", "spilled_bytes"),
    )

    def __init__(self, first: int = 1) -> None:
        self.first = self.oldest = first
        """Oldest batch in memory, and oldest retained one, which only a store may have."""
        self.newest = first - 1
        self.batches: deque[SignedBatch] = deque()
        self.spilled: deque[int] = deque()
        """Sizes of the batches that only a store has: `oldest` to `first`."""
        self.bytes = self.spilled_bytes = 0
        self.fed = first - 1
        """Newest batch that the ordering group received."""

    def after(self, number: int) -> Iterator[tuple[int, SignedBatch]]:
        """Yield (number, batch) of the batches in memory behind a number."""
        start = max(number + 1, self.first)
        yield from enumerate(islice(self.batches, start - self.first, None), start)

    def get(self, number: int) -> SignedBatch:
        """Return a batch in memory."""
        return self.batches[number - self.first]

    def agrees(self, number: int, batch: SignedBatch) -> bool:
        """Return whether a batch equals the one in memory. True without one."""
        return number < self.first or self.get(number).wire == batch.wire


class SenderLogs:
    """All sender logs, and the frontiers of other members."""

    def __init__(self) -> None:
        self.by_name: dict[str, SenderLog] = {}
        self.bytes = 0
        self.spilled_bytes = 0
        self.heard: dict[str, dict[str, int]] = {}
        """Member -> its acknowledged frontier."""
        self.left: set[str] = set()
        """Senders that announced their leave. Later batches are ignored."""
        self._ahead: dict[str, int] = {}
        """Sender -> newest number that some member had and this one had not."""

    def frontier(self) -> dict[str, int]:
        """Return the newest number of each sender."""
        return {name: lane.newest for name, lane in self.by_name.items()}

    def newest(self, lane: str) -> int:
        """Return the newest number of a sender; 0: none."""
        known = self.by_name.get(lane)
        return known.newest if known is not None else 0

    def begin(self, frontier: Frontier) -> None:
        """Start a joining member at the sponsor's frontier."""
        for name, newest in frontier.items():
            self.by_name[name] = SenderLog(newest + 1)

    def take(self, name: str, number: int, batch: SignedBatch) -> bool:
        """Keep a batch. False: it is known. Raises SequenceError for a gap before it."""
        lane = self.by_name.get(name)
        if lane is None:
            lane = self.by_name[name] = SenderLog()
        if number <= lane.newest:
            return False
        if number != lane.newest + 1:
            raise SequenceError(f"batch {number} of {name} after batch {lane.newest}")
        lane.batches.append(batch)
        lane.newest = number
        self.bytes += len(batch.wire)
        lane.bytes += len(batch.wire)
        return True

    def acknowledge(self, member: str, frontier: Frontier) -> None:
        """Take an acknowledgement; numbers never fall. Unknown senders are limited by member."""
        table, known = self.heard.setdefault(member, {}), self.by_name
        most = len(known) + STRANGERS
        for lane, number in frontier.items():
            if number > table.get(lane, 0) and (
                lane in known or lane in table or len(table) < most
            ):
                table[lane] = min(number, NEWEST)
                if lane not in known or number > known[lane].newest:
                    self._ahead[lane] = max(table[lane], self._ahead.get(lane, 0))

    def replace_frontier(self, member: str, frontier: Frontier) -> None:
        """Replace the frontier of a member by the one in its HELLO."""
        self.heard.pop(member, None)
        self.acknowledge(member, frontier)

    def ahead(self) -> list[str]:
        """Return the senders of which some member has, or had, more than this one."""
        found = [lane for lane, number in self._ahead.items() if number > self.newest(lane)]
        if len(found) < len(self._ahead):
            self._ahead = {lane: self._ahead[lane] for lane in found}
        return found

    def stable(self, members: Iterable[str]) -> dict[str, int]:
        """Return sender -> newest number that all given members have, for logs with retained
        batches.
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
        """Free the batches up to these numbers."""
        for name, number in upto.items():
            lane = self.by_name[name]
            while lane.spilled and lane.oldest <= number:
                size = lane.spilled.popleft()
                self.spilled_bytes -= size
                lane.spilled_bytes -= size
                lane.oldest += 1
            lane.oldest = max(lane.oldest, min(number, lane.newest) + 1)
            self._drop(lane, lane.oldest)

    def count_retained(self, name: str, behind: int, upto: int) -> int:
        """Return the retained bytes of a sender behind one number, up to another."""
        lane = self.by_name[name]
        sizes = chain(lane.spilled, (len(batch.wire) for batch in lane.batches))
        start = max(0, behind + 1 - lane.oldest)
        return sum(islice(sizes, start, max(start, upto + 1 - lane.oldest)))

    def spill(self, at_most: int, stored: Frontier) -> None:
        """Drop stored batches from memory, longest logs first, until `at_most` bytes are left."""
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
