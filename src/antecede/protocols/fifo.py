"""FIFO order: the messages of one sender are delivered in the order in which it sent them.

Source: 001, "Message ordering", the FIFO model. Nothing is promised across senders.

Theory of operation
-------------------
State: `arrived[k]`, the numbers that arrived from member k as intervals (`clocks.intervals`),
and the held messages by (k, number). What is delivered from k is the run 1 .. n at the start
of the intervals, so a duplicate, the next message and the nearest gap are all one look-up,
however many messages are held. Control information is the message's number: one varint on the
wire, 4 bytes in the accounting of the sources. The frontier for a newcomer is the number of the
last delivered message of each member. A departed member stays known, so that its late
messages are still delivered and late copies are still known as duplicates.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from antecede.clocks import intervals
from antecede.clocks.intervals import MAX_NUMBER, Intervals
from antecede.clocks.wire import Reader, varint
from antecede.errors import LocalError, SequenceError, UnknownMemberError
from antecede.protocols.base import (
    AFTER_LEAVE,
    DUPLICATE,
    NOTHING,
    OWN,
    Deliver,
    Discard,
    Effect,
    Guarantee,
    Held,
    Hold,
    MessageId,
    Protocol,
    Relation,
    Transmit,
)

INTEGER_BYTES = 4


class FifoMessage(NamedTuple):
    """A message with its sender's number for it, counted from 1."""

    sender: int
    seq: int
    payload: Any


class Fifo(Protocol):
    """One member of a group with FIFO order; members may come and go."""

    guarantee: ClassVar[Guarantee] = Guarantee(Relation.FIFO, joins=True, leaves=True)

    def __init__(self, me: int, members: Iterable[int]) -> None:
        super().__init__(me, members)
        self.sent = 0
        self.arrived: dict[int, list[int]] = {member: [] for member in self.others()}
        """Bounds of the numbers that arrived, for everybody who ever was a member, but me."""
        self.held: dict[MessageId, FifoMessage] = {}
        self.last: dict[int, int] = {}
        """Number of the last message of each member that left."""

    def send(
        self, payload: Any, *, now: float = 0.0, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        """Number the message and transmit it to all others."""
        self.sent += 1
        return (Transmit(self.others(), FifoMessage(self.me, self.sent, payload)),)

    def receive(self, message: FifoMessage, *, now: float = 0.0) -> Sequence[Effect]:
        """Deliver the sender's next message, and the held ones that follow without a gap.

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
        if not intervals.insert(self.arrived[sender], seq):
            return (Discard(message, DUPLICATE),)
        missing = self._missing(sender, seq)
        if missing:
            self.held[MessageId(sender, seq)] = message
            return (Hold(message, missing),)
        return self._deliver_run(message)

    def _deliver_run(self, message: FifoMessage) -> Sequence[Effect]:
        effects: list[Effect] = []
        following: FifoMessage | None = message
        while following is not None:
            effects.append(Deliver(following))
            following = self.held.pop(MessageId(following.sender, following.seq + 1), None)
        return effects

    def _missing(self, sender: int, seq: int) -> tuple[MessageId, ...]:
        """Return the nearest message before this one that has not arrived, if any."""
        gap = intervals.nearest_gap(self.arrived[sender], seq)
        return (MessageId(sender, gap),) if gap else ()

    def delivered(self, member: int) -> int:
        """Return the number of the last message delivered from a member; 0: none."""
        bounds = self.arrived[member]
        return bounds[1] - 1 if bounds and bounds[0] == 1 else 0

    def blocked_on(self) -> tuple[Held, ...]:
        """Return held messages by (sender, number), each with the nearest gap before it."""
        return tuple(
            Held(message, self._missing(*key)) for key, message in sorted(self.held.items())
        )

    # -- membership -------------------------------------------------------------------------

    def frontier(self) -> Hashable:
        """Return (member, delivered) of all who ever were, and (member, last) of those who left."""
        counts = {member: self.delivered(member) for member in self.arrived}
        counts[self.me] = self.sent
        return tuple(sorted(counts.items())), tuple(sorted(self.last.items()))

    def adopt(self, frontier: Any) -> None:
        """Regard everything up to the sponsor's frontier as delivered. Only as a newcomer."""
        counts, last = frontier
        if self.sent or any(self.arrived.values()):
            raise LocalError("a frontier is adopted before anything is sent or delivered")
        self.arrived = {
            member: list(Intervals.up_to(count).bounds)
            for member, count in counts
            if member != self.me
        }
        self.last = dict(last)
        self.members = tuple(sorted({*self.arrived, self.me} - self.last.keys()))

    def join(self, member: int) -> Sequence[Effect]:
        """Expect the newcomer's messages from number 1 on."""
        if member == self.me or member in self.arrived:
            raise LocalError(f"member number {member} has been given out before")
        self.members = tuple(sorted((*self.members, member)))
        self.arrived[member] = []
        return NOTHING

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        """Stop sending to the member; its messages up to `last` are still delivered.

        Held messages of it numbered above `last` can not be right and are discarded.
        """
        if member not in self.arrived or member in self.last:
            raise LocalError(f"member {member} is not in the group")
        if last < self.delivered(member):
            raise LocalError(
                f"member {member} left after {last}, but {self.delivered(member)} is delivered"
            )
        self.members = tuple(other for other in self.members if other != member)
        self.last[member] = last
        late = sorted(key for key in self.held if key.sender == member and key.seq > last)
        return tuple(Discard(self.held.pop(key), AFTER_LEAVE) for key in late)

    def causes(self, message: FifoMessage) -> tuple[MessageId, ...]:
        """Return the sender's message before this one."""
        return (MessageId(message.sender, message.seq - 1),) if message.seq > 1 else ()

    def mentions(self, message: FifoMessage) -> tuple[int, ...]:
        """Return the sender: the control information speaks of nobody else."""
        return (message.sender,)

    def renumber(self, message: FifoMessage, numbers: Mapping[int, int]) -> FifoMessage:
        """Return the message with its sender's number replaced."""
        return message._replace(sender=numbers[message.sender])

    # -- size and wire ----------------------------------------------------------------------

    def encode(self, message: FifoMessage) -> bytes:
        """Return sender and number as two varints."""
        return varint(message.sender) + varint(message.seq)

    def decode(self, control: bytes, payload: Any) -> FifoMessage:
        """Return the message; raises DecodeError."""
        reader = Reader(control)
        message = FifoMessage(reader.varint(), reader.varint(), payload)
        reader.finish()
        return message

    def control_bytes(self, message: FifoMessage) -> int:
        """Return 4: the number."""
        return INTEGER_BYTES

    def storage_bytes(self) -> int:
        """Return 4 bytes a member."""
        return INTEGER_BYTES * (len(self.arrived) + 1)
