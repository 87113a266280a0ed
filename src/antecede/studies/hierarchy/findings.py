"""What the runs of the study of Evropeytsev et al. 2016 show, beside the figures of its text."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from itertools import chain

from antecede.studies.frame.compare_paper import beyond, compared, listed, tally, unmet, within
from antecede.studies.frame.findings import Claim, Findings, Plot, Row, Section, filled
from antecede.studies.frame.results import Results
from antecede.studies.hierarchy.paper import (
    DELAYS,
    FIGURES,
    LARGEST,
    QUANTITIES,
    TIMES_LOWER,
    Stated,
    own_times,
)
from antecede.studies.hierarchy.rates import all_rates, last_section
from antecede.studies.hierarchy.sections import (
    group_section,
    pruning_section,
    validation_section,
    wire_section,
)

UNIT = {"overhead": "bytes a message", "storage": "bytes a peer"}
OVERHEADS = ("internal overhead", "external overhead", "idr overhead", "ds overhead")
FIGURE = {stated.quantity: stated.figure for stated in QUANTITIES}
OWN = tuple(figure for name, figure in FIGURE.items() if not name.startswith("ds"))
"""What the tallies read: all quantities but those of DS."""
STORAGES = ("internal storage", "external storage", "idr storage")
READING = (
    "sigma is a quarter of the interval's width (N(80, 5) for 70 to 90 ms); the text's word, "
    "variance, is the other reading, shown below",
    "delays are drawn for each message and receiver, channels are not FIFO",
    "integers 4 bytes, a pair 8, a bit vector ceil((last set - first set + 1) / 8); headers (Id, "
    "SN, Last) are not counted",
    "internal overhead: mean DV of what the super peer sends into the group; external overhead: "
    "over all messages in the external group, those of the super peer too",
    "IDR is simulated with the super peer transparent, at all peers; its figures are means over "
    "internal and external peers; storage is averaged over time",
    "DS: each external peer as a station with one peer, whole sequences as pairs of 8 bytes",
    'pruning of TT is the safe one; the published one is selectable (`pruning = "published"`) and '
    "shown below",
)


def findings(results: Results, quick: bool) -> Findings:
    """Return the page of the study."""
    grids = [_grid_section(results, delay) for delay in DELAYS]
    rates = all_rates(results)
    rest = (
        last_section(results),
        validation_section(results),
        _ds_section(results),
        _passive_section(results),
        group_section(results),
        pruning_section(results),
        wire_section(results),
        _literal_section(results),
    )
    rows = list(chain.from_iterable(section.rows for section in grids))
    flat = list(chain.from_iterable(section.rows for section in rates))
    own = _own(rows)
    sections = filled((*grids, *rates, *rest))
    return Findings(
        study="hierarchy",
        title="The hierarchical protocol beside IDR and dependency sequences",
        source="Evropeytsev et al. 2016, section 3.2, Figures 4 to 9",
        finding=_finding(own, flat),
        reading=READING,
        conditions=_conditions(results, quick),
        sections=sections,
        not_reached=[*unmet(sections), *beyond(row for one in sections for row in one.rows)],
        reads=OWN if own or flat else (),
    )


def _finding(own: Sequence[Row], flat: Sequence[Row]) -> str:
    if not (compared(own) or compared(flat)):
        return "No run gave figures."
    return (
        f"Internal, external and IDR, Figures 4 to 6: {tally(own)}. Fixed total rates, Figures 7 "
        f"to 9: {tally(flat)}."
    )


def _conditions(results: Results, quick: bool) -> list[str]:
    return [
        "one internal and one external group of the same size, one super peer; every peer sends "
        "every N(80, 5) ms clipped to 70 to 90",
        "peers: 50, then every hundred up to 900, 500 and 400 by delay"
        + (", of which this quick run takes a few" if quick else "")
        + " (the source's grid is lost)",
        f"{results.seeds(kind='grid')}; figures count from 0.4, 1.5 and 2.5 s of simulated "
        f"time, for {0.3 if quick else 1.0} s",
    ]


def _grid_section(results: Results, delay: str) -> Section:
    rows = [row for stated in QUANTITIES for row in _stated_rows(results, delay, stated)]
    rows += _times_lower(results, delay)
    own = _own(rows)
    return Section(
        f"{FIGURES[delay]}: delays {delay}",
        f"{tally(own).capitalize()} (DS aside)." if own else "",
        rows,
        (
            _grid_plot(results, delay, "overhead", OVERHEADS),
            _grid_plot(results, delay, "storage", STORAGES),
        ),
        reads=OWN if own else (),
        claims=list(_grid_claims(results, delay)),
    )


def _grid_claims(results: Results, delay: str) -> Iterator[Claim]:
    where = f"text to {FIGURES[delay]}"
    if delay != "50-550 ms":  # of which the text says "similar"
        yield _lower(results, delay, where)
    if delay == "0-50 ms":
        yield _linear(results, delay, where)


def _lower(results: Results, delay: str, where: str) -> Claim:
    """Hold internal < external < IDR and DS against the figures, at every number of peers."""
    names = ("internal overhead", "external overhead", "idr overhead", "ds overhead")
    lines = [results.line("", FIGURE[name], "peers", kind="grid", delay=delay) for name in names]
    at = [dict(zip(line.x, line.y, strict=True)) for line in lines]
    places = sorted(set.intersection(*(set(one) for one in at)))
    broken = [
        f"{peers:,.0f}"
        for peers in places
        if not at[0][peers] < at[1][peers] < min(at[2][peers], at[3][peers])
    ]
    said = f"so at {len(places) - len(broken)} of {len(places)} numbers of peers"
    return Claim(
        "overhead of an internal group is lower than of an external one, and that lower than of "
        "IDR and DS",
        where,
        (said + (f", not at {listed(broken)}" if broken else ""))
        if places
        else "no run gave figures",
        not broken if places else None,
        [FIGURE[name] for name in names],
    )


LINEAR = 0.99
"""Part of the variance that a line has to explain for growth to be called linear."""


def _linear(results: Results, delay: str, where: str) -> Claim:
    fits = {}
    for name, figure in FIGURE.items():
        line = results.line("", figure, "peers", kind="grid", delay=delay)
        if len(line.x) > 2 and len(set(line.y)) > 1:
            fits[name] = statistics.correlation(line.x, line.y) ** 2
    least = min(fits, key=lambda name: fits[name], default=None)
    return Claim(
        f"all overheads grow linearly (here: a line explains {LINEAR:.0%} of the variance)",
        where,
        f"a line explains {fits[least]:.2%} or more ({least})" if least else "no run gave figures",
        min(fits.values()) >= LINEAR if fits else None,
        tuple(FIGURE.values()),
    )


def _ds_section(results: Results) -> Section | None:
    """Return what a DS message carries for each external peer, beside the published slopes."""
    slopes = {
        delay: results.slope(FIGURE["ds overhead"], "peers", kind="grid", delay=delay)
        for delay in DELAYS
    }
    there = {delay: 2 * slope for delay, slope in slopes.items() if slope is not None}
    if not there:
        return None
    stated = next(one for one in QUANTITIES if one.quantity == "ds overhead")
    published = {
        delay: 2 * (slope or 0.0) for delay, slope in zip(DELAYS, stated.slopes, strict=True)
    }
    lines = [
        (delay, f"{published[delay]:.2f}", f"{ours:.2f}", f"{published[delay] - ours:.2f}")
        for delay, ours in there.items()
    ]
    return Section(
        "Dependency sequences",
        "Ours carries "
        + listed([f"{ours:.2f}" for ours in there.values()])
        + " bytes for each external peer; the published slopes, doubled, have "
        + listed([f"{published[delay] - ours:.2f} more" for delay, ours in there.items()])
        + ".",
        columns=("delays", "published, bytes an external peer", "ours", "difference"),
        table=lines,
        about="Half of the peers are external, so a slope over all peers is half of that over "
        "external ones. A whole sequence is a pair of 8 bytes. Other readings that were tried are "
        "told in docs/protocols/ds.md.",
        reads=(FIGURE["ds overhead"],),
        claims=[
            Claim(
                "the published overhead of DS is reached (here: nine tenths of each slope)",
                "Figures 4 to 6",
                listed([f"{ours / published[delay]:.2f} times" for delay, ours in there.items()])
                + " of the published slopes",
                all(ours / published[delay] >= 0.9 for delay, ours in there.items()),
                (FIGURE["ds overhead"],),
            )
        ],
    )


def _own(rows: list[Row]) -> list[Row]:
    """Return the rows but those of DS."""
    return [row for row in rows if not row.quantity.startswith("ds")]


def _stated_rows(results: Results, delay: str, stated: Stated) -> Iterator[Row]:
    place = list(DELAYS).index(delay)
    unit = UNIT[stated.quantity.split()[-1]]
    peers = LARGEST[delay]
    at = results.spread(stated.figure, kind="grid", delay=delay, peers=peers)
    if at is not None:
        yield Row(
            FIGURES[delay],
            stated.quantity,
            f"{delay}, {peers} peers",
            stated.values[place],
            at.mean,
            unit,
        )
    slope = results.slope(stated.figure, "peers", kind="grid", delay=delay)
    if slope is not None:
        yield Row(
            FIGURES[delay],
            f"{stated.quantity} slope",
            delay,
            stated.slopes[place],
            slope,
            f"{unit} a peer",
        )


def _times_lower(results: Results, delay: str) -> Iterator[Row]:
    """Yield how many times lower; where the text's own values say otherwise, beside these too."""
    for more, less, times in TIMES_LOWER[delay]:
        where = {"kind": "grid", "delay": delay, "peers": LARGEST[delay]}
        above = results.spread(FIGURE[more], **where)
        below = results.spread(FIGURE[less], **where)
        if above is None or below is None or not below.mean:
            continue
        own = own_times(more, less, delay)
        row = Row(
            f"{FIGURES[delay]}, text",
            f"{more} by {less}",
            f"{delay}, {LARGEST[delay]} peers",
            times,
            above.mean / below.mean,
            "times",
        )
        if abs(own / times - 1) < CONTRADICTS:
            yield row
            continue
        yield row._replace(note=f"the text's own values give {own:.3g}: it contradicts itself")
        yield row._replace(figure=f"{FIGURES[delay]}, text's own values", paper=round(own, 4))


