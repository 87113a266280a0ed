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
    "pairs left": lambda f: f"{f.judged:,}",
    "inverted": lambda f: f"{f.inverted:,}",
    "cause dropped": lambda f: f"{f.broken:,}",
    "never leave": lambda f: f"{f.stuck:,}",
    "wait, half": lambda f: format_span(f.wait_p50),
    "99 %": lambda f: format_span(f.wait_p99),
    "without need, mean": lambda f: format_span(f.unnecessary_mean),
    "held, mean": lambda f: f"{f.buffered_mean:,.1f}",
    "most": lambda f: f"{f.buffered_most:,}",
}

_HEAD = """# Watermarks and causal release on the same arrivals

*Written by `python -m bench.watermark_curve` from [watermarks.csv](figures/watermarks.csv); every
comparison is checked against it.*

![What watermarks of 10 minutes to 7 days and causal release cost](figures/watermarks.svg)

Where only one curve is seen, several lie upon each other. Zero stands below the break of each
scale.
"""

_MODEL = """
## What is compared

**A watermark as people write it on Spark**: a stateful operator buffers rows and gives them out
sorted by event time once the watermark has passed them. Spark (4.3;
`tests/spark/test_watermark_model.py` runs it beside the model) does it so:

- the watermark of a micro-batch is the greatest event time in all earlier ones less the delay,
  dropped rows included; it never goes back, and is one for the whole query;
- a row whose event time is at or before the watermark of the *previous* micro-batch is dropped,
  in silence but for a count in the progress;
- rows at or before the watermark of *this* micro-batch leave in it; when the watermark has moved
  and no row came, Spark runs a micro-batch without rows.

"Capped" is a watermark on `least(date, arrived)`, which a clock that runs ahead cannot move. It
needs a trustworthy time of arrival in each row.

**Causal release** is `antecede.spark.order` with the arrival as `time`: `on_missing="hold"` waits
for ever for a cause that never comes, `on_missing="release"` gives it up after a `patience` as long
as the watermark's delay, so both rules wait equally long for what is lost.

The trigger is one minute for all. A *pair* is a row and one of the causes that it names, both in
the feed; it is judged when the effect left (*pairs left*). *Inverted*: the effect left first.
*Cause dropped*: the effect left, its cause was thrown away. The figure has both, of the pairs left.
*Without need*: a row left later than its causes that ever came.
Waits are of rows that came 14 days before the end or earlier; one that never ends counts as the
longest.
*Ids remembered* are those without `state_ttl=`, which bounds them; a watermark remembers none.
"""


def make_page(points: Sequence[Point]) -> str:
    """Return the page. Raises ClaimError for a sentence that contradicts the table."""
    curves = Curves(points)
    parts = [
        _HEAD,
        _MODEL,
        _describe_feeds(curves),
        "\n## What comes out\n\n",
        _describe_findings(curves),
    ]
    parts += [f"\n## {describe_worse(points)[0].rstrip(':')}\n\n"]
    parts += ["".join(f"- {line}.\n" for line in describe_worse(points)[1:])]
    parts += [
        "".join(
            f"\n## {TITLES[feed].capitalize()}\n\n{_format_table(curves, feed)}"
            for feed in curves.feeds
        )
    ]
    return "".join(parts)


