"""Figures 7 to 9 of Evropeytsev et al. 2016: overhead where the total rate of messages is fixed."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from antecede.studies.frame.compare_paper import compared, listed, within
from antecede.studies.frame.findings import Claim, Plot, Row, Section, Series
from antecede.studies.frame.results import Results
from antecede.studies.hierarchy.paper import (
    ALIKE,
    DELAYS,
    RATE_FIGURES,
    RATE_SLOPES,
    RATE_TIMES,
    RATES,
)

LINEAR_FROM = 200
"""Peers from which the growth under a fixed total rate is called linear (Evropeytsev et al. 2016:
100 to 200).
"""
SMALL = 100
"""Peers up to which it is called slow."""
TENDS = 0.1
"""A slope tends to zero when it is at most this part of the first experiment's, in size."""
GROUPS = ("internal overhead", "external overhead")
READS = ("internal.overhead_bytes", "external.overhead_bytes")


class Slopes(NamedTuple):
    """Slopes of one quantity: of the first experiment, and at fixed total rates."""

    first: float
    by_rate: Mapping[int, float]

    def parts(self) -> list[float]:
        """Return what part of the first experiment's each slope is, in size."""
        return [abs(slope / self.first) for slope in self.by_rate.values()]


def figure_of(quantity: str) -> str:
    """Return the name of an overhead's figure."""
    return quantity.replace(" overhead", ".overhead_bytes")


def rate_section(results: Results, delay: str) -> Section:
    """Return slopes beside the text's, and each sentence of the text with a verdict."""
    rows = [*_slope_rows(results, delay), *_times_rows(results, delay)]
    found = {quantity: slopes_of(results, delay, quantity) for quantity in GROUPS}
    return Section(
        f"{RATE_FIGURES[delay]}: fixed total rates, delays {delay}",
        _finding(rows, found),
        rows,
        [_plot(results, delay, quantity) for quantity in GROUPS],
        about=f"Slopes are least-squares lines from {LINEAR_FROM} peers on. The first experiment "
        "is the one in which every peer sends 12.5 messages a second.",
        reads=READS if rows else (),
        claims=list(_claims(results, delay, found)),
    )


def slopes_of(results: Results, delay: str, quantity: str) -> Slopes | None:
    """Return the slopes of an overhead; None: runs are missing."""
    first = results.slope(figure_of(quantity), "peers", kind="grid", delay=delay)
    by_rate = {}
    for rate in sorted(RATES, reverse=True):
        points = _points(results, delay, quantity, rate)
        later = [(x, y) for x, y in points if x >= LINEAR_FROM]
        if len(later) > 1:
            by_rate[rate] = slope_of(later)
    return Slopes(first, by_rate) if first and by_rate else None


def slope_of(points: list[tuple[float, float]]) -> float:
    """Return the least-squares slope."""
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def _points(results: Results, delay: str, quantity: str, rate: int) -> list[tuple[float, float]]:
    line = results.line("", figure_of(quantity), "peers", kind="rate", delay=delay, rate=rate)
    return list(zip(line.x, line.y, strict=True))


def _finding(rows: list[Row], found: Mapping[str, Slopes | None]) -> str:
    stated = compared(rows)
    parts = [
        f"{quantity.split()[0]} slopes are {min(one.parts()):.1%} to {max(one.parts()):.1%} of the "
        "first experiment's in size"
        for quantity, one in found.items()
        if one is not None
    ]
    if not (stated and parts):
        return ""
    return (
        f"With the total rate fixed {listed(parts)}. {within(rows, 0.10)} of the {len(stated)} "
        "figures that the text gives come out within 10 %."
    )


def _slope_rows(results: Results, delay: str) -> Iterator[Row]:
    for quantity in GROUPS:
        slopes = slopes_of(results, delay, quantity)
        for rate, slope in slopes.by_rate.items() if slopes else ():
            yield Row(
                RATE_FIGURES[delay],
                f"{quantity} slope, fixed rate",
                f"{delay}, {rate} messages/s",
                RATE_SLOPES.get((delay, quantity), {}).get(rate),
                slope,
                "bytes a message a peer",
                f"from {LINEAR_FROM} peers",
            )


