"""Inbox: delivered messages on their way to the application."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from operator import length_hint
from typing import Final, NamedTuple

from antecede.core.propagation import CausalContext
from antecede.live.events import Delivery, Message, MessagesAbandoned, SentBatch, View
from antecede.live.ordering import Ordering
from antecede.live.stamps import Handed

MOST_OPEN: Final = 1 << 16
"""Ranges of unacknowledged messages that a peer without a store keeps."""


class _OpenRange(NamedTuple):
    """Consecutive messages that the application has not acknowledged."""

    lane: str
    first: int
    size: int
    taken: int
    """Messages taken up to the last of these."""


class Inbox:
    """Queue of messages for the application. `by_hand`: the application acknowledges messages
    itself. `durable`: a store keeps that. `begun`: called with consecutive messages before the
    application takes the first of them.
    """

    def __init__(
        self, begun: Callable[[SentBatch], None] | None, *, by_hand: bool, durable: bool
    ) -> None:
        self._begun, self._by_hand = begun, by_hand
        self.ready: deque[Delivery] = deque()
        self.current: SentBatch | None = None
        self._payloads: Iterator[bytes] = iter(())
        self.run: Iterator[Message] = iter(())
        """Rest of `current`: as payloads of known length, and as messages."""
        self.others: deque[View | MessagesAbandoned] = deque()
        self.taken = 0
        """Number of messages taken for the application, of those that this member delivered."""
        self.done = 0
        """Number of these that the application has finished, without the current ones."""
        self._open: deque[_OpenRange] = deque(maxlen=None if durable else MOST_OPEN)
        """Taken and unfinished messages, if the application acknowledges them itself."""
        self._handed = Handed()

    @property
    def left(self) -> int:
        """Number of messages of `current` that the application has not taken."""
        return length_hint(self._payloads)

    def next(self, others: deque[View | MessagesAbandoned] | None) -> bool:
        """Proceed to the next messages; return whether there are any. Remaining ones come first.
        Without `others`, events that are not messages are dropped.
        """
        if self.left:
            return True
        while self.ready:
            event = self.ready.popleft()
            if isinstance(event, SentBatch):
                self.current, self._payloads = event, iter(event.payloads)
                self.run = event.messages(self._payloads)
                self.taken += event.live_count
                if self._by_hand and event.live_count:
                    self._open.append(
                        _OpenRange(event.sender_id, event.first, event.live_count, self.taken)
                    )
                if self._begun is not None:
                    self._begun(event)
                return True
            if others is not None:
                others.append(event)
                return True
        return False

    def rest(self) -> tuple[SentBatch | None, int]:
        """Return the current messages and the number of remaining ones, and finish them."""
        said, left = self.current, self.left
        self.current, self._payloads = None, iter(())
        return said, left

    def finish(
        self, said: SentBatch | None, ordering: Ordering | None, taken: int | None = None
    ) -> None:
        """Finish messages. `taken`: value of that attribute when they were current."""
        self.current = None
        if said is not None:
            self.hand_over(said, len(said.payloads), ordering)
            if not self._by_hand:
                self.done = self.taken if taken is None else taken

    def hand_over(self, said: SentBatch, count: int, ordering: Ordering | None) -> None:
        """Record that the application has the first `count` messages of a batch."""
        if count and ordering is not None:
            self._handed.note(said.sender_id, said.first + count - 1, ordering.said)

    def past(self, ordering: Ordering) -> CausalContext:
        """Return the causal context of the application."""
        said = self.current
        if said is not None:
            self.hand_over(said, len(said.payloads) - self.left, ordering)
        return self._handed.past(ordering.me, ordering.said)

    def count_done(self) -> int:
        """Return the number of messages that the application has finished. Of the current messages,
        the last one taken counts as unfinished.
        """
        said = self.current
        if self._by_hand or said is None or said.is_history:
            return self.done
        return max(self.done, self.taken - self.left - 1)

    def acknowledge(self, message: Message) -> None:
        """Finish a message and all messages taken before it. A message that is not open has no
        effect.
        """
        for one in self._open:
            left = one.first + one.size - 1 - message.number
            if one.lane == message.sender_id and 0 <= left < one.size:
                self.done = max(self.done, one.taken - left)
                break
        while self._open and self._open[0].taken <= self.done:
            self._open.popleft()

    def begin(self, done: int) -> None:
        """Continue with the number of finished messages from the store."""
        self.taken = self.done = done


__all__ = ["Inbox"]
