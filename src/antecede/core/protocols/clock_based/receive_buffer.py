"""Receipt buffer of Tsuneizumi et al.

Source: Tsuneizumi et al., sections 2 ("a peer might lose messages due to buffer overrun") and 6
(RBF).

The buffer has the messages held and those ahead of a gap. A full buffer discards arrivals; recovery
brings them again. Two messages are taken in all the same, else the messages held could wait for
ever for the one refused: the next of its sender, when it ranks before all that is held; and the
next of its sender when something is ahead of a gap, which is discarded in its place. So the buffer
exceeds its limit by one message a member at most.
"""

from __future__ import annotations

from antecede.core.protocols.base import Discard, Effect
from antecede.core.protocols.clock_based.channel import OVERRUN
from antecede.core.protocols.clock_based.delivery_state import DeliveryState
from antecede.core.protocols.clock_based.messages import StampedMessage


class ReceiveBuffer:
    """Limit of the messages held or ahead at one member; None: no limit, and never asked."""

    def __init__(self, member: DeliveryState, limit: int | None) -> None:
        self.member, self.limit = member, limit

    def is_full(self, message: StampedMessage) -> bool:
        """Tell whether there is no room for a message, nor any that can be made."""
        if not self._lacks_room() or self.is_first(message):
            return False
        channel = self.member.channel
        return message.before > channel.done(message.sender) or not any(channel.ahead.values())

    def _lacks_room(self) -> bool:
        assert self.limit is not None
        ahead = self.member.channel.ahead.values()
        return len(self.member.held) + sum(map(len, ahead)) >= self.limit

    def is_first(self, message: StampedMessage) -> bool:
        """Tell whether a message is next of its sender and before all that is held."""
        if message.before > self.member.channel.done(message.sender):
            return False
        rank, held = self.member._rank, self.member.held.values()
        return all(rank(message) < rank(one.message) for one in held)

    def make_room(self, message: StampedMessage) -> list[Effect]:
        """Discard the last of the messages ahead, where one must go for this one."""
        if not self._lacks_room() or self.is_first(message):
            return []
        member, ahead = self.member, self.member.channel.ahead
        every = [one for waiting in ahead.values() for one in waiting.values()]
        victim = max(every, key=member._rank)
        del ahead[victim.sender][victim.before]
        member.arrived_ns.pop(member.identity(victim), None)
        return [Discard(victim, OVERRUN)]
