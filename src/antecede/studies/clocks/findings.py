"""What the runs of the study of Tsuneizumi et al. show."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from antecede.formatting import counted
from antecede.report.values import Claim, Findings, Plot, Section, Series, filled
from antecede.studies.frame.claims import (
    Asked,
    all_of,
    claim,
    figure_or_dash,
    page,
    rows,
    table,
)
from antecede.studies.frame.compare_paper import deliveries, listed, undelivered
from antecede.studies.frame.results import Results

SHOWN = (
    ("linear", "linear"),
    ("physical", "physical"),
    ("both", "linear-physical"),
    ("both, as published", "linear-physical:published"),
    ("by time of sending", "timestamp"),
)
"""(label, rule) of the plots of what is ordered."""
LOSING = (
    ("linear, as published", "linear:published"),
    ("physical, as published", "physical:published"),
    ("both, as published", "linear-physical:published"),
    ("by time of sending", "timestamp"),
    ("by arrival", "arrival"),
)
"""Rules that miss causal pairs."""
LOADS = (("half", 50.0), ("nearly all", 50.0), ("half", 5.0))
"""Least delay, and messages a second of each member, of the runs that wait."""
SOUND = SHOWN[:3]
ROWS = (*SOUND, *LOSING)
LEAST = {"half": "least delay half of the largest", "nearly all": "least delay 0.9 of the largest"}
READING = (
    "causal is by RECEIPT: what had arrived at the sender (Tsuneizumi et al., section 2)",
    "sound rules: linear time by `max(LT, m.LT) + 1`; physical time orders a pair as far apart as "
    "a causal pair can be, by the LEAST delay of any path less both clocks' accuracy; two "
    "messages of one sender by its own numbers",
    "pairs are counted at every observer and divided by the messages that it received: pairs far "
    "apart in time are ordered by every rule, so parts of all pairs would only tell how long the "
    "run was",
    "physical time alone orders near pairs both ways where the least delay is below 2 lambda: it "
    "is no order then (the protocol refuses such bounds), so its unordered pairs are not shown",
    "as published: the linear clock of 4.1, the theorem of 4.2 and rules 1 and 2 of section 5 with "
    "the largest delay delta; all stay selectable in `antecede meter --rules`",
)


def findings(results: Results, quick: bool) -> Findings:
    """Return the page of the study."""
    pairs = {least: results.of(kind="pairs", least=least) for least in LEAST}
    loads = {load: results.of(kind="waits", least=load[0], rate_hz=load[1]) for load in LOADS}
    sections = filled(
        (
            *(_taken_section(found, least) for least, found in pairs.items()),
            *(_pair_section(found, least) for least, found in pairs.items()),
            *(_wait_section(found, *load) for load, found in loads.items()),
            _byte_section(results.of(kind="bytes")),
            _loss_section(results.of(kind="loss")),
        )
    )
    return page(
        _finding(results),
        (*TAKEN, "linear-physical:published.missed", "wait_ms.mean"),
        reading=READING,
        conditions=[
            "six members, Poisson, 50 messages a second each, accuracy lambda 10 ms, offsets "
            "uniform within it; delays uniform; "
            f"{'4' if quick else '20'} s simulated, {results.seeds(kind='pairs')}",
            "delta, the largest delay, goes from 0.1 to 50 lambda"
            + (" (a few of these in this quick run)" if quick else ""),
            "waits: the same members and delays; from arrival to delivery, from 1 s on, "
            "and null messages as the protocols send them",
        ],
        sections=sections,
    )


TAKEN = (
    "linear.unnecessary",
    "linear-physical.unnecessary",
    "linear-physical.missed",
    "events",
)


class Point(NamedTuple):
    """One largest delay: pairs a message that rules order without need, and that they miss."""

    ratio: float
    linear: float
    both: float
    missed: float
    printed: float
    printed_missed: float

    @property
    def taken(self) -> float:
        """Return the part of linear time's unnecessary pairs that physical time takes away."""
        return 1 - self.both / self.linear if self.linear else 0.0


POINT = (
    "linear.unnecessary",
    "linear-physical.unnecessary",
    "linear-physical.missed",
    "linear-physical:published.unnecessary",
    "linear-physical:published.missed",
)
"""The fields of a `Point` but its place."""


