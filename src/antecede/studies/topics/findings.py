"""What the runs of the study of Nakayama 2017 show; its one figure and its least delays are
lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from antecede.studies.frame.compare_paper import listed, unmet
from antecede.studies.frame.findings import Claim, Findings, Plot, Row, Section, Series, filled
from antecede.studies.frame.results import Results
from antecede.studies.pairs import part

USUAL: Mapping[str, Any] = {"events": 2000, "topics": 10, "most": 5, "least": 0.5}
"""What does not vary: events, h, xt, and the least delay as a part of the largest."""
SENT_TO = {"everybody": "every peer", "targets": "targets only"}
"""Whom events are sent to: section 3 of the text, and its section 4."""
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
    'whom an event is sent to: section 3 says that it "is delivered to every peer", section 4 '
    '"to only target peers"; what arrives decides what is causal and what clocks know, so both '
    "are run, over the same events and delays. A peer counts pairs with a topic in common that it "
    "subscribes to, in both",
    "Figure 1 is of totals: pairs at all peers together; beside them pairs an event received",
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
    sections = filled(
        (_claim(results), _totals(results), *(_section(results, *one) for one in _places()))
    )
    finding = _finding(results)
    return Findings(
        study="topics",
        title="Topic-based order: what is ordered without need, and what is missed",
        source="Nakayama 2017, section 3",
        finding=finding or "No run gave figures for the usual case.",
        reading=READING,
        conditions=[
            "6 peers in 2 subgroups; largest delay 16 in the LAN, 160 in the WAN, epsilon 4, "
            "150,000 time units; delays uniform; publishers and times random",
            "usual: 2,000 events, h = 10, xt = 5, least delay half of the largest; one of them "
            "varied at a time" + (", a few values in this quick run" if quick else ""),
            results.seeds(),
        ],
        sections=sections,
        not_reached=[
            *unmet(sections),
            "Figure 1 cannot be set beside ours: its picture and its least delays are lost. Only "
            'its sentence can be checked: "the UO number of event messages in the HTBC protocol is '
            'a little smaller than the TV_PT protocol"',
        ],
        reads=READS if finding else (),
    )


def _places() -> list[tuple[str, str]]:
    return [(name, sent_to) for name in AXES for sent_to in SENT_TO]


READS = (
    "events",
    "htbc.missed",
    "htbc:published.missed",
    "*.unnecessary",
)


def _of(results: Results, figure: str, sent_to: str, **changed: Any) -> float | None:
    return part(results, figure, "events", **{**USUAL, "sent_to": sent_to, **changed})


def _total(results: Results, figure: str, sent_to: str, events: int) -> float | None:
    found = results.values(figure, **{**USUAL, "sent_to": sent_to, "events": events})
    return sum(found) if found else None


def _finding(results: Results) -> str:
    words = [said for sent_to in SENT_TO if (said := _usual_said(results, sent_to))]
    return " ".join(words)


def _usual_said(results: Results, sent_to: str) -> str:
    """Return what holds for the usual case under one reading of whom events are sent to."""
    names = ("htbc:published", "tv-pt:published", "htbc", "tv-pt", "tv-lt", "tv")
    found = [_of(results, f"{name}.unnecessary", sent_to) for name in names]
    lost = [_of(results, f"{name}.missed", sent_to) for name in ("htbc", "htbc:published")]
    if any(value is None for value in (*found, *lost)):
        return ""
    printed, printed_pt, htbc, tv_pt, tv_lt, tv = (value or 0.0 for value in found)
    missed, early = (value or 0.0 for value in lost)
    return (
        f"Sent to {SENT_TO[sent_to]}: without need the safe rules order {htbc:.3f} (HTBC), "
        f"{tv_pt:.3f} (TV_PT), {tv_lt:.3f} (TV_LT) and {tv:.3f} (TV) pairs an event, and HTBC "
        f"misses {f'{missed:.3f}' if missed else 'none'}; as published HTBC orders {printed:.3f}, "
        f"TV_PT {printed_pt:.3f}, and HTBC misses {f'{early:.3f}' if early else 'none'}."
    )


def _claim(results: Results) -> Section:
    rows = [
        Row(
            "Figure 1",
            f"HTBC unnecessary by TV_PT unnecessary, {words}",
            f"{events:,} events, to {to}",
            None,
            above / below,
            "times",
        )
        for sent_to, to in SENT_TO.items()
        for words, suffix in PRINTS.items()
        for events in results.places("events", sent_to=sent_to)
        if (above := _total(results, f"htbc{suffix}.unnecessary", sent_to, events)) is not None
        and (below := _total(results, f"tv-pt{suffix}.unnecessary", sent_to, events))
    ]
    smaller = sum(1 for row in rows if row.ours < 1)
    larger = sum(1 for row in rows if row.ours > 1)
    reads = tuple(
        f"{rule}{s}.unnecessary" for rule in ("htbc", "tv-pt") for s in ("", ":published")
    )
    return Section(
        '"HTBC is a little smaller than TV_PT"',
        f"The unnecessary pairs of HTBC are fewer in {smaller} of {len(rows)} cases and more in "
        f"{larger}."
        if rows
        else "",
        rows,
        reads=reads if rows else (),
        claims=[_smaller(rows, to, words) for to in SENT_TO.values() for words in PRINTS],
    )


PRINTS = {"safe": "", "as published": ":published"}


def _smaller(rows: list[Row], to: str, words: str) -> Claim:
    """Hold the text's one sentence about its figure against the rows of a reading."""
    own = [r.ours for r in rows if r.condition.endswith(f"to {to}") and r.quantity.endswith(words)]
    return Claim(
        '"the UO number of event messages in the HTBC protocol is a little smaller than the TV_PT '
        f'protocol": {words}, sent to {to}',
        "section 3",
        f"{min(own):.3f} to {max(own):.3f} times TV_PT's" if own else "no run gave figures",
        all(one < 1 for one in own) if own else None,
        tuple(f"{rule}{PRINTS[words]}.unnecessary" for rule in ("htbc", "tv-pt")),
    )


