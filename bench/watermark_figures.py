"""Figure of `bench.watermark_curve`: measures as rows, feeds as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.panels import DASHED, DOTTED, SOLID, Cell, Curve, draw_grid
from bench.watermark_claims import TITLES, compute_dropped_part, compute_wrong_part, describe_worse
from bench.watermark_curve import CAPPED, DAY, HOLD, HOUR, MINUTE, RAW, RELEASE, WIDTHS, Point
from bench.watermark_model import ModelMetrics

WAITS, HELD = 2, 4
"""Rows of the figure."""
COLOURS = {RAW: None, CAPPED: 1, RELEASE: 0, HOLD: 2}
LABELS = {
    RAW: "watermark on the date",
    CAPPED: "watermark on the earlier of date and arrival (capped)",
    RELEASE: 'causal, on_missing="release", patience of this length',
    HOLD: 'causal, on_missing="hold"',
}
TIMES: dict[float, str] = {
    0: "0",
    MINUTE: "1 min",
    10 * MINUTE: "10 min",
    HOUR: "1 h",
    10 * HOUR: "10 h",
}
TIMES |= {4 * DAY: "4 days", 40 * DAY: "40 days"}
PARTS: dict[float, str] = {
    0: "0",
    0.0001: "0.01 %",
    0.001: "0.1 %",
    0.01: "1 %",
    0.1: "10 %",
    1: "100 %",
}
COUNTS: dict[float, str] = {0: "0", 1: "1", 10: "10", 100: "100", 1_000: "1,000", 10_000: "10,000"}
X_LABEL = "delay of the watermark, patience"
X_TICKS: dict[float, str] = {
    10 * MINUTE: "10 min",
    HOUR: "1 h",
    6 * HOUR: "6 h",
    DAY: "1 day",
    7 * DAY: "7 days",
}


def draw(points: Sequence[Point], path: Path) -> None:
    feeds = list(dict.fromkeys(point.feed for point in points))
    measures: list[tuple[str, list[tuple[Callable[[ModelMetrics], float | None], str]]]] = [
        ("rows dropped", [(compute_dropped_part, SOLID)]),
        ("effects that left before or without a cause", [(compute_wrong_part, SOLID)]),
        ("wait: half, 99 % (dashed)", [(_get_p50, SOLID), (_get_p99, DASHED)]),
        ("waited without need, mean", [(_get_unnecessary, SOLID)]),
        ("rows held: mean, most (dotted)", [(_get_mean, SOLID), (_get_maximum, DOTTED)]),
    ]
    ticks = [PARTS, PARTS, TIMES, TIMES, COUNTS]
    rows = [
        [
            Cell(
                f"{TITLES[feed]}\n{title}" if r == 0 else title,
                [
                    curve
                    for measure, style in parts
                    for curve in _make_curves(points, feed, measure, style)
                ],
                _describe_missing(points, feed, r),
            )
            for feed in feeds
        ]
        for r, (title, parts) in enumerate(measures)
    ]
    draw_grid(
        rows, path, x_ticks=X_TICKS, y_ticks=ticks, x_label=X_LABEL, footer=describe_worse(points)
    )


def _get_p50(of: ModelMetrics) -> float | None:
    return of.wait_p50


def _get_p99(of: ModelMetrics) -> float | None:
    return of.wait_p99


def _get_unnecessary(of: ModelMetrics) -> float:
    return of.unnecessary_mean


def _get_mean(of: ModelMetrics) -> float:
    return of.buffered_mean


def _get_maximum(of: ModelMetrics) -> float:
    return of.buffered_most


def _describe_missing(points: Sequence[Point], feed: str, row: int) -> str:
    """Return the text for values that cannot be drawn: rows that never leave, and known ids."""
    found = next(p.figures for p in points if p.feed == feed and p.scheme == HOLD)
    if row == HELD:
        return f"causal release remembers {found.remembered:,} ids besides"
    if row != WAITS:
        return ""
    if not found.stuck:
        return '"hold": every row leaves'
    return f'"hold": {100 * found.stuck / found.settled:.1f} % of the rows never leave'


def _make_curves(
    points: Sequence[Point], feed: str, measure: Callable[[ModelMetrics], float | None], style: str
) -> list[Curve]:
    curves = []
    for scheme, colour in COLOURS.items():
        mine = [p for p in points if p.feed == feed and p.scheme == scheme]
        if scheme == HOLD:  # a horizontal line
            mine = [mine[0]._replace(width=width) for width in (*WIDTHS,)[:: len(WIDTHS) - 1]]
        drawn = [(float(WIDTHS[p.width]), measure(p.figures)) for p in mine]
        line = [(x, float(y)) for x, y in drawn if y is not None]
        curves.append(Curve(LABELS[scheme], line, colour, style, style == SOLID and scheme != HOLD))
    return curves
