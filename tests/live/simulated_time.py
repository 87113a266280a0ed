"""What the networks in memory share: time that jumps from one thing to the next, and cut ways."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable


class Agenda:
    """A clock, and what is to be done at which time; of one time in the order it was entered."""

    def __init__(self) -> None:
        self.now = 0
        """Nanoseconds."""
        self._due: list[tuple[int, int, Callable[[], object]]] = []
        self._count = 0

    def at(self, delay_ns: int, what: Callable[[], object]) -> None:
        """Do something in a while."""
        self._count += 1
        heapq.heappush(self._due, (self.now + delay_ns, self._count, what))

    def put_off(self, by_ns: int) -> None:
        """Let all that is entered come so much later, in its order."""
        self._due = [(when + by_ns, count, what) for when, count, what in self._due]

    def run(self, until_ns: int) -> None:
        """Let time pass."""
        while self._due and self._due[0][0] <= until_ns:
            self.now, _, what = heapq.heappop(self._due)
            what()
        self.now = until_ns


class Cuts:
    """Which ways between hosts are cut."""

    def __init__(self) -> None:
        self.ways: set[tuple[str, str]] = set()
        """(from, to)."""

    def cut(self, some: Iterable[str], others: Iterable[str], *, one_way: bool = False) -> None:
        """Let nothing pass from some hosts to others, and back unless `one_way`."""
        pairs = {(a, b) for a in some for b in others}
        self.ways |= pairs if one_way else pairs | {(b, a) for a, b in pairs}

    def heal(self) -> None:
        """Let everything pass again."""
        self.ways.clear()


__all__ = ["Agenda", "Cuts"]
