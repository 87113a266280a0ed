"""Status of the clocks and delays of an order by clocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from antecede.formatting import pluralize
from antecede.live.settings import NS
from antecede.live.timekeeping import ClockMonitor


class DelayStatus(NamedTuple):
    """Measured delays from a member to this one, seconds."""

    member: str
    batches: int
    least_s: tuple[float, float]
    """Interval that contains the smallest delay."""
    most_s: tuple[float, float]
    accuracy_s: float | None
    """Clock accuracy in its newest batch. None: unknown, or no batch yet."""


class ClockStatus(NamedTuple):
    """Own clock and observations of other clocks, seconds."""

    error_s: float | None
    """Largest error, by the system. None: unknown."""
    source: str
    promised_s: float | None
    least_s: float | None
    most_s: float | None
    ahead_s: float
    """Lead of the readings over the clock that was set back."""
    inaccurate_members: tuple[str, ...]
    """Members whose clocks are worse than promised, or of unknown accuracy."""
    bound_violations: dict[str, int]
    """Number by kind, in this incarnation."""
    last_bound_violation: str
    delays: tuple[DelayStatus, ...]


def clock_status(keeping: ClockMonitor | None) -> ClockStatus | None:
    """Return the clock status of a peer. None: its order uses no clock."""
    if keeping is None:
        return None
    bounds = keeping.bounds
    promised = (None,) * 3
    if bounds is not None:
        promised = bounds.accuracy_s, bounds.least_s, bounds.most_s  # type: ignore[assignment]
    delays = (
        DelayStatus(
            *(name, one.batches, _pair(one.least_ns), _pair(one.most_ns)),
            _s(keeping.accuracies.get(name)),
        )
        for name, one in sorted(keeping.delays.items())
    )
    return ClockStatus(
        *(_s(keeping.error_ns), keeping.source, *promised, keeping.ahead_ns / NS),
        *(keeping.off, dict(keeping.counts), keeping.last, tuple(delays)),
    )


def _s(ns: int | None) -> float | None:
    return None if ns is None else ns / NS


def _pair(ns: tuple[int, int]) -> tuple[float, float]:
    return ns[0] / NS, ns[1] / NS


def clock_status_to_json(clock: ClockStatus | None) -> dict[str, Any] | None:
    """Return a clock status as JSON values."""
    if clock is None:
        return None
    return {**clock._asdict(), "delays": [one._asdict() for one in clock.delays]}


def clock_status_from_json(plain: Mapping[str, Any] | None) -> ClockStatus | None:
    """Return the clock status of JSON values. Raises KeyError or TypeError for other values."""
    if plain is None:
        return None
    delays = tuple(
        DelayStatus(**{**one, "least_s": tuple(one["least_s"]), "most_s": tuple(one["most_s"])})
        for one in plain["delays"]
    )
    inaccurate = tuple(plain["inaccurate_members"])
    return ClockStatus(**{**plain, "inaccurate_members": inaccurate, "delays": delays})


def format_clock_status(clock: ClockStatus | None) -> list[str]:
    """Return a clock status as lines of text."""
    if clock is None:
        return []
    if clock.error_s is None:
        own = f"unknown error ({clock.source or 'not read yet'})"
    else:
        own = f"error at most {_ms(clock.error_s)} ({clock.source})"
    found = [f"  clock: {own}; {_format_bounds(clock)}"]
    if clock.ahead_s:
        found.append(f"  set back: runs at half speed for {_ms(clock.ahead_s)} more")
    if clock.inaccurate_members:
        found.append(f"  inaccurate or unknown: {', '.join(clock.inaccurate_members)}")
    if clock.bound_violations:
        counts = sorted(clock.bound_violations.items())
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts)
        found.append(f"  BOUND VIOLATIONS, the order is not guaranteed: {kinds}")
        found.append(f"    last: {clock.last_bound_violation or 'not reported yet'}")
    return found + [
        f"  from {one.member}: smallest {_between(one.least_s)}, largest {_between(one.most_s)} "
        f"({pluralize(one.batches, 'batch', 'batches')}), its clock {_off(one.accuracy_s)}"
        for one in clock.delays
    ]


def _format_bounds(clock: ClockStatus) -> str:
    if clock.promised_s is None:
        return "no bounds"
    return (
        f"promised {_ms(clock.promised_s)} and delays of {_ms(clock.least_s)} to "
        f"{_ms(clock.most_s)}"
    )


def _off(seconds: float | None) -> str:
    return "of unknown error" if seconds is None else f"with an error of at most {_ms(seconds)}"


def _ms(seconds: float | None) -> str:
    return "?" if seconds is None else f"{1000 * seconds:.3g} ms"


def _between(pair: tuple[float, float]) -> str:
    return f"{1000 * pair[0]:.3g} to {1000 * pair[1]:.3g} ms"
