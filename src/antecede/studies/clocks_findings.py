"""What the runs of the study of 002 show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from antecede.studies.findings import Findings, Plot, Row, Section, Series, filled
from antecede.studies.pairs import part
from antecede.studies.results import Results
from antecede.studies.verdicts import undelivered

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
SOUND = SHOWN[:3]
ROWS = (*SOUND, *LOSING)
LEAST = {"half": "least delay half of the largest", "nearly all": "least delay 0.9 of the largest"}
READING = (
    "causal is by RECEIPT: what had arrived at the sender (002, section 2)",
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
    return Findings(
        study="clocks",
        title="Linear and physical clocks: what is ordered without need, and what is missed",
        source="002, sections 4 to 6; the source has no evaluation: this one is ours",
        finding=_finding(results),
        reading=READING,
        conditions=[
            "six members, Poisson, 50 messages a second each, accuracy lambda 10 ms, offsets "
            "uniform within it; delays uniform; "
            f"{'4' if quick else '20'} s simulated, {results.seeds(kind='pairs')}",
            "delta, the largest delay, goes from 0.1 to 50 lambda"
            + (" (a few of these in this quick run)" if quick else ""),
        ],
        sections=filled((*pairs, _byte_section(results), _loss_section(results))),
    )


def _finding(results: Results) -> str:
    both = part(results, "linear-physical.unnecessary", "linear.unnecessary", kind="pairs")
    sound = part(results, "linear-physical.missed", "events", kind="pairs")
    missed = part(results, "linear-physical:published.missed", "events", kind="pairs")
    if both is None or sound is None or missed is None:
        return "No run gave figures."
    return (
        f"Physical time takes away {1 - both:.0%} of the pairs that linear time orders without "
        f"need, and with least delays it misses {f'{sound:.2g} a message' if sound else 'none'}; "
        f"as published, {missed:.2g} causal pairs a message are missed."
    )


def _pair_section(results: Results, least: str) -> Section | None:
    rows = list(_pair_rows(results, least))
    if not rows:
        return None
    lost = [row for row in rows if row.quantity.endswith(" missed") and row.ours]
    sound = {f"{label} missed" for label, _ in SOUND}
    broken = any(row.quantity in sound for row in lost)
    worst = max(lost, key=lambda row: row.ours, default=None)
    return Section(
        f"Pairs, {LEAST[least]}",
        f"The sound rules miss {'pairs, which is a defect' if broken else 'nothing'}. "
        + (
            "No rule misses a pair."
            if worst is None
            else f"The most that is missed: {worst.ours:.2g} causal pairs a message, "
            f"{worst.quantity.removesuffix(' missed')}, {worst.condition.split(',')[0]}."
        ),
        rows,
        (
            _plot(results, least, "unnecessary", "Ordered without need", SHOWN),
            _plot(results, least, "missed", "Causal pairs missed", LOSING),
            _plot(results, least, "concurrent", "Left unordered", [SHOWN[0], SHOWN[2]]),
        ),
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


def _byte_section(results: Results) -> Section:
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
    return Section(
        "Bytes a message",
        "Times cost the same in any group; a vector clock grows with it (002, section 1).",
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
    )


def _loss_section(results: Results) -> Section:
    lines = [
        _loss_line(results, loss, recovery)
        for loss in results.places("loss", kind="loss")
        for recovery in (False, True)
        if results.where(kind="loss", loss=loss, recovery=recovery)
    ]
    return Section(
        "Loss, with and without recovery",
        "Without recovery a lost message blocks what follows it; with it everything is delivered, "
        "later.",
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
