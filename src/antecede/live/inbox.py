"""What is delivered on its way to the application, and how far the application is with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from operator import length_hint

from antecede.live.events import Delivery, GivenUp, Message, Said, View
from antecede.live.ordering import Ordering
from antecede.live.stamps import Handed
from antecede.stamp import Past


class Inbox:
    """One flow of messages. `by_hand`: whether the application says itself what is done; `begun`:
    told of what a member said at once, before the first of it is handed over.
    """

    def __init__(self, begun: Callable[[Said], None] | None, *, by_hand: bool) -> None:
        self._begun, self._by_hand = begun, by_hand
        self.ready: deque[Delivery] = deque()
        self.current: Said | None = None
        self._payloads: Iterator[bytes] = iter(())
        self.run: Iterator[Message] = iter(())
        """What is left of `current`: as payloads, whose length is known, and as messages of these.
        """
        self.others: deque[View | GivenUp] = deque()
        self.taken = 0
        """Place of the last message that was taken from the node."""
        self.done = 0
        """Place up to which the application is done, but for what it is amid of."""
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
                self.taken = event.last or self.taken
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

    def finished(self, said: Said | None, ordering: Ordering | None) -> None:
        """The application has asked for what comes behind this."""
        self.current = None
        if said is not None:
            self.hand_over(said, len(said.payloads), ordering)
            if not self._by_hand:
                self.done = said.last or self.done

    def hand_over(self, said: Said, count: int, ordering: Ordering | None) -> None:
        """The first so many of it are the application's: what it does from here follows them."""
        if count and ordering is not None:
            self._handed.note(said.lane, said.first + count - 1, ordering.said)

    def past(self, ordering: Ordering) -> Past:
        """Return what the application follows: what it was handed and has sent."""
        said = self.current
        if said is not None:
            self.hand_over(said, len(said.payloads) - self.left, ordering)
        return self._handed.past(ordering.me, ordering.said)

    def done_upto(self) -> int:
        """Return the place up to which the application is done.

        While it is amid what somebody said at once: with all before the last that it got.
        """
        said = self.current
        if self._by_hand or said is None or not said.place:
            return self.done
        return max(self.done, said.last - self.left - 1)


__all__ = ["Inbox"]
