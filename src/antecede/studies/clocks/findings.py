"""What the runs of the study of Tsuneizumi et al. show."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from antecede.studies.frame.compare_paper import listed, undelivered, unmet
from antecede.studies.frame.findings import Claim, Findings, Plot, Row, Section, Series, filled
from antecede.studies.frame.results import Results, growth
from antecede.studies.pairs import part

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
    pairs = [_pair_section(results, least) for least in LEAST]
    sections = filled(
        (
            *(_taken_section(results, least) for least in LEAST),
            *pairs,
            *(_wait_section(results, least, rate_hz) for least, rate_hz in LOADS),
            _byte_section(results),
            _loss_section(results),
        )
    )
    finding = _finding(results)
    return Findings(
        study="clocks",
        title="Linear and physical clocks: what is ordered without need, and what is missed",
        source="Tsuneizumi et al., sections 4 to 6; the source has no evaluation: this one is ours",
        finding=finding or "No run gave figures.",
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
        not_reached=unmet(sections),
        reads=(*TAKEN, "linear-physical:published.missed", "wait_ms.mean") if finding else (),
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


def _points(results: Results, least: str) -> list[Point]:
    names = (
        "linear.unnecessary",
        "linear-physical.unnecessary",
        "linear-physical.missed",
        "linear-physical:published.unnecessary",
        "linear-physical:published.missed",
    )
    found = []
    for ratio in results.places("ratio", kind="pairs", least=least):
        where: dict[str, Any] = {"kind": "pairs", "least": least, "ratio": ratio}
        values = [part(results, name, "events", **where) for name in names]
        there = [value for value in values if value is not None]
        if len(there) == len(names):
            found.append(Point(ratio, *there))
    return found


def _finding(results: Results) -> str:
    words = []
    for least in LEAST:
        points = _points(results, least)
        if points:
            low, high = min(points, key=_taken), max(points, key=_taken)
            words.append(
                f"from {low.taken:.0%} (delta {low.ratio:g} lambda) to {high.taken:.0%} "
                f"(delta {high.ratio:g} lambda) with a {LEAST[least]}"
            )
    if not words:
        return ""
    every = [point for least in LEAST for point in _points(results, least)]
    missed, printed = max(p.missed for p in every), max(p.printed_missed for p in every)
    return (
        "Of the pairs that linear time orders without need physical time takes away "
        f"{listed(words)}. With least delays it misses "
        f"{f'up to {missed:.2g} causal pairs a message' if missed else 'none'}, as published up to "
        f"{printed:.2g}.{_waits_said(results)}"
    )


def _taken(point: Point) -> float:
    return point.taken


def _waits_said(results: Results) -> str:
    """Return the longest mean waits, by protocol: what the order costs in time."""
    words = []
    for name in results.places("waiting", kind="waits"):
        found = [
            (mean.mean, load["ratio"], load["rate_hz"])
            for load in (run.parameters for run in results.where(kind="waits", waiting=name))
            if (mean := results.spread("wait_ms.mean", kind="waits", **_load(load))) is not None
        ]
        if found:
            most, ratio, rate_hz = max(found)
            load = f"delays of at most {10 * ratio:g} ms, {rate_hz:g} a second"
            words.append(f"{name}, {most:,.0f} ms ({load})")
    return f" Mean waits reach: {'; '.join(words)}." if words else ""


def _load(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in ("ratio", "least", "rate_hz", "waiting")}


def _taken_section(results: Results, least: str) -> Section | None:
    """Return what physical time takes away, delay by delay, beside what is missed."""
    points = _points(results, least)
    if not points:
        return None
    low, high = min(points, key=_taken), max(points, key=_taken)
    rising = all(a.taken <= b.taken + 0.02 for a, b in itertools.pairwise(points))
    missed = max(p.missed for p in points)
    return Section(
        f"What physical time takes away, {LEAST[least]}",
        f"{low.taken:.0%} at delta {low.ratio:g} lambda, {high.taken:.0%} at {high.ratio:g} "
        "lambda; the most that is missed for it: "
        f"{f'{missed:.2g} causal pairs a message' if missed else 'nothing'}.",
        columns=(
            "delta by lambda",
            "linear, without need, a message",
            "both, without need",
            "taken away",
            "both, missed",
            "both as published, without need",
            "both as published, missed",
        ),
        table=[
            (
                f"{p.ratio:g}",
                f"{p.linear:.3f}",
                f"{p.both:.3f}",
                f"{p.taken:.0%}",
                f"{p.missed:.3f}",
                f"{p.printed:.3f}",
                f"{p.printed_missed:.3f}",
            )
            for p in points
        ],
        plots=(
            Plot(
                f"clocks-taken-{least.replace(' ', '-')}",
                f"Part of linear time's unnecessary pairs that is taken away, {LEAST[least]}",
                "delta by lambda",
                "part",
                [Series("taken away", [p.ratio for p in points], [p.taken for p in points])],
                x_log=True,
            ),
        ),
        reads=TAKEN,
        claims=[
            Claim(
                "the larger delays are beside the clocks' accuracy, the more physical time takes "
                "away",
                "ours",
                listed([f"{p.taken:.0%} at {p.ratio:g}" for p in points]),
                rising if len(points) > 1 else None,
                (*TAKEN[:2], "events"),
            ),
            Claim(
                "with least delays linear and physical time together miss no causal pair",
                "ours",
                f"up to {missed:.2g} a message are missed" if missed else "none is missed",
                not missed,
                ("linear-physical.missed", "events"),
            ),
            Claim(
                "rules 1 and 2 order every causal pair",
                "section 5",
                "as published up to "
                f"{max(p.printed_missed for p in points):.2g} a message are missed",
                not any(p.printed_missed for p in points),
                ("linear-physical:published.missed", "events"),
            ),
        ],
    )


def _pair_section(results: Results, least: str) -> Section | None:
    rows = list(_pair_rows(results, least))
    if not rows:
        return None
    sound = {f"{label} missed" for label, _ in SOUND}
    wrong = max((row.ours for row in rows if row.quantity in sound), default=0.0)
    lost = [row for row in rows if row.quantity.endswith(" missed")]
    worst = max(lost, key=lambda row: row.ours)
    return Section(
        f"Pairs, {LEAST[least]}",
        f"The sound rules miss {f'up to {wrong:.2g} pairs a message' if wrong else 'nothing'}. "
        + (
            "No rule misses a pair."
            if not worst.ours
            else f"The most that is missed: {worst.ours:.2g} causal pairs a message, "
            f"{worst.quantity.removesuffix(' missed')}, {worst.condition.split(',')[0]}."
        ),
        rows,
        (
            _plot(results, least, "unnecessary", "Ordered without need", SHOWN),
            _plot(results, least, "missed", "Causal pairs missed", LOSING),
            _plot(results, least, "concurrent", "Left unordered", [SHOWN[0], SHOWN[2]]),
        ),
        reads=(*(f"{rule}.missed" for _, rule in ROWS), "events"),
        claims=[
            Claim(
                f"the sound rule misses nothing: {label}",
                "ours",
                f"up to {most:.2g} causal pairs a message are missed" if most else "none is missed",
                not most,
                (f"{rule}.missed", "events"),
            )
            for label, rule in SOUND
            for most in [_most(rows, label)]
        ],
    )


def _most(rows: Sequence[Row], label: str) -> float:
    return max(row.ours for row in rows if row.quantity == f"{label} missed")


def _wait_section(results: Results, least: str, rate_hz: float) -> Section | None:
    """Return the waits of the same traffic under protocols, beside the delays."""
    where: dict[str, Any] = {"kind": "waits", "least": least, "rate_hz": rate_hz}
    lines = []
    for ratio in results.places("ratio", **where):
        for name in results.places("waiting", ratio=ratio, **where):
            mean, last, early = (
                results.spread(figure, waiting=name, ratio=ratio, **where)
                for figure in ("wait_ms.mean", "wait_ms.p99", "violations")
            )
            if mean and last and early:
                lines.append((ratio, name, mean.mean, last.mean, early.mean))
    if not lines:
        return None
    beyond = [line for line in lines if line[2] > 10 * line[0]]
    worst = max(lines, key=lambda line: line[2] / line[0])
    return Section(
        f"Waits, {rate_hz:g} messages a second each, {LEAST[least]}",
        f"In {len(beyond)} of {len(lines)} cases the mean wait is longer than the longest delay; "
        f"the most, beside it: {worst[1]}, {worst[2]:,.1f} ms where delays are at most "
        f"{10 * worst[0]:g} ms. {sum(line[4] for line in lines):,.0f} deliveries came before a "
        "cause that the protocol promises.",
        columns=("largest delay", "order", "wait, mean", "wait, p99", "early deliveries"),
        table=[
            (f"{10 * ratio:g} ms", name, f"{mean:,.1f} ms", f"{last:,.1f} ms", f"{early:,.0f}")
            for ratio, name, mean, last, early in lines
        ],
        plots=(
            Plot(
                f"clocks-waits-{rate_hz:g}-{least.replace(' ', '-')}",
                f"Mean wait, {rate_hz:g} messages a second each, {LEAST[least]}",
                "delta by lambda",
                "ms",
                [
                    results.line(name, "wait_ms.mean", "ratio", waiting=name, **where)
                    for name in results.places("waiting", **where)
                ],
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
        [_line(results, label, f"{rule}.{what}", least) for label, rule in rules],
        "Fast networks end at 2; from 2 to 4 rule 1(b) has a window of its own.",
        x_log=True,
    )


def _line(results: Results, label: str, figure: str, least: str) -> Series:
    points = [
        (ratio, part(results, figure, "events", kind="pairs", least=least, ratio=ratio))
        for ratio in results.places("ratio", kind="pairs", least=least)
    ]
    there = [(x, y) for x, y in points if y is not None]
    return Series(label, [x for x, _ in there], [y for _, y in there])


def _pair_rows(results: Results, least: str) -> Iterator[Row]:
    for ratio in results.places("ratio", kind="pairs", least=least):
        where: dict[str, Any] = {"kind": "pairs", "least": least, "ratio": ratio}
        condition = f"delta {ratio:g} lambda, least {least}"
        for label, rule in ROWS:
            for what in ("unnecessary", "missed"):
                value = part(results, f"{rule}.{what}", "events", **where)
                if value is not None:
                    yield Row("ours", f"{label} {what}", condition, None, value, "pairs a message")


def _byte_section(results: Results) -> Section | None:
    rows = [
        Row(
            "ours",
            f"{run.parameters['protocol']} overhead",
            f"{run.parameters['members']} members",
            None,
            results.figures(run)["peer.overhead_bytes"],
            "bytes a message",
        )
        for run in results.where(kind="bytes")
    ]
    found = _bytes_found(results)
    if not found:
        return None
    said = listed([f"{name} {low:,.0f} to {high:,.0f}" for name, (low, high) in found.items()])
    members = results.places("members", kind="bytes")
    times = [pair for name, pair in found.items() if name != "bss"]
    return Section(
        "Bytes a message",
        f"From {members[0]} to {members[-1]} members: {said}.",
        rows,
        [
            Plot(
                "clocks-bytes",
                "Control information of a message",
                "members",
                "bytes a message, as counted",
                [
                    results.line(one, "peer.overhead_bytes", "members", kind="bytes", protocol=one)
                    for one in results.places("protocol", kind="bytes")
                ],
            )
        ],
        reads=("peer.overhead_bytes",),
        claims=[
            Claim(
                "linear and physical times cost the same in any group",
                "section 1",
                said,
                all(low == high for low, high in times) if times else None,
                ("peer.overhead_bytes",),
            ),
            Claim(
                "a vector clock grows with the group (here: as a power of at least 0.9)",
                "section 1",
                said,
                _vector_grows(results),
                ("peer.overhead_bytes",),
            ),
        ],
    )


def _bytes_found(results: Results) -> dict[str, tuple[float, float]]:
    """Return protocol -> bytes in the smallest and the largest group that both were run."""
    found = {}
    for protocol in results.places("protocol", kind="bytes"):
        line = results.line("", "peer.overhead_bytes", "members", kind="bytes", protocol=protocol)
        if len(line.y) > 1:
            found[protocol] = (line.y[0], line.y[-1])
    return found


def _vector_grows(results: Results) -> bool | None:
    line = results.line("", "peer.overhead_bytes", "members", kind="bytes", protocol="bss")
    if len(line.x) < 2:
        return None
    power = growth(list(zip(line.x, line.y, strict=True)))
    return power is not None and power >= 0.9


def _loss_section(results: Results) -> Section | None:
    lines = [
        _loss_line(results, loss, recovery)
        for loss in results.places("loss", kind="loss")
        for recovery in (False, True)
        if results.where(kind="loss", loss=loss, recovery=recovery)
    ]
    if not lines:
        return None
    return Section(
        "Loss, with and without recovery",
        _loss_finding(results),
        reads=("undelivered", "wait_ms.mean") if _loss_finding(results) else (),
        claims=[_recovers(results, recovery) for recovery in (False, True)],
        columns=(
            "copies lost",
            "recovery",
            "deliveries owed that never happened",
            "part of all",
            "wait, mean",
            "wait, p99",
            "notes and further copies",
        ),
        table=lines,
    )


def _loss_finding(results: Results) -> str:
    """Tell what never came and how long waits were at the highest loss, with and without."""
    losses = results.places("loss", kind="loss")
    words = []
    for recovery in (False, True):
        where: dict[str, Any] = {"kind": "loss", "loss": losses[-1], "recovery": recovery}
        mean = results.spread("wait_ms.mean", **where)
        if mean is not None:
            never = sum(results.values("undelivered", **where))
            words.append(
                f"{'with' if recovery else 'without'} recovery {never:,.0f} deliveries never "
                f"happened and the others waited {mean.mean:,.0f} ms in the mean"
            )
    return f"Where {losses[-1]:.0%} of the copies are lost, {listed(words)}." if words else ""


def _recovers(results: Results, recovery: bool) -> Claim:
    never = {
        loss: sum(found)
        for loss in results.places("loss", kind="loss")
        if loss and (found := results.values("undelivered", kind="loss", loss=loss,
                                             recovery=recovery))
    }  # fmt: skip
    said = listed([f"{never[loss]:,.0f} never came at {loss:.0%}" for loss in never])
    return Claim(
        "with recovery everything is delivered in the end"
        if recovery
        else "without recovery a lost message blocks what follows it",
        "ours",
        said if never else "no run gave figures",
        (not any(never.values()) if recovery else all(never.values())) if never else None,
        ("undelivered",),
    )


def _loss_line(results: Results, loss: float, recovery: bool) -> tuple[str, ...]:
    where: dict[str, Any] = {"kind": "loss", "loss": loss, "recovery": recovery}
    mean = results.spread("wait_ms.mean", **where)
    last = results.spread("wait_ms.p99", **where)
    return (
        f"{loss:.0%}",
        "yes" if recovery else "no",
        *undelivered(results, **where),
        "-" if mean is None else f"{mean.mean:,.1f} ms",
        "-" if last is None else f"{last.mean:,.1f} ms",
        f"{sum(results.values('notes', **where)):,.0f}",
    )
