"""Sentences about the table of `bench.watermark_curve`, each checked against it.

A sentence that contradicts the table raises ClaimError, so neither figure nor page contains it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.watermark_curve import CAPPED, DAY, HOLD, HOUR, MINUTE, RAW, RELEASE, WIDTHS, Point
from bench.watermark_model import ModelMetrics

TITLES = {
    "lore": "mailing lists",
    "heavy-tail": "simulated, delays with a heavy tail",
    "outages": "simulated, outages and losses",
}


class ClaimError(ValueError):
    """A sentence contradicts the table."""


def check_claim(holds: bool, sentence: str) -> str:
    if not holds:
        raise ClaimError(f"the table does not show: {sentence}")
    return sentence


def compute_dropped_part(metrics: ModelMetrics) -> float:
    return metrics.dropped / metrics.rows


def compute_wrong_part(metrics: ModelMetrics) -> float:
    """Return the part of the pairs with a released effect whose cause came later, or never."""
    return (metrics.inverted + metrics.broken) / max(metrics.judged, 1)


class Curves:
    """Points by feed, scheme and width."""

    def __init__(self, points: Sequence[Point]) -> None:
        self.at = {(p.feed, p.scheme, p.width): p.figures for p in points}
        self.feeds = list(dict.fromkeys(p.feed for p in points))

    def get_hold(self, feed: str) -> ModelMetrics:
        return self.at[feed, HOLD, ""]

    def list_scheme(self, feed: str, scheme: str) -> list[ModelMetrics]:
        return [self.at[feed, scheme, width] for width in WIDTHS]

    def find_worse_widths(
        self, feed: str, worse: Callable[[ModelMetrics, ModelMetrics], bool]
    ) -> list[str]:
        """Return the widths at which on_missing="release" is worse than the better watermark."""
        pairs = zip(self.list_scheme(feed, RELEASE), self.list_scheme(feed, CAPPED), strict=True)
        return [width for width, pair in zip(WIDTHS, pairs, strict=True) if worse(*pair)]


def format_percent(part: float) -> str:
    return f"{100 * part:.2g} %" if part < 0.1 else f"{100 * part:.1f} %"


def format_span(ms: int | None) -> str:
    if ms is None:
        return "never"
    for unit, name in ((DAY, "days"), (HOUR, "h"), (MINUTE, "min")):
        if ms >= unit:
            return f"{ms / unit:.3g} {name}"
    return "0" if ms == 0 else f"{ms / 1000:.3g} s"


def describe_worse(points: Sequence[Point]) -> list[str]:
    curves = Curves(points)
    known = " or ".join(f"{curves.get_hold(feed).remembered:,}" for feed in curves.feeds)
    lines = [
        "Where causal release is worse:",
        check_claim(
            all(p.figures.remembered == 0 for p in points if p.scheme in (RAW, CAPPED)),
            f"everywhere: it remembers every id ({known}) unless state_ttl= bounds that, "
            "a watermark none",
        ),
    ]
    for feed in curves.feeds:
        lines += [f"{TITLES[feed]}: {sentence}" for sentence in _describe_worse_feed(curves, feed)]
    return lines


def _describe_worse_feed(curves: Curves, feed: str) -> list[str]:
    hold, widest = curves.get_hold(feed), curves.at[feed, CAPPED, "7 days"]
    found = []
    if hold.stuck:
        found.append(
            check_claim(
                all(of.stuck == 0 for of in curves.list_scheme(feed, CAPPED)),
                f'"hold" never releases {format_percent(hold.stuck / hold.settled)} of the rows '
                f"({hold.absent:,} causes never come). "
                "The capped watermark releases all rows that it does not drop",
            )
        )
    if hold.buffered_most > widest.buffered_most:
        found.append(
            f'"hold" holds up to {hold.buffered_most:,} rows, '
            f"the widest watermark {widest.buffered_most:,}"
        )
    if not hold.stuck and (hold.wait_p99 or 0) > (widest.wait_p99 or 0):
        found.append(
            f'"hold" has a wait p99 of {format_span(hold.wait_p99)}, '
            f"the widest watermark {format_span(widest.wait_p99)}"
        )
    longer = curves.find_worse_widths(feed, lambda a, b: (a.wait_p99 or 0) > (b.wait_p99 or 0))
    if longer:
        found.append(
            f'"release" has a larger wait p99 than the capped watermark at {format_widths(longer)}'
        )
    fuller = curves.find_worse_widths(feed, lambda a, b: a.buffered_most > b.buffered_most)
    if fuller:
        found.append(
            '"release" holds more rows at most than the capped watermark at '
            f"{format_widths(fuller)}"
        )
    late = curves.find_worse_widths(feed, lambda a, b: a.inverted > b.inverted)
    if late:
        most = max(curves.at[feed, RELEASE, width].inverted for width in late)
        gone = max(curves.at[feed, CAPPED, width].broken for width in late)
        found.append(
            f'"release" inverts more pairs (up to {most:,}) at {format_widths(late)}. '
            f"The capped watermark drops the causes of up to {gone:,} effects there"
        )
    return found


def format_widths(widths: Sequence[str]) -> str:
    """Return the text of widths; consecutive ones as a range."""
    order = list(WIDTHS)
    places = [order.index(width) for width in widths]
    if len(places) > 1 and places == list(range(places[0], places[0] + len(places))):
        return "all widths" if len(places) == len(order) else f"{widths[0]} to {widths[-1]}"
    return ", ".join(widths)
