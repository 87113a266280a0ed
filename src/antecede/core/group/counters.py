"""Counters of a `Group`, updated per event so that `Group.stats` takes O(1)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from antecede.core.protocols import DUPLICATE, OWN, MessageId
from antecede.core.protocols.serialization import NUMBER, SIGNED, TEXT, Many, OneOf, Shape
from antecede.errors import MismatchError, RemoteError

MAX_REASONS = 64
"""Reasons counted separately. Further ones count as "other"."""
OTHER = "other"

SHAPE: Shape = (
    (NUMBER, NUMBER, NUMBER, NUMBER),
    Many((TEXT, NUMBER)),
    Many(((NUMBER, NUMBER), OneOf(None, SIGNED))),
)


class GroupCounters:
    """Event counters, and when each held message arrived."""

    def __init__(self) -> None:
        self.sent = self.delivered = self.delivered_incomplete = self.duplicates = 0
        self.discarded: dict[str, int] = {}
        self.rejected: dict[str, int] = {}
        self.held_since: OrderedDict[MessageId, int | None] = OrderedDict()
        """Held message -> reading at its arrival, in order of arrival."""

    def record_hold(self, key: MessageId, now: int | None) -> None:
        """Record when a message is held first."""
        self.held_since.setdefault(key, now)

    def record_discard(self, key: MessageId, reason: str) -> None:
        """Count a discarded message. Duplicates count separately."""
        if reason in (DUPLICATE, OWN):
            self.duplicates += 1
            return
        self.held_since.pop(key, None)
        self.count_discard(reason)

    def count_discard(self, reason: str) -> None:
        """Count a message that will not be delivered."""
        _increment(self.discarded, reason)

    def count_rejection(self, error: RemoteError) -> None:
        """Count a rejected message."""
        what = type(error).__name__
        _increment(
            self.rejected, f"{what}: {error.differs}" if isinstance(error, MismatchError) else what
        )

    def state(self) -> tuple[Any, ...]:
        """Return a serializable state, without rejections: those changed nothing."""
        return (
            (self.sent, self.delivered, self.delivered_incomplete, self.duplicates),
            tuple(self.discarded.items()),
            tuple((tuple(key), since) for key, since in self.held_since.items()),
        )

    def copy(self) -> GroupCounters:
        """Return an independent copy."""
        counters = GroupCounters.from_state(self.state())
        counters.rejected = dict(self.rejected)
        return counters

    @classmethod
    def from_state(cls, state: Any) -> GroupCounters:
        """Return the counters of a `state`."""
        counters = cls()
        counts, discarded, since = state
        counters.sent, counters.delivered, counters.delivered_incomplete, counters.duplicates = (
            counts
        )
        counters.discarded = dict(discarded)
        counters.held_since = OrderedDict((MessageId(*key), at) for key, at in since)
        return counters


def _increment(table: dict[str, int], reason: str) -> None:
    key = reason if reason in table or len(table) < MAX_REASONS else OTHER
    table[key] = table.get(key, 0) + 1