def _totals(results: Results) -> Section | None:
    """Return the totals of Figure 1, by the number of events, under both readings."""
    lines = []
    for events in results.places("events", **_but("events")):
        for label, rule in (*SAFE, *PRINTED):
            cells = []
            for sent_to in SENT_TO:
                where = {**USUAL, "events": events, "sent_to": sent_to}
                for what in ("unnecessary", "missed"):
                    mean = results.spread(f"{rule}.{what}", **where)
                    cells.append("-" if mean is None else f"{mean.mean:,.0f}")
            lines.append((f"{events:,}", label, *cells))
    if not lines:
        return None
    return Section(
        "Totals, as in Figure 1: sent to every peer, and to targets only",
        _fewer(results),
        columns=(
            "events",
            "rule",
            *(f"{to}: {what}" for to in SENT_TO.values() for what in ("without need", "missed")),
        ),
        table=lines,
        plots=[_total_plot(results, sent_to) for sent_to in SENT_TO],
        about="Pairs at all six peers together, mean over the seeds.",
        reads=tuple(f"{rule}.unnecessary" for _, rule in SAFE) if _fewer(results) else (),
        claims=[_missed_total(results, sent_to) for sent_to in SENT_TO],
    )


def _fewer(results: Results) -> str:
    """Tell how many times fewer unnecessary pairs there are when every peer gets every event."""
    words = []
    for label, rule in SAFE:
        every, targets = (
            results.spread(f"{rule}.unnecessary", **{**USUAL, "sent_to": one}) for one in SENT_TO
        )
        if every and targets:
            words.append(f"{label} {every.mean:,.0f} and {targets.mean:,.0f}")
    if not words:
        return ""
    return (
        f"Unnecessary pairs in the usual case ({USUAL['events']:,} events) sent to every peer, "
        f"and to targets only: {listed(words)}."
    )


