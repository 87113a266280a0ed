"""Writer of docs/watermarks.md from the table of `bench.watermark_curve`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.watermark_claims import (
    TITLES,
    Curves,
    check_claim,
    compute_dropped_part,
    compute_wrong_part,
    describe_worse,
    format_percent,
    format_span,
)
from bench.watermark_curve import CAPPED, HOLD, RAW, RELEASE, Point
from bench.watermark_feeds import LOSS, MEMBERS
from bench.watermark_model import ModelMetrics

_SHOWN = ("10 min", "1 h", "1 day", "7 days")
_SCHEMES = {
    RAW: "watermark on the date",
    CAPPED: "watermark, capped",
    RELEASE: "causal, release",
    HOLD: "causal, hold",
}
_COLUMNS: dict[str, Callable[[ModelMetrics], str]] = {
    "dropped": lambda f: format_percent(compute_dropped_part(f)) if f.dropped else "0",
    "pairs": lambda f: f"{f.judged:,}",
    "inverted": lambda f: f"{f.inverted:,}",
    "cause dropped": lambda f: f"{f.broken:,}",
    "never released": lambda f: f"{f.stuck:,}",
    "wait, p50": lambda f: format_span(f.wait_p50),
    "wait, p99": lambda f: format_span(f.wait_p99),
    "needless wait, mean": lambda f: format_span(f.unnecessary_mean),
    "held, mean": lambda f: f"{f.buffered_mean:,.1f}",
    "held, max": lambda f: f"{f.buffered_most:,}",
}

_FIGURE = """
![Costs of watermarks of 10 minutes to 7 days, and of causal release](figures/watermarks.svg)

Several curves coincide where only one is visible. Zero is below the break of each scale.

*Written by `python -m bench.watermark_curve` from [watermarks.csv](figures/watermarks.csv).
Every comparison is checked against that table.*
"""

_COLUMN_TEXT = """
## Columns

- *pairs*: a released row and one of its causes, both in the feed.
- *inverted*: the effect was released first.
- *cause dropped*: the effect was released, and its cause was dropped. The plot has both, as a part
  of the pairs.
- *wait*: of rows that came at least 14 days before the end. A wait without end counts as longest.
- *needless wait*: from the arrival of the last cause of a row that ever came, to its release.
- *held*: rows that wait at the end of a micro-batch.

*Ids remembered* in the plot are those without `state_ttl=`, which bounds them.
A watermark remembers none.
"""

_MODEL = """
## Method

All rules see the same arrivals, with a trigger of one minute.

**A watermark** buffers rows and releases them sorted by event time once the watermark has passed
them. Spark 4.3 does it so (`tests/spark/test_watermark_model.py` compares it with the model):

- The watermark of a micro-batch is the greatest event time of all earlier ones minus the delay.
  Dropped rows count. It never goes back and is one for the whole query.
- A row at or before the watermark of the *previous* micro-batch is dropped. Only a count in the
  progress shows it.
- Rows at or before the watermark of *this* micro-batch are released in it.
- If the watermark has moved and no row came, Spark runs a micro-batch without rows.

A *capped* watermark uses `least(date, arrived)`, which a fast clock cannot move.
It needs a trustworthy time of arrival in each row.

**Causal release** is `antecede.spark.order` with the arrival as `time`:

- `on_missing="hold"` waits without limit for a cause that never comes.
- `on_missing="release"` gives up after a `patience` as long as the watermark's delay. So both rules
  wait equally long for lost rows.
