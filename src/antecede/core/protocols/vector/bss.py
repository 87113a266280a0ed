"""BSS (Birman, Schiper, Stephenson): causal broadcast by vector timestamps.

Source: Sahai et al. 2020, "Birman-Schiper-Stephenson Protocol", with its misprints repaired: the
timestamp is the WHOLE vector, `t = C_i`, and condition 2 is `C_j[k] >= t[k]` for all k other than
i. `as_published=True` uses condition 2 as printed (E14) and needs whole vectors. Then a message
overtakes its cause, which stays held.

Theory of operation
-------------------
A message from i carries the numbers that i had delivered (`causes`) and its own number. It is
delivered when it is the next of i and every cause is delivered. Then C[i] grows by one, which under
these conditions is the component-wise maximum.

With `differences=True` a message carries only the entries that changed since the sender's previous
message (Singhal and Kshemkalyani). That one is delivered first, so the other entries are satisfied.
This holds for a joining member too, because the sponsor's join state is closed under causes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from antecede.core.clocks import LANE_BITS, MAX_VALUE, VALUE_BITS, unit
from antecede.core.protocols.base import Deliver, Effect, Guarantee, MessageId, Relation, Transmit
from antecede.core.protocols.vector.base import (
    INTEGER_BYTES,
    PAIR_BYTES,
    CausesMessage,
    CountingProtocol,
)
from antecede.errors import LocalError

if TYPE_CHECKING:
    from antecede.core.protocols.vector.base import CausesMessage, CountingProtocol


def find_missing_as_published(
    member: CountingProtocol, message: CausesMessage
) -> tuple[int, int] | None:
    """Return the missing cause under `C_j[k] <= t[k]`, which can be the message itself."""
    sender, seq, _, causes = message
    done = member.counts[sender]
    if seq != done + 1:
        return sender, seq - 1
    others = (member.clock ^ member.guard) - (done << (sender * LANE_BITS))
    kept = ((causes | member.guard) - others) & member.guard == member.guard
    return None if kept else (sender, seq)


class BssMessage(CausesMessage):
    """Message whose `causes` are the timestamp without the sender's entry, or its changes."""

    __slots__ = ()


class Bss(CountingProtocol):
    """Member of a group with causal order; needs a reliable channel."""

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY, joins=True, leaves=True)
    message_type: ClassVar[type[CausesMessage]] = BssMessage

    def __init__(
        self,
        me: int,
        members: Iterable[int],
        *,
        differences: bool = False,
        as_published: bool = False,
    ) -> None:
        super().__init__(me, members)
        if differences and as_published:
            raise LocalError(
                "as_published (condition 2) needs whole vectors; leave out differences"
            )
        self.differences = differences
        self.as_published = as_published
        self.last_timestamp = 0
        """With differences: the vector of the last sent message, without this member's entry."""

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        vector = (self.clock ^ self.guard) - (self.sent << (self.me * LANE_BITS))
        causes = vector
        if self.differences:
            changed = (((vector ^ self.last_timestamp) | self.guard) - self.ones) & self.guard
            causes &= changed - (changed >> VALUE_BITS)
            self.last_timestamp = vector
        self.sent += 1
        self.clock += unit(self.me)
        return (Transmit(self.to, self.message_type(self.me, self.sent, payload, causes)),)

    def receive(self, message: CausesMessage, *, now: int | None = None) -> Sequence[Effect]:
        sender, seq, _, causes = message
        # Inlined `find_missing_cause` and `record`: calls would double the cost.
        # A cause in an unused lane exceeds the 0 there, so it reaches `check`.
        if (
            self.counts.get(sender) != seq - 1
            or causes.bit_length() > self.width
            or (self.clock - causes) & self.guard != self.guard
            or self.as_published
            or sender in self.last
        ):
            return self.receive_slowly(message)
        if self.waiting and (sender, seq) in self.waiting:
            return self.release(message)
        self.counts[sender] = seq
        # Adds 1 to the lane, three times as fast as an addition.
        self.clock ^= (seq ^ (seq - 1)) << (sender * LANE_BITS)
        return (Deliver(message),)

    def find_missing_cause(self, message: CausesMessage) -> tuple[int, int] | None:
        if self.as_published:
            return find_missing_as_published(self, message)
        return super().find_missing_cause(message)

    def record(self, message: CausesMessage) -> None:
        self.counts[message.sender] = message.seq
        self.clock += unit(message.sender)

    def extra_state(self) -> Hashable:
        return self.differences, self.as_published, self.last_timestamp

    def set_extra_state(self, extra: Any) -> None:
        self.differences, self.as_published, self.last_timestamp = extra

    def forget(self, member: int) -> None:
        super().forget(member)
        self.last_timestamp &= ~unit(member, MAX_VALUE)

    def check_whole(self) -> None:
        super().check_whole()
        past = self.clock - self.last_timestamp
        if self.last_timestamp.bit_length() > self.width or past & self.guard != self.guard:
            raise ValueError("last timestamp: messages that are not here")

    def check_listening(self) -> None:
        if self.differences:
            raise LocalError(
                "with differences=True a message omits unchanged entries, so a member "
                "cannot start at the first message that it receives: use an invitation or "
                "known numbers, or create the group without differences"
            )

    # -- size and wire ----------------------------------------------------------------------

    def control_bytes(self, message: CausesMessage) -> int:
        """Return 4 bytes per member for the vector; with differences 8 per changed entry."""
        if self.differences:
            return self.pair_bytes(message) + PAIR_BYTES
        return INTEGER_BYTES * (len(self.counts) + 1)

    def storage_bytes(self) -> int:
        """Return 4 bytes per member for the vector; with differences twice that (last sent)."""
        return INTEGER_BYTES * (len(self.counts) + 1) * (2 if self.differences else 1)