CONTRADICTS = 0.05
"""Part by which "times lower" and the values that it is said of may differ by rounding."""


def _grid_plot(results: Results, delay: str, what: str, quantities: tuple[str, ...]) -> Plot:
    place = list(DELAYS).index(delay)
    series = []
    for stated in QUANTITIES:
        if stated.quantity not in quantities:
            continue
        value = stated.values[place]
        paper = [] if value is None else [(float(LARGEST[delay]), float(value))]
        label = stated.quantity.removesuffix(f" {what}")
        series.append(
            results.line(label, stated.figure, "peers", paper=paper, kind="grid", delay=delay)
        )
    return Plot(
        f"hierarchy-{what}-{delay.replace(' ms', '')}",
        f"{what.capitalize()}, delays {delay}",
        "peers",
        UNIT[what],
        series,
        f"{FIGURES[delay]} of Evropeytsev et al. 2016. Error bars: standard deviation over seeds.",
    )


def _literal_section(results: Results) -> Section | None:
    rows = []
    for stated in QUANTITIES:
        at = results.spread(stated.figure, kind="literal")
        if at is not None and not stated.quantity.startswith("ds"):
            unit = UNIT[stated.quantity.split()[-1]]
            condition = "0-50 ms, 900 peers, variance a quarter"
            rows.append(
                Row("Figure 4", stated.quantity, condition, stated.values[0], at.mean, unit)
            )
    if not rows:
        return None
    ratios = [row.ratio or 0.0 for row in rows]
    return Section(
        'The other reading: "variance equal to one fourth of the interval"',
        f"With the text taken literally {within(rows, 0.10)} of {len(rows)} figures come within "
        f"10 %; they are {min(ratios):.2f} to {max(ratios):.2f} times the paper's.",
        columns=("quantity, 0-50 ms, 900 peers", "paper", "taken literally", "ratio", "unit"),
        table=[
            (row.quantity, f"{row.paper:,.0f}", f"{row.ours:,.0f}", f"{row.ratio:.2f}", row.unit)
            for row in rows
        ],
        about='Chosen with `delay = "variance 0-50 ms"` in a scenario.',
        reads=OWN,
    )