def _missed_total(results: Results, sent_to: str) -> Claim:
    """Hold that the safe rules miss nothing against all runs of a reading."""
    found = {label: sum(results.values(f"{rule}.missed", sent_to=sent_to)) for label, rule in SAFE}
    there = results.where(sent_to=sent_to)
    return Claim(
        f"the safe rules miss no causal pair, sent to {SENT_TO[sent_to]}",
        "ours",
        listed([f"{label} {count:,.0f}" for label, count in found.items()]) + " missed in all runs"
        if there
        else "no run gave figures",
        not any(found.values()) if there else None,
        tuple(f"{rule}.missed" for _, rule in SAFE),
    )


def _section(results: Results, name: str, sent_to: str) -> Section:
    title, axis = AXES[name]
    rows = list(_rows(results, name, sent_to))
    return Section(
        f"By {title}, sent to {SENT_TO[sent_to]}",
        _section_finding(rows),
        rows,
        [
            _plot(results, name, sent_to, axis, "unnecessary", "Ordered without need", SAFE),
            _plot(results, name, sent_to, axis, "unnecessary", "The same as published", PRINTED),
            _plot(results, name, sent_to, axis, "missed", "Causal pairs missed", (*SAFE, *PRINTED)),
        ],
        reads=(*(f"{rule}.missed" for _, rule in (*SAFE, *PRINTED)), "events") if rows else (),
    )


def _section_finding(rows: list[Row]) -> str:
    lost = [row for row in rows if row.quantity.endswith("missed")]
    if not lost:
        return ""
    safe = max((row.ours for row in lost if "published" not in row.quantity), default=0.0)
    worst = max(lost, key=lambda row: row.ours)
    if not worst.ours:
        return "No rule misses a pair here."
    return (
        f"Safe rules miss {f'up to {safe:.2g} pairs an event' if safe else 'nothing'}. The most "
        f"that is missed: {worst.ours:.2g} pairs an event by "
        f"{worst.quantity.removesuffix(' missed')}, {worst.condition}."
    )


def _rows(results: Results, name: str, sent_to: str) -> Iterator[Row]:
    for value in _values(results, name, sent_to):
        condition = f"{AXES[name][1]} {value:,}"
        for label, rule in (*SAFE, *PRINTED):
            for what in ("unnecessary", "missed"):
                found = _of(results, f"{rule}.{what}", sent_to, **{name: value})
                if found is not None:
                    yield Row("ours", f"{label} {what}", condition, None, found, "pairs an event")
        total = _of(results, "topic_causal", sent_to, **{name: value})
        if total is not None:
            yield Row("ours", "TV_VT ordered", condition, None, total, "pairs an event")


def _but(name: str) -> dict[str, Any]:
    return {key: value for key, value in USUAL.items() if key != name}


def _values(results: Results, name: str, sent_to: str) -> list[Any]:
    return results.places(name, sent_to=sent_to, **_but(name))


def _total_plot(results: Results, sent_to: str) -> Plot:
    return Plot(
        f"topics-total-{sent_to}",
        f"Total number of unnecessarily ordered pairs, sent to {SENT_TO[sent_to]}",
        "events",
        "pairs at all peers",
        [
            results.line(label, f"{rule}.unnecessary", "events", sent_to=sent_to, **_but("events"))
            for label, rule in (*SAFE, *PRINTED)
        ],
        "What Figure 1 of Nakayama 2017 shows. Error bars: standard deviation over seeds.",
        x_log=True,
    )


def _plot(
    results: Results,
    name: str,
    sent_to: str,
    axis: str,
    what: str,
    title: str,
    rules: tuple[tuple[str, str], ...],
) -> Plot:
    words = title.lower().replace(" ", "-")
    return Plot(
        f"topics-{name}-{sent_to}-{words}",
        f"{title}, by {axis}, sent to {SENT_TO[sent_to]}",
        axis,
        "pairs an event at a peer",
        [_line(results, label, f"{rule}.{what}", name, sent_to) for label, rule in rules],
        "Error bars: standard deviation over seeds.",
        x_log=name == "events",
    )


def _line(results: Results, label: str, figure: str, name: str, sent_to: str) -> Series:
    """Return a line of pairs an event, seed by seed."""
    xs, ys, spreads = [], [], []
    for value in _values(results, name, sent_to):
        where = {**USUAL, "sent_to": sent_to, name: value}
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
