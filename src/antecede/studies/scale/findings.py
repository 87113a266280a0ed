"""What a hundred thousand peers show of Evropeytsev et al.'s claim, and what they cost to
simulate.
"""

from __future__ import annotations

from antecede.report.values import Claim, Findings, Plot, Section, filled
from antecede.studies.frame.claims import Quantity, as_power, claim, lines, means, page, rows
from antecede.studies.frame.compare_paper import deliveries, listed
from antecede.studies.frame.results import Results

GROUP, TEN = 100, 10
INTERNAL = Quantity("internal overhead", "internal.overhead_bytes", "bytes a message")
BETWEEN = Quantity("overhead between super peers", "external.overhead_bytes", "bytes a message")
IDR = Quantity("idr overhead", "idr.overhead_bytes", "bytes a message")
STORED = (
    Quantity("internal storage", "internal.storage_bytes", "bytes a peer"),
    Quantity("super storage", "super.storage_bytes", "bytes a super peer"),
    Quantity("idr storage", "idr.storage_bytes", "bytes a peer"),
)
SHOWN = (INTERNAL, STORED[0], BETWEEN, STORED[1], IDR, STORED[2])
PLOTS = (
    ("overhead", "Overhead", "bytes a message", (INTERNAL, BETWEEN, IDR)),
    ("storage", "Storage", "bytes kept by a process", STORED),
)
"""(key, title, axis, what is drawn)."""
COSTS = (
    Quantity("processor time (s)", "cost.processor_s"),
    Quantity("memory of the process, most (MiB)", "cost.peak_mib"),
    Quantity("deliveries", "deliveries"),
)


def findings(results: Results, quick: bool) -> Findings:
    """Return the page of the study."""
    sections = filled(
        (
            _section(results.of(size=GROUP), "More groups of a hundred", "groups"),
            _section(results.of(groups=TEN), "Ten groups that grow", "size"),
            _cost_section(results),
        )
    )
    return page(
        _finding(results),
        (INTERNAL.figure, BETWEEN.figure, "violations"),
        otherwise="Too few runs gave figures.",
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
    )


def _ends(results: Results, one: Quantity) -> tuple[float, float] | None:
    """Return a figure at the fewest and at the most peers; None below two sizes."""
    line = results.line("", one.figure, "peers")
    return (line.y[0], line.y[-1]) if len(line.y) > 1 else None


def _finding(results: Results) -> str:
    more = results.of(size=GROUP)
    peers = more.places("peers")
    if len(peers) < 2:
        return ""
    words = [
        f"{name} {ends[0]:,.1f} and {ends[1]:,.1f} bytes"
        for name, one in (("in a group", INTERNAL), ("between super peers", BETWEEN))
        if (ends := _ends(more, one))
    ]
    broken = sum(results.values("violations"))
    return (
        f"With {peers[0]:,} and with {peers[-1]:,} peers, 1,000 messages a second in all, a "
        f"message carries {listed(words)}; {broken:,.0f} of all deliveries came before a cause."
    )


FLAT = 0.05
"""Overhead "does not depend on the number of peers": it goes as at most this power of it."""
CLAIMED = {"inside a group": INTERNAL, "IDR": IDR, "between super peers": BETWEEN}


def _flat(results: Results, place: str, one: Quantity) -> Claim:
    """Compare the growth of overhead with the number of peers to that of a constant."""
    return claim(
        f"{place}: overhead depends on the density of messages, not on the number of "
        f"peers (here: it goes as the power {-FLAT} to {FLAT} of it)",
        "Scalability Analysis",
        (one.figure,),
        as_power(results, one.figure, "peers", -FLAT, FLAT, unit=" bytes"),
    )


def _section(results: Results, title: str, axis: str) -> Section:
    low = title.lower()
    early, checked = (sum(results.values(n)) for n in ("violations", "violations.checked"))
    asked = [
        one
        for peers, there in results.by("peers")
        for one in means(there, SHOWN, f"{peers:,} peers")
    ]
    plots = [
        Plot(
            f"scale-{axis}-{key}",
            f"{words}: {low}",
            "peers",
            unit,
            lines(results, "peers", shown),
            x_log=True,
            y_log=True,
        )
        for key, words, unit, shown in PLOTS
    ]
    return Section(
        title,
        f"{early:,.0f} of {deliveries(checked)} came before a cause." if checked else "",
        rows(asked),
        plots,
        about=f"{'Groups of a hundred peers' if axis == 'groups' else 'Ten groups'}, 1,000 "
        "messages a second in all.",
        reads=("violations", "violations.checked"),
        claims=[_flat(results, f"{low}, {place}", one) for place, one in CLAIMED.items()],
    )


def _cell(value: float | None) -> str:
    """Return a figure with three significant digits; what is little is not called nothing."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _cost_section(results: Results) -> Section:
    shapes = sorted({(run.parameters["peers"], run.parameters["groups"]) for run in results.runs})
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
        reads=("cost.processor_s", "deliveries"),
        columns=("peers", "groups", *(one.name for one in COSTS)),
        table=[
            (
                f"{peers:,}",
                f"{groups:,}",
                *(_cell(results.mean(one.figure, peers=peers, groups=groups)) for one in COSTS),
            )
            for peers, groups in shapes
        ],
    )
