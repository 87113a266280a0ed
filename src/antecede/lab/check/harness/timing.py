"""Clocks and channels of a group under test, in whole nanoseconds of true time from 0.

A clock is off by a constant within its accuracy. A copy takes between the minimum and the maximum
delay of its channel.

Steps of time meet every delay: one second, or the common divisor of all delays. If that is too
short (0.1 s and 0.300000001 s), steps end at the earliest or latest arrival of a message, a reply
or a reply to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

from antecede.core.clocks import LONGEST_NS, NS, Bounds, seconds_text

NEVER_NS = 4 * LONGEST_NS


MAX_STEPS = 10
"""Maximum number of equal steps in the largest delay; it bounds the number of states."""
MAX_CHAIN = 3
"""Messages in a chain whose earliest and latest arrivals end unequal steps."""


def list_delays_ns(bounds: Bounds[int]) -> tuple[int, ...]:
    """Return the distinct minimum and maximum delays of all channels above 0, ascending."""
    pairs = [(bounds.least_ns, bounds.most_ns), *bounds.channels_ns.values()]
    return tuple(sorted({delay for pair in pairs for delay in pair if delay}))


@lru_cache(maxsize=64)
def compute_step_ns(bounds: Bounds[int]) -> int:
    """Return the length of equal steps of time; 0 if steps are unequal."""
    delays = list_delays_ns(bounds)
    if not delays:
        return NS
    common, longest = math.gcd(*delays), delays[-1]
    if common % NS == 0 and longest <= MAX_STEPS * NS:
        return NS
    if longest > MAX_STEPS * common:
        return 0
    # Steps must also meet a delay between the minimum and the maximum.
    parts = (3, 2) if longest < 3 * common else ()
    return next((common // part for part in parts if common % part == 0), common)


@lru_cache(maxsize=64)
def compute_instants_ns(bounds: Bounds[int]) -> tuple[int, ...]:
    """Return the true times at which unequal steps end, ascending from 0."""
    delays = list_delays_ns(bounds)
    instants = {0}
    for length in range(1, MAX_CHAIN + 1):
        instants.update(map(sum, combinations_with_replacement(delays, length)))
    return tuple(sorted(instants))


def describe_steps(bounds: Bounds[int]) -> str:
    """Return the steps of time as text."""
    step = compute_step_ns(bounds)
    if step == NS:
        return "whole seconds"
    if step:
        return f"steps of {seconds_text(step)} s"
    shown = ", ".join(f"{seconds_text(delay)} s" for delay in list_delays_ns(bounds))
    return f"sums of up to {MAX_CHAIN} of the delays {shown}"


class InFlight(NamedTuple):
    """Copy of a message in flight."""

    source: int
    target: int
    message: Any
    sent_ns: int = 0


class TimingModel(NamedTuple):
    """Clock offsets, ns, by address, and bounds of the network; None: any delay."""

    offsets_ns: Mapping[int, int] = {}
    bounds: Bounds[int] | None = None

    def read_clock(self, at: int, true_ns: int) -> int:
        """Return the clock reading of a member at a true time."""
        origin_ns = max(0, -min(self.offsets_ns.values(), default=0))
        return origin_ns + true_ns + self.offsets_ns.get(at, 0)

    def get_min_delay_ns(self, source: int, target: int) -> int:
        """Return the minimum delay of a channel."""
        return 0 if self.bounds is None else self.bounds.least_delay_ns(source, target)

    def get_max_delay_ns(self, source: int, target: int) -> int:
        """Return the maximum delay of a channel; without bounds, beyond every time."""
        return NEVER_NS if self.bounds is None else self.bounds.most_delay_ns(source, target)

    def get_earliest_ns(self, copy: InFlight) -> int:
        """Return the earliest true time at which a copy may arrive."""
        return copy.sent_ns + self.get_min_delay_ns(copy.source, copy.target)

    def get_latest_ns(self, copy: InFlight) -> int:
        """Return the latest true time at which a copy must have arrived."""
        return copy.sent_ns + self.get_max_delay_ns(copy.source, copy.target)
