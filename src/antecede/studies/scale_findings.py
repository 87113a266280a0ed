"""What a hundred thousand peers show of 000's claim, and what they cost to simulate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antecede.studies.findings import Findings, Plot, Row, Section, Series, filled
from antecede.studies.results import Results

GROUP, TEN = 100, 10
SHOWN = (
    ("internal overhead", "internal.overhead_bytes", "bytes a message"),
    ("internal storage", "internal.storage_bytes", "bytes a peer"),
    ("overhead between super peers", "external.overhead_bytes", "bytes a message"),
    ("super storage", "super.storage_bytes", "bytes a super peer"),
    ("idr overhead", "idr.overhead_bytes", "bytes a message"),
    ("idr storage", "idr.storage_bytes", "bytes a peer"),
)
COSTS = (
    ("processor time", "cost.processor_s", "s"),
    ("memory of the process, most", "cost.peak_mib", "MiB"),
    ("deliveries", "deliveries", ""),
)


def findings(results: Results, quick: bool) -> Findings:
    """Return the page of the study."""
    return Findings(
        study="scale",
        title="A hundred thousand peers: does overhead follow the density of messages?",
        source="000, section 3.2, Scalability Analysis; the grid is ours",
        finding=_finding(results),
        reading=[
            "1,000 messages a second of all peers together, however many they are; delays "
            "N(25, 12.5) ms clipped to 0 to 50; a peer of 100,000 sends once in 100 s",
            "all peers are in internal groups, each behind a super peer; between super peers "
            "stands 000's external group",
            "bytes are those of 000's accounting; pruning is the safe one, so peers acknowledge "
            "every 64 deliveries (counted as notes)",
        ],
        conditions=[
            f"0.6 s simulated, figures from 0.3 s on; {results.seeds()}"
            + (" (this quick run ends at 10,000 peers)" if quick else ""),
            "every delivery is checked for its causes (the IDR shadow)",
        ],
        sections=filled(
            (
                _section(results, "More groups of a hundred", "groups", size=GROUP),
                _section(results, "Ten groups that grow", "size", groups=TEN),
                _cost_section(results),
            )
        ),
    )


def _finding(results: Results) -> str:
    runs = sorted(results.where(size=GROUP), key=lambda run: run.parameters["peers"])
    if len(runs) < 2:
        return "Too few runs gave figures."
    first, last = runs[0].parameters["groups"], runs[-1].parameters["groups"]
    words = []
    for name, figure in (("in a group", SHOWN[0][1]), ("between super peers", SHOWN[2][1])):
        low = results.spread(figure, size=GROUP, groups=first)
        high = results.spread(figure, size=GROUP, groups=last)
        if low and high:
            words.append(f"{name} {low.mean:,.1f} bytes and {high.mean:,.1f}")
    broken = sum(results.values("violations"))
    return (
        f"With {first * GROUP:,} and with {last * GROUP:,} peers a message carries "
        f"{', '.join(words)}: inside groups the claim holds, between super peers overhead "
        f"grows slowly with their number; {broken:,.0f} of all deliveries came before a cause."
    )


def _section(results: Results, title: str, axis: str, **fixed: int) -> Section:
    rows = list(_rows(results, fixed))
    peers = [
        _line(results, name, figure, fixed)
        for name, figure, unit in SHOWN
        if unit == "bytes a message"
    ]
    stored = [
        _line(results, name, figure, fixed)
        for name, figure, unit in SHOWN
        if unit != "bytes a message"
    ]
    return Section(
        title,
        f"{'Groups of a hundred peers' if axis == 'groups' else 'Ten groups'}, 1,000 messages a "
        "second in all.",
        rows,
        [
            Plot(
                f"scale-{axis}-overhead",
                f"Overhead: {title.lower()}",
                "peers",
                "bytes a message",
                peers,
                x_log=True,
                y_log=True,
            ),
            Plot(
                f"scale-{axis}-storage",
                f"Storage: {title.lower()}",
                "peers",
                "bytes kept by a process",
                stored,
                x_log=True,
                y_log=True,
            ),
        ],
    )


def _line(results: Results, label: str, figure: str, fixed: dict[str, Any]) -> Series:
    return results.line(label, figure, "peers", **fixed)


def _rows(results: Results, fixed: dict[str, Any]) -> Iterator[Row]:
    for peers in results.places("peers", **fixed):
        for name, figure, unit in SHOWN:
            spread = results.spread(figure, peers=peers, **fixed)
            if spread is not None:
                yield Row("ours", name, f"{peers:,} peers", None, spread.mean, unit)


def _cost_section(results: Results) -> Section:
    shapes = sorted({(run.parameters["peers"], run.parameters["groups"]) for run in results.runs})
    lines = []
    for peers, groups in shapes:
        where = {"peers": peers, "groups": groups}
        found = [results.spread(figure, **where) for _, figure, _ in COSTS]
        cells = ["-" if one is None else f"{one.mean:,.1f}".removesuffix(".0") for one in found]
        lines.append((f"{peers:,}", f"{groups:,}", *cells))
    return Section(
        "What it costs to simulate",
        "Time grows with the deliveries, memory with the peers; a run's process may have carried "
        "out others before, whose memory counts too.",
        columns=(
            "peers",
            "groups",
            *(f"{name} ({unit})" if unit else name for name, _, unit in COSTS),
        ),
        table=lines,
    )
