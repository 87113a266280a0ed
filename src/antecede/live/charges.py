"""What others say that would end this member's life in the group, and who says it.

One of them may lie, so no single word is enough, unless there is but one other: more than half of
the others, by the names in their certificates, have to say the same; or for a while more say it
than there are others with whom this member goes on talking, as when the rest is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from antecede.live.events import member_of
from antecede.live.settings import NS

PUT_OUT: Final = "put out of the group"
"""How the last word to somebody begins for whom there is no way back in that life."""
OLD_COPY: Final = "the store is an old copy"
BEGIN_ANEW: Final = "Begin anew, with an empty one"
WHILE_NS: Final = 4 * NS
"""So long fewer than half of the others must have said it."""


def another_life(name: str) -> str:
    """Return in words that somebody begins anew under this name, and its former life is over."""
    return f"another life of {name} has begun"


class EvictionVotes:
    """Who says what against the member of this name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._by: dict[str, dict[str, str]] = {}
        """What is said -> name of who says it -> in which words."""
        self._since: dict[str, int] = {}
        """What is said -> since when more say it than there are others to talk with."""

    def bring(self, what: str, by: str, words: str) -> None:
        """Note that somebody says it."""
        self._by.setdefault(what, {})[by] = words

    def verdict(self, members: Iterable[str], talking: Iterable[str], now: int) -> str:
        """Return in which words enough of the others say it; empty: they do not.

        `members`: lanes of those in the group; who is none, by name, counts for nothing.
        `talking`: lanes of those who are connected.
        """
        others = {member_of(lane) for lane in members} - {self._name}
        for what, said in self._by.items():
            who = said.keys() & others
            if not who:
                continue
            left = {member_of(lane) for lane in talking} & others - who
            if len(who) <= len(left):
                self._since.pop(what, None)
            since = self._since.setdefault(what, now) if len(who) > len(left) else now
            if 2 * len(who) > len(others) or now - since >= WHILE_NS:
                return said[min(who)]
        return ""