def _points(results: Results) -> list[Point]:
    return [
        Point(ratio, *shares)
        for ratio, there in results.by("ratio")
        if (shares := all_of(there.share(name, "events") for name in POINT))
    ]


def _finding(results: Results) -> str:
    words, every = [], []
    for least, said in LEAST.items():
        points = _points(results.of(kind="pairs", least=least))
        every += points
        if points:
            low, high = min(points, key=_taken), max(points, key=_taken)
            words.append(
                f"from {low.taken:.0%} (delta {low.ratio:g} lambda) to {high.taken:.0%} "
                f"(delta {high.ratio:g} lambda) with a {said}"
            )
    if not words:
        return ""
    missed, printed = max(p.missed for p in every), max(p.printed_missed for p in every)
    return (
        "Of the pairs that linear time orders without need physical time takes away "
        f"{listed(words)}. With least delays it misses "
        f"{_or_none(missed, 'causal pairs a message')}, as published up to "
        f"{printed:.2g}.{_waits_said(results.of(kind='waits'))}"
    )


_taken = attrgetter("taken")


def _or_none(most: float, unit: str, none: str = "none") -> str:
    """Return how many of something there are at most, or a word for none."""
    return f"up to {most:.2g} {unit}" if most else none


def _missed(most: float, unit: str) -> str:
    return f"up to {most:.2g} {unit} are missed" if most else "none is missed"


def _waits_said(results: Results) -> str:
    """Return the longest mean waits, by protocol: what the order costs in time."""
    words = []
    for name, own in results.by("waiting"):
        found = [
            (mean, ratio, rate_hz)
            for ratio, delays in own.by("ratio")
            for rate_hz, rates in delays.by("rate_hz")
            for _, load in rates.by("least")
            if (mean := load.mean("wait_ms.mean")) is not None
        ]
        if found:
            most, ratio, rate_hz = max(found)
            said = f"delays of at most {10 * ratio:g} ms, {rate_hz:g} a second"
            words.append(f"{name}, {most:,.0f} ms ({said})")
    return f" Mean waits reach: {'; '.join(words)}." if words else ""


TAKEN_COLUMNS = {
    "delta by lambda": "{0.ratio:g}",
    "linear, without need, a message": "{0.linear:.3f}",
    "both, without need": "{0.both:.3f}",
    "taken away": "{0.taken:.0%}",
    "both, missed": "{0.missed:.3f}",
    "both as published, without need": "{0.printed:.3f}",
    "both as published, missed": "{0.printed_missed:.3f}",
}
"""Of a `Point`."""


def _taken_section(results: Results, least: str) -> Section | None:
    """Return what physical time takes away, delay by delay, beside what is missed."""
    points = _points(results)
    if not points:
        return None
    low, high = min(points, key=_taken), max(points, key=_taken)
    rising = all(a.taken <= b.taken + 0.02 for a, b in itertools.pairwise(points))
    missed, printed = (max(getattr(p, of) for p in points) for of in ("missed", "printed_missed"))
    line = Series("taken away", [p.ratio for p in points], [p.taken for p in points])
    return Section(
        f"What physical time takes away, {LEAST[least]}",
        f"{low.taken:.0%} at delta {low.ratio:g} lambda, {high.taken:.0%} at {high.ratio:g} "
        "lambda; the most that is missed for it: "
        f"{f'{missed:.2g} causal pairs a message' if missed else 'nothing'}.",
        **table(TAKEN_COLUMNS, points),
        plots=(
            Plot(
                f"clocks-taken-{least.replace(' ', '-')}",
                f"Part of linear time's unnecessary pairs that is taken away, {LEAST[least]}",
                "delta by lambda",
                "part",
                [line],
                x_log=True,
            ),
        ),
        reads=TAKEN,
        claims=[
            claim(
                "the larger delays are beside the clocks' accuracy, the more physical time takes "
                "away",
                "ours",
                (*TAKEN[:2], "events"),
                (
                    listed([f"{p.taken:.0%} at {p.ratio:g}" for p in points]),
                    rising if len(points) > 1 else None,
                ),
            ),
            claim(
                "with least delays linear and physical time together miss no causal pair",
                "ours",
                ("linear-physical.missed", "events"),
                (_missed(missed, "a message"), not missed),
            ),
            claim(
                "rules 1 and 2 order every causal pair",
                "section 5",
                ("linear-physical:published.missed", "events"),
                (f"as published up to {printed:.2g} a message are missed", not printed),
            ),
        ],
    )


