"""Rows on their way through an `ReplayedMember`: as they come, as they wait, as they leave."""

from __future__ import annotations

from typing import NamedTuple

from antecede.tables.order.replay.spec import DeliverStatus


class Arrival(NamedTuple):
    """One row of an observer; `at` is its time (see `ReplayedMember`), `ticket` its own number."""

    ticket: int
    at: int
    wire: bytes | None
    sent: bool = False
    to: tuple[str, ...] | None = None
    """Whom an own message was for, where its bytes do not say."""
    topics: tuple[str, ...] | None = None
    """Topics of an own message of which there are no bytes."""


class RowOutcome(NamedTuple):
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


class HeldRow(NamedTuple):
    """A held row: its ticket, when it came, and what it waited for then.

    `reason` is what is to be said of it in any case, when it leaves.
    """

    ticket: int
    since: int
    waits_for: tuple[str, ...]
    reason: str | None = None
