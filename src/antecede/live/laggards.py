"""Eviction of a member for which too much is kept, where flow control does not hold back senders.

Where many keep up, what one of them lacks at any moment is chance, and all of it together may be
much for a moment. So one look does not tell who is slow. Beyond the bound it is put out for whom
most is kept only if that has not moved in some looks on end and is more than half of what is kept;
beyond bound and allowance together it goes at once, whatever it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

LOOKS: Final = 2
"""So many looks on end without progress, before somebody is put out."""


class Behind(NamedTuple):
    """How far one is behind."""

    bytes: int
    """Kept because of it."""
    progress: int
    """What grows whenever it comes nearer; not negative."""


class SlowMembers:
    """What was seen at the looks before."""

    def __init__(self, looks: int = LOOKS) -> None:
        """`looks`: so many on end without progress, before somebody is put out."""
        self._most = looks
        self._seen: dict[str, tuple[int, int]] = {}
        """Who -> (its progress, looks on end since when that is so)."""

    def judge(
        self, kept: int, at_most: int, allowance: int, behind: Mapping[str, Behind]
    ) -> str | None:
        """Take a look at bytes that are kept beyond a bound; return who is to be put out, if any.

        `allowance`: bytes beyond the bound for those that still come nearer.
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

    def rest(self) -> None:
        """Nothing is beyond the bound: what was seen counts no more."""
        self._seen.clear()


def words(kept: int, behind: Behind) -> str:
    """Return why somebody is put out."""
    return f"too far behind: {behind.bytes:,} of {kept:,} bytes are kept for it"


__all__ = ["Behind", "SlowMembers", "words"]
