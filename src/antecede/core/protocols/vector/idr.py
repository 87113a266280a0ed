"""IDR: causal broadcast by immediate dependencies, the comparator of Evropeytsev et al. 2016.

Source: the Immediate Dependency Relation protocol that Evropeytsev et al. 2016 measure theirs
against; it is not written out there. The rule followed here: a member keeps delivered counts VT
and a set CI of (member, number). A message carries CI, and CI is emptied by sending. A message of
k is delivered when it is k's next and every (l, x) it carries has x <= VT[l]; then k's entry in CI
is replaced by this message, and every entry (l, t) with t <= x for a carried (l, x) goes.

Theory of operation
-------------------
An entry of CI for l always names l's last delivered message, (l, VT[l]). So CI is the set of lanes
alone, as guard bits `ci`, and the pairs are cut out of `clock` when a message is sent. With
`rest = clock - causes` (guard bits set in `clock`), a guard that fell is a missing cause; when none
fell, `rest - ones` clears exactly the guards where the difference is 0: the entries to drop.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from antecede.core.clocks import LANE_BITS, VALUE_BITS, unit
from antecede.core.protocols.base import Deliver, Effect, Guarantee, MessageId, Relation, Transmit
from antecede.core.protocols.vector.base import (
    INTEGER_BYTES,
    PAIR_BYTES,
    CausesMessage,
    CountingProtocol,
)
from antecede.errors import LocalError


class IdrMessage(CausesMessage):
    """A message; `causes` are the pairs of CI."""

    __slots__ = ()


class Idr(CountingProtocol):
    """One member of a group with causal order; needs a channel that loses nothing."""

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY, joins=True, leaves=True)
    message_type: ClassVar[type[CausesMessage]] = IdrMessage

    def __init__(self, me: int, members: Iterable[int]) -> None:
        super().__init__(me, members)
        self.ci = 0
        """Guard bits of the members whose last delivered message is in CI."""

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        """Let the message carry CI, empty CI, and transmit the message to all."""
        causes = self.clock & (self.ci - (self.ci >> VALUE_BITS))
        self.ci = 0
        self.sent += 1
        self.clock += 1 << (self.me * LANE_BITS)
        return (Transmit(self.to, IdrMessage(self.me, self.sent, payload, causes)),)

    def receive(self, message: IdrMessage, *, now: int | None = None) -> Sequence[Effect]:
        """Deliver the message when its causes are delivered, and what waited for it; or hold it."""
        sender, seq, _, causes = message
        # `lacks` and `record` are written out here: calls would double the cost of the path.
        # A cause in a lane that nobody has is behind the 0 there, so `check` gets to see it.
        if (
            self.counts.get(sender) != seq - 1
            or causes.bit_length() > self.width
            or sender in self.last
        ):
            return self.receive_slowly(message)
        rest = self.clock - causes
        if rest & self.guard != self.guard:
            return self.set_aside(message)
        if self.waiting and (sender, seq) in self.waiting:
            return self.release(message)
        self.ci = self.ci & (rest - self.ones) | self.marks[sender]
        # This adds 1 to the lane, in a third of the time of an addition.
        self.clock ^= (seq ^ (seq - 1)) << (sender * LANE_BITS)
        self.counts[sender] = seq
        return (Deliver(message),)

    def record(self, message: IdrMessage) -> None:
        """Count the delivery; put the message into CI and drop what it implies."""
        kept = self.clock - message.causes - self.ones
        self.ci = self.ci & kept | self.marks[message.sender]
        self.clock += unit(message.sender)
        self.counts[message.sender] = message.seq

    # -- membership and snapshot --------------------------------------------------------------

    def frontier(self) -> Hashable:
        """Return the counts and who left, and the members in CI; my last message is one."""
        members = {member for member, mark in self.marks.items() if self.ci & mark}
        if self.sent:
            members.add(self.me)
        return super().frontier(), tuple(sorted(members))

    def adopt(self, frontier: Any) -> None:
        """Regard everything up to the frontier as delivered; the sponsor's CI becomes mine."""
        counts, members = frontier
        super().adopt(counts)
        self.ci = sum(self.marks[member] for member in members)

    def begin_at(self, newest: Mapping[int, int]) -> None:
        grown = [k for k, number in newest.items() if number > self.counts[k]]
        super().begin_at(newest)
        for member in grown:
            self.ci |= self.marks[member]

    def forget(self, member: int) -> None:
        mark = self.marks[member]
        super().forget(member)
        self.ci &= ~mark

    def check_listening(self) -> None:
        raise LocalError(
            "messages of idr (order 'causal') name only their immediate causes. A member that "
            "begins at the first message that it hears could not recognize what precedes these: "
            "give begin_at a frontier, or use order 'bss' in the whole group"
        )

    def extra(self) -> Hashable:
        return self.ci

    def set_extra(self, extra: Any) -> None:
        self.ci = extra

    def check_whole(self) -> None:
        super().check_whole()
        named = [k for k, mark in self.marks.items() if self.ci & mark]
        if self.ci != sum(self.marks[k] for k in named) or not all(map(self.counts.get, named)):
            raise ValueError("CI names who has sent nothing, or is not in the group")

    # -- size and wire ----------------------------------------------------------------------

    def control_bytes(self, message: IdrMessage) -> int:
        """Return 8 bytes a pair, as Evropeytsev et al. 2016 count."""
        return self.pair_bytes(message)

    def storage_bytes(self) -> int:
        """Return 4 bytes a member for VT, 8 a pair of CI, as Evropeytsev et al. 2016."""
        return INTEGER_BYTES * (len(self.counts) + 1) + PAIR_BYTES * self.ci.bit_count()
