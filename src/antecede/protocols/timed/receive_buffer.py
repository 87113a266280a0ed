"""The receipt buffer of Tsuneizumi et al., and who goes when it is full.

Source: Tsuneizumi et al., sections 2 ("a peer might lose messages due to buffer overrun") and 6
(RBF).

Theory of operation
-------------------
In the buffer are the messages held (taken in, not delivered) and those ahead of a gap. A full
buffer discards what arrives; recovery brings it again. Two messages are taken in all the same,
else a buffer full of messages that wait for the one it refuses would wait for ever: the next of its
sender, when it ranks before all that is held; and the next of its sender when something is ahead of
a gap, which is discarded in its place. So the buffer holds at most one more for each member.
"""

from __future__ import annotations

from antecede.protocols.base import Discard, Effect, MessageId
from antecede.protocols.timed.channel import OVERRUN, Taken, Transmission
from antecede.protocols.timed.messages import StampedMessage


class ReceiveBuffer(Transmission):
    """What waits at one member, and how much may."""

    buffer_limit: int | None
    held: dict[MessageId, Taken]
    """Taken in and not delivered."""
    arrived_ns: dict[MessageId, int]
    """When what is not delivered arrived; for the bound without physical time alone."""

    def _is_full(self, message: StampedMessage) -> bool:
        """Tell whether there is no room for a message, nor any that can be made."""
        if not self._lacks_room() or self._is_first(message):
            return False
        return message.before > self.done(message.sender) or not any(self.ahead.values())

    def _lacks_room(self) -> bool:
        if self.buffer_limit is None:
            return False
        return len(self.held) + sum(map(len, self.ahead.values())) >= self.buffer_limit

    def _is_first(self, message: StampedMessage) -> bool:
        """Tell whether a message is next of its sender and before all that is held."""
        if message.before > self.done(message.sender):
            return False
        return all(self._rank(message) < self._rank(one.message) for one in self.held.values())

    def _make_room(self, message: StampedMessage) -> list[Effect]:
        """Discard the last of the messages ahead, where one must go for this one."""
        if not self._lacks_room() or self._is_first(message):
            return []
        every = [one for ahead in self.ahead.values() for one in ahead.values()]
        victim = max(every, key=self._rank)
        del self.ahead[victim.sender][victim.before]
        self.arrived_ns.pop(self.identity(victim), None)
        return [Discard(victim, OVERRUN)]

    def _rank(self, message: StampedMessage) -> tuple[int, int, int, int]:
        return message.lt, message.pt_ns, message.sender, message.seq
