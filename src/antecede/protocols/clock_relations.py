"""Which message comes before which, by linear and physical time stamps: the relations of 002.

Source: 002, sections 3 to 5, properties (1) to (7), rules 1 and 2, with the repairs of the errata.

A stamp is any message with `sender`, `seq`, `lt` (linear time, LT) and `pt_s` (what the
sender's clock showed, PT, in seconds). The functions of the first half are the paper's, as
printed; `Separation` and the three relations below it are those that the protocols order by.

Theory of operation
-------------------
A message that depends on another one was sent at least the least delay of a path later, and two
clocks err by at most the sum of their accuracies. So a causal pair is at least

    separation(i, j) = least delay over any path from i to j - (lambda_i + lambda_j)

apart in physical time, and later in linear time. A relation that holds for every pair that can
be causal misses none; what else it holds for is ordered unnecessarily. All three relations are
free of cycles: they follow the linear time, or the physical time, or both.

Every relation answers two questions: does a come before b; and, from the stamp of the last
thing that came from a member, can anything that it sends later come before b.
"""

from __future__ import annotations

import enum
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


# -- the paper's relations, as printed -----------------------------------------------------------


class Order(enum.Enum):
    """What the printed rules say about a pair."""

    BEFORE = "before"
    AFTER = "after"
    CONCURRENT = "concurrent"
    UNSAID = "neither, and not concurrent"
    """Rule 1(a), last line: its words are lost; equal LT, and PT further apart than 2 lambda."""


def temporally_precedes(a: Stamped, b: Stamped, bounds: Bounds[int]) -> bool:
    """Tell whether a was surely sent before b: properties (3) and (5)."""
    return b.pt_s - a.pt_s > bounds.accuracy(a.sender) + bounds.accuracy(b.sender)


def temporally_concurrent(a: Stamped, b: Stamped, bounds: Bounds[int]) -> bool:
    """Tell whether the clocks cannot say which was sent first: property (6)."""
    return abs(b.pt_s - a.pt_s) <= bounds.accuracy(a.sender) + bounds.accuracy(b.sender)


def surely_causal(a: Stamped, b: Stamped, bounds: Bounds[int]) -> bool:
    """Tell whether a had surely arrived at b's sender: (4), (7), the theorem of section 4.2.

    For a message a that was addressed to b's sender, and was not lost.
    """
    apart_s = b.pt_s - a.pt_s
    most_s = bounds.most(a.sender, b.sender)
    return apart_s > bounds.accuracy(a.sender) + bounds.accuracy(b.sender) + most_s


def linearly_precedes(a: Stamped, b: Stamped) -> bool:
    """Tell whether a's linear time is less (section 4.1)."""
    return a.lt < b.lt


def readings_apart(source: int, target: int, bounds: Bounds[int]) -> tuple[float, float]:
    """Return the least and greatest PT_j - PT_i of a receipt and its sending: property (2).

    Printed with one delay on both sides; the left side takes the least, the right the largest.
    """
    off_s = bounds.accuracy(source) + bounds.accuracy(target)
    return bounds.least(source, target) - off_s, bounds.most(source, target) + off_s


def rules_as_printed(a: Stamped, b: Stamped, accuracy_s: float, delay_s: float) -> Order:
    """Return what rules 1 and 2 of section 5 say, for a homogeneous group, as printed."""
    apart_s = b.pt_s - a.pt_s
    if abs(apart_s) > 2 * accuracy_s + delay_s:  # rule 2
        return Order.BEFORE if apart_s > 0 else Order.AFTER
    near = abs(apart_s) <= 2 * accuracy_s
    if delay_s <= 2 * accuracy_s:  # rule 1(a)
        if a.lt != b.lt:
            return Order.BEFORE if a.lt < b.lt else Order.AFTER
        return Order.CONCURRENT if near else Order.UNSAID
    if near:  # rule 1(b)
        return Order.CONCURRENT
    if apart_s > 0:
        return Order.BEFORE if a.lt < b.lt else Order.CONCURRENT
    return Order.AFTER if a.lt > b.lt else Order.CONCURRENT


# -- the relations that the protocols order by -----------------------------------------------------


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


class PhysicalRelation:
    """a before b when b's physical time is later by what separates a causal pair, or more."""

    def __init__(self, separation: Separation) -> None:
        self.separation = separation

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        """Tell whether a of another sender comes before b."""
        return b.pt_s - a.pt_s >= self.separation.between_s(a.sender, b.sender)

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        """Tell whether nothing that `member` sends from `floor` on can come before b."""
        return b.pt_s - floor.pt_s < self.separation.between_s(member, b.sender)


class LinearPhysicalRelation:
    """a before b when both times allow it: fewer pairs than either alone (section 5)."""

    def __init__(self, separation: Separation) -> None:
        self.linear = LinearRelation()
        self.physical = PhysicalRelation(separation)

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        """Tell whether a of another sender comes before b."""
        return self.linear.precedes(a, b) and self.physical.precedes(a, b)

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        """Tell whether nothing that `member` sends from `floor` on can come before b."""
        return self.linear.excludes(floor, member, b) or self.physical.excludes(floor, member, b)


class PrintedRelation:
    """Rules 1 and 2 as printed; needs a homogeneous group.

    A floor excludes what the rules would not put before b, whatever its linear time.
    """

    def __init__(self, bounds: Bounds[int]) -> None:
        if not bounds.homogeneous:
            raise LocalError(
                "the printed rules are for homogeneous groups: one accuracy, one delay"
            )
        self.accuracy_s, self.delay_s = bounds.accuracy_s, bounds.most_s

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        """Tell whether a of another sender comes before b."""
        return rules_as_printed(a, b, self.accuracy_s, self.delay_s) is Order.BEFORE

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        """Tell whether nothing that `member` sends from `floor` on can come before b."""
        apart_s = b.pt_s - floor.pt_s
        if apart_s > 2 * self.accuracy_s + self.delay_s:
            return False
        if floor.lt >= b.lt:
            return True
        return self.delay_s > 2 * self.accuracy_s and apart_s <= 2 * self.accuracy_s


class ConverseRelation:
    """a before b when a had surely arrived at b's sender: section 5 reads (7) both ways."""

    def __init__(self, bounds: Bounds[int]) -> None:
        self.bounds = bounds

    def precedes(self, a: Stamped, b: Stamped) -> bool:
        """Tell whether a of another sender comes before b."""
        return surely_causal(a, b, self.bounds)

    def excludes(self, floor: Floor, member: int, b: Stamped) -> bool:
        """Tell whether nothing that `member` sends from `floor` on can come before b."""
        return not surely_causal(Stamp(member, 0, 0, floor.pt_s), b, self.bounds)


Relation = (
    LinearRelation | PhysicalRelation | LinearPhysicalRelation | PrintedRelation | ConverseRelation
)