def _passive_section(results: Results) -> Section:
    rows = []
    for delay in DELAYS:
        for quantity in ("internal overhead", "external overhead", "idr overhead"):
            figure = quantity.replace(" overhead", ".overhead_bytes")
            all_talk = results.spread(figure, kind="passive", delay=delay, silent=0)
            some = results.spread(figure, kind="passive", delay=delay, silent=200)
            if all_talk is not None and some is not None and all_talk.mean:
                rows.append(
                    Row(
                        "Scalability analysis, text",
                        f"{quantity}, 300 peers of which 200 silent, by 100 peers",
                        delay,
                        1.0,
                        some.mean / all_talk.mean,
                        "times",
                    )
                )
    return Section(
        "Passive receivers",
        _passive_finding(rows),
        rows,
        reads=PASSIVE if rows else (),
        claims=[
            Claim(
                '"a system with 300 peers where 200 peers are passive receivers" costs the same '
                "as one of 100 peers (here: within 6 %)",
                "Scalability Analysis",
                _passive_finding(rows) or "no run gave figures",
                within(rows, 0.06) == len(rows) if rows else None,
                PASSIVE,
            )
        ],
    )


PASSIVE = ("internal.overhead_bytes", "external.overhead_bytes", "idr.overhead_bytes")


def _passive_finding(rows: list[Row]) -> str:
    if not rows:
        return ""
    ratios = [row.ours for row in rows]
    return (
        f"With the silent ones a message costs {min(ratios):.2f} to {max(ratios):.2f} times as "
        f"much: {within(rows, 0.06)} of {len(rows)} ratios are within 6 %."
    )