"""


def make_page(points: Sequence[Point]) -> str:
    """Return the page. Raises ClaimError for a sentence that contradicts the table."""
    curves = Curves(points)
    worse = describe_worse(points)
    parts = ["# What a watermark costs\n\n", _describe_findings(curves), _FIGURE]
    parts += [
        "".join(
            f"\n## {TITLES[feed].capitalize()}\n\n{_format_table(curves, feed)}"
            for feed in curves.feeds
        ),
        _COLUMN_TEXT,
        f"\n## {worse[0].rstrip(':')}\n\n",
        "".join(f"- {line}.\n" for line in worse[1:]),
        _MODEL,
        _describe_feeds(curves),
    ]
    return "".join(parts)


def _describe_feeds(curves: Curves) -> str:
    lore, tail, cut = (curves.get_hold(feed) for feed in ("lore", "heavy-tail", "outages"))
    return (
        "\n## Feeds\n\n| feed | rows | pairs | causes that never come | content |\n"
        "|---|---|---|---|---|\n"
        + "".join(
            f"| {TITLES[feed]} | {of.rows:,} | {of.pairs:,} | {of.absent:,} | {content} |\n"
            for feed, of, content in (
                (
                    "lore",
                    lore,
                    "four kernel lists, 2019 to 2026: arrival at the archive, the author's "
                    "date, the parent of the reply",
                ),
                (
                    "heavy-tail",
                    tail,
                    f"`antecede simulate`'s engine, {MEMBERS} members, one message per 20 minutes "
                    "each: lognormal delays, one in 44 above 6 h, the longest about 8 days; "
                    "no loss",
                ),
                (
                    "outages",
                    cut,
                    "the same members, delays of 1 to 60 s; five outages of 20 minutes to 4 "
                    "days, after which three members' messages come at once; "
                    f"{format_percent(LOSS)} of copies lost",
                ),
            )
        )
        + "\nIn the simulated feeds all members are in one group. "
        "Each message follows from all that its sender had received.\n"
    )


def _describe_findings(curves: Curves) -> str:
    lore_raw, lore = curves.list_scheme("lore", RAW), curves.list_scheme("lore", CAPPED)
    lines = [
        check_claim(
            all(
                f.dropped == 0
                for feed in curves.feeds
                for f in (*curves.list_scheme(feed, RELEASE), curves.get_hold(feed))
            ),
            "**Causal release drops no row**, under either policy and in every feed",
        ),
        check_claim(
            all(
                curves.get_hold(feed).inverted == 0 and curves.get_hold(feed).unnecessary == 0
                for feed in curves.feeds
            ),
            '`on_missing="hold"` inverts no pair, and no released row waits without need',
        ),
        _describe_price(curves),
        check_claim(
            min(compute_dropped_part(f) for f in lore_raw) > 0.9,
            "**On raw dates the mailing lists lose "
            f"{format_percent(min(map(compute_dropped_part, lore_raw)))} of their rows or more "
            "at every width.** "
            "Two mails are dated 20 and 66 years ahead, and all rows after the first of them are "
            "late",
        ),
        check_claim(
            all(f.dropped > 0 for f in lore),
            f"No capped width avoids drops. 10 minutes drop {lore[0].dropped:,} mails "
            f"({format_percent(compute_dropped_part(lore[0]))}), 7 days {lore[-1].dropped:,}",
        ),
        check_claim(
            min(f.inverted for f in lore) > 0
            and max(f.inverted for f in lore) < 1.2 * min(f.inverted for f in lore),
            f"No width repairs a wrong clock. {min(f.inverted for f in lore)} to "
            f"{max(f.inverted for f in lore)} replies precede their parent at every "
            "width. Their dates are earlier, or equal and they came first",
        ),
        _describe_patience(curves),
        _describe_lost(curves),
    ]
    return "".join(f"- {line}.\n" for line in lines)


def _describe_price(curves: Curves) -> str:
    day, released = curves.at["lore", CAPPED, "1 day"], curves.at["lore", RELEASE, "1 day"]
    return check_claim(
        day.wait_p50 is not None and day.wait_p50 > 86_400_000 and released.wait_p50 == 0,
        "**A capped watermark of one day makes half of the mails wait "
        f"{format_span(day.wait_p50)} or more** and drops {day.dropped}. With a patience of "
        "one day half do not wait, and "
        f"{released.inverted} of {released.pairs:,} pairs is inverted. The mean needless wait is "
        f"{format_span(released.unnecessary_mean)} "
        f"(watermark: {format_span(day.unnecessary_mean)})",
    )


def _describe_patience(curves: Curves) -> str:
    short, long = (curves.at["heavy-tail", RELEASE, width] for width in ("10 min", "7 days"))
    other = curves.at["heavy-tail", CAPPED, "10 min"]
    return check_claim(
        compute_wrong_part(short) > 0.1
        and compute_wrong_part(long) > 0
        and compute_wrong_part(short) < compute_wrong_part(other),
        "A patience shorter than the delays does not keep causal order. With the heavy tail, "
        "10 minutes "
        f"leave {short.inverted:,} of {short.pairs:,} effects before their cause, 7 days "
        f"{long.inverted}. They have status `missing_cause`, and the cause has `late`. "
        "The watermark of "
        f"10 minutes is wrong in {other.inverted + other.broken:,} pairs and drops "
        f"{other.dropped:,} rows",
    )


def _describe_lost(curves: Curves) -> str:
    held = curves.get_hold("outages")
    return check_claim(
        held.stuck / held.settled > 0.9,
        '**If messages are lost for good, `on_missing="hold"` stops.** In one conversation '
        f"{held.absent} lost causes hold "
        f"{format_percent(held.stuck / held.settled)} of the rows without end. "
        "Use `patience`, or groups that fail separately",
    )


def _format_table(curves: Curves, feed: str) -> str:
    head = ["", "width", *_COLUMNS]
    lines = [head, ["---"] * len(head)]
    lines += [
        _format_line(curves.at[feed, scheme, w], _SCHEMES[scheme], w)
        for scheme in (RAW, CAPPED, RELEASE)
        for w in _SHOWN
    ]
    lines.append(_format_line(curves.get_hold(feed), _SCHEMES[HOLD], ""))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _format_line(figures: ModelMetrics, scheme: str, width: str) -> list[str]:
    return [scheme, width, *(show(figures) for show in _COLUMNS.values())]
