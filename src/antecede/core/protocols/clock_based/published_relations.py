"""Properties and rules of Tsuneizumi et al. as printed: predicates on timestamps and bounds.

Source: Tsuneizumi et al., sections 3 to 5: properties (1) to (7), rules 1 and 2.
tests/core/protocols/clock_based/test_clock_relations.py checks which of them hold.
"""

from __future__ import annotations

import enum

from antecede.core.clocks import Bounds
from antecede.core.protocols.clock_based.relations import ClockTimestamp, LowerBound, Timestamped
from antecede.errors import LocalError


class PublishedOrder(enum.Enum):
    """Result of the printed rules for a pair."""

    BEFORE = "before"
    AFTER = "after"
    CONCURRENT = "concurrent"
    UNDEFINED = "neither, and not concurrent"
    """Rule 1(a), last line, lost in print: equal LT, and PT further apart than 2 lambda."""


def temporally_precedes(a: Timestamped, b: Timestamped, bounds: Bounds[int]) -> bool:
    """Return whether a was surely sent before b: properties (3) and (5)."""
    return b.pt_ns - a.pt_ns > bounds.error_ns(a.sender) + bounds.error_ns(b.sender)


def temporally_concurrent(a: Timestamped, b: Timestamped, bounds: Bounds[int]) -> bool:
    """Return whether the clocks cannot order a and b: property (6)."""
    return abs(b.pt_ns - a.pt_ns) <= bounds.error_ns(a.sender) + bounds.error_ns(b.sender)


def surely_causal(a: Timestamped, b: Timestamped, bounds: Bounds[int]) -> bool:
    """Return whether a, sent to b's sender, had surely arrived: (4), (7), theorem of 4.2."""
    apart_ns = b.pt_ns - a.pt_ns
    most_ns = bounds.most_delay_ns(a.sender, b.sender)
    return apart_ns > bounds.error_ns(a.sender) + bounds.error_ns(b.sender) + most_ns


def linearly_precedes(a: Timestamped, b: Timestamped) -> bool:
    """Return whether a's linear time is less (section 4.1)."""
    return a.lt < b.lt


def find_reading_range(source: int, target: int, bounds: Bounds[int]) -> tuple[int, int]:
    """Return the least and greatest PT_j - PT_i of a receipt and its sending: property (2)."""
    off_ns = bounds.error_ns(source) + bounds.error_ns(target)
    return bounds.least_delay_ns(source, target) - off_ns, bounds.most_delay_ns(
        source, target
    ) + off_ns


def apply_published_rules(
    a: Timestamped, b: Timestamped, accuracy_ns: int, delay_ns: int
) -> PublishedOrder:
    """Return the result of rules 1 and 2 of section 5 as printed, for a homogeneous group."""
    apart_ns = b.pt_ns - a.pt_ns
    if abs(apart_ns) > 2 * accuracy_ns + delay_ns:  # rule 2
        return PublishedOrder.BEFORE if apart_ns > 0 else PublishedOrder.AFTER
    near = abs(apart_ns) <= 2 * accuracy_ns
    if delay_ns <= 2 * accuracy_ns:  # rule 1(a)
        if a.lt != b.lt:
            return PublishedOrder.BEFORE if a.lt < b.lt else PublishedOrder.AFTER
        return PublishedOrder.CONCURRENT if near else PublishedOrder.UNDEFINED
    if near:  # rule 1(b)
        return PublishedOrder.CONCURRENT
    if apart_ns > 0:
        return PublishedOrder.BEFORE if a.lt < b.lt else PublishedOrder.CONCURRENT
    return PublishedOrder.AFTER if a.lt > b.lt else PublishedOrder.CONCURRENT


class PrintedRelation:
    """Rules 1 and 2 as printed, also for lower bounds. Needs a homogeneous group."""

    def __init__(self, bounds: Bounds[int]) -> None:
        if not bounds.homogeneous:
            raise LocalError(
                "rule-1b (as_published) needs a homogeneous group: one accuracy, one delay"
            )
        self.accuracy_ns, self.delay_ns = bounds.accuracy_ns, bounds.most_ns

    def precedes(self, a: Timestamped, b: Timestamped) -> bool:
        return apply_published_rules(a, b, self.accuracy_ns, self.delay_ns) is PublishedOrder.BEFORE

    def excludes(self, lower_bound: LowerBound, member: int, b: Timestamped) -> bool:
        apart_ns = b.pt_ns - lower_bound.pt_ns
        if apart_ns > 2 * self.accuracy_ns + self.delay_ns:
            return False
        if lower_bound.lt >= b.lt:
            return True
        return self.delay_ns > 2 * self.accuracy_ns and apart_ns <= 2 * self.accuracy_ns


class ConverseRelation:
    """Message a precedes b if a had surely arrived at b's sender: converse of (7), section 5."""

    def __init__(self, bounds: Bounds[int]) -> None:
        self.bounds = bounds

    def precedes(self, a: Timestamped, b: Timestamped) -> bool:
        return surely_causal(a, b, self.bounds)

    def excludes(self, lower_bound: LowerBound, member: int, b: Timestamped) -> bool:
        return not surely_causal(ClockTimestamp(member, 0, 0, lower_bound.pt_ns), b, self.bounds)
