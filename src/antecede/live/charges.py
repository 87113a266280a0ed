"""Eviction votes: reports of other members that this incarnation must end.

A single report may be false, unless there is only one other member. More than half of the others,
by the names in their certificates, must report the same. A lasting report also counts from fewer,
if they outnumber the other members that stay connected.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from antecede.live.events import member_of
from antecede.live.settings import NS

EVICTED: Final = "evicted from the group"
"""Prefix of the BYE to a departed incarnation."""
OLD_COPY: Final = "the store is an old copy"
BEGIN_ANEW: Final = "Start with an empty store"
WHILE_NS: Final = 4 * NS
"""Time for which fewer than half of the others must report it."""


def describe_replacement(name: str) -> str:
    """Return the text on a later incarnation of a member."""
    return f"another incarnation of {name} has started"


class EvictionVotes:
    """Votes against the member with a name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._by: dict[str, dict[str, str]] = {}
        """Claim -> reporting member -> text."""
        self._since: dict[str, int] = {}
        """Claim -> time since which its reporters outnumber the other connected members."""

    def add(self, what: str, by: str, words: str) -> None:
        """Record a vote."""
        self._by.setdefault(what, {})[by] = words

    def outcome(self, members: Iterable[str], talking: Iterable[str], now: int) -> str:
        """Return the text of a claim with enough votes. Empty: none. `members`: sender ids of the
        group; only their names count. `talking`: sender ids of connected members.
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
