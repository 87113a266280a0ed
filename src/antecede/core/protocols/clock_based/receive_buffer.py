"""Receive buffer (Tsuneizumi et al.) and its overflow policy.

Source: Tsuneizumi et al., sections 2 ("a peer might lose messages due to buffer overrun") and 6
(RBF).

The buffer has the held messages and those after a gap. A full buffer discards arrivals, and
recovery brings them again. The next message of its sender is accepted nevertheless in two cases: it
ranks before all held ones, or a message after a gap can be discarded in its place. Otherwise held
messages could wait for ever. So the buffer exceeds its limit by at most one message per member.
"""

from __future__ import annotations

from antecede.core.protocols.base import Discard, Effect
from antecede.core.protocols.clock_based.channel import BUFFER_FULL
from antecede.core.protocols.clock_based.delivery_state import DeliveryState
from antecede.core.protocols.clock_based.messages import StampedMessage


class ReceiveBuffer:
    """Limit of the held messages and those after a gap at a member; None: no limit."""

    def __init__(self, member: DeliveryState, limit: int | None) -> None:
        self.member, self.limit = member, limit

    def is_full(self, message: StampedMessage) -> bool:
        if not self._is_at_limit() or self.is_first(message):
            return False
        channel = self.member.channel
        return message.before > channel.find_last_accepted(message.sender) or not any(
            channel.ahead.values()
        )

    def _is_at_limit(self) -> bool:
        assert self.limit is not None
        ahead = self.member.channel.ahead.values()
        return len(self.member.held) + sum(map(len, ahead)) >= self.limit

    def is_first(self, message: StampedMessage) -> bool:
        """Return whether a message is its sender's next and ranks before all held ones."""
        if message.before > self.member.channel.find_last_accepted(message.sender):
            return False
        rank, held = self.member._rank, self.member.held.values()
        return all(rank(message) < rank(one.message) for one in held)

    def make_room(self, message: StampedMessage) -> list[Effect]:
        """Discard the last message after a gap if this message needs its place."""
        if not self._is_at_limit() or self.is_first(message):
            return []
        member, ahead = self.member, self.member.channel.ahead
        every = [one for waiting in ahead.values() for one in waiting.values()]
        victim = max(every, key=member._rank)
        del ahead[victim.sender][victim.before]
        member.arrived_ns.pop(member.identity(victim), None)
        return [Discard(victim, BUFFER_FULL)]
