"""Findings in the shape of Evropeytsev et al.'s evaluation, invented: to look at pages, never
results.
"""

from __future__ import annotations

from antecede.lab.report.model import Findings, Plot, Row, Section, Series

PEERS = (50, 100, 200, 300, 500, 700, 900)
COSTS = {
    "internal": (0.098, 90.0, 0.96),
    "external": (1.018, 950.0, 0.992),
    "idr": (1.760, 1650.0, 0.93),
    "ds": (4.356, 3950.0, 0.52),
}
"""Name -> the paper's slope and bytes at 900 peers, and what is invented as our part of them."""
ACCURACY_MS = (0.1, 1.0, 10.0, 100.0)


def growth(name: str) -> Series:
    """Return a line through the paper's figure, scaled."""
    slope, last, part = COSTS[name]
    y = [part * (last - slope * (900 - n)) for n in PEERS]
    return Series(name, PEERS, y, [0.03 * value for value in y], ((900, last),))


def beside(delay: str) -> list[Row]:
    """Return nine rows: two for each protocol, and one that the paper does not have."""
    rows = []
    for name, (slope, last, part) in COSTS.items():
        note = "a plain (id, SN) vector gives 8 bytes a peer" if name == "ds" else ""
        where = f"{delay}, 900 peers"
        quantity = f"{name} overhead"
        rows += [
            Row("Figure 4", quantity, where, last, part * last, "bytes", note),
            Row("Figure 4", f"{quantity} slope", delay, slope, part * slope, "bytes/peer"),
        ]
    return [*rows, Row("Section 6.1", "encoded overhead", delay, None, 41.7, "bytes")]


def overhead() -> list[Plot]:
    """Return the same lines over linear and over logarithmic axes."""
    lines = [growth(name) for name in COSTS]
    bound = Series("8 bytes a peer", PEERS, [8.0 * n for n in PEERS], style="dashed")
    caption = "Control information by the source's accounting; bars: one standard deviation."
    plot = Plot(
        "overhead-50", "Overhead, delays of 0 to 50 ms", "peers", "bytes a message", lines, caption
    )
    log = plot._replace(key="overhead-50-log", title="The same, both axes logarithmic")
    return [plot, log._replace(series=[*lines, bound], x_log=True, y_log=True)]


def encoded() -> list[Plot]:
    """Return bars, zeros on a logarithmic axis, and eight series in one plot."""
    sizes, unit = (100, 300, 900), "bytes a message"
    bars = [
        Series("accounting", sizes, (9.8, 29.4, 88.2), (0.4, 0.9, 2.1), ((900, 90),), "bars"),
        Series("encoded", sizes, (4.1, 13.0, 41.7), (0.2, 0.3, 0.8), style="bars"),
        Series("entropy", sizes, (3.6, 11.4, 36.5), style="bars"),
    ]
    pairs = [
        Series("linear time", ACCURACY_MS, (81e3, 90e3, 93e3, 95e3), (2e3, 2e3, 3e3, 1e3)),
        Series("physical", ACCURACY_MS, (0, 12, 1300, 64e3)),
        Series("combined", ACCURACY_MS, (0, 3, 700, 41e3), style="points"),
        Series("all concurrent pairs", ACCURACY_MS, (1e5,) * 4, style="dashed"),
    ]
    rates = [
        Series(
            f"{name}, {rate} a second",
            PEERS,
            [k * (90 - 2000 / (n + 30)) + rate / 50 for n in PEERS],
        )
        for k, name in ((1, "internal"), (2.4, "external"))
        for rate in (1000, 1500, 2000, 2500)
    ]
    return [
        Plot(
            "encoded", "Control information of a message", "peers", unit, bars, "Hollow: the paper."
        ),
        Plot(
            "unneeded",
            "Pairs without need",
            "accuracy of clocks, ms",
            "pairs",
            pairs,
            x_log=True,
            y_log=True,
        ),
        Plot("rates", "Overhead at fixed total rates", "peers", unit, rates, "Slopes go to zero."),
    ]


def invented() -> Findings:
    """Return everything that a page can hold."""
    delays = ("0-50 ms", "50-250 ms", "50-550 ms")
    sections = [
        Section("Delays of 0 to 50 ms", "Overhead grows in a line.", beside(delays[0]), overhead()),
        Section("All delays", "The same thrice.", [row for one in delays for row in beside(one)]),
        Section(
            "Accounting, encoding and bound",
            "Encoded control information takes half of the accounting.",
            plots=encoded(),
            columns=("super peers", "violations", "pruning"),
            table=[("1", "0", "safe"), ("2", "0", "safe"), ("3", "9", "as published")],
        ),
    ]
    return Findings(
        study="hierarchy",
        title="The hierarchical protocol over the number of peers",
        source="Invented figures in the shape of Evropeytsev et al. 2016, Section 6",
        finding="Three of four protocols cost what the source says, within 10 %.",
        reading=[
            "Sigma is a quarter of the width; read as a variance (`sigma=variance`), 70 bytes.",
            "Integers take 4 bytes, an (id, SN) pair 8; headers are not counted.",
        ],
        conditions=["50 to 900 peers, divided equally", "3 seeds: 1, 2, 3", "10 s measured"],
        sections=sections,
        not_reached=["DS: 0.52 of the published overhead. Tried: with headers, without pruning."],
        failed=["0-50 ms, 900 peers, 3 super peers, seed 2: needs 3.1 GiB, limit 2 GiB"],
    )
