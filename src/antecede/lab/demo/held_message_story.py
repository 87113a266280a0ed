"""Story of a held message of a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from antecede.tables.trace import DELIVER, RECEIVE, SEND, Event

NS_PER_MS = 1e6
SHORT_MS, LONG_MS = 40.0, 400.0
LEAD_MS = 120.0


class HeldMessageStory(NamedTuple):
    """Message that arrived before a cause."""

    at: str
    sent: Event
    arrived: Event
    delivered: Event
    cause: Event

    @property
    def wait_ms(self) -> float:
        """Milliseconds from arrival to delivery."""
        return ((self.delivered.arrival or 0) - (self.arrived.arrival or 0)) / NS_PER_MS

    @property
    def is_middling(self) -> bool:
        """True if the wait is long enough to see and short enough to draw."""
        return SHORT_MS < self.wait_ms < LONG_MS

    @property
    def is_reply(self) -> bool:
        """True if the text looks like a reply that overtook its question."""
        question, answer = self.cause.text or "", self.sent.text or ""
        same_topic = self.cause.topics == self.sent.topics
        return same_topic and question.endswith("?") and not answer.endswith("?")

    @property
    def members(self) -> tuple[str, ...]:
        """Members of the story: the cause's sender, the message's sender, the holding member."""
        names = (self.cause.member or "", self.sent.member or "", self.at)
        return tuple(dict.fromkeys(names))

    @property
    def window_ns(self) -> tuple[int, int]:
        """Time window of the recorder around the hold."""
        lead = round(LEAD_MS * NS_PER_MS)
        first = min(self.cause.arrival or 0, self.arrived.arrival or 0)
        return first - lead, (self.delivered.arrival or 0) + lead

    def lines(self) -> list[str]:
        """Return the story: texts, the missing cause, the release."""
        return [
            f"{self.cause.member} wrote {self.cause.id}: {self.cause.text!r}",
            f"{self.sent.member} wrote {self.sent.id}: {self.sent.text!r}",
            f"{self.sent.id} reached {self.at} first; there list_held() returned:",
            f"    {self.delivered.text}",
            f"{self.cause.id} arrived {self.wait_ms:.0f} ms later; both were delivered in order",
        ]


def find_held(events: Sequence[Event]) -> HeldMessageStory | None:
    """Return a held message released by another sender's message, preferably a reply; or None."""
    sends = {event.id: event for event in events if event.kind == SEND}
    held_messages = [
        HeldMessageStory(event.member or "", sends[event.id], arrived, event, sends[key.id])
        for event, arrived, key in _find_released(events)
        if event.id in sends and key.id in sends and key.id in arrived.causes
        if sends[key.id].member != sends[event.id].member
    ]
    held_messages.sort(key=lambda held: (not held.is_reply, not held.is_middling, -held.wait_ms))
    return held_messages[0] if held_messages else None


def _find_released(events: Sequence[Event]) -> Iterator[tuple[Event, Event, Event]]:
    receipts: dict[tuple[str | None, str], Event] = {}
    latest: dict[str | None, Event] = {}
    for event in events:
        if event.kind == RECEIVE:
            receipts[event.member, event.id] = latest[event.member] = event
        elif event.kind == DELIVER and latest[event.member].id != event.id:
            yield event, receipts[event.member, event.id], latest[event.member]
