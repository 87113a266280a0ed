"""What orders messages by linear and physical time stamps: stamps, relations, separation (002).

Source: 002, sections 3 to 5, with the repairs of the errata. What the text says as printed is in
`clock_relations_printed`, the relations by physical time in `clock_relations_physical`.

A stamp is any message with `sender`, `seq`, `lt` (linear time, LT) and `pt_s` (what the
sender's clock showed, PT, in seconds).

Theory of operation
-------------------
A message that depends on another one was sent at least the least delay of a path later, and two
clocks err by at most the sum of their accuracies. So a causal pair is at least

    separation(i, j) = least delay over any path from i to j - (lambda_i + lambda_j)

apart in physical time, and later in linear time. A relation that holds for every pair that can
be causal misses none; what else it holds for is ordered unnecessarily. The relations by linear
time, by physical time and by both are free of cycles, because they follow these times.

Every relation answers two questions: does a come before b; and, from the stamp of the last
thing that came from a member, can anything that it sends later come before b.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import permutations
from typing import NamedTuple, Protocol

from antecede.clocks.bounds import Bounds
from antecede.errors import LocalError


class Stamped(Protocol):
    """What a relation looks at."""

    @property
    def sender(self) -> int: ...  # noqa: D102
    @property
    def seq(self) -> int: ...  # noqa: D102
    @property
    def lt(self) -> int: ...  # noqa: D102
    @property
    def pt_s(self) -> float: ...  # noqa: D102


class Stamp(NamedTuple):
    """Sender, its number for the message, linear time, physical time in seconds."""

    sender: int
    seq: int
    lt: int = 0
    pt_s: float = 0.0


class Floor(NamedTuple):
    """All that a member sends later has at least these times (see `Separation.excludes`)."""

    lt: int = 0
    pt_s: float = -math.inf


class Relation(Protocol):
    """An order of messages by their stamps; never cyclic."""

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        """Tell whether a of another sender comes before b."""

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        """Tell whether nothing that `member` sends from `floor` on can come before b."""


class Separation:
    """How far apart in physical time the messages of a causal pair are at least, by senders.

    All delays of paths from one member are found at its first question: O(n^2) for n members,
    at once where all channels are alike.
    """

    def __init__(self, bounds: Bounds[int], members: Iterable[int]) -> None:
        self.bounds = bounds
        self.members = tuple(sorted(set(members)))
        self._rows: dict[int, dict[int, float]] = {}

    def path_s(self, source: int, target: int) -> float:
        """Return the least delay over any path, in seconds."""
        if source == target:
            return 0.0
        if not self.bounds.channels:
            return self.bounds.least_s
        if source not in self._rows:
            self._rows[source] = self._row(source)
        return self._rows[source][target]

    def _row(self, source: int) -> dict[int, float]:
        """Return the least delay from one member to all (Dijkstra)."""
        near = dict.fromkeys(self.members, math.inf)
        near[source] = 0.0
        left = set(self.members)
        while left:
            nearest = min(left, key=near.__getitem__)
            left.remove(nearest)
            for member in left:
                step = near[nearest] + self.bounds.least(nearest, member)
                near[member] = min(near[member], step)
        return near

    def between_s(self, source: int, target: int) -> float:
        """Return by how much b.PT - a.PT of a causal pair exceeds or reaches, at least."""
        off_s = self.bounds.accuracy(source) + self.bounds.accuracy(target)
        return self.path_s(source, target) - off_s

    def stretch_s(self, sender: int, target: int) -> float:
        """Return how long after the sending of a message its causes can still arrive.

        In true time, for causes from third members: largest delay to `target` less the least
        delay by which they came to `sender` before. Minus infinity where there is no third.
        """
        third = (member for member in self.members if member not in (sender, target))
        return max(
            (self.bounds.most(member, target) - self.path_s(member, sender) for member in third),
            default=-math.inf,
        )

    def require_positive(self) -> None:
        """Raise LocalError where a causal pair can have equal or reversed physical times."""
        bounds = self.bounds
        pairs: Iterable[tuple[int, int]] = permutations(self.members, 2)
        if bounds.homogeneous and len(self.members) > 1:
            pairs = [self.members[:2]]  # type: ignore[list-item]
        for i, j in pairs:
            if self.between_s(i, j) <= 0:
                raise LocalError(
                    f"physical time alone cannot order members {i} and {j}: a message takes "
                    f"{self.path_s(i, j):g} s at least, and their clocks differ by up to "
                    f"{bounds.accuracy(i) + bounds.accuracy(j):g} s; use linear-physical"
                )


class LinearRelation:
    """a before b when a's linear time is less (4.1, with the clock repaired: see `linear`)."""

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        """Tell whether a of another sender comes before b."""
        return a.lt < b.lt

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        """Tell whether nothing that `member` sends from `floor` on can come before b."""
        return floor.lt >= b.lt
