"""Rejections between this member and others: reasons, and delays of dials.

A dialed connection that ends with a rejection delays the next dial of that member: by 1 s, doubled
each time, at most 5 min. A connection that lasts a while ends the delay, and so does one that the
other member dialed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from antecede.live.charges import EVICTED, OLD_COPY
from antecede.live.links import Link
from antecede.live.settings import NS

REJECTED: Final = "rejected: "
"""Prefix of a BYE that is a rejection, unless it begins with EVICTED or OLD_COPY."""
FIRST_NS: Final = NS
LAST_NS: Final = 300 * NS
SETTLED_NS: Final = 3 * NS
"""Age of a connection at which its two ends accept each other."""
MOST_NAMES: Final = 1 << 12
"""Members whose rejections are kept, at most."""


def rejection(words: str) -> str:
    """Return the text of a BYE that rejects the other end."""
    return words if words.startswith((EVICTED, OLD_COPY)) else REJECTED + words


class Rejections:
    """Rejections of one member, by the names of the other members."""

    def __init__(self) -> None:
        self.by: dict[str, str] = {}
        """Name of a member that rejects this one -> its reason."""
        self._delays: dict[str, tuple[int, int]] = {}
        """Name -> (time of the next dial, delay until then), ns."""

    def read_bye(self, link: Link, text: str) -> str:
        """Record whether a BYE is a rejection; return its text."""
        words = text.removeprefix(REJECTED)
        if text.startswith((REJECTED, EVICTED, OLD_COPY)):
            self.note(link, words)
        return words

    def note(self, link: Link, words: str) -> None:
        """Record that the other end of a connection rejects this member."""
        link.is_rejected = True
        if link.name and (link.name in self.by or len(self.by) < MOST_NAMES):
            self.by[link.name] = words

    def handle_close(self, link: Link, now: int) -> None:
        """Delay the next dial after a dialed connection that ended with a rejection."""
        if link.is_rejected and link.dialed and link.name:
            self.delay(link.name, now)

    def delay(self, name: str, now: int) -> None:
        """Double the delay of the next dial of a member."""
        before = self._delays.get(name, (0, 0))[1]
        wait = min(max(2 * before, FIRST_NS), LAST_NS)
        self._delays[name] = now + wait, wait

    def dial_ns(self, name: str) -> int:
        """Return the time of the next dial of a member."""
        return self._delays.get(name, (0, 0))[0]

    def settle(self, links: Iterable[Link], now: int) -> None:
        """Forget the rejections of members whose connections have lasted a while."""
        if not (self.by or self._delays):
            return
        for link in links:
            if link.lane and not link.closing and now - link.up_ns >= SETTLED_NS:
                self.by.pop(link.name, None)
                self._delays.pop(link.name, None)

    def reason(self, others: Collection[str], connected: Iterable[str]) -> str:
        """Return why this member is unhealthy: more members reject it than accept it. Empty: it is
        not. Both arguments are names of members.
        """
        rejecting = sorted(self.by.keys() & set(others))
        if len(rejecting) <= len(set(connected) & set(others) - self.by.keys()):
            return ""
        return f"rejected by {', '.join(rejecting)}: {self.by[rejecting[0]]}"