def _describe_feeds(curves: Curves) -> str:
    lore, tail, cut = (curves.get_hold(feed) for feed in ("lore", "heavy-tail", "outages"))
    return (
        "\n| feed | rows | pairs | causes that never come | what it is |\n|---|---|---|---|---|\n"
        + "".join(
            f"| {TITLES[feed]} | {of.rows:,} | {of.pairs:,} | {of.absent:,} | {what} |\n"
            for feed, of, what in (
                (
                    "lore",
                    lore,
                    "four kernel lists, 2019 to 2026: arrival at the archive, the author's "
                    "date, the mail that is answered",
                ),
                (
                    "heavy-tail",
                    tail,
                    f"`antecede simulate`'s engine, {MEMBERS} members, one message a 20 minutes "
                    "each: lognormal delays, one in 44 above 6 h, the longest about 8 days; "
                    "nothing lost",
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
        + "\nIn the simulated feeds all members speak in one group and read everything: "
        "what one sends follows from all that it had received.\n"
    )


def _describe_findings(curves: Curves) -> str:
    lore_raw, lore = curves.list_scheme("lore", RAW), curves.list_scheme("lore", CAPPED)
    lines = [
        check_claim(
            min(compute_dropped_part(f) for f in lore_raw) > 0.9,
            "**On raw dates the mailing lists lose "
            f"{format_percent(min(map(compute_dropped_part, lore_raw)))} of their rows or more "
            "at every width**: "
            "two mails are dated 20 and 66 years ahead, and behind the "
            "first of them everything is late",
        ),
        check_claim(
            all(f.dropped > 0 for f in lore),
            f"Capped, a watermark of 10 minutes drops {lore[0].dropped:,} mails "
            f"({format_percent(compute_dropped_part(lore[0]))}), one of 7 days "
            f"{lore[-1].dropped:,}; no width drops none",
        ),
        check_claim(
            min(f.inverted for f in lore) > 0
            and max(f.inverted for f in lore) < 1.2 * min(f.inverted for f in lore),
            f"No width mends a wrong clock: {min(f.inverted for f in lore)} to "
            f"{max(f.inverted for f in lore)} replies stand before what they answer at every "
            "width, for their dates are earlier, or the same second and they came first",
        ),
        _describe_price(curves),
        check_claim(
            all(
                f.dropped == 0
                for feed in curves.feeds
                for s in (RELEASE,)
                for f in curves.list_scheme(feed, s)
            )
            and all(curves.get_hold(feed).dropped == 0 for feed in curves.feeds),
            "Causal release drops no row, under either policy and in every feed",
        ),
        check_claim(
            all(
                curves.get_hold(feed).inverted == 0 and curves.get_hold(feed).unnecessary == 0
                for feed in curves.feeds
            ),
            '`on_missing="hold"` inverts nothing and lets no row wait that could go, of those that '
            "go at all",
        ),
        _describe_patience(curves),
        _describe_lost(curves),
    ]
    return "".join(f"- {line}.\n" for line in lines)


def _describe_price(curves: Curves) -> str:
    day, released = curves.at["lore", CAPPED, "1 day"], curves.at["lore", RELEASE, "1 day"]
    return check_claim(
        day.wait_p50 is not None and day.wait_p50 > 86_400_000 and released.wait_p50 == 0,
        "A capped watermark of one day makes half of the mails wait "
        f"{format_span(day.wait_p50)} or more and still drops {day.dropped}; with a patience of "
        "one day half do not wait, "
        f"{released.inverted} of {released.pairs:,} pairs is inverted, and the mean wait without "
        f"need is {format_span(released.unnecessary_mean)} "
        f"(watermark: {format_span(day.unnecessary_mean)})",
    )


def _describe_patience(curves: Curves) -> str:
    short, long = (curves.at["heavy-tail", RELEASE, width] for width in ("10 min", "7 days"))
    other = curves.at["heavy-tail", CAPPED, "10 min"]
    return check_claim(
        compute_wrong_part(short) > 0.1
        and compute_wrong_part(long) > 0
        and compute_wrong_part(short) < compute_wrong_part(other),
        "A patience shorter than the delays is no causal order: with the heavy tail, 10 minutes "
        f"leave {short.inverted:,} of {short.pairs:,} effects before their cause "
        f"(marked `missing_cause`, the cause `late`), 7 days {long.inverted}. The watermark of "
        f"10 minutes is wrong in {other.inverted + other.broken:,} pairs, and {other.dropped:,} "
        "rows are gone",
    )


def _describe_lost(curves: Curves) -> str:
    held = curves.get_hold("outages")
    return check_claim(
        held.stuck / held.settled > 0.9,
        '**Where messages are lost for good, `on_missing="hold"` stops**: of one talk in which '
        f"everything follows from everything, {held.absent} lost causes hold back "
        f"{format_percent(held.stuck / held.settled)} of the rows for ever. "
        "Give `patience`, or groups that fail apart",
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
