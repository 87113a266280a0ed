"""FIFO order: messages of a sender are delivered in the order in which they were sent.

Source: Sahai et al. 2020, "Message ordering", the FIFO model. There is no order across senders. The
delivered numbers are the range 1 .. n at the start of a member's intervals.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from antecede.core.clocks import Intervals, intervals
from antecede.core.protocols.base import (
    AFTER_LEAVE,
    DUPLICATE,
    OWN,
    Deliver,
    Discard,
    Effect,
    Guarantee,
    Held,
    Hold,
    MessageId,
    Relation,
)
from antecede.core.protocols.basic.base import INTEGER_BYTES, NumberedMessage, NumberedProtocol
from antecede.core.protocols.membership.lost_messages import skip_lost_messages


class Fifo(NumberedProtocol):
    """Member of a group with FIFO order; members can join and leave."""

    guarantee: Guarantee = Guarantee(Relation.FIFO, joins=True, leaves=True)

    def __init__(self, me: int, members: Iterable[int]) -> None:
        super().__init__(me, members)
        self.held: dict[MessageId, NumberedMessage] = {}

    def receive(self, message: NumberedMessage, *, now: int | None = None) -> Sequence[Effect]:
        sender, seq = message.sender, message.seq
        if sender == self.me:
            return (Discard(message, OWN),)
        self.check(sender, seq)
        if not intervals.insert(self.arrived[sender], seq):
            return (Discard(message, DUPLICATE),)
        missing = self._find_missing(sender, seq)
        if missing:
            self.held[MessageId(sender, seq)] = message
            return (Hold(message, missing),)
        return self._deliver_in_sequence(message)

    def would_hold(self, message: NumberedMessage, now: int | None = None) -> bool:
        sender, seq = message.sender, message.seq
        if sender == self.me:
            return False
        self.check(sender, seq)
        known = intervals.contains(self.arrived[sender], seq)
        return not known and bool(self._find_missing(sender, seq))

    def _deliver_in_sequence(self, message: NumberedMessage) -> Sequence[Effect]:
        effects: list[Effect] = []
        following: NumberedMessage | None = message
        while following is not None:
            effects.append(Deliver(following))
            following = self.held.pop(MessageId(following.sender, following.seq + 1), None)
        return effects

    def _find_missing(self, sender: int, seq: int) -> tuple[MessageId, ...]:
        gap = intervals.nearest_gap(self.arrived[sender], seq)
        return (MessageId(sender, gap),) if gap else ()

    def newest(self, member: int) -> int:
        bounds = self.arrived[member]
        return bounds[1] - 1 if bounds and bounds[0] == 1 else 0

    def list_held(self) -> tuple[Held, ...]:
        """Return held messages; the gap is looked up once for each range of numbers."""
        found, held = [], self.held
        sender = stop = -1
        missing: tuple[MessageId, ...] = ()
        for key in sorted(held):
            if key[0] != sender or key[1] >= stop:
                sender, stop = key[0], intervals.run_end(self.arrived[key[0]], key[1])
                missing = self._find_missing(sender, key[1])
            found.append(Held(held[key], missing))
        return tuple(found)

    def count_held(self) -> int:
        return len(self.held)

    def describe(self, names: Mapping[int, str]) -> dict[str, str]:
        held = ", ".join(str(self.held[key].payload) for key in sorted(self.held))
        return super().describe(names) | ({"held": held} if held else {})

    # -- membership -------------------------------------------------------------------------

    def join_state(self) -> Hashable:
        """Return (member, delivered) of all members ever, and (member, last) of departed ones."""
        counts = {member: self.newest(member) for member in self.arrived}
        counts[self.me] = self.sent
        return tuple(sorted(counts.items())), tuple(sorted(self.last.items()))

    def install_join_state(self, state: Any) -> None:
        counts, last = state
        arrived = tuple((member, Intervals.up_to(count).bounds) for member, count in counts)
        super().install_join_state((arrived, last))

    def leave(self, member: int, last: int) -> Sequence[Effect]:
        super().leave(member, last)
        late = sorted(key for key in self.held if key.sender == member and key.seq > last)
        return tuple(Discard(self.held.pop(key), AFTER_LEAVE) for key in late)

    def declare_lost(self, lost: Collection[MessageId]) -> Sequence[Effect]:
        return skip_lost_messages(self, lost, self.newest, self.held.__contains__, self._skip)

    def _skip(self, lost: MessageId) -> Sequence[Effect]:
        intervals.insert(self.arrived[lost.sender], lost.seq)
        following = self.held.pop(MessageId(lost.sender, lost.seq + 1), None)
        return () if following is None else self._deliver_in_sequence(following)

    def check_whole(self) -> None:
        super().check_whole()
        for key, message in self.held.items():
            number = key.seq
            here = key.sender in self.arrived and number > self.newest(key.sender)
            if key != self.identity(message) or not here:
                raise ValueError(f"held: message {number} of member {key.sender}")
            if not intervals.contains(self.arrived[key.sender], number):
                raise ValueError(
                    f"held: message {number} of member {key.sender} is not among the arrived ones"
                )

    # -- control information ------------------------------------------------------------------

    def causes(self, message: NumberedMessage) -> tuple[MessageId, ...]:
        return (MessageId(message.sender, message.seq - 1),) if message.seq > 1 else ()

    def storage_bytes(self) -> int:
        return INTEGER_BYTES * (len(self.arrived) + 1)
