"""Workload of the recorded members: questions on topics, and replies.

A seeded generator of the member process draws senders and times.
"""

from __future__ import annotations

import json
import random
from typing import NamedTuple

QUESTIONS_PER_S = 1.2
REPLY_CHANCE = {"question": 0.22, "reply": 0.09}
THINK_MEAN_S = 0.08

_QUESTIONS = {
    "deploys": ("is build {n} out yet?", "who rolls back {n}?", "did {n} pass staging?"),
    "incidents": ("who sees errors on cart {n}?", "is queue {n} draining?", "page {n}: mine?"),
    "lunch": ("noodles at {n}?", "table {n}, who joins?"),
}
TOPICS = tuple(sorted(_QUESTIONS))
_REPLIES = ("yes, just now", "no, not here", "on it", "same here", "give me a minute", "done")


class MessageContent(NamedTuple):
    """Payload of a message: topic, text, and the message that it replies to (sender, number)."""

    topic: str
    text: str
    reply_to: tuple[str, int] | None = None

    def to_bytes(self) -> bytes:
        """Return the content as JSON."""
        return json.dumps(self._asdict(), separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, payload: bytes) -> MessageContent:
        """Parse the JSON of `to_bytes`."""
        fields = json.loads(payload)
        reply_to = fields["reply_to"]
        return cls(fields["topic"], fields["text"], tuple(reply_to) if reply_to else None)


def make_question(rng: random.Random) -> MessageContent:
    """Return a new question on a random topic."""
    topic = rng.choice(sorted(_QUESTIONS))
    return MessageContent(topic, rng.choice(_QUESTIONS[topic]).format(n=rng.randrange(10, 100)))


def make_reply(
    rng: random.Random, to: MessageContent, message_id: tuple[str, int]
) -> MessageContent | None:
    """Return a reply to a message that was just delivered; None: most messages get none."""
    kind = "question" if to.reply_to is None else "reply"
    if rng.random() >= REPLY_CHANCE[kind]:
        return None
    return MessageContent(to.topic, rng.choice(_REPLIES), message_id)


def draw_pause_s(rng: random.Random) -> float:
    """Draw the pause before a member's next question."""
    return rng.expovariate(QUESTIONS_PER_S)


def draw_think_s(rng: random.Random) -> float:
    """Draw a member's thinking time before a reply."""
    return rng.expovariate(1.0 / THINK_MEAN_S)
