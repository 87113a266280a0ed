"""What is delivered on its way to the application, and how far the application is with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from operator import length_hint
from typing import Final, NamedTuple

from antecede.core.propagation import CausalContext
from antecede.live.events import Delivery, GivenUp, Message, Said, View
from antecede.live.ordering import Ordering
from antecede.live.stamps import Handed

MOST_OPEN: Final = 1 << 16
"""Ranges of unacknowledged messages that a peer without a store remembers."""


class _Open(NamedTuple):
    """A range of messages that the application has not acknowledged."""

    lane: str
    first: int
    size: int
    taken: int
    """Number of messages taken up to the last of them."""


class Inbox:
    """Flow of messages. `by_hand`: whether the application says itself what is done; `durable`:
    whether that is stored; `begun`: told of what a member said at once, before the first of it is
    handed over.
    """

    def __init__(
        self, begun: Callable[[Said], None] | None, *, by_hand: bool, durable: bool
    ) -> None:
        self._begun, self._by_hand = begun, by_hand
        self.ready: deque[Delivery] = deque()
        self.current: Said | None = None
        self._payloads: Iterator[bytes] = iter(())
        self.run: Iterator[Message] = iter(())
        """What is left of `current`: as payloads, whose length is known, and as messages of these.
        """
        self.others: deque[View | GivenUp] = deque()
        self.taken = 0
        """How many messages were taken to be handed over, of those that this member delivered."""
        self.done = 0
        """How many of these the application is done with, but for what it is amid of."""
        self._open: deque[_Open] = deque(maxlen=None if durable else MOST_OPEN)
        """What is handed over and not done, where the application says so."""
        self._handed = Handed()

    @property
    def left(self) -> int:
        """How many messages of `current` were not handed over yet."""
        return length_hint(self._payloads)

    def next(self, others: deque[View | GivenUp] | None) -> bool:
        """Go on to what is next; whether there is something. Messages that are left come first.

        Without `others` what is no message is passed over.
        """
        if self.left:
            return True
        while self.ready:
            event = self.ready.popleft()
            if isinstance(event, Said):
                self.current, self._payloads = event, iter(event.payloads)
                self.run = event.messages(self._payloads)
                self.taken += event.live_count
                if self._by_hand and event.live_count:
                    self._open.append(_Open(event.lane, event.first, event.live_count, self.taken))
                if self._begun is not None:
                    self._begun(event)
                return True
            if others is not None:
                others.append(event)
                return True
        return False

    def rest(self) -> tuple[Said | None, int]:
        """Return what one is amid of, and how much of it is left, for who takes that at once."""
        said, left = self.current, self.left
        self.current, self._payloads = None, iter(())
        return said, left

    def finished(
        self, said: Said | None, ordering: Ordering | None, taken: int | None = None
    ) -> None:
        """The application has asked for what comes behind this; `taken`: as it was then."""
        self.current = None
        if said is not None:
            self.hand_over(said, len(said.payloads), ordering)
            if not self._by_hand:
                self.done = self.taken if taken is None else taken

    def hand_over(self, said: Said, count: int, ordering: Ordering | None) -> None:
        """The first so many of it are the application's: what it does from here follows them."""
        if count and ordering is not None:
            self._handed.note(said.lane, said.first + count - 1, ordering.said)

    def past(self, ordering: Ordering) -> CausalContext:
        """Return what the application follows: what it was handed and has sent."""
        said = self.current
        if said is not None:
            self.hand_over(said, len(said.payloads) - self.left, ordering)
        return self._handed.past(ordering.me, ordering.said)

    def done_upto(self) -> int:
        """Return how many messages the application is done with.

        While it is amid what somebody said at once: with all before the last that it got.
        """
        said = self.current
        if self._by_hand or said is None or said.is_history:
            return self.done
        return max(self.done, self.taken - self.left - 1)

    def acknowledge(self, message: Message) -> None:
        """The application is done with a message, and with all that were handed over before it.

        A message that is not among those handed over and not done has no effect.
        """
        for one in self._open:
            left = one.first + one.size - 1 - message.number
            if one.lane == message.lane and 0 <= left < one.size:
                self.done = max(self.done, one.taken - left)
                break
        while self._open and self._open[0].taken <= self.done:
            self._open.popleft()

    def begin(self, done: int) -> None:
        """Go on where the store says that the application was done with so many messages."""
        self.taken = self.done = done


__all__ = ["Inbox"]
