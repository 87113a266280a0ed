"""No order: every message is delivered when it arrives, once. The smallest complete protocol.

Source: 001, "Message ordering", the NON-FIFO model; the filter of duplicates is the ordering
list of 003, section VI.B.

Theory of operation
-------------------
State: for each member the numbers that have arrived, as intervals (`clocks.intervals`), one
node as long as nothing is missing. The frontier for a newcomer is these intervals: what the
sponsor has delivered in any order is not owed to the newcomer again. A departed member's
intervals stay, so that late copies are still known as duplicates.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from antecede.clocks import intervals
from antecede.clocks.intervals import MAX_NUMBER, NODE_BYTES, Intervals
from antecede.clocks.wire import Reader, varint
from antecede.errors import LocalError, SequenceError, UnknownMemberError
from antecede.protocols.base import (
    DUPLICATE,
    NOTHING,
    OWN,
    Deliver,
    Discard,
    Effect,
    Guarantee,
    MessageId,
    Protocol,
    Relation,
    Transmit,
)

INTEGER_BYTES = 4


class UnorderedMessage(NamedTuple):
    """A message with its sender's number for it, counted from 1."""

    sender: int
    seq: int
    payload: Any


class Unordered(Protocol):
    """One member of a group without order; members may come and go."""

    guarantee: ClassVar[Guarantee] = Guarantee(Relation.NONE, joins=True, leaves=True)

    def __init__(self, me: int, members: Iterable[int]) -> None:
        super().__init__(me, members)
        self.sent = 0
        self.arrived: dict[int, list[int]] = {member: [] for member in self.others()}
        """Bounds of the numbers that arrived, for everybody who ever was a member, but me."""
        self.last: dict[int, int] = {}
        """Number of the last message of each member that left."""

    def send(
        self, payload: Any, *, now: float = 0.0, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        """Number the message and transmit it to all others."""
        self.sent += 1
        return (Transmit(self.others(), UnorderedMessage(self.me, self.sent, payload)),)

    def receive(self, message: UnorderedMessage, *, now: float = 0.0) -> Sequence[Effect]:
        """Deliver the message unless it was here before.

        Raises UnknownMemberError and SequenceError.
        """
        sender, seq = message.sender, message.seq
        if sender == self.me:
            return (Discard(message, OWN),)
        if sender not in self.arrived:
            raise UnknownMemberError(f"message {seq} from member {sender}, who is not in the group")
        last = self.last.get(sender, MAX_NUMBER)
        if not 1 <= seq <= last:
            raise SequenceError(f"message {seq} from member {sender}: numbers are 1 to {last}")
        if intervals.insert(self.arrived[sender], seq):
            return (Deliver(message),)
        return (Discard(message, DUPLICATE),)

    # -- membership -------------------------------------------------------------------------

    def frontier(self) -> Hashable:
        """Return (member, bounds) of all who ever were, and (member, last) of those who left."""
        arrived = {member: tuple(bounds) for member, bounds in self.arrived.items()}
        arrived[self.me] = Intervals.up_to(self.sent).bounds
        return tuple(sorted(arrived.items())), tuple(sorted(self.last.items()))

    def adopt(self, frontier: Any) -> None:
        """Regard everything in the sponsor's frontier as delivered. Only as a newcomer."""
        arrived, last = frontier
        if self.sent or any(self.arrived.values()):
            raise LocalError("a frontier is adopted before anything is sent or delivered")
        self.arrived = {member: list(bounds) for member, bounds in arrived if member != self.me}
        self.last = dict(last)
        self.members = tuple(sorted({*self.arrived, self.me} - self.last.keys()))

    def join(self, member: int) -> Sequence[Effect]:
        """Expect the newcomer's messages."""
        if member == self.me or member in self.arrived:
            raise LocalError(f"member number {member} has been given out before")
        self.members = tuple(sorted((*self.members, member)))
        self.arrived[member] = []
        return NOTHING

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        """Stop sending to the member; its messages up to `last` are still delivered."""
        if member not in self.arrived or member in self.last:
            raise LocalError(f"member {member} is not in the group")
        newest = self.arrived[member][-1] - 1 if self.arrived[member] else 0
        if last < newest:
            raise LocalError(f"member {member} left after {last}, but {newest} is delivered")
        self.members = tuple(other for other in self.members if other != member)
        self.last[member] = last
        return NOTHING

    # -- what a message says ------------------------------------------------------------------

    def causes(self, message: UnorderedMessage) -> tuple[MessageId, ...]:
        """Return nothing: no message waits for another."""
        return ()

    def mentions(self, message: UnorderedMessage) -> tuple[int, ...]:
        """Return the sender: the control information speaks of nobody else."""
        return (message.sender,)

    def renumber(self, message: UnorderedMessage, numbers: Mapping[int, int]) -> UnorderedMessage:
        """Return the message with its sender's number replaced."""
        return message._replace(sender=numbers[message.sender])

    # -- size and wire ----------------------------------------------------------------------

    def encode(self, message: UnorderedMessage) -> bytes:
        """Return sender and number as two varints."""
        return varint(message.sender) + varint(message.seq)

    def decode(self, control: bytes, payload: Any) -> UnorderedMessage:
        """Return the message; raises DecodeError."""
        reader = Reader(control)
        message = UnorderedMessage(reader.varint(), reader.varint(), payload)
        reader.finish()
        return message

    def control_bytes(self, message: UnorderedMessage) -> int:
        """Return 4: the number, which tells duplicates apart."""
        return INTEGER_BYTES

    def storage_bytes(self) -> int:
        """Return 4 bytes for the own number and 8 bytes a node of the intervals."""
        nodes = sum(map(intervals.nodes, self.arrived.values()))
        return INTEGER_BYTES + NODE_BYTES * nodes
