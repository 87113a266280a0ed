"""How the clocks and delays of an order by clocks are doing, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from antecede.formatting import counted
from antecede.live.settings import NS
from antecede.live.timekeeping import ClockMonitor


class DelayStatus(NamedTuple):
    """What was measured of one member, from it to this one; seconds."""

    member: str
    batches: int
    least_s: tuple[float, float]
    """The least delay was within these."""
    most_s: tuple[float, float]
    accuracy_s: float | None
    """What its newest batch says of its clock; None: it does not know, or nothing came yet."""


class ClockStatus(NamedTuple):
    """One peer's clock, and what it saw of the others'; seconds."""

    error_s: float | None
    """How far its system says that its clock may be off; None: it does not say."""
    source: str
    promised_s: float | None
    """What the order was promised of every clock; None: nothing."""
    least_s: float | None
    most_s: float | None
    """What it was promised of every delay."""
    ahead_s: float
    """How far the readings that it goes by are ahead of the clock, which was set back."""
    inaccurate_members: tuple[str, ...]
    """Members whose clocks are worse than promised, or not known, by what they say."""
    bound_violations: dict[str, int]
    """By kind, of this life."""
    last_bound_violation: str
    delays: tuple[DelayStatus, ...]


def clock_status(keeping: ClockMonitor | None) -> ClockStatus | None:
    """Return how a peer's clock is doing; None: its order goes by none."""
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
    """Return it as what JSON can say."""
    if clock is None:
        return None
    return {**clock._asdict(), "delays": [one._asdict() for one in clock.delays]}


def clock_status_from_json(plain: Mapping[str, Any] | None) -> ClockStatus | None:
    """Return what `as_plain` told. Raises KeyError or TypeError for anything else."""
    if plain is None:
        return None
    delays = tuple(
        DelayStatus(**{**one, "least_s": tuple(one["least_s"]), "most_s": tuple(one["most_s"])})
        for one in plain["delays"]
    )
    return ClockStatus(**{**plain, "worse": tuple(plain["worse"]), "delays": delays})


def format_clock_status(clock: ClockStatus | None) -> list[str]:
    """Return it for a terminal, a line each."""
    if clock is None:
        return []
    if clock.error_s is None:
        own = f"nobody says how far it is off ({clock.source or 'nobody was asked'})"
    else:
        own = f"off by at most {_ms(clock.error_s)}, says {clock.source}"
    found = [f"  clock: {own}; {_promised(clock)}"]
    if clock.ahead_s:
        found.append(f"  it was set back, and goes at half its pace for {_ms(clock.ahead_s)} more")
    if clock.inaccurate_members:
        found.append(f"  worse than promised, or not known: {', '.join(clock.inaccurate_members)}")
    if clock.bound_violations:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(clock.bound_violations.items()))
        found.append(f"  ALARMS, the order is not promised: {kinds}")
        found.append(f"    last: {clock.last_bound_violation or 'not told yet'}")
    return found + [
        f"  from {one.member}: least {_between(one.least_s)}, largest {_between(one.most_s)} "
        f"({counted(one.batches, 'batch', 'batches')}), its clock {_off(one.accuracy_s)}"
        for one in clock.delays
    ]


def _promised(clock: ClockStatus) -> str:
    if clock.promised_s is None:
        return "nothing promised"
    return (
        f"promised {_ms(clock.promised_s)} and delays of {_ms(clock.least_s)} to "
        f"{_ms(clock.most_s)}"
    )


def _off(seconds: float | None) -> str:
    return "not known" if seconds is None else f"off by at most {_ms(seconds)}"


def _ms(seconds: float | None) -> str:
    return "?" if seconds is None else f"{1000 * seconds:.3g} ms"


def _between(pair: tuple[float, float]) -> str:
    return f"{1000 * pair[0]:.3g} to {1000 * pair[1]:.3g} ms"