def _times_rows(results: Results, delay: str) -> Iterator[Row]:
    """Yield by how much the first experiment's slope exceeds those at fixed rates."""
    how, stated = RATE_TIMES.get(delay, ("mean", {}))
    for quantity in GROUPS:
        slopes = slopes_of(results, delay, quantity)
        if slopes is None:
            continue
        values = list(slopes.by_rate.values())
        by = max(values) if how == "largest" else statistics.fmean(values)
        if by:
            yield Row(
                f"{RATE_FIGURES[delay]}, text",
                f"{quantity} slope of the first experiment by the {how} at fixed rates",
                delay,
                stated.get(quantity),
                slopes.first / by,
                "times",
            )


# -- what the text says ----------------------------------------------------------------------------


def _claims(results: Results, delay: str, found: Mapping[str, Slopes | None]) -> Iterator[Claim]:
    where = f"text to {RATE_FIGURES[delay]}"
    yield _dearer(results, delay, where)
    yield _stages(results, delay, where)
    if RATE_FIGURES[delay] == "Figure 7":
        yield _alike(found, where)
    for quantity in GROUPS:
        yield _tends(quantity, found[quantity])


def _dearer(results: Results, delay: str, where: str) -> Claim:
    """Hold against the figures that a higher total rate costs more at the same number of peers."""
    higher = total = 0
    for quantity in GROUPS:
        lines = [dict(_points(results, delay, quantity, rate)) for rate in sorted(RATES)]
        lines = [line for line in lines if line]
        for less, more in itertools.pairwise(lines):
            for peers in less.keys() & more.keys():
                total += 1
                higher += less[peers] < more[peers]
    return Claim(
        "the more messages are generated a second, the more control information is required",
        where,
        f"the higher of two rates costs more in {higher} of {total} comparisons at the same "
        "number of peers"
        if total
        else "no run gave figures",
        higher == total if total else None,
        READS,
    )


def _stages(results: Results, delay: str, where: str) -> Claim:
    """Hold against the figures that growth is slow below 100 peers and linear above 100 to 200."""
    words, slower = [], []
    for quantity in GROUPS:
        early, later = [], []
        for rate in RATES:
            points = _points(results, delay, quantity, rate)
            small = [one for one in points if one[0] <= SMALL]
            large = [one for one in points if one[0] >= LINEAR_FROM]
            if len(small) > 1 and len(large) > 1:
                early.append(slope_of(small))
                later.append(slope_of(large))
        if early:
            first, then = statistics.fmean(early), statistics.fmean(later)
            slower.append(first < then)
            words.append(
                f"{quantity.split()[0]} {first:.4f} bytes a peer up to {SMALL} peers and "
                f"{then:.4f} from {LINEAR_FROM} on"
            )
    return Claim(
        "growth has two stages: slow below 100 peers, linear above 100 to 200",
        where,
        f"in the mean over the rates: {listed(words)}" if words else "no run gave figures",
        all(slower) if slower else None,
        READS,
    )


def _alike(found: Mapping[str, Slopes | None], where: str) -> Claim:
    """Hold "less than five percent" against our slopes, and tell what the printed ones say."""
    printed, ours, close = [], [], []
    for quantity, slopes in found.items():
        name = quantity.split()[0]
        stated = list(RATE_SLOPES["0-50 ms", quantity].values())
        printed.append(f"{name} {max(stated) / min(stated) - 1:.1%}")
        if slopes is not None and len(slopes.by_rate) > 1:
            low, high = min(slopes.by_rate.values()), max(slopes.by_rate.values())
            close.append(low > 0 and high / low - 1 < ALIKE)
            ours.append(
                f"{name} {high / low - 1:.1%}" if low > 0 else f"{name} {low:.2g} to {high:.2g}"
            )
    return Claim(
        '"the difference between slopes with the message limit is less than five percent"',
        where,
        f"the printed slopes differ by {listed(printed)}; ours by {listed(ours)}"
        if ours
        else "no run gave figures",
        all(close) if close else None,
        READS,
    )


