"""Hold times of held messages, as far as sampled."""

from __future__ import annotations

from typing import Final

from antecede.core.group import Group
from antecede.live.events import Id

MOST: Final = 2000


class HeldSince:
    """Times at which held messages were first seen, ns."""

    def __init__(self) -> None:
        self._since: dict[Id, int] = {}

    def sample(self, group: Group, now: int) -> None:
        """Sample the held messages at `now`."""
        count = group.stats().held
        if count <= MOST:
            held = (Id(*one.message.id) for one in group.list_held()) if count else ()
            self._since = {one: self._since.get(one, now) for one in held}

    def of(self, one: Id, now: int) -> int:
        """Return the time for which a message has been seen held."""
        return now - self._since.get(one, now)

    def oldest(self, now: int) -> int:
        """Return the longest time for which a message has been seen held; 0: none."""
        return now - min(self._since.values(), default=now)