PLOTS = (
    ("unnecessary", "Ordered without need", SHOWN),
    ("missed", "Causal pairs missed", LOSING),
    ("concurrent", "Left unordered", (SHOWN[0], SHOWN[2])),
)
"""(what is counted, title, rules)."""


def _pair_section(results: Results, least: str) -> Section | None:
    found = rows(
        Asked(
            f"{label} {what}",
            f"delta {ratio:g} lambda, least {least}",
            there.share(f"{rule}.{what}", "events"),
            "pairs a message",
        )
        for ratio, there in results.by("ratio")
        for label, rule in ROWS
        for what in ("unnecessary", "missed")
    )
    if not found:
        return None
    lost = [row for row in found if row.quantity.endswith(" missed")]
    most = {
        label: max(r.ours for r in lost if r.quantity == f"{label} missed") for label, _ in ROWS
    }
    wrong = max(most[label] for label, _ in SOUND)
    worst = max(lost, key=lambda row: row.ours)
    return Section(
        f"Pairs, {LEAST[least]}",
        f"The sound rules miss {_or_none(wrong, 'pairs a message', 'nothing')}. "
        + (
            "No rule misses a pair."
            if not worst.ours
            else f"The most that is missed: {worst.ours:.2g} causal pairs a message, "
            f"{worst.quantity.removesuffix(' missed')}, {worst.condition.split(',')[0]}."
        ),
        found,
        [_plot(results, least, *one) for one in PLOTS],
        reads=(*(f"{rule}.missed" for _, rule in ROWS), "events"),
        claims=[
            claim(
                f"the sound rule misses nothing: {label}",
                "ours",
                (f"{rule}.missed", "events"),
                (_missed(most[label], "causal pairs a message"), not most[label]),
            )
            for label, rule in SOUND
        ],
    )


class Wait(NamedTuple):
    """Waits of a protocol where no delay is longer than `delay_ms`."""

    delay_ms: float
    name: str
    mean: float
    p99: float
    early: float


WAIT_COLUMNS = {
    "largest delay": "{0.delay_ms:g} ms",
    "order": "{0.name}",
    "wait, mean": "{0.mean:,.1f} ms",
    "wait, p99": "{0.p99:,.1f} ms",
    "early deliveries": "{0.early:,.0f}",
}


def _waits(results: Results) -> list[Wait]:
    return [
        Wait(10 * ratio, name, *means)
        for ratio, delays in results.by("ratio")
        for name, own in delays.by("waiting")
        if (means := all_of(map(own.mean, ("wait_ms.mean", "wait_ms.p99", "violations"))))
    ]


def _wait_section(results: Results, least: str, rate_hz: float) -> Section | None:
    """Return the waits of the same traffic under protocols, beside the delays."""
    waits = _waits(results)
    if not waits:
        return None
    beyond = [wait for wait in waits if wait.mean > wait.delay_ms]
    worst = max(waits, key=lambda wait: wait.mean / wait.delay_ms)
    return Section(
        f"Waits, {rate_hz:g} messages a second each, {LEAST[least]}",
        f"In {len(beyond)} of {counted(len(waits), 'case')} the mean wait is longer than the "
        f"longest delay; the most, beside it: {worst.name}, {worst.mean:,.1f} ms where delays are "
        f"at most {worst.delay_ms:g} ms. {deliveries(sum(wait.early for wait in waits))} came "
        "before a cause that the protocol promises.",
        **table(WAIT_COLUMNS, waits),
        plots=(
            Plot(
                f"clocks-waits-{rate_hz:g}-{least.replace(' ', '-')}",
                f"Mean wait, {rate_hz:g} messages a second each, {LEAST[least]}",
                "delta by lambda",
                "ms",
                [own.line(name, "wait_ms.mean", "ratio") for name, own in results.by("waiting")],
                x_log=True,
            ),
        ),
        about="A null message is sent where a member has been silent for its heartbeat; by bound "
        "a message waits until whatever comes before it must have arrived.",
        reads=("wait_ms.mean", "violations"),
    )


