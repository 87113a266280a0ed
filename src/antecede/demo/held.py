"""One message of a recording that was held back, told as a story."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from antecede.trace.schema import DELIVER, RECEIVE, SEND, Event

NS_PER_MS = 1e6
SHORT_MS, LONG_MS = 40.0, 400.0
LEAD_MS = 120.0


class HeldMessage(NamedTuple):
    """A message that arrived before a cause: where, why, and for how long."""

    at: str
    sent: Event
    arrived: Event
    delivered: Event
    cause: Event
    """The send row of the message that it waited for."""
    cause_arrived: Event

    @property
    def wait_ms(self) -> float:
        """Milliseconds from arrival to delivery."""
        return ((self.delivered.arrival or 0) - (self.arrived.arrival or 0)) / NS_PER_MS

    @property
    def is_middling(self) -> bool:
        """Tell whether the wait is long enough to see and short enough to draw."""
        return SHORT_MS < self.wait_ms < LONG_MS

    @property
    def is_reply(self) -> bool:
        """Tell whether it reads like an answer that overtook its question."""
        question, answer = self.cause.text or "", self.sent.text or ""
        same_topic = self.cause.topics == self.sent.topics
        return same_topic and question.endswith("?") and not answer.endswith("?")

    @property
    def members(self) -> tuple[str, ...]:
        """The members that the story needs: cause's sender, the message's sender, where held."""
        names = (self.cause.member or "", self.sent.member or "", self.at)
        return tuple(dict.fromkeys(names))

    @property
    def window_ns(self) -> tuple[int, int]:
        """A stretch of the recorder's time around the hold."""
        lead = round(LEAD_MS * NS_PER_MS)
        first = min(self.cause.arrival or 0, self.arrived.arrival or 0)
        return first - lead, (self.delivered.arrival or 0) + lead

    def lines(self) -> list[str]:
        """Return the story: what was said, what blocked it, what released it."""
        return [
            f"{self.cause.member} wrote {self.cause.id}: {self.cause.text!r}",
            f"{self.sent.member} wrote {self.sent.id}: {self.sent.text!r}",
            f"{self.sent.id} reached {self.at} first; there blocked_on() said:",
            f"    {self.delivered.text}",
            f"{self.cause.id} came {self.wait_ms:.0f} ms later, and both were delivered in order",
        ]


def find_held(events: Sequence[Event]) -> HeldMessage | None:
    """Return a message held for a cause of another sender, of middling length; None if none was."""
    sends = {event.id: event for event in events if event.kind == SEND}
    receipts = {(e.member, e.id): e for e in events if e.kind == RECEIVE}
    found = [
        held
        for event in events
        if event.kind == DELIVER
        for held in _stories(event, sends, receipts)
    ]
    found.sort(key=lambda held: (not held.is_reply, not held.is_middling, -held.wait_ms))
    return found[0] if found else None


def _stories(
    delivered: Event, sends: dict[str, Event], receipts: dict[tuple[str | None, str], Event]
) -> list[HeldMessage]:
    arrived = receipts[delivered.member, delivered.id]
    stories = []
    for cause_id in arrived.parents:
        cause_arrived = receipts.get((delivered.member, cause_id))
        other_sender = cause_id in sends and sends[cause_id].member != sends[delivered.id].member
        if cause_arrived is None or not other_sender:
            continue
        if (cause_arrived.file_order) > arrived.file_order and sends[cause_id].text:
            story = HeldMessage(
                delivered.member or "",
                sends[delivered.id],
                arrived,
                delivered,
                sends[cause_id],
                cause_arrived,
            )
            stories.append(story)
    return stories
