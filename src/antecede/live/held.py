"""Since when each message has been held back, as far as somebody looked."""

from __future__ import annotations

from typing import Final

from antecede.core.group import Group
from antecede.live.events import Id

MOST: Final = 2000
"""Beyond so many held messages they are not looked at one by one."""


class HeldSince:
    """Remembers when each held message was first seen held. Times are nanoseconds."""

    def __init__(self) -> None:
        self._since: dict[Id, int] = {}

    def look(self, group: Group, now: int) -> None:
        """Note what is held at a moment."""
        count = group.stats().held
        if count <= MOST:
            held = (Id(*one.message.id) for one in group.list_held()) if count else ()
            self._since = {one: self._since.get(one, now) for one in held}

    def of(self, one: Id, now: int) -> int:
        """Return for how long a message has been seen held."""
        return now - self._since.get(one, now)

    def oldest(self, now: int) -> int:
        """Return for how long the one has been held that was so longest; 0: none."""
        return now - min(self._since.values(), default=now)
