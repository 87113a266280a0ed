"""Figures 7 to 9 of Evropeytsev et al. 2016: overhead where the total rate of messages is fixed."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from antecede.formatting import counted
from antecede.report.values import Claim, Plot, Row, Section
from antecede.studies.frame.claims import Asked, claim, rows
from antecede.studies.frame.compare_paper import compared, listed, within
from antecede.studies.frame.results import Results
from antecede.studies.hierarchy.paper import (
    ALIKE,
    FIGURE,
    RATE_FIGURES,
    RATE_SLOPES,
    RATE_TIMES,
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


def rate_section(results: Results, delay: str) -> Section:
    """Return slopes beside the text's, and each sentence of the text with a verdict."""
    found = {quantity: slopes_of(results, delay, quantity) for quantity in GROUPS}
    there = rows([*_slopes_asked(delay, found), *_times_asked(delay, found)])
    return Section(
        f"{RATE_FIGURES[delay]}: fixed total rates, delays {delay}",
        _finding(there, found),
        there,
        [_plot(results, delay, quantity) for quantity in GROUPS],
        about=f"Slopes are least-squares lines from {LINEAR_FROM} peers on. The first experiment "
        "is the one in which every peer sends 12.5 messages a second.",
        reads=READS,
        claims=list(_claims(results.of(kind="rate", delay=delay), delay, found)),
    )


def slopes_of(results: Results, delay: str, quantity: str) -> Slopes | None:
    """Return the slopes of an overhead; None: runs are missing."""
    figure = FIGURE[quantity]
    first = results.slope(figure, "peers", kind="grid", delay=delay)
    by_rate = {}
    for rate, there in results.of(kind="rate", delay=delay).by("rate")[::-1]:
        later = [
            point for point in there.line("", figure, "peers").points if point[0] >= LINEAR_FROM
        ]
        if len(later) > 1:
            by_rate[rate] = slope_of(later)
    return Slopes(first, by_rate) if first and by_rate else None


def slope_of(points: list[tuple[float, float]]) -> float:
    """Return the least-squares slope."""
    return statistics.linear_regression(*zip(*points, strict=True)).slope


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


def _slopes_asked(delay: str, found: Mapping[str, Slopes | None]) -> Iterator[Asked]:
    for quantity, slopes in found.items():
        stated = RATE_SLOPES.get((delay, quantity), {})
        for rate, slope in slopes.by_rate.items() if slopes else ():
            yield Asked(
                f"{quantity} slope, fixed rate",
                f"{delay}, {rate} messages/s",
                slope,
                "bytes a message a peer",
                stated.get(rate),
                RATE_FIGURES[delay],
                f"from {LINEAR_FROM} peers",
            )


def _times_asked(delay: str, found: Mapping[str, Slopes | None]) -> Iterator[Asked]:
    """Ask by how much the first experiment's slope exceeds those at fixed rates."""
    how, stated = RATE_TIMES.get(delay, ("mean", {}))
    for quantity, slopes in found.items():
        if slopes is None:
            continue
        values = list(slopes.by_rate.values())
        by = max(values) if how == "largest" else statistics.fmean(values)
        yield Asked(
            f"{quantity} slope of the first experiment by the {how} at fixed rates",
            delay,
            slopes.first / by if by else None,
            "times",
            stated.get(quantity),
            f"{RATE_FIGURES[delay]}, text",
        )


# -- what the text says ----------------------------------------------------------------------------


def _claims(fixed: Results, delay: str, found: Mapping[str, Slopes | None]) -> Iterator[Claim]:
    where = f"text to {RATE_FIGURES[delay]}"
    yield _dearer(fixed, where)
    yield _stages(fixed, where)
    if RATE_FIGURES[delay] == "Figure 7":
        yield _alike(found, where)
    for quantity, slopes in found.items():
        yield _tends(quantity, slopes)


def _by_rate(fixed: Results, quantity: str) -> list[list[tuple[float, float]]]:
    """Return an overhead over the peers, at each fixed rate from the lowest on."""
    return [there.line("", FIGURE[quantity], "peers").points for _, there in fixed.by("rate")]


def _dearer(fixed: Results, where: str) -> Claim:
    """Hold against the figures that a higher total rate costs more at the same number of peers."""
    higher = total = 0
    for quantity in GROUPS:
        lines = [dict(points) for points in _by_rate(fixed, quantity) if points]
        for less, more in itertools.pairwise(lines):
            for peers in less.keys() & more.keys():
                total += 1
                higher += less[peers] < more[peers]
    said = (
        f"the higher of two rates costs more in {higher} of {counted(total, 'comparison')} at the "
        "same number of peers"
    )
    return claim(
        "the more messages are generated a second, the more control information is required",
        where,
        READS,
        (said, higher == total) if total else None,
    )


