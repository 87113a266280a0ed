"""What the runs of the study of 004 show; its one figure and its least delays are lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from antecede.studies.findings import Findings, Plot, Row, Section, Series, filled
from antecede.studies.pairs import part
from antecede.studies.results import Results

USUAL: Mapping[str, Any] = {"events": 2000, "topics": 10, "most": 5, "least": 0.5}
"""What does not vary: events, h, xt, and the least delay as a part of the largest."""
AXES = {
    "events": ("number of events", "events"),
    "topics": ("number of topics (h)", "topics"),
    "most": ("topics of a publication and of a subscription, at most (xt)", "topics at most"),
    "least": ("least delay", "least delay by largest"),
}
SAFE = (("TV", "tv"), ("TV_LT", "tv-lt"), ("TV_PT", "tv-pt"), ("HTBC", "htbc"))
PRINTED = (
    ("TV_LT, as published", "tv-lt:published"),
    ("TV_PT, as published", "tv-pt:published"),
    ("HTBC, as published", "htbc:published"),
)
READING = (
    "an event precedes another on topics when its vector is strictly less on all topics that both "
    "events and the observer's subscription have (the other reading orders more pairs and misses "
    "none either)",
    "events of one publisher go by its own counter",
    "truth is TV_VT with happened-before by receipt; a pair that it has and a protocol has not is "
    "missed",
    "as published: rule 3(b) holds only from a least delay of 2 epsilon on, and linear time is "
    "compared with <=; safe: a pair is ordered when its physical times are as far apart as the "
    "least delay over any path allows, less 2 epsilon, and linear time is strictly less",
    "largest delays are 16 and 160, least delays a part of them, the same for LAN and WAN",
)


def findings(results: Results, quick: bool) -> Findings:
    """Return the page of the study."""
    return Findings(
        study="topics",
        title="Topic-based order: what is ordered without need, and what is missed",
        source="004, section 3",
        finding=_finding(results),
        reading=READING,
        conditions=[
            "6 peers in 2 subgroups; largest delay 16 in the LAN, 160 in the WAN, epsilon 4, "
            "150,000 time units; delays uniform; publishers and times random",
            "usual: 2,000 events, h = 10, xt = 5, least delay half of the largest; one of them "
            "varied at a time" + (", a few values in this quick run" if quick else ""),
            results.seeds(),
        ],
        sections=filled((_claim(results), *(_section(results, name) for name in AXES))),
        not_reached=[
            "Figure 1 cannot be set beside ours: its picture and its least delays are lost. Only "
            'its sentence can be checked: "the UO number of event messages in the HTBC protocol is '
            'a little smaller than the TV_PT protocol"'
        ],
    )


def _of(results: Results, figure: str, **changed: Any) -> float | None:
    return part(results, figure, "events", **{**USUAL, **changed})


def _finding(results: Results) -> str:
    names = ("htbc:published", "tv-pt:published", "htbc", "tv-pt", "tv")
    found = [_of(results, f"{name}.unnecessary") for name in names]
    missed = _of(results, "htbc.missed")
    early = _of(results, "htbc:published.missed", least=0.0)
    if any(value is None for value in (*found, missed)):
        return "No run gave figures for the usual case."
    printed, printed_pt, htbc, tv_pt, tv = (value or 0.0 for value in found)
    return (
        f"As published HTBC orders {printed:.3f} pairs an event without need and TV_PT "
        f"{printed_pt:.3f}, a little more, as 004 says; both miss causal pairs"
        + (f" ({early:.2f} an event without a least delay)" if early else "")
        + f". The safe rules order {htbc:.2f} and {tv_pt:.2f} (TV alone {tv:.2f}) and miss "
        f"{'none' if not missed else f'{missed:.3f}'}."
    )


def _claim(results: Results) -> Section:
    rows = []
    for suffix, words in (("", "safe"), (":published", "as published")):
        for events in results.places("events"):
            above = _of(results, f"htbc{suffix}.unnecessary", events=events)
            below = _of(results, f"tv-pt{suffix}.unnecessary", events=events)
            if above is not None and below:
                rows.append(
                    Row(
                        "Figure 1",
                        f"HTBC unnecessary by TV_PT unnecessary, {words}",
                        f"{events:,} events",
                        None,
                        above / below,
                        "times",
                    )
                )
    smaller = sum(1 for row in rows if row.ours < 1)
    return Section(
        '"HTBC is a little smaller than TV_PT"',
        f"It is smaller in {smaller} of {len(rows)} cases and larger in none."
        if all(row.ours <= 1 for row in rows)
        else f"It is smaller in {smaller} of {len(rows)} cases.",
        rows,
    )


def _section(results: Results, name: str) -> Section:
    title, axis = AXES[name]
    rows = list(_rows(results, name))
    return Section(
        f"By {title}",
        _section_finding(rows),
        rows,
        [
            _plot(results, name, axis, "unnecessary", "Ordered without need", SAFE),
            _plot(results, name, axis, "unnecessary", "The same as published", PRINTED),
            _plot(results, name, axis, "missed", "Causal pairs missed", (*SAFE, *PRINTED)),
        ],
    )


def _section_finding(rows: list[Row]) -> str:
    lost = [row for row in rows if row.quantity.endswith("missed") and row.ours]
    safe = [row for row in lost if "published" not in row.quantity]
    if not lost:
        return "No rule misses a pair here."
    worst = max(lost, key=lambda row: row.ours)
    return (
        f"Safe rules miss {'nothing' if not safe else 'pairs'}. The most that is missed: "
        f"{worst.ours:.2g} pairs an event by {worst.quantity.removesuffix(' missed')}, "
        f"{worst.condition}."
    )


def _rows(results: Results, name: str) -> Iterator[Row]:
    for value in _values(results, name):
        for label, rule in (*SAFE, *PRINTED):
            for what in ("unnecessary", "missed"):
                found = _of(results, f"{rule}.{what}", **{name: value})
                if found is not None:
                    condition = f"{AXES[name][1]} {value:,}"
                    yield Row("ours", f"{label} {what}", condition, None, found, "pairs an event")
        total = part(results, "topic_causal", "events", **{**USUAL, name: value})
        if total is not None:
            condition = f"{AXES[name][1]} {value:,}"
            yield Row("ours", "TV_VT ordered", condition, None, total, "pairs an event")


def _values(results: Results, name: str) -> list[Any]:
    return results.places(name, **{key: value for key, value in USUAL.items() if key != name})


def _plot(
    results: Results,
    name: str,
    axis: str,
    what: str,
    title: str,
    rules: tuple[tuple[str, str], ...],
) -> Plot:
    words = title.lower().replace(" ", "-")
    return Plot(
        f"topics-{name}-{words}",
        f"{title}, by {axis}",
        axis,
        "pairs an event at a peer",
        [_line(results, label, f"{rule}.{what}", name) for label, rule in rules],
        "Error bars: standard deviation over seeds.",
        x_log=name == "events",
    )


def _line(results: Results, label: str, figure: str, name: str) -> Series:
    """Return a line of pairs an event, seed by seed."""
    xs, ys, spreads = [], [], []
    for value in _values(results, name):
        where = {**USUAL, name: value}
        shares = []
        for run in results.where(**where):
            figures = results.figures(run)
            if figures.get("events"):
                shares.append(figures[figure] / figures["events"])
        if shares:
            mean = sum(shares) / len(shares)
            spread = sum((one - mean) ** 2 for one in shares) / max(1, len(shares) - 1)
            xs.append(float(value))
            ys.append(mean)
            spreads.append(spread**0.5)
    return Series(label, xs, ys, spreads)