def _plot(
    results: Results, least: str, what: str, title: str, rules: Sequence[tuple[str, str]]
) -> Plot:
    return Plot(
        f"clocks-{what}-{least.replace(' ', '-')}",
        f"{title}, {LEAST[least]}",
        "delta by lambda",
        "pairs a message",
        [results.share_line(label, f"{rule}.{what}", "events", "ratio") for label, rule in rules],
        "Fast networks end at 2; from 2 to 4 rule 1(b) has a window of its own.",
        x_log=True,
    )


def _byte_section(results: Results) -> Section | None:
    drawn = [own.line(one, BYTES, "members") for one, own in results.by("protocol")]
    found = {line.label: (line.y[0], line.y[-1]) for line in drawn if len(line.y) > 1}
    if not found:
        return None
    said = listed([f"{name} {low:,.0f} to {high:,.0f}" for name, (low, high) in found.items()])
    members = results.places("members")
    times = [low == high for name, (low, high) in found.items() if name != "bss"]
    power = results.of(protocol="bss").power(BYTES, "members")
    return Section(
        "Bytes a message",
        f"From {members[0]} to {members[-1]} members: {said}.",
        rows(
            Asked(
                f"{run.parameters['protocol']} overhead",
                f"{run.parameters['members']} members",
                results.figures(run)[BYTES],
                "bytes a message",
            )
            for run in results.runs
        ),
        [
            Plot(
                "clocks-bytes",
                "Control information of a message",
                "members",
                "bytes a message, as counted",
                drawn,
            )
        ],
        reads=(BYTES,),
        claims=[
            claim(
                "linear and physical times cost the same in any group",
                "section 1",
                (BYTES,),
                (said, all(times) if times else None),
            ),
            claim(
                "a vector clock grows with the group (here: as a power of at least 0.9)",
                "section 1",
                (BYTES,),
                (said, power is not None and power >= 0.9 if "bss" in found else None),
            ),
        ],
    )


BYTES = "peer.overhead_bytes"
RECOVERY = {False: "without", True: "with"}


def _loss_section(results: Results) -> Section:
    return Section(
        "Loss, with and without recovery",
        _loss_finding(results),
        reads=("undelivered", "wait_ms.mean"),
        claims=[_recovers(results, recovery) for recovery in RECOVERY],
        columns=(
            "copies lost",
            "recovery",
            "deliveries owed that never happened",
            "part of all",
            "wait, mean",
            "wait, p99",
            "notes and further copies",
        ),
        table=[
            (
                f"{loss:.0%}",
                "yes" if recovery else "no",
                *undelivered(own),
                figure_or_dash(own.mean("wait_ms.mean"), ",.1f", " ms"),
                figure_or_dash(own.mean("wait_ms.p99"), ",.1f", " ms"),
                f"{sum(own.values('notes')):,.0f}",
            )
            for loss, at in results.by("loss")
            for recovery, own in at.by("recovery")
        ],
    )


def _loss_finding(results: Results) -> str:
    """Tell what never came and how long waits were at the highest loss, with and without."""
    if not results.runs:
        return ""
    loss, highest = results.by("loss")[-1]
    words = [
        f"{RECOVERY[recovery]} recovery {deliveries(sum(own.values('undelivered')))} never "
        f"happened and the others waited {mean:,.0f} ms in the mean"
        for recovery, own in highest.by("recovery")
        if (mean := own.mean("wait_ms.mean")) is not None
    ]
    return f"Where {loss:.0%} of the copies are lost, {listed(words)}." if words else ""


def _recovers(results: Results, recovery: bool) -> Claim:
    never = {
        loss: total
        for loss, at in results.by("loss")
        if loss and (total := at.total("undelivered", recovery=recovery)) is not None
    }
    said = listed([f"{total:,.0f} never came at {loss:.0%}" for loss, total in never.items()])
    holds = not any(never.values()) if recovery else all(never.values())
    return claim(
        "with recovery everything is delivered in the end"
        if recovery
        else "without recovery a lost message blocks what follows it",
        "ours",
        ("undelivered",),
        (said, holds) if never else None,
    )
