"""Counters of a `Group`, updated per event so that `Group.stats` takes O(1)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from antecede.core.protocols import DUPLICATE, OWN, MessageId
from antecede.core.protocols.serialization import NUMBER, SIGNED, TEXT, Many, OneOf, Shape
from antecede.errors import MismatchError, RemoteError

MOST_REASONS = 64
"""Reasons counted separately. Further ones count as "other"."""
OTHER = "other"

SHAPE: Shape = (
    (NUMBER, NUMBER, NUMBER, NUMBER),
    Many((TEXT, NUMBER)),
    Many(((NUMBER, NUMBER), OneOf(None, SIGNED))),
)


class Tallies:
    """Event counters, and when each held message arrived."""

    def __init__(self) -> None:
        self.sent = self.delivered = self.released = self.duplicates = 0
        self.discarded: dict[str, int] = {}
        self.refused: dict[str, int] = {}
        self.since: OrderedDict[MessageId, int | None] = OrderedDict()
        """Held message -> reading at its arrival, in order of arrival."""

    def wait(self, key: MessageId, now: int | None) -> None:
        """Record when a message is held first."""
        self.since.setdefault(key, now)

    def discard(self, key: MessageId, reason: str) -> None:
        """Count a discarded message. Duplicates count separately."""
        if reason in (DUPLICATE, OWN):
            self.duplicates += 1
            return
        self.since.pop(key, None)
        self.drop(reason)

    def drop(self, reason: str) -> None:
        """Count a message that will not be delivered."""
        _add(self.discarded, reason)

    def refuse(self, error: RemoteError) -> None:
        """Count a rejected message."""
        what = type(error).__name__
        _add(self.refused, f"{what}: {error.differs}" if isinstance(error, MismatchError) else what)

    def state(self) -> tuple[Any, ...]:
        """Return a serializable state, without rejections: those changed nothing."""
        return (
            (self.sent, self.delivered, self.released, self.duplicates),
            tuple(self.discarded.items()),
            tuple((tuple(key), since) for key, since in self.since.items()),
        )

    def copy(self) -> Tallies:
        """Return an independent copy."""
        made = Tallies.of(self.state())
        made.refused = dict(self.refused)
        return made

    @classmethod
    def of(cls, state: Any) -> Tallies:
        """Return the counters of a `state`."""
        made = cls()
        counts, discarded, since = state
        made.sent, made.delivered, made.released, made.duplicates = counts
        made.discarded = dict(discarded)
        made.since = OrderedDict((MessageId(*key), at) for key, at in since)
        return made


def _add(table: dict[str, int], reason: str) -> None:
    key = reason if reason in table or len(table) < MOST_REASONS else OTHER
    table[key] = table.get(key, 0) + 1
