"""Clocks and channels of a group under examination: what each clock shows, when copies arrive.

True time is seconds from 0. A member's clock is off by a constant of its own, never more than
its accuracy. Readings begin far enough above 0 that none is negative; only differences of
readings mean anything. A copy arrives no sooner than the least and no later than the largest
delay of its channel after it was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from antecede.clocks.bounds import Bounds

TOLERANCE_S = 1e-9
"""Sums of decimal fractions may be off by this much."""


class Physics(NamedTuple):
    """Offsets of clocks in seconds, by address, and the bounds that the network keeps.

    `bounds` None: copies arrive at any time, as with no clock at all.
    """

    offsets: Mapping[int, float] = {}
    bounds: Bounds[int] | None = None

    def reading(self, at: int, true_s: float) -> float:
        """Return what a member's clock shows at a true time."""
        origin = max(0.0, -min(self.offsets.values(), default=0.0))
        return origin + true_s + self.offsets.get(at, 0.0)

    def least(self, source: int, target: int) -> float:
        """Return the least delay of a channel, in seconds."""
        return 0.0 if self.bounds is None else self.bounds.least(source, target)

    def most(self, source: int, target: int) -> float:
        """Return the largest delay of a channel, in seconds."""
        return float("inf") if self.bounds is None else self.bounds.most(source, target)
