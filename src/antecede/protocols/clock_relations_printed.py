"""The properties and rules of 002 as printed: to measure them, and to show where they fail.

Source: 002, sections 3 to 5: properties (1) to (7), rules 1 and 2. The functions are pure
predicates on stamps and bounds; tests/protocols/test_clock_relations.py says which hold.
"""

from __future__ import annotations

import enum

from antecede.clocks.bounds import Bounds
from antecede.errors import LocalError
from antecede.protocols.clock_relations import Floor, Stamp, Stamped


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
