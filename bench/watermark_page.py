"""docs/watermarks.md, written from the table of `bench.watermark_curve`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.watermark_claims import (
    TITLES,
    Curves,
    claim,
    part_dropped,
    part_wrong,
    percent,
    span,
    worse,
)
from bench.watermark_curve import CAPPED, HOLD, RAW, RELEASE, Point
from bench.watermark_feeds import LOSS, MEMBERS
from bench.watermark_model import Figures

_SHOWN = ("10 min", "1 h", "1 day", "7 days")
_SCHEMES = {
    RAW: "watermark on the date",
    CAPPED: "watermark, capped",
    RELEASE: "causal, release",
    HOLD: "causal, hold",
}
_COLUMNS: dict[str, Callable[[Figures], str]] = {
    "dropped": lambda f: percent(part_dropped(f)) if f.dropped else "0",
    "pairs left": lambda f: f"{f.judged:,}",
    "inverted": lambda f: f"{f.inverted:,}",
    "cause dropped": lambda f: f"{f.broken:,}",
    "never leave": lambda f: f"{f.stuck:,}",
    "wait, half": lambda f: span(f.wait_p50),
    "99 %": lambda f: span(f.wait_p99),
    "without need, mean": lambda f: span(f.unnecessary_mean),
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


def page_of(points: Sequence[Point]) -> str:
    """Return the page. Raises ClaimError for a sentence that the table does not show."""
    curves = Curves(points)
    parts = [_HEAD, _MODEL, _feeds(curves), "\n## What comes out\n\n", _findings(curves)]
    parts += [f"\n## {worse(points)[0].rstrip(':')}\n\n"]
    parts += ["".join(f"- {line}.\n" for line in worse(points)[1:])]
    parts += [
        "".join(
            f"\n## {TITLES[feed].capitalize()}\n\n{_table(curves, feed)}" for feed in curves.feeds
        )
    ]
    return "".join(parts)


def _feeds(curves: Curves) -> str:
    lore, tail, cut = (curves.hold(feed) for feed in ("lore", "heavy-tail", "outages"))
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
                    f"days, after which three members' messages come at once; {percent(LOSS)} of "
                    "copies lost",
                ),
            )
        )
        + "\nIn the simulated feeds all members speak in one group and read everything: "
        "what one sends follows from all that it had received.\n"
    )


def _findings(curves: Curves) -> str:
    lore_raw, lore = curves.all("lore", RAW), curves.all("lore", CAPPED)
    lines = [
        claim(
            min(part_dropped(f) for f in lore_raw) > 0.9,
            f"**On raw dates the mailing lists lose {percent(min(map(part_dropped, lore_raw)))} "
            "of their rows or more at every width**: "
            "two mails are dated 20 and 66 years ahead, and behind the "
            "first of them everything is late",
        ),
        claim(
            all(f.dropped > 0 for f in lore),
            f"Capped, a watermark of 10 minutes drops {lore[0].dropped:,} mails "
            f"({percent(part_dropped(lore[0]))}), one of 7 days {lore[-1].dropped:,}; no width "
            "drops none",
        ),
        claim(
            min(f.inverted for f in lore) > 0
            and max(f.inverted for f in lore) < 1.2 * min(f.inverted for f in lore),
            f"No width mends a wrong clock: {min(f.inverted for f in lore)} to "
            f"{max(f.inverted for f in lore)} replies stand before what they answer at every "
            "width, for their dates are earlier, or the same second and they came first",
        ),
        _price(curves),
        claim(
            all(
                f.dropped == 0
                for feed in curves.feeds
                for s in (RELEASE,)
                for f in curves.all(feed, s)
            )
            and all(curves.hold(feed).dropped == 0 for feed in curves.feeds),
            "Causal release drops no row, under either policy and in every feed",
        ),
        claim(
            all(
                curves.hold(feed).inverted == 0 and curves.hold(feed).unnecessary == 0
                for feed in curves.feeds
            ),
            '`on_missing="hold"` inverts nothing and lets no row wait that could go, of those that '
            "go at all",
        ),
        _patience(curves),
        _lost(curves),
    ]
    return "".join(f"- {line}.\n" for line in lines)


def _price(curves: Curves) -> str:
    day, released = curves.at["lore", CAPPED, "1 day"], curves.at["lore", RELEASE, "1 day"]
    return claim(
        day.wait_p50 is not None and day.wait_p50 > 86_400_000 and released.wait_p50 == 0,
        f"A capped watermark of one day makes half of the mails wait {span(day.wait_p50)} or "
        f"more and still drops {day.dropped}; with a patience of one day half do not wait, "
        f"{released.inverted} of {released.pairs:,} pairs is inverted, and the mean wait without "
        f"need is {span(released.unnecessary_mean)} (watermark: {span(day.unnecessary_mean)})",
    )


def _patience(curves: Curves) -> str:
    short, long = (curves.at["heavy-tail", RELEASE, width] for width in ("10 min", "7 days"))
    other = curves.at["heavy-tail", CAPPED, "10 min"]
    return claim(
        part_wrong(short) > 0.1 and part_wrong(long) > 0 and part_wrong(short) < part_wrong(other),
        "A patience shorter than the delays is no causal order: with the heavy tail, 10 minutes "
        f"leave {short.inverted:,} of {short.pairs:,} effects before their cause "
        f"(marked `missing_cause`, the cause `late`), 7 days {long.inverted}. The watermark of "
        f"10 minutes is wrong in {other.inverted + other.broken:,} pairs, and {other.dropped:,} "
        "rows are gone",
    )


def _lost(curves: Curves) -> str:
    held = curves.hold("outages")
    return claim(
        held.stuck / held.settled > 0.9,
        '**Where messages are lost for good, `on_missing="hold"` stops**: of one talk in which '
        f"everything follows from everything, {held.absent} lost causes hold back "
        f"{percent(held.stuck / held.settled)} of the rows for ever. "
        "Give `patience`, or groups that fail apart",
    )


def _table(curves: Curves, feed: str) -> str:
    head = ["", "width", *_COLUMNS]
    lines = [head, ["---"] * len(head)]
    lines += [
        _line(curves.at[feed, scheme, w], _SCHEMES[scheme], w)
        for scheme in (RAW, CAPPED, RELEASE)
        for w in _SHOWN
    ]
    lines.append(_line(curves.hold(feed), _SCHEMES[HOLD], ""))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _line(figures: Figures, scheme: str, width: str) -> list[str]:
    return [scheme, width, *(show(figures) for show in _COLUMNS.values())]
