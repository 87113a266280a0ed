"""Seconds, as people write them in tests, as the nanoseconds that protocols go by."""

from __future__ import annotations

from antecede.core.clocks.nanoseconds import NS, Seconds, exact


def s(seconds: Seconds) -> int:
    """Return seconds as whole nanoseconds; nothing may be rounded."""
    ns = exact(seconds) * NS
    assert ns.denominator == 1
    return int(ns)
