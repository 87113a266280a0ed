"""Watermarks of 10 minutes to 7 days and causal release, on the same arrivals.

    python -m bench.watermark_curve           compute, then write figure and page
    python -m bench.watermark_curve --draw    figure and page from docs/figures/watermarks.csv

Feeds are in `watermark_feeds`, both rules in `watermark_model`, the figure in `watermark_figures`.
The sentences of docs/watermarks.md in `watermark_page` are computed from the table, or rejected if
they contradict it.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from bench.watermark_feeds import FEEDS
from bench.watermark_model import (
    FeedRow,
    ModelMetrics,
    ModelRun,
    compute_earliest,
    compute_metrics,
    run_causal,
    run_watermark,
)

DOCS = Path(__file__).resolve().parents[1] / "docs"
TABLE = DOCS / "figures" / "watermarks.csv"
TICK_MS = 60_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
WIDTHS = {
    "10 min": 10 * MINUTE,
    "30 min": 30 * MINUTE,
    "1 h": HOUR,
    "3 h": 3 * HOUR,
    "6 h": 6 * HOUR,
    "12 h": 12 * HOUR,
    "1 day": DAY,
    "2 days": 2 * DAY,
    "4 days": 4 * DAY,
    "7 days": 7 * DAY,
}
RAW, CAPPED, RELEASE, HOLD = "watermark", "watermark-capped", "causal-release", "causal-hold"
SCHEMES = (RAW, CAPPED, RELEASE, HOLD)


class Point(NamedTuple):
    """Line of the table: feed, scheme, width (HOLD has none) and metrics."""

    feed: str
    scheme: str
    width: str
    figures: ModelMetrics


def measure(feed: str, rows: Sequence[FeedRow]) -> Iterator[Point]:
    need = compute_earliest(rows, TICK_MS)
    capped = [row._replace(stamp=min(row.stamp, row.arrived)) for row in rows]

    def point(scheme: str, width: str, run: ModelRun) -> Point:
        remembers = scheme in (RELEASE, HOLD)
        return Point(
            feed, scheme, width, compute_metrics(rows, run, need, TICK_MS, remembers=remembers)
        )

    for width, ms in WIDTHS.items():
        yield point(RAW, width, run_watermark(rows, ms, TICK_MS))
        yield point(CAPPED, width, run_watermark(capped, ms, TICK_MS))
        yield point(RELEASE, width, run_causal(rows, ms, TICK_MS))
    yield point(HOLD, "", run_causal(rows, None, TICK_MS))


def load(path: Path = TABLE) -> list[Point]:
    kinds = get_type_hints(ModelMetrics)

    def value(name: str, text: str) -> Any:
        return None if text == "" else float(text) if kinds[name] is float else int(text)

    with path.open(encoding="utf-8", newline="") as lines:
        return [
            Point(
                row["feed"],
                row["scheme"],
                row["width"],
                ModelMetrics(**{name: value(name, row[name]) for name in ModelMetrics._fields}),
            )
            for row in csv.DictReader(lines)
        ]


def save(points: Iterable[Point], path: Path = TABLE) -> None:
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(("feed", "scheme", "width", *ModelMetrics._fields))
        writer.writerows((p.feed, p.scheme, p.width, *p.figures) for p in points)


def main(arguments: Sequence[str]) -> None:
    from bench.watermark_figures import draw
    from bench.watermark_page import make_page

    if list(arguments) != ["--draw"]:
        save(point for name, make in FEEDS.items() for point in measure(name, make()))
    points = load()
    draw(points, DOCS / "figures" / "watermarks.svg")
    (DOCS / "watermarks.md").write_text(make_page(points), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
