"""What the runs of the study of Nakayama 2017 show; its one figure and its least delays are
lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from antecede.formatting import counted
from antecede.report.values import Claim, Findings, Plot, Row, Section, Series, filled
from antecede.studies.frame.claims import Asked, all_of, claim, figure_or_dash, page, rows
from antecede.studies.frame.compare_paper import listed
from antecede.studies.frame.results import Results

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
    to = {sent_to: results.of(sent_to=sent_to) for sent_to in SENT_TO}
    by_axis = (_section(found, name, one) for name in AXES for one, found in to.items())
    sections = filled((_claim(to), _totals(to), *by_axis))
    finding = " ".join(said for one, found in to.items() if (said := _usual_said(found, one)))
    return page(
        finding,
        READS,
        otherwise="No run gave figures for the usual case.",
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
            "Figure 1 cannot be set beside ours: its picture and its least delays are lost. Only "
            'its sentence can be checked: "the UO number of event messages in the HTBC protocol is '
            'a little smaller than the TV_PT protocol"',
        ],
    )


READS = (
    "events",
    "htbc.missed",
    "htbc:published.missed",
    "*.unnecessary",
)


USUAL_SHARES = tuple(
    f"{rule}.unnecessary"
    for rule in ("htbc:published", "tv-pt:published", "htbc", "tv-pt", "tv-lt", "tv")
)
"""What the headline tells of the usual case, beside what is missed."""


def _usual_said(results: Results, sent_to: str) -> str:
    """Return what holds for the usual case under one reading of whom events are sent to."""
    names = (*USUAL_SHARES, "htbc.missed", "htbc:published.missed")
    shares = all_of(results.share(name, "events", **USUAL) for name in names)
    if not shares:
        return ""
    printed, printed_pt, htbc, tv_pt, tv_lt, tv, missed, early = shares
    return (
        f"Sent to {SENT_TO[sent_to]}: without need the safe rules order {htbc:.3f} (HTBC), "
        f"{tv_pt:.3f} (TV_PT), {tv_lt:.3f} (TV_LT) and {tv:.3f} (TV) pairs an event, and HTBC "
        f"misses {f'{missed:.3f}' if missed else 'none'}; as published HTBC orders {printed:.3f}, "
        f"TV_PT {printed_pt:.3f}, and HTBC misses {f'{early:.3f}' if early else 'none'}, at least "
        f"delays of {USUAL['least']:g} of the largest{_missed_below(results)}."
    )


def _missed_below(results: Results) -> str:
    """Return the most that HTBC as published misses at other least delays, as a clause."""
    shares = [
        (share, least)
        for least, at in results.along("least", **USUAL).by("least")
        if (share := at.share("htbc:published.missed", "events"))
    ]
    if not shares:
        return ""
    share, least = max(shares)
    return f"; it misses up to {share:.3f} an event at least delays of {least:g} of the largest"


PRINTS = {"safe": "", "as published": ":published"}


def _claim(to: Mapping[str, Results]) -> Section:
    found = rows(
        Asked(
            f"HTBC unnecessary by TV_PT unnecessary, {words}",
            f"{events:,} events, to {SENT_TO[sent_to]}",
            there.share(*_compared(suffix)),
            "times",
            where="Figure 1",
        )
        for sent_to, results in to.items()
        for words, suffix in PRINTS.items()
        for events, there in results.along("events", **USUAL).by("events")
    )
    smaller, larger = sum(row.ours < 1 for row in found), sum(row.ours > 1 for row in found)
    reads = tuple(f"{rule}{s}.unnecessary" for rule in ("htbc", "tv-pt") for s in PRINTS.values())
    return Section(
        '"HTBC is a little smaller than TV_PT"',
        f"The unnecessary pairs of HTBC are fewer in {smaller} of {counted(len(found), 'case')} "
        f"and more in {larger}."
        if found
        else "",
        found,
        reads=reads,
        claims=[_smaller(found, to, words) for to in SENT_TO.values() for words in PRINTS],
    )


def _compared(suffix: str) -> tuple[str, str]:
    return f"htbc{suffix}.unnecessary", f"tv-pt{suffix}.unnecessary"


def _smaller(found: Sequence[Row], to: str, words: str) -> Claim:
    """Hold the text's one sentence about its figure against the rows of a reading.

    Equal counts in some cases do not contradict it; a larger count does.
    """
    own = [r.ours for r in found if r.condition.endswith(f"to {to}") and r.quantity.endswith(words)]
    return claim(
        '"the UO number of event messages in the HTBC protocol is a little smaller than the TV_PT '
        f'protocol": {words}, sent to {to}',
        "section 3",
        _compared(PRINTS[words]),
        (f"{min(own):.4f} to {max(own):.4f} times TV_PT's", max(own) <= 1 and min(own) < 1)
        if own
        else None,
    )


def _totals(to: Mapping[str, Results]) -> Section:
    """Return the totals of Figure 1, by the number of events, under both readings."""
    by_events = {
        sent_to: dict(results.along("events", **USUAL).by("events"))
        for sent_to, results in to.items()
    }
    return Section(
        "Totals, as in Figure 1: sent to every peer, and to targets only",
        _fewer(to),
        columns=(
            "events",
            "rule",
            *(f"{to}: {what}" for to in SENT_TO.values() for what in ("without need", "missed")),
        ),
        table=[
            (
                f"{events:,}",
                label,
                *(
                    figure_or_dash(at[events].mean(f"{rule}.{what}") if events in at else None)
                    for at in by_events.values()
                    for what in ("unnecessary", "missed")
                ),
            )
            for events in sorted({events for at in by_events.values() for events in at})
            for label, rule in (*SAFE, *PRINTED)
        ],
        plots=[_total_plot(results, sent_to) for sent_to, results in to.items()],
        about="Pairs at all six peers together, mean over the seeds.",
        reads=tuple(f"{rule}.unnecessary" for _, rule in SAFE),
        claims=[_missed_total(results, sent_to) for sent_to, results in to.items()],
    )


def _fewer(to: Mapping[str, Results]) -> str:
    """Tell how many times fewer unnecessary pairs there are when every peer gets every event."""
    words = [
        f"{label} {means[0]:,.0f} and {means[1]:,.0f}"
        for label, rule in SAFE
        if (means := all_of(at.mean(f"{rule}.unnecessary", **USUAL) for at in to.values()))
    ]
    if not words:
        return ""
    return (
        f"Unnecessary pairs in the usual case ({USUAL['events']:,} events) sent to every peer, "
        f"and to targets only: {listed(words)}."
    )


def _missed_total(results: Results, sent_to: str) -> Claim:
    """Hold that the safe rules miss nothing against all runs of a reading."""
    found = {label: sum(results.values(f"{rule}.missed")) for label, rule in SAFE}
    said = listed([f"{label} {count:,.0f}" for label, count in found.items()])
    return claim(
        f"the safe rules miss no causal pair, sent to {SENT_TO[sent_to]}",
        "ours",
        tuple(f"{rule}.missed" for _, rule in SAFE),
        (f"{said} missed in all runs", not any(found.values())) if results.runs else None,
    )


DRAWN = (
    ("unnecessary", "Ordered without need", SAFE),
    ("unnecessary", "The same as published", PRINTED),
    ("missed", "Causal pairs missed", (*SAFE, *PRINTED)),
)
"""(what is counted, title, rules) of the plots over an axis."""
COUNTED = (
    *(
        (f"{n} {what}", f"{r}.{what}")
        for n, r in (*SAFE, *PRINTED)
        for what in ("unnecessary", "missed")
    ),
    ("TV_VT ordered", "topic_causal"),
)
"""(quantity, figure) of the rows over an axis."""


def _section(results: Results, name: str, sent_to: str) -> Section:
    title, axis = AXES[name]
    varied = results.along(name, **USUAL).by(name)
    found = rows(
        Asked(quantity, f"{axis} {value:,}", there.share(figure, "events"), "pairs an event")
        for value, there in varied
        for quantity, figure in COUNTED
    )
    plots = [
        Plot(
            f"topics-{name}-{sent_to}-{words.lower().replace(' ', '-')}",
            f"{words}, by {axis}, sent to {SENT_TO[sent_to]}",
            axis,
            "pairs an event at a peer",
            [_line(varied, label, f"{rule}.{what}") for label, rule in rules],
            "Error bars: standard deviation over seeds.",
            x_log=name == "events",
        )
        for what, words, rules in DRAWN
    ]
    return Section(
        f"By {title}, sent to {SENT_TO[sent_to]}",
        _section_finding(found),
        found,
        plots,
        reads=(*(f"{rule}.missed" for _, rule in (*SAFE, *PRINTED)), "events"),
    )


def _section_finding(found: Sequence[Row]) -> str:
    lost = [row for row in found if row.quantity.endswith("missed")]
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


def _total_plot(results: Results, sent_to: str) -> Plot:
    usual = results.along("events", **USUAL)
    return Plot(
        f"topics-total-{sent_to}",
        f"Total number of unnecessarily ordered pairs, sent to {SENT_TO[sent_to]}",
        "events",
        "pairs at all peers",
        [usual.line(label, f"{rule}.unnecessary", "events") for label, rule in (*SAFE, *PRINTED)],
        "What Figure 1 of Nakayama 2017 shows. Error bars: standard deviation over seeds.",
        x_log=True,
    )


def _line(varied: Sequence[tuple[Any, Results]], label: str, figure: str) -> Series:
    """Return a line of pairs an event, seed by seed."""
    xs, ys, spreads = [], [], []
    for value, there in varied:
        by_seed = [seed.share(figure, "events") for _, seed in there.by("seed")]
        shares = [share for share in by_seed if share is not None]
        if shares:
            mean = sum(shares) / len(shares)
            spread = sum((one - mean) ** 2 for one in shares) / max(1, len(shares) - 1)
            xs.append(float(value))
            ys.append(mean)
            spreads.append(spread**0.5)
    return Series(label, xs, ys, spreads)
