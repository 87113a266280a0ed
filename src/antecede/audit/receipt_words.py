"""What several arrivals of one message say, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antecede.formatting import count_and_part, duration
from antecede.ranks import quantile

NS_IN_MS = 10**6


def findings(arrivals: dict[str, Any], edges: int) -> Iterator[tuple[str, str]]:
    """Yield (what, advice) on receivers whose arrivals contradict causes or each other."""
    if late := arrivals["edges_late_at_a_receiver"]:
        yield (
            f"{count_and_part(late, edges)} of {edges:,} edges have the effect before its cause "
            "by the clock of one receiver",
            "the cause was late there, or that clock was set back",
        )
    if late := arrivals["edges_late_over_all_receivers"]:
        yield (
            f"{count_and_part(late, edges)} of {edges:,} edges have the effect before its cause "
            "where arrivals at different receivers are compared",
            "compare times of one receiver only, or go by the sender's own numbers",
        )
    if off := farthest(arrivals["offsets_ns"]):
        name, ahead = off
        where = "ahead of" if ahead > 0 else "behind"
        yield (
            f"{name} tells times {_time(abs(ahead))} {where} the typical receiver's (median)",
            "its clock is wrong, or it reports late",
        )


def counts(arrivals: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield rows of the table of counts."""
    yield "receivers", f"{arrivals['receivers']:,}", ""
    yield "receptions without a time", f"{arrivals['receipts_without_time']:,}", ""
    several = arrivals["messages_with_several_times"]
    yield "with times of several receivers", f"{several:,}", ""
    if spread := arrivals["spread_ns"]:
        for name, value in spread.items():
            shown = {"min": "least", "max": "largest"}.get(name, name)
            yield f"  apart by, {shown}", _time(value), ""


def farthest(offsets_ns: dict[str, int]) -> tuple[str, int] | None:
    """Return the receiver whose offset is farthest from the median receiver's, and by how much.

    None unless it stands out: three times as far as any other that is not as far, so that it
    takes three receivers to tell.
    """
    if len(offsets_ns) < 3:
        return None
    middle = quantile(sorted(offsets_ns.values()), 0.5)
    apart = sorted((abs(value - middle), name) for name, value in offsets_ns.items())
    (second, _), (most, name) = apart[-2:]
    return (name, offsets_ns[name] - middle) if most > STANDS_OUT * second else None


STANDS_OUT = 3


def _time(ns: int) -> str:
    return duration(ns / NS_IN_MS)
