"""Flow control: bytes that the application has not taken, and own bytes that others lack.

*Receiver.* A `Backlog` has the delivered messages that were not consumed. Beyond its limit a
member does not acknowledge the batches, so their senders wait. It accepts one message at least.

*Sending.* A sender keeps its batches until all members have acknowledged them. It waits while they
exceed its share of the least budget. Every member announces the bytes that it keeps for others
(`max_memory_bytes`, with a store `max_disk_bytes`). The senders divide the least of these. A sender
evicts a member that lacks more than that for `evict_slow_after_ns` in a row. That time is the same
for all members, so a small budget slows the senders and evicts no member.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from antecede.live.events import SentBatch

if TYPE_CHECKING:
    from antecede.live.node import Node

ONE_MESSAGE: Final = 64


class _Queued(NamedTuple):
    """Messages of one batch that wait for the application."""

    lane: str
    batch: int
    end: int
    """Number of messages delivered up to the last of them."""
    size: int


class Backlog:
    """Messages that were delivered and that the application has not consumed, in order."""

    def __init__(self) -> None:
        self._queue: deque[_Queued] = deque()
        self.bytes = 0

    def add(self, lane: str, batch: int, end: int, size: int, count: int) -> None:
        """Add `count` messages of one batch with `size` bytes; `end`: messages delivered by now."""
        size += count * ONE_MESSAGE
        self._queue.append(_Queued(lane, batch, end, size))
        self.bytes += size

    def restore(self, runs: Iterable[SentBatch], before: int) -> None:
        """Hold just these messages; `before`: how many were delivered before them."""
        self._queue.clear()
        self.bytes, end = 0, before
        for one in runs:
            end += one.live_count
            self.add(one.sender_id, 0, end, sum(map(len, one.payloads)), one.live_count)

    def consume(self, count: int) -> None:
        """Drop what the application is done with: the first `count` of all delivered messages."""
        queue = self._queue
        while queue and queue[0].end <= count:
            self.bytes -= queue.popleft().size

    def withheld(self, limit: int) -> dict[str, int]:
        """Return lane -> last batch to acknowledge, of lanes with messages beyond `limit` bytes."""
        found: dict[str, int] = {}
        if self.bytes <= limit:
            return found
        before = 0
        for one in self._queue:
            if before and before + one.size > limit:
                found.setdefault(one.lane, one.batch - 1)
            before += one.size
        return found


class Flow:
    """Limit of what this member sends before the others acknowledge it."""

    def __init__(self, node: Node) -> None:
        self._node = node
        settings = node.settings
        self.budget = settings.max_disk_bytes if node.durable else settings.max_memory_bytes
        """Bytes that this member keeps for others."""
        self.budgets: dict[str, int] = {}
        """Lane of another member -> its budget, as it announced it."""
        self.limit = self.budget
        """Bytes of this member that others may lack, as of the last update."""
        self.is_pressed = False
        """True if something was to be sent while this was full."""
        self._over_ns: dict[str, int] = {}
        """Lane -> since when a sender waits and that member lacks more than the limit."""

    @property
    def unacknowledged(self) -> int:
        """Bytes of this member that are in no batch yet, or that some member has not acknowledged.
        As of the last time that batches were freed.
        """
        ordering = self._node.ordering
        if ordering is None:
            return 0
        lane = ordering.lanes.by_name[ordering.me]
        return ordering.pending_bytes + lane.bytes + lane.spilled_bytes

    @property
    def in_memory(self) -> int:
        """Of these, the bytes in memory."""
        return self._node.ordering.memory_in_use if self._node.ordering is not None else 0

    @property
    def is_full(self) -> bool:
        """True if senders wait until other members, or the store, have more."""
        return (
            self.unacknowledged > self.limit
            or self.in_memory > self._node.settings.max_memory_bytes
        )

    def update(self) -> None:
        """Divide the least budget of all members among those who send."""
        ordering = self._node.active
        known = {*ordering.members, *ordering.guests, *self._node.greeted}
        self.budgets = {lane: one for lane, one in self.budgets.items() if lane in known}
        least = min((self.budget, *self.budgets.values()))
        lanes = ordering.lanes.by_name.items()
        senders = sum(one.oldest <= one.newest for name, one in lanes if name != ordering.me)
        self.limit = least // (1 + senders)

    def slow(self, now: int) -> tuple[str, str] | None:
        """Return a member for which senders waited too long, and the reason in words."""
        ordering = self._node.active
        lanes = ordering.lanes
        own = {ordering.me, *(ordering.gone & lanes.by_name.keys())}
        if not (self.is_full and self.is_pressed):
            self.is_pressed = False
            self.forgive()
            return None
        done = ordering.find_done()
        lacking = {one: self._lacks(one, own, done) for one in self._others()}
        over = {one: size for one, size in lacking.items() if size > self.limit}
        self._over_ns = {one: self._over_ns.get(one, now) for one in over}
        after = self._node.settings.evict_slow_after_ns
        known = ordering.members.keys() | ordering.guests.keys()
        late = [
            one
            for one, since in self._over_ns.items()
            if now - since >= after or one not in known  # other senders do not wait for it
        ]
        if not late:
            return None
        slowest = max(late, key=lambda one: (over[one], one))
        waited_s = (now - self._over_ns[slowest]) / 10**9
        return slowest, (
            f"too slow: it has not acknowledged {over[slowest]:,} bytes for {waited_s:.1f} s; "
            f"the limit is {self.limit:,}"
        )

    def forgive(self) -> None:
        """Count no wait that began before now."""
        self._over_ns.clear()

    def _others(self) -> set[str]:
        ordering = self._node.active
        return {*ordering.others(), *ordering.guests, *self._node.greeted} - ordering.gone

    def _lacks(self, member: str, own: Iterable[str], done: Mapping[str, int]) -> int:
        """Return the bytes of this member, and of departed ones, that another one lacks."""
        lanes = self._node.active.lanes
        table = lanes.heard.get(member, {})
        return sum(
            lanes.count_retained(one, table.get(one, 0), min(done.get(one, 0), lanes.newest(one)))
            for one in own
        )


__all__ = ["Backlog", "Flow"]
