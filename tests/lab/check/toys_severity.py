"""Protocols with a less severe failure in small groups and a violation in larger ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from antecede.core.protocols.base import Effect, Hold
from antecede.core.protocols.matrix.matrix import Matrix
from antecede.core.protocols.matrix.messages import AnyMessage
from tests.lab.check.toys import Lazy, Liar, Mute, Note


class LazyThenEager(Lazy):
    """Waits too long, and after six messages delivers everything at once."""

    def ready(self, note: Note) -> bool:
        return super().ready(note) or len(self.done) > 6


class MuteThenEager(Mute):
    """Omits Hold, and in a group of four delivers everything at once."""

    def ready(self, note: Note) -> bool:
        return super().ready(note) or (len(self.members) > 3 and len(self.held) > 1)


class LiarThenEager(Liar):
    """Gives wrong reasons, and after six messages delivers everything at once."""

    def ready(self, note: Note) -> bool:
        return super().ready(note) or len(self.done) > 6


class ClaimsThenEager(Matrix):
    """Claims own messages as stable, and after six deliveries releases early."""

    def stable(self) -> Mapping[int, int]:
        return {**super().stable(), self.me: self.sent}

    def receive(self, message: AnyMessage, *, now: int | None = None) -> Sequence[Effect]:
        effects = super().receive(message, now=now)
        held = [one for one in effects if isinstance(one, Hold)]
        if not held or sum(self.counts.values()) < 6:
            return effects
        return [*super().release({missing for one in held for missing in one.missing})]
