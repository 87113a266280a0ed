"""Rows on their way through an `Observer`, and the recorder of a protocol's effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from antecede.order.deliver_spec import DeliverStatus
from antecede.protocols.base import NOTHING, Effect, Protocol


class Arrival(NamedTuple):
    """One row of an observer; `at` is its time (see `Observer`), `ticket` its own number."""

    ticket: int
    at: float
    wire: bytes | None
    sent: bool = False
    to: tuple[str, ...] | None = None
    topics: tuple[str, ...] | None = None


class Outcome(NamedTuple):
    """What became of a row; None where there is nothing to say."""

    ticket: int
    status: DeliverStatus
    position: int | None = None
    waited_ms: float | None = None
    waits_for: tuple[str, ...] | None = None
    reason: str | None = None
    sender: str | None = None
    seq: int | None = None
    payload: bytes | None = None


class Waiting(NamedTuple):
    """A held row: its ticket, when it came, and what it waited for then."""

    ticket: int
    since: float
    waits_for: tuple[str, ...]


class Recorder:
    """A protocol that keeps the effects of its last call; all else passes through."""

    def __init__(self, inner: Protocol) -> None:
        self.inner = inner
        self.message: Any = None
        self.effects: Sequence[Effect] = NOTHING

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def send(self, payload: Any, **chosen: Any) -> Sequence[Effect]:
        """Send and keep the effects."""
        self.effects = self.inner.send(payload, **chosen)
        return self.effects

    def receive(self, message: Any, *, now: float = 0.0) -> Sequence[Effect]:
        """Receive and keep message and effects."""
        self.message = message
        self.effects = self.inner.receive(message, now=now)
        return self.effects

    def tick(self, now: float) -> Sequence[Effect]:
        """Let time pass and keep the effects."""
        self.effects = self.inner.tick(now)
        return self.effects
