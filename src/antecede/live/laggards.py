"""Eviction policy for members whose backlog exceeds a limit, where flow control fails.

A momentary backlog is chance, even of many members together. So one sample does not identify a slow
member. Beyond the limit, the member with the largest backlog is evicted only if it made no progress
in several samples, and if its backlog is more than half of all. Beyond limit and allowance together
it is evicted at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

LOOKS: Final = 2
"""Samples in a row without progress before an eviction."""


class Behind(NamedTuple):
    """Backlog of a member."""

    bytes: int
    """Bytes kept for it."""
    progress: int
    """Number that grows with its progress; not negative."""


class SlowMembers:
    """Earlier samples of backlogs."""

    def __init__(self, looks: int = LOOKS) -> None:
        """`looks`: samples in a row without progress before an eviction."""
        self._most = looks
        self._seen: dict[str, tuple[int, int]] = {}
        """Member -> (its progress, samples in a row with that)."""

    def sample(
        self, kept: int, at_most: int, allowance: int, behind: Mapping[str, Behind]
    ) -> str | None:
        """Sample backlogs beyond a limit; return the member to evict, or None. `allowance`: bytes
        beyond the limit for members with progress.
        """
        self._seen = {
            who: (now.progress, self._looks(who, now.progress))
            for who, now in behind.items()
            if now.bytes
        }
        if not self._seen:
            return None
        if kept > at_most + allowance:
            return max(self._seen, key=lambda who: (behind[who].bytes, who))
        still = [who for who, (_, looks) in self._seen.items() if looks >= self._most]
        slowest = max(still, key=lambda who: (behind[who].bytes, who), default=None)
        if slowest is None or 2 * behind[slowest].bytes <= kept:
            return None
        return slowest

    def _looks(self, who: str, progress: int) -> int:
        before, looks = self._seen.get(who, (-1, 0))
        return looks + 1 if before == progress else 0

    def reset(self) -> None:
        """Forget the samples, since nothing exceeds the limit."""
        self._seen.clear()


def words(kept: int, behind: Behind) -> str:
    """Return the reason of an eviction."""
    return f"too slow: {behind.bytes:,} of {kept:,} retained bytes are kept for it"


__all__ = ["Behind", "SlowMembers", "words"]