def _stages(fixed: Results, where: str) -> Claim:
    """Hold against the figures that growth is slow below 100 peers and linear above 100 to 200."""
    words, slower = [], []
    for quantity in GROUPS:
        early, later = [], []
        for points in _by_rate(fixed, quantity):
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
    return claim(
        "growth has two stages: slow below 100 peers, linear above 100 to 200",
        where,
        READS,
        (f"in the mean over the rates: {listed(words)}", all(slower)) if words else None,
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
    said = f"the printed slopes differ by {listed(printed)}; ours by {listed(ours)}"
    return claim(
        '"the difference between slopes with the message limit is less than five percent"',
        where,
        READS,
        (said, all(close)) if ours else None,
    )


def _tends(quantity: str, slopes: Slopes | None) -> Claim:
    """Hold "the overhead growth slope has a tendency toward zero" against our slopes."""
    answer = None
    if slopes is not None:
        parts = zip(slopes.by_rate, slopes.parts(), strict=True)
        said = listed([f"{part:.1%} at {rate}/s" for rate, part in parts])
        near = max(slopes.parts()) <= TENDS
        answer = (f"of the first experiment's slope they are {said}", near)
    return claim(
        f"{quantity.split()[0]} group: at a fixed rate slopes tend to zero (here: to at most "
        f"{TENDS:.0%} of the first experiment's)",
        "Scalability Analysis",
        (FIGURE[quantity],),
        answer,
    )


# -- `Last` ----------------------------------------------------------------------------------------


def last_section(last: Results) -> Section | None:
    """Return what the internal slopes of Figure 7 are when `Last` counts inside the span."""
    found = rows(_last_asked(last))
    if not found:
        return None
    return Section(
        "A lead for Figure 7: Last inside the span",
        _last_finding(last),
        found,
        about="A slope of 1/16 byte a peer is one bit a peer on half of the messages. Half of what "
        "an internal peer gets comes from its own group and carries `Last`, the number of its "
        "sender's message before, which is the further back the more peers there are. The source "
        "says that headers are not counted; these runs count its position in the span of the bit "
        "vector. They carry the readable classes, 0-50 ms.",
        reads=("last.inside_bytes", "last.outside_bytes"),
        claims=[_last_claim(found)],
    )


def _last_asked(last: Results) -> Iterator[Asked]:
    """Ask for the slopes at each fixed rate; rate 0 is the first experiment."""
    for how in ("inside", "outside"):
        for rate, there in last.by("rate")[::-1]:
            peers = there.places("peers")
            yield Asked(
                f"internal overhead slope, `Last` {how} the span",
                f"0-50 ms, {rate} messages/s",
                there.slope(f"last.{how}_bytes", "peers") if rate else None,
                "bytes a message a peer",
                RATE_SLOPES["0-50 ms", "internal overhead"].get(rate),
                "Figure 7",
                f"{peers[0]} to {peers[-1]} peers",
            )


def _last_finding(last: Results) -> str:
    for run in last.where(rate=0):
        found = last.figures(run)
        return (
            f"In the first experiment, {run.parameters['peers']} peers, counting `Last` moves "
            f"internal overhead from {found['last.outside_bytes']:.1f} to "
            f"{found['last.inside_bytes']:.1f} bytes a message."
        )
    return ""


def _last_claim(found: list[Row]) -> Claim:
    inside = [row for row in found if "inside" in row.quantity]
    slopes = listed([f"{row.ours:.3f} ({row.paper})" for row in inside])
    outside = listed([f"{row.ours:.4f}" for row in found if row not in inside])
    return claim(
        "the printed internal slopes of Figure 7 come out within 25 % with `Last` in the span",
        "ours",
        ("last.inside_bytes", "last.outside_bytes"),
        (
            f"slopes with it (printed): {slopes}; without: {outside}",
            within(inside, 0.25) == len(inside),
        ),
    )


# -- plots -----------------------------------------------------------------------------------------


def _plot(results: Results, delay: str, quantity: str) -> Plot:
    figure = FIGURE[quantity]
    rates = results.of(kind="rate", delay=delay).by("rate")[::-1]
    series = [there.line(f"{rate} a second", figure, "peers") for rate, there in rates]
    first = results.of(kind="grid", delay=delay)
    series.append(first.line("12.5 a second and peer", figure, "peers", style="dashed"))
    return Plot(
        f"hierarchy-rate-{quantity.split()[0]}-{delay.replace(' ms', '')}",
        f"{quantity.capitalize()} at fixed total rates, delays {delay}",
        "peers",
        "bytes a message",
        [one for one in series if one.x],
        f"{RATE_FIGURES[delay]} of Evropeytsev et al. 2016; dashed: the first "
        "experiment, where the rate grows.",
    )
