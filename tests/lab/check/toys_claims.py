"""Matrix clocks with various excessive claims about others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from antecede.core.clocks import lanes
from antecede.core.protocols.matrix.matrix import Matrix
from antecede.errors import LocalError


class OneOfAll(Matrix):
    """Claims as stable what one other member has."""

    def stable(self) -> Mapping[int, int]:
        counts = {**self.counts, self.me: self.sent}
        rows = [self.matrix[k] for k in self.others()]
        return {k: max(lanes.get(row, k) for row in rows) for k in counts} if rows else counts


class OneAhead(Matrix):
    """Claims one message too many as stable."""

    def stable(self) -> Mapping[int, int]:
        counts = {**self.counts, self.me: self.sent}
        return {k: min(count + 1, counts[k]) for k, count in super().stable().items()}


class OnceSent(Matrix):
    """Counts own messages as received by all at the send."""

    def knows(self, member: int, of: int) -> int:
        return self.sent if of == self.me else super().knows(member, of)


class Held(Matrix):
    """Adopts the claims of a held message: too early, and one too many."""

    def knows(self, member: int, of: int) -> int:
        ahead = [seq for sender, seq in self.held if sender == of]
        return max(super().knows(member, of), *ahead, 0)


class Restored(Matrix):
    """After a restart, counts all its messages as received by all."""

    restarted = False

    def restore(self, state: Any) -> None:
        super().restore(state)
        self.restarted = True

    def stable(self) -> Mapping[int, int]:
        return {**self.counts, self.me: self.sent} if self.restarted else super().stable()


class Newcomer(Matrix):
    """Counts a joining member as having all messages."""

    def knows(self, member: int, of: int) -> int:
        if member not in self.first and member != self.me:
            return super().knows(self.me, of)
        return super().knows(member, of)

    def __init__(self, me: int, members: Iterable[int], **options: Any) -> None:
        super().__init__(me, members, **options)
        self.first = frozenset(self.members)


class Unsent(Matrix):
    """Claims a message as stable that was never sent."""

    def stable(self) -> Mapping[int, int]:
        return {k: count + 1 for k, count in super().stable().items()}


class NoNumbers(Matrix):
    """Returns texts instead of numbers."""

    def stable(self) -> Mapping[int, int]:
        return dict.fromkeys(super().stable(), "all")  # type: ignore[arg-type]


class Raises(Matrix):
    """Raises in `knows`."""

    def knows(self, member: int, of: int) -> int:
        raise KeyError(member)


class CannotTell(Matrix):
    """Raises LocalError in `knows`."""

    def knows(self, member: int, of: int) -> int:
        raise LocalError("nobody knows")


class OtherMeaning(Matrix):
    """Has methods of these names with other arguments."""

    def stable(self, size: int) -> Mapping[int, int]:  # type: ignore[override]
        return {0: size}

    def knows(self, member: int, of: int, at: int) -> int:  # type: ignore[override]
        return 1_000

    def sweep(self) -> None:
        pass