def _tends(quantity: str, slopes: Slopes | None) -> Claim:
    """Hold "the overhead growth slope has a tendency toward zero" against our slopes."""
    said = "no run gave figures"
    if slopes is not None:
        parts = zip(slopes.by_rate, slopes.parts(), strict=True)
        said = "of the first experiment's slope they are " + listed(
            [f"{part:.1%} at {rate}/s" for rate, part in parts]
        )
    return Claim(
        f"{quantity.split()[0]} group: at a fixed rate slopes tend to zero (here: to at most "
        f"{TENDS:.0%} of the first experiment's)",
        "Scalability Analysis",
        said,
        None if slopes is None else max(slopes.parts()) <= TENDS,
        (figure_of(quantity),),
    )


# -- `Last` ----------------------------------------------------------------------------------------


def last_section(results: Results) -> Section | None:
    """Return what the internal slopes of Figure 7 are when `Last` counts inside the span."""
    rows = list(_last_rows(results))
    if not rows:
        return None
    return Section(
        "A lead for Figure 7: Last inside the span",
        _last_finding(results),
        rows,
        about="A slope of 1/16 byte a peer is one bit a peer on half of the messages. Half of what "
        "an internal peer gets comes from its own group and carries `Last`, the number of its "
        "sender's message before, which is the further back the more peers there are. The source "
        "says that headers are not counted; these runs count its position in the span of the bit "
        "vector. They carry the readable classes, 0-50 ms.",
        reads=("last.inside_bytes", "last.outside_bytes") if _last_finding(results) else (),
        claims=[_last_claim(rows)],
    )


def _last_slopes(results: Results, figure: str) -> dict[int, float]:
    found = {}
    for rate in sorted(filter(None, results.places("rate", kind="last")), reverse=True):
        slope = results.slope(figure, "peers", kind="last", rate=rate)
        if slope is not None:
            found[rate] = slope
    return found


def _last_rows(results: Results) -> Iterator[Row]:
    for how in ("inside", "outside"):
        for rate, slope in _last_slopes(results, f"last.{how}_bytes").items():
            peers = results.places("peers", kind="last", rate=rate)
            yield Row(
                "Figure 7",
                f"internal overhead slope, `Last` {how} the span",
                f"0-50 ms, {rate} messages/s",
                RATE_SLOPES["0-50 ms", "internal overhead"].get(rate),
                slope,
                "bytes a message a peer",
                f"{peers[0]} to {peers[-1]} peers",
            )


def _last_finding(results: Results) -> str:
    for run in results.where(kind="last", rate=0):
        found = results.figures(run)
        return (
            f"In the first experiment, {run.parameters['peers']} peers, counting `Last` moves "
            f"internal overhead from {found['last.outside_bytes']:.1f} to "
            f"{found['last.inside_bytes']:.1f} bytes a message."
        )
    return ""


def _last_claim(rows: list[Row]) -> Claim:
    inside = [row for row in rows if "inside" in row.quantity]
    slopes = listed([f"{row.ours:.3f} ({row.paper})" for row in inside])
    outside = listed([f"{row.ours:.4f}" for row in rows if row not in inside])
    return Claim(
        "the printed internal slopes of Figure 7 come out within 25 % with `Last` in the span",
        "ours",
        f"slopes with it (printed): {slopes}; without: {outside}",
        within(inside, 0.25) == len(inside),
        ("last.inside_bytes", "last.outside_bytes"),
    )


# -- plots -----------------------------------------------------------------------------------------


def _plot(results: Results, delay: str, quantity: str) -> Plot:
    figure = figure_of(quantity)
    series: list[Series] = [
        results.line(f"{rate} a second", figure, "peers", kind="rate", delay=delay, rate=rate)
        for rate in sorted(RATES, reverse=True)
    ]
    series.append(
        results.line(
            "12.5 a second and peer", figure, "peers", style="dashed", kind="grid", delay=delay
        )
    )
    return Plot(
        f"hierarchy-rate-{quantity.split()[0]}-{delay.replace(' ms', '')}",
        f"{quantity.capitalize()} at fixed total rates, delays {delay}",
        "peers",
        "bytes a message",
        [one for one in series if one.x],
        f"{RATE_FIGURES[delay]} of Evropeytsev et al. 2016; dashed: the first "
        "experiment, where the rate grows.",
    )


def all_rates(results: Results) -> list[Section]:
    """Return the sections of Figures 7 to 9."""
    return [rate_section(results, delay) for delay in DELAYS]
