"""No order: each message is delivered once, when it arrives. The smallest complete protocol.

Source: Sahai et al. 2020, "Message ordering", the NON-FIFO model. The duplicate filter is the
ordering list of Bhavanasi and Iyer, section VI.B.

A number that never arrives leaves a gap for ever. So at most `max_gaps` gaps of each member are
remembered. Beyond that, the oldest sixteenth counts as filled. Late messages with these numbers are
discarded with a reason of their own, since they may or may not be duplicates.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import MAX_GAPS, NODE_BYTES, Intervals, intervals
from antecede.core.protocols.base import (
    CLOSED_GAP,
    DUPLICATE,
    OWN,
    Deliver,
    Discard,
    Effect,
    Guarantee,
    MessageId,
    Relation,
)
from antecede.core.protocols.basic.base import INTEGER_BYTES, NumberedMessage, NumberedProtocol
from antecede.core.protocols.serialization.state_tuples import freeze, thaw

DUPLICATE_REASONS = DUPLICATE, CLOSED_GAP
"""Discard reasons for a number that counts as arrived: above, and up to, the filled gaps."""
CONSTRUCTOR_ATTRIBUTES = frozenset({"max_gaps", "guarantee"})
"""Attributes that come from the constructor and are not part of the state."""


class Unordered(NumberedProtocol):
    """Member of a group without order; `max_gaps`: remembered gaps per member (None: all)."""

    guarantee: Guarantee = Guarantee(Relation.NONE, joins=True, leaves=True)
    own_options: ClassVar[frozenset[str]] = frozenset({"max_gaps"})

    def __init__(self, me: int, members: Iterable[int], *, max_gaps: int | None = MAX_GAPS) -> None:
        super().__init__(me, members)
        self.max_gaps = max_gaps = intervals.gap_limit(max_gaps)
        if max_gaps is not None and max_gaps < MAX_GAPS:
            remark = f"a message followed by more than {max_gaps} gaps is not delivered"
            self.guarantee = self.guarantee._replace(live=False, remark=remark)
        self.closed: dict[int, int] = {}
        """By member: the number up to which gaps count as filled."""

    def receive(self, message: NumberedMessage, *, now: int | None = None) -> Sequence[Effect]:
        sender, seq = message.sender, message.seq
        if sender == self.me:
            return (Discard(message, OWN),)
        self.check(sender, seq)
        bounds = self.arrived[sender]
        if intervals.insert(bounds, seq):
            intervals.limit_gaps(bounds, self.max_gaps, self.closed, sender)
            return (Deliver(message),)
        return (Discard(message, DUPLICATE_REASONS[intervals.is_closed(self.closed, sender, seq)]),)

    def newest(self, member: int) -> int:
        return self.arrived[member][-1] - 1 if self.arrived[member] else 0

    def get_delivered_ranges(self) -> Mapping[int, Sequence[int]]:
        return {**self.arrived, self.me: Intervals.up_to(self.sent).bounds}

    def join_state(self) -> Hashable:
        """Return (member, ranges) of all members ever, and (member, last) of departed ones."""
        arrived = (
            (member, tuple(bounds)) for member, bounds in self.get_delivered_ranges().items()
        )
        return tuple(sorted(arrived)), tuple(sorted(self.last.items()))

    def causes(self, message: NumberedMessage) -> tuple[MessageId, ...]:
        return ()

    # -- snapshot ---------------------------------------------------------------------------

    def snapshot(self) -> Hashable:
        kept = {
            name: value for name, value in vars(self).items() if name not in CONSTRUCTOR_ATTRIBUTES
        }
        if not self.closed:
            del kept["closed"]
        return freeze(kept)

    def restore(self, state: Any) -> None:
        given = {
            name: value for name, value in vars(self).items() if name in CONSTRUCTOR_ATTRIBUTES
        }
        vars(self).clear()
        vars(self).update({"closed": {}, **given, **thaw(state)})

    def forget(self, member: int) -> None:
        super().forget(member)
        self.closed.pop(member, None)

    def check_whole(self) -> None:
        super().check_whole()
        if not self.arrived.keys() >= self.closed.keys():
            raise ValueError(f"closed: members {sorted(self.closed)}")

    def storage_bytes(self) -> int:
        """Return 4 bytes for the own number and 8 bytes per node of the intervals."""
        nodes = sum(map(intervals.nodes, self.arrived.values()))
        return INTEGER_BYTES + NODE_BYTES * nodes
