"""Index of the held messages of `ClockDelivery`, derived from its state.

`ClockDelivery._deliver_by_definition` is the reference. Delivery "null" uses a `LowerBoundIndex`,
which needs one separation for all pairs. Delivery "bound" uses a heap by due time. `HoldBackQueue`
keeps the order.
"""

from __future__ import annotations

import heapq

from antecede.core.protocols.base import MessageId
from antecede.core.protocols.clock_based.delivery_state import DeliveryState
from antecede.core.protocols.clock_based.hold_back_queue import HoldBackQueue
from antecede.core.protocols.clock_based.lower_bound_index import LowerBoundIndex
from antecede.core.protocols.clock_based.messages import StampedMessage
from antecede.core.protocols.clock_based.relations import (
    LinearPhysicalRelation,
    LinearRelation,
    PhysicalRelation,
)

_RELATIONS = (LinearRelation, PhysicalRelation, LinearPhysicalRelation)


def can_index(member: DeliveryState) -> bool:
    """Return whether an index finds the same messages as the definition.

    False for published and custom relations, and if a subclass overrides a method of `HOOKS`.
    """
    if type(member.relation) not in _RELATIONS or "dseq" in member.as_published:
        return False
    known = member.delivery == "bound" or member.separation.is_uniform
    return known and member.uses_default_hooks


class HeldIndex:
    """Held messages of a member by what they wait for."""

    def __init__(self, member: DeliveryState) -> None:
        self.member = member
        self.by_lt, self.by_pt = member.carries_lt, member.carries_pt
        self.by_bound = member.delivery == "bound"
        apart_ns = member.separation.least_between_ns() if self.by_pt else None
        self.apart_ns = apart_ns or 0
        self.queue = HoldBackQueue(member._precedes, apart_ns)
        self.due: list[tuple[int, MessageId]] = []
        self.ready: list[MessageId] = []
        """Due messages whose gaps have changed: to be checked."""
        self.hidden: dict[int, list[MessageId]] = {}
        """Due messages by a member whose gap may hide a predecessor."""
        self.lower_bound_index = LowerBoundIndex(())
        if not self.by_bound:
            for other in member.lower_bounds:
                self.raise_bound(other, *member.lower_bounds[other])
        for key in sorted(member.held):
            self.add(key, member.held[key].message)

    def add(self, key: MessageId, message: StampedMessage) -> None:
        member = self.member
        self.queue.add(key, message, member._rank(message), message.pt_ns)
        if self.by_bound:
            since_ns = message.pt_ns if self.by_pt else member.arrived_ns[key]
            heapq.heappush(self.due, (since_ns + member.wait_ns(message.sender), key))
        else:
            limit_ns = message.pt_ns - self.apart_ns if self.by_pt else 0
            self.lower_bound_index.add(key, message.lt if self.by_lt else 1, limit_ns)

    def raise_bound(self, other: int, lt: int, pt_ns: int) -> None:
        member = self.member
        if self.by_bound:
            if self.hidden:
                self.ready += self.hidden.pop(other, ())
            return
        channel = member.channel
        if other in channel.last and channel.find_last_accepted(other) >= channel.last[other]:
            self.lower_bound_index.close(other)
            return
        self.lower_bound_index.raise_bound(
            other, lt if self.by_lt else 0, pt_ns if self.by_pt else 0
        )

    def take_deliverable(self, now: int) -> list[MessageId]:
        if not self.by_bound:
            clear = self.lower_bound_index.take_clear()
            return self.queue.release(clear) if clear else []
        due = self.due
        if not self.ready and not (due and due[0][0] < now):
            return []
        keys, self.ready = self.ready, []
        while due and due[0][0] < now:
            keys.append(heapq.heappop(due)[1])
        return self.queue.release(keys, self._has_no_hiding_gap if self.member.gapped else None)

    def _has_no_hiding_gap(self, key: MessageId) -> bool:
        """Return whether no gap may hide a predecessor; else index the message under that gap."""
        other = self.member._find_newest_hiding(self.queue.entries[key].item)
        if other is not None:
            self.hidden.setdefault(other, []).append(key)
        return other is None
