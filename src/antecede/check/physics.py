"""Clocks and channels of a group under examination: what each clock shows, when copies arrive.

Times are whole nanoseconds, true time from 0. A member's clock is off by a constant of its own,
never more than its accuracy. Readings begin far enough above 0 that none is negative; only
differences of readings mean anything. A copy arrives no sooner than the least and no later than
the largest delay of its channel after it was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from antecede.clocks.bounds import Bounds
from antecede.clocks.nanoseconds import LONGEST_NS

NEVER_NS = 4 * LONGEST_NS
"""Later than every time."""


class Physics(NamedTuple):
    """Offsets of clocks in nanoseconds, by address, and the bounds that the network keeps.

    `bounds` None: copies arrive at any time, as with no clock at all.
    """

    offsets_ns: Mapping[int, int] = {}
    bounds: Bounds[int] | None = None

    def reading(self, at: int, true_ns: int) -> int:
        """Return what a member's clock shows at a true time."""
        origin_ns = max(0, -min(self.offsets_ns.values(), default=0))
        return origin_ns + true_ns + self.offsets_ns.get(at, 0)

    def least_ns(self, source: int, target: int) -> int:
        """Return the least delay of a channel."""
        return 0 if self.bounds is None else self.bounds.least_delay_ns(source, target)

    def most_ns(self, source: int, target: int) -> int:
        """Return the largest delay of a channel; without bounds, beyond every time."""
        return NEVER_NS if self.bounds is None else self.bounds.most_delay_ns(source, target)
