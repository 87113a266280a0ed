"""What a hundred thousand peers show of Evropeytsev et al.'s claim, and what they cost to
simulate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from antecede.studies.frame.compare_paper import growth, listed, unmet
from antecede.studies.frame.findings import Claim, Findings, Plot, Row, Section, Series, filled
from antecede.studies.frame.results import Results

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
    sections = filled(
        (
            _section(results, "More groups of a hundred", "groups", size=GROUP),
            _section(results, "Ten groups that grow", "size", groups=TEN),
            _cost_section(results),
        )
    )
    finding = _finding(results)
    return Findings(
        study="scale",
        title="A hundred thousand peers: does overhead follow the density of messages?",
        source="Evropeytsev et al. 2016, section 3.2, Scalability Analysis; the grid is ours",
        finding=finding or "Too few runs gave figures.",
        reading=[
            "1,000 messages a second of all peers together, however many they are; delays "
            "N(25, 12.5) ms clipped to 0 to 50; a peer of 100,000 sends once in 100 s",
            "all peers are in internal groups, each behind a super peer; between super peers "
            "stands Evropeytsev et al.'s external group",
            "bytes are those of Evropeytsev et al.'s accounting; pruning is the safe "
            "one, so peers acknowledge "
            "every 64 deliveries (counted as notes)",
        ],
        conditions=[
            f"0.6 s simulated, figures from 0.3 s on; {results.seeds()}"
            + (
                f" (a quick run, up to {max(results.places('peers')):,} peers)"
                if quick and results.runs
                else ""
            ),
            "every delivery is checked for its causes (the IDR shadow)",
        ],
        sections=sections,
        not_reached=unmet(sections),
        reads=(SHOWN[0][1], SHOWN[2][1], "violations") if finding else (),
    )


def _ends(results: Results, figure: str, **fixed: Any) -> tuple[float, float] | None:
    """Return a figure at the fewest and at the most peers; None below two sizes."""
    line = results.line("", figure, "peers", **fixed)
    return (line.y[0], line.y[-1]) if len(line.y) > 1 else None


def _finding(results: Results) -> str:
    peers = results.places("peers", size=GROUP)
    if len(peers) < 2:
        return ""
    words = []
    for name, figure in (("in a group", SHOWN[0][1]), ("between super peers", SHOWN[2][1])):
        ends = _ends(results, figure, size=GROUP)
        if ends:
            words.append(f"{name} {ends[0]:,.1f} and {ends[1]:,.1f} bytes")
    broken = sum(results.values("violations"))
    return (
        f"With {peers[0]:,} and with {peers[-1]:,} peers, 1,000 messages a second in all, a "
        f"message carries {listed(words)}; {broken:,.0f} of all deliveries came before a cause."
    )


FLAT = 0.05
"""Overhead "does not depend on the number of peers": it goes as at most this power of it."""


def _flat(results: Results, title: str, name: str, figure: str, **fixed: Any) -> Claim:
    """Hold that overhead follows the density of messages, not the number of peers."""
    line = results.line("", figure, "peers", **fixed)
    power = growth(list(zip(line.x, line.y, strict=True)))
    ends = _ends(results, figure, **fixed)
    return Claim(
        f"{title}, {name}: overhead depends on the density of messages, not on the number of "
        f"peers (here: it goes as the power {-FLAT} to {FLAT} of it)",
        "Scalability Analysis",
        "no run gave figures"
        if power is None or ends is None
        else f"from {ends[0]:,.1f} to {ends[1]:,.1f} bytes, about as the power {power:.3f}",
        None if power is None else abs(power) <= FLAT,
        (figure,),
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
    early = sum(results.values("violations", **fixed))
    checked = sum(results.values("violations.checked", **fixed))
    return Section(
        title,
        f"{early:,.0f} of {checked:,.0f} deliveries came before a cause." if checked else "",
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
        about=f"{'Groups of a hundred peers' if axis == 'groups' else 'Ten groups'}, 1,000 "
        "messages a second in all.",
        reads=("violations", "violations.checked") if checked else (),
        claims=[
            _flat(results, title.lower(), name, figure, **fixed)
            for name, figure in (("inside a group", SHOWN[0][1]), ("IDR", SHOWN[4][1]),
                                 ("between super peers", SHOWN[2][1]))
        ],
    )  # fmt: skip


def _line(results: Results, label: str, figure: str, fixed: dict[str, Any]) -> Series:
    return results.line(label, figure, "peers", **fixed)


def _rows(results: Results, fixed: dict[str, Any]) -> Iterator[Row]:
    for peers in results.places("peers", **fixed):
        for name, figure, unit in SHOWN:
            spread = results.spread(figure, peers=peers, **fixed)
            if spread is not None:
                yield Row("ours", name, f"{peers:,} peers", None, spread.mean, unit)


def _cell(value: float) -> str:
    """Return a figure with three significant digits; what is little is not called nothing."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _cost_section(results: Results) -> Section:
    shapes = sorted({(run.parameters["peers"], run.parameters["groups"]) for run in results.runs})
    lines = []
    for peers, groups in shapes:
        where = {"peers": peers, "groups": groups}
        found = [results.spread(figure, **where) for _, figure, _ in COSTS]
        cells = ["-" if one is None else _cell(one.mean) for one in found]
        lines.append((f"{peers:,}", f"{groups:,}", *cells))
    rates = [
        done / spent
        for run in results.runs
        if (spent := results.figures(run).get("cost.processor_s"))
        and (done := results.figures(run).get("deliveries"))
    ]
    return Section(
        "What it costs to simulate",
        f"{min(rates):,.0f} to {max(rates):,.0f} deliveries a second of processor time."
        if rates
        else "",
        about="A run's process may have carried out others before, whose memory counts too; the "
        "first run of a process may compile.",
        reads=("cost.processor_s", "deliveries") if rates else (),
        columns=(
            "peers",
            "groups",
            *(f"{name} ({unit})" if unit else name for name, _, unit in COSTS),
        ),
        table=lines,
    )
