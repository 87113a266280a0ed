"""IDR: causal broadcast by immediate dependencies, the comparator of Evropeytsev et al. 2016.

Source: the Immediate Dependency Relation protocol to which Evropeytsev et al. 2016 compare theirs,
without stating its rule. The rule here: a member keeps delivered counts VT and a set CI of (member,
number). A message carries CI, and sending empties CI. A message of k is delivered when it is k's
next and x <= VT[l] for every carried (l, x). Then this message replaces k's entry in CI. For every
carried (l, x), an entry (l, t) with t <= x is removed.

Theory of operation
-------------------
An entry of CI for l always names l's last delivered message, (l, VT[l]). So CI is only a set of
lanes, stored as guard bits `ci`. The pairs are taken from `clock` when a message is sent. The
difference `clock - causes`, with the guard bits of `clock` set, decides delivery: a cleared guard
bit marks a missing cause. Without one, subtracting `ones` from it clears exactly the guards with
difference 0, which are the entries to remove.
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
    """Message whose `causes` are the pairs of CI."""

    __slots__ = ()


class Idr(CountingProtocol):
    """Member of a group with causal order; needs a reliable channel."""

    guarantee: Guarantee = Guarantee(Relation.BY_DELIVERY, joins=True, leaves=True)
    message_type: ClassVar[type[CausesMessage]] = IdrMessage

    def __init__(self, me: int, members: Iterable[int]) -> None:
        super().__init__(me, members)
        self.ci = 0
        """Guard bits of the members whose last delivered message is in CI."""

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        causes = self.clock & (self.ci - (self.ci >> VALUE_BITS))
        self.ci = 0
        self.sent += 1
        self.clock += 1 << (self.me * LANE_BITS)
        return (Transmit(self.to, IdrMessage(self.me, self.sent, payload, causes)),)

    def receive(self, message: IdrMessage, *, now: int | None = None) -> Sequence[Effect]:
        sender, seq, _, causes = message
        # Inlined `find_missing_cause` and `record`: calls would double the cost.
        # A cause in an unused lane exceeds the 0 there, so it reaches `check`.
        if (
            self.counts.get(sender) != seq - 1
            or causes.bit_length() > self.width
            or sender in self.last
        ):
            return self.receive_slowly(message)
        rest = self.clock - causes
        if rest & self.guard != self.guard:
            return self.discard_or_hold(message)
        if self.waiting and (sender, seq) in self.waiting:
            return self.release(message)
        self.ci = self.ci & (rest - self.ones) | self.marks[sender]
        # Adds 1 to the lane, three times as fast as an addition.
        self.clock ^= (seq ^ (seq - 1)) << (sender * LANE_BITS)
        self.counts[sender] = seq
        return (Deliver(message),)

    def record(self, message: IdrMessage) -> None:
        """Count the delivery; add the message to CI and remove the causes that it implies."""
        kept = self.clock - message.causes - self.ones
        self.ci = self.ci & kept | self.marks[message.sender]
        self.clock += unit(message.sender)
        self.counts[message.sender] = message.seq

    # -- membership and snapshot --------------------------------------------------------------

    def join_state(self) -> Hashable:
        """Return counts, departed members, and the members in CI with this one if it has sent."""
        members = {member for member, mark in self.marks.items() if self.ci & mark}
        if self.sent:
            members.add(self.me)
        return super().join_state(), tuple(sorted(members))

    def install_join_state(self, state: Any) -> None:
        counts, members = state
        super().install_join_state(counts)
        self.ci = sum(self.marks[member] for member in members)

    def start_from(self, newest: Mapping[int, int]) -> None:
        grown = [k for k, number in newest.items() if number > self.counts[k]]
        super().start_from(newest)
        for member in grown:
            self.ci |= self.marks[member]

    def forget(self, member: int) -> None:
        mark = self.marks[member]
        super().forget(member)
        self.ci &= ~mark

    def check_listening(self) -> None:
        raise LocalError(
            "messages of idr (order 'causal') name only their immediate causes, so a "
            "member cannot start at the first message that it receives: use an invitation "
            "or known numbers, or order 'bss' in the whole group"
        )

    def extra_state(self) -> Hashable:
        return self.ci

    def set_extra_state(self, extra: Any) -> None:
        self.ci = extra

    def check_whole(self) -> None:
        super().check_whole()
        named = [k for k, mark in self.marks.items() if self.ci & mark]
        if self.ci != sum(self.marks[k] for k in named) or not all(map(self.counts.get, named)):
            raise ValueError("CI: a member without messages, or not in the group")

    # -- size and wire ----------------------------------------------------------------------

    def control_bytes(self, message: IdrMessage) -> int:
        """Return 8 bytes per pair, as Evropeytsev et al. 2016 count."""
        return self.pair_bytes(message)

    def storage_bytes(self) -> int:
        """Return 4 bytes per member for VT and 8 per pair of CI (Evropeytsev et al. 2016)."""
        return INTEGER_BYTES * (len(self.counts) + 1) + PAIR_BYTES * self.ci.bit_count()
