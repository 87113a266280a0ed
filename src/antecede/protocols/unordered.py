"""No order: every message is delivered when it arrives, once. The smallest complete protocol.

Source: Sahai et al. 2020, "Message ordering", the NON-FIFO model; the filter of duplicates is the
ordering list of Bhavanasi and Iyer, section VI.B.

Theory of operation
-------------------
State: for each member the numbers that have arrived, as intervals (`clocks.intervals`), one
node as long as nothing is missing. The frontier for a newcomer is these intervals: what the
sponsor has delivered in any order is not owed to the newcomer again. A departed member's
intervals stay, so that late copies are still known as duplicates. It builds on
`protocols.numbered`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from antecede.clocks import intervals
from antecede.clocks.intervals import NODE_BYTES, Intervals
from antecede.protocols.base import (
    DUPLICATE,
    OWN,
    Deliver,
    Discard,
    Effect,
    Guarantee,
    MessageId,
    Relation,
)
from antecede.protocols.numbered import INTEGER_BYTES, NumberedMessage, NumberedProtocol


class Unordered(NumberedProtocol):
    """One member of a group without order; members may come and go."""

    guarantee: Guarantee = Guarantee(Relation.NONE, joins=True, leaves=True)

    def receive(self, message: NumberedMessage, *, now: int | None = None) -> Sequence[Effect]:
        """Deliver the message unless it was here before.

        Raises UnknownMemberError and SequenceError.
        """
        sender, seq = message.sender, message.seq
        if sender == self.me:
            return (Discard(message, OWN),)
        self.check(sender, seq)
        if intervals.insert(self.arrived[sender], seq):
            return (Deliver(message),)
        return (Discard(message, DUPLICATE),)

    def newest(self, member: int) -> int:
        """Return the greatest number delivered from a member; 0: none."""
        return self.arrived[member][-1] - 1 if self.arrived[member] else 0

    def delivered_runs(self) -> Mapping[int, Sequence[int]]:
        """Return the numbers that arrived from everybody, as bounds."""
        return {**self.arrived, self.me: Intervals.up_to(self.sent).bounds}

    def frontier(self) -> Hashable:
        """Return (member, bounds) of all who ever were, and (member, last) of those who left."""
        arrived = {member: tuple(bounds) for member, bounds in self.arrived.items()}
        arrived[self.me] = Intervals.up_to(self.sent).bounds
        return tuple(sorted(arrived.items())), tuple(sorted(self.last.items()))

    def causes(self, message: NumberedMessage) -> tuple[MessageId, ...]:
        """Return nothing: no message waits for another."""
        return ()

    def storage_bytes(self) -> int:
        """Return 4 bytes for the own number and 8 bytes a node of the intervals."""
        nodes = sum(map(intervals.nodes, self.arrived.values()))
        return INTEGER_BYTES + NODE_BYTES * nodes
