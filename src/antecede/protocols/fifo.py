"""FIFO order: the messages of one sender are delivered in the order in which it sent them.

Source: 001, "Message ordering", the FIFO model. Nothing is promised across senders.

Theory of operation
-------------------
State: `delivered[k]`, the number of the last message delivered from member k, and the held
messages by (k, number). Control information is the message's number: one varint on the
wire, 4 bytes in the accounting of the sources. The frontier for a newcomer is `delivered`;
a member that leaves is forgotten once its last message is delivered.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

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
        self.delivered = dict.fromkeys(self.others(), 0)
        self.held: dict[MessageId, FifoMessage] = {}
        self.last: dict[int, int] = {}

    def send(
        self, payload: Any, *, now: float = 0.0, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        """Number the message and transmit it to all others."""
        self.sent += 1
        return (Transmit(self.others(), FifoMessage(self.me, self.sent, payload)),)

    def receive(self, message: FifoMessage, *, now: float = 0.0) -> Sequence[Effect]:
        """Deliver the sender's next message, and the held ones that follow without a gap."""
        sender, seq = message.sender, message.seq
        if sender == self.me:
            return (Discard(message, OWN),)
        self._check(sender, seq)
        done = self.delivered[sender]
        if seq <= done or MessageId(sender, seq) in self.held:
            return (Discard(message, DUPLICATE),)
        if seq > done + 1:
            self.held[MessageId(sender, seq)] = message
            return (Hold(message, self._missing(sender, seq)),)
        return self._deliver_run(message)

    def _deliver_run(self, message: FifoMessage) -> Sequence[Effect]:
        effects: list[Effect] = []
        following: FifoMessage | None = message
        while following is not None:
            effects.append(Deliver(following))
            self.delivered[following.sender] = following.seq
            following = self.held.pop(MessageId(following.sender, following.seq + 1), None)
        self._forget(message.sender)
        return effects

    def _check(self, sender: int, seq: int) -> None:
        if sender not in self.delivered:
            raise UnknownMemberError(f"message {seq} from {sender}, who is not in the group")
        if seq < 1:
            raise SequenceError(f"message number {seq} from member {sender}; numbers start at 1")
        if seq > self.last.get(sender, seq):
            raise SequenceError(
                f"message {seq} from member {sender}, who left after message {self.last[sender]}"
            )

    def _missing(self, sender: int, seq: int) -> tuple[MessageId, ...]:
        """Return the nearest gap before a message: its predecessor, or what that is held for."""
        before = seq - 1
        while MessageId(sender, before) in self.held:
            before -= 1
        return (MessageId(sender, before),)

    def blocked_on(self) -> tuple[Held, ...]:
        """Return held messages by (sender, number), each with the nearest gap before it."""
        return tuple(
            Held(message, self._missing(*key)) for key, message in sorted(self.held.items())
        )

    # -- membership -------------------------------------------------------------------------

    def frontier(self) -> Hashable:
        """Return (member, number of its last delivered message) for every member, me too."""
        return tuple(sorted({**self.delivered, self.me: self.sent}.items()))

    def adopt(self, frontier: Any) -> None:
        """Regard everything up to the sponsor's frontier as delivered."""
        self.delivered = {member: seq for member, seq in frontier if member != self.me}
        self.members = tuple(sorted({*self.delivered, self.me}))

    def join(self, member: int) -> Sequence[Effect]:
        """Expect the newcomer's messages from number 1 on."""
        if member in self.members:
            raise LocalError(f"member {member} is in the group already")
        self.members = tuple(sorted((*self.members, member)))
        self.delivered[member] = 0
        return NOTHING

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        """Stop sending to the member; forget it once message `last` is delivered."""
        if member not in self.delivered or member in self.last:
            raise LocalError(f"member {member} is not in the group")
        self.members = tuple(other for other in self.members if other != member)
        self.last[member] = last
        self._forget(member)
        return NOTHING

    def _forget(self, member: int) -> None:
        if self.last.get(member) == self.delivered[member]:
            del self.delivered[member], self.last[member]

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
        return INTEGER_BYTES * (len(self.delivered) + 1)
