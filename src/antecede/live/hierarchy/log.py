"""Log of the messages that a super peer numbered for its internal group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from antecede.live.hierarchy.origin import Origin, Place, Places


class Logged(NamedTuple):
    """Message for the internal group."""

    frame: bytes
    place: Place
    origin: Origin | None
    same_as: tuple[str, int] | None
    """Position of the first copy, if this is a second one and that is in the log."""


class Log:
    """Messages numbered from 1, of which `passed` may be sent down."""

    def __init__(self) -> None:
        self.entries: list[Logged] = []
        self.first = 1
        self.passed = 0
        self.down = Places()
        self.freed = Places()
        """Positions of freed messages."""
        self.bytes = 0

    @property
    def newest(self) -> int:
        return self.first + len(self.entries) - 1

    def begin(self, given: Places) -> None:
        """Start behind the given positions."""
        self.down, self.freed = given.copy(), given.copy()

    def keep(
        self, frame: bytes, place: Place, origin: Origin | None, first_copy: tuple[str, int]
    ) -> None:
        """Add a message. `first_copy`: sender and first number of a second copy."""
        same = self._place_of(first_copy) if origin is None and first_copy[0] else None
        self.entries.append(Logged(frame, place, origin, same))
        self.bytes += len(frame)

    def _place_of(self, first_copy: tuple[str, int]) -> tuple[str, int] | None:
        for one in reversed(self.entries):
            if one.origin is not None and one.origin[:2] == first_copy:
                return one.place[:2]
        return None

    def let_pass(self, safe: Callable[[Place], bool]) -> None:
        """Release messages in order while they are durable."""
        while self.passed < self.newest:
            place = self.entries[self.passed - self.first + 1].place
            if not safe(place):
                return
            self.passed += 1
            self.down.add(place)

    def frames(self, cursor: int, budget: int) -> list[bytes]:
        """Return about `budget` bytes of released messages behind a number."""
        found = []
        for at in range(cursor - self.first + 1, self.passed - self.first + 1):
            frame = self.entries[at].frame
            found.append(frame)
            budget -= len(frame)
            if budget <= 0:
                break
        return found

    def after(self, number: int) -> Iterator[Place]:
        """Yield the positions behind a number."""
        return (one.place for one in islice(self.entries, number - self.first + 1, None))

    def bytes_between(self, number: int, upto: int) -> int:
        """Return the bytes behind a number, up to another."""
        start = max(0, number - self.first + 1)
        return sum(len(one.frame) for one in islice(self.entries, start, upto - self.first + 1))

    def start_for(self, had: Places) -> int:
        """Return the number behind which a peer with these positions starts."""
        for number, one in enumerate(self.entries, self.first):
            if one.place[:2] not in had:
                return number - 1
        return self.newest

    def with_copies(self, had: Places) -> Places:
        """Return positions, with the first copies of the second copies among them."""
        found = had.copy()
        for one in self.entries:
            if one.same_as is not None and one.place[:2] in had:
                found.add(Place(*one.same_as))
        return found

    def free(self, upto: int, unneeded: Callable[[Place], bool]) -> None:
        """Free messages up to a number that no member needs."""
        count = 0
        for one in self.entries[: max(0, min(upto, self.passed) - self.first + 1)]:
            if not unneeded(one.place):
                break
            self.freed.add(one.place)
            self.bytes -= len(one.frame)
            count += 1
        del self.entries[:count]
        self.first += count
