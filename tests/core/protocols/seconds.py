"""Seconds of tests as nanoseconds of protocols."""

from __future__ import annotations

from antecede.core.clocks.nanoseconds import NS, Seconds, exact


def s(seconds: Seconds) -> int:
    """Return seconds as whole nanoseconds, without rounding."""
    ns = exact(seconds) * NS
    assert ns.denominator == 1
    return int(ns)
