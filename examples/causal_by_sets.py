"""Custom protocol: causal order by the set of all earlier messages.

    antecede check examples/causal_by_sets.py:CausalBySets

Correct, but large on the wire: each message carries its whole causal past. Without the subset test
in `receive` the check finds two messages that break it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from antecede.core.protocols import (
    DUPLICATE,
    Deliver,
    Discard,
    Effect,
    Hold,
    MessageId,
    Protocol,
    Transmit,
)


class Message(NamedTuple):
    """Message with its number and its causal past."""

    sender: int
    seq: int
    payload: Any
    past: tuple[MessageId, ...]


class CausalBySets(Protocol):
    """One member; `Protocol` provides snapshots and promises order by delivery."""

    def __init__(self, me: int, members: Iterable[int]) -> None:
        super().__init__(me, members)
        self.sent = 0
        self.known: set[MessageId] = set()
        self.held: dict[MessageId, Message] = {}

    def send(
        self, payload: Any, *, now: int | None = None, after: Sequence[MessageId] = ()
    ) -> Sequence[Effect]:
        """Send a message that carries everything sent or delivered here so far."""
        self.sent += 1
        message = Message(self.me, self.sent, payload, tuple(sorted(self.known)))
        self.known.add(MessageId(self.me, self.sent))
        return [Transmit(self.others(), message)]

    def receive(self, message: Message, *, now: int | None = None) -> Sequence[Effect]:
        """Deliver messages with a delivered past, until nothing changes."""
        name = MessageId(message.sender, message.seq)
        if name in self.known or name in self.held:
            return [Discard(message, DUPLICATE)]
        self.held[name] = message
        effects: list[Effect] = []
        while ready := [m for m in self.held.values() if self.known.issuperset(m.past)]:
            for one in sorted(ready):  # by number: a restored dictionary may differ in order
                del self.held[MessageId(one.sender, one.seq)]
                self.known.add(MessageId(one.sender, one.seq))
                effects.append(Deliver(one))
        if name in self.held:
            effects.append(Hold(message, tuple(m for m in message.past if m not in self.known)))
        return effects
