"""Outbound data of all connections: sender ids, control frames and batches."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from antecede.core.clocks.encoding import block, varint
from antecede.live import wire
from antecede.live.lanes import SignedBatch
from antecede.live.links import Link

if TYPE_CHECKING:
    from antecede.live.node import Node

SPECIMENS = 32
"""Newest own batches, of which the smallest is sent again to a returning member."""
BATCH_FRAMES = 64
"""Newest own batches whose frames are cached for all connections."""
SMALL_BATCH = 1 << 12


class Outbound:
    """Frames to write, and indices of sender ids."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.places: list[str] = []
        self._place_of: dict[str, int] = {}
        self._framed: dict[int, bytes] = {}
        self.begun = self.written_upto = 0
        """Newest own batch of earlier runs, and newest one announced to others."""
        self.resent = 0

    def begin(self, newest: int) -> None:
        """Continue behind the newest own batch in the store."""
        self.begun = self.written_upto = newest

    def record_announced(self, number: int) -> None:
        """Record that others know of own batches up to this one."""
        self.written_upto = max(self.written_upto, number)

    def specimen(self, had: int) -> bytes | None:
        """Return the frame of a small own batch of this run that the other end reports to have. It
        differs from the batch there if this member runs from an old copy of its store. None: no
        such batch in memory, or an order by topics.
        """
        if self._node.topic_filter is not None:
            return None
        lane = self._node.active.lanes.by_name[self._node.lane]
        recent = islice(lane.after(max(self.begun, had - SPECIMENS)), SPECIMENS)
        some = [(len(batch.wire), number) for number, batch in recent if number <= had]
        return self.batch_frame(self._node.lane, n := min(some)[1], lane.get(n)) if some else None

    def place(self, lane: str) -> int:
        """Return the index of a sender id."""
        place = self._place_of.get(lane)
        if place is None:
            place = self._place_of[lane] = len(self.places)
            self.places.append(lane)
        return place

    def collect(self, link: Link, batches: list[bytes], now: int) -> list[bytes]:
        """Return the bytes to write on a connection now, with these batch frames at the end."""
        parts: list[bytes] = []
        if link.lane and link.named < len(self.places):
            parts.append(wire.pack_names(self.places[link.named :]))
            link.named = len(self.places)
        if link.member and not link.told_budget:
            link.told_budget = True
            link.control.append(wire.pack_frame(wire.BUDGET, varint(self._node.flow.budget)))
        if link.control:
            # HELLO is the first frame and uses no index
            if link.bytes_out == 0:
                parts.insert(0, link.control.popleft())
            parts += link.control
            link.control.clear()
        parts += batches
        if parts:
            link.spoke_ns = now
            size = sum(map(len, parts))
            link.bytes_out += size
            self._node.bytes_out += size
        return parts

    def batches(self, link: Link, budget: int) -> list[bytes]:
        """Return frames of batches that the other end lacks, about `budget` bytes."""
        parts: list[bytes] = []
        for name in link.cursors:
            budget -= self._lane(link, name, self._node.safe_number(name), budget, parts)
            if budget <= 0:
                break
        return parts

    def _lane(self, link: Link, name: str, upto: int, budget: int, parts: list[bytes]) -> int:
        lanes = self._node.active.lanes
        cursor, lane, size = link.cursors[name], lanes.by_name[name], 0
        if cursor >= upto:
            return 0
        if cursor + 1 < lane.first:  # other members may have relayed these batches
            cursor = max(cursor, lanes.heard.get(link.lane, {}).get(name, 0))
            link.cursors[name] = cursor
        staged = link.staged.get(name)
        while staged and staged[0][0] <= cursor:
            staged.popleft()
        if staged and cursor + 1 < lane.first:
            found: Iterable[tuple[int, SignedBatch]] = list(staged)
        elif cursor + 1 < lane.first:
            if cursor + 1 < lane.oldest:
                self.say_gone(link, name, lane.oldest)
            elif name not in link.asked:
                link.loading.add(name)
            return 0
        else:
            found = lane.after(cursor)
        if self._node.topic_filter is not None:
            size = self._node.topic_filter.pull(link, name, found, upto, budget, parts)
            if name == self._node.lane:
                self.record_announced(link.cursors.get(name, 0))
            return size
        for number, batch in found:
            if number > upto or size >= budget:
                break
            frame = self.batch_frame(name, number, batch)
            parts.append(frame)
            size += len(frame)
            link.cursors[name] = number
            if name != self._node.lane:
                self.resent += 1
            elif number > self.written_upto:
                self.record_announced(number)
        return size

    def say_gone(self, link: Link, name: str, oldest: int) -> None:
        """Announce, once, that batches that the other end lacks are not here any more."""
        if link.told_gone.get(name) != oldest:
            link.told_gone[name] = oldest
            link.control.append(wire.pack_rows(wire.TRUNCATED, [(self.place(name), oldest)]))

    def batch_frame(self, name: str, number: int, batch: SignedBatch) -> bytes:
        """Return the frame of a batch."""
        if name != self._node.lane or len(batch.wire) > SMALL_BATCH:
            return self._make_frame(name, number, batch)
        frame = self._framed.get(number)
        if frame is None:
            frame = self._framed[number] = self._make_frame(name, number, batch)
            self._framed.pop(number - BATCH_FRAMES, None)
        return frame

    def _make_frame(self, name: str, number: int, batch: SignedBatch) -> bytes:
        head = varint(self.place(name)) + varint(number) + block(batch.seal)
        return wire.pack_frame(wire.BATCH, head, batch.wire)
