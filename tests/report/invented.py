"""Findings in the shape of 000's evaluation, invented: to look at pages, never results."""

from __future__ import annotations

from antecede.studies.findings import Findings, Plot, Row, Section, Series

PEERS = (50, 100, 200, 300, 500, 700, 900)
SLOPES = {
    "internal": (0.098, 90.0, "internal overhead"),
    "external": (1.018, 950.0, "external overhead"),
    "IDR": (1.760, 1650.0, "idr overhead"),
    "DS": (4.356, 3950.0, "ds overhead"),
}
FACTORS = {"internal": 0.96, "external": 0.992, "IDR": 0.93, "DS": 0.52}


def _series(name: str) -> Series:
    slope, last, _ = SLOPES[name]
    y = [FACTORS[name] * (last - slope * (900 - n)) for n in PEERS]
    return Series(name, PEERS, y, [0.03 * value for value in y], ((900, last),))


def _rows(delay: str) -> list[Row]:
    rows = []
    for name, (slope, last, quantity) in SLOPES.items():
        note = "a plain (id, SN) vector gives 8 bytes a peer" if name == "DS" else ""
        of = f"{delay}, 900 peers"
        rows.append(Row("Figure 4", quantity, of, last, FACTORS[name] * last, "bytes", note))
        rows.append(
            Row("Figure 4", f"{quantity} slope", delay, slope, FACTORS[name] * slope, "bytes/peer")
        )
    rows.append(Row("Section 6.1", "encoded overhead", f"{delay}, 900 peers", None, 41.7, "bytes"))
    return rows


def invented() -> Findings:
    """Return everything that a page can hold."""
    bars = [
        Series("accounting", (100, 300, 900), (9.8, 29.4, 88.2), (0.4, 0.9, 2.1), ((900, 90),)),
        Series("encoded", (100, 300, 900), (4.1, 13.0, 41.7), (0.2, 0.3, 0.8)),
        Series("entropy", (100, 300, 900), (3.6, 11.4, 36.5)),
    ]
    unneeded = [
        Series("linear time", (0.1, 1, 10, 100), (81e3, 90e3, 93e3, 95e3), (2e3, 2e3, 3e3, 1e3)),
        Series("physical", (0.1, 1, 10, 100), (0, 12, 1300, 64e3)),
        Series("combined", (0.1, 1, 10, 100), (0, 3, 700, 41e3), style="points"),
        Series("all concurrent pairs", (0.1, 1, 10, 100), (1e5, 1e5, 1e5, 1e5), style="dashed"),
    ]
    plots = [
        Plot(
            "overhead-50",
            "Overhead, delays of 0 to 50 ms",
            "peers",
            "bytes a message",
            [_series(name) for name in SLOPES],
            "Control information of a message by the source's accounting; bars are one standard deviation over 3 seeds.",
        ),
        Plot(
            "overhead-50-log",
            "The same, both axes logarithmic",
            "peers",
            "bytes a message",
            [
                *(_series(name) for name in SLOPES),
                Series(
                    "8 bytes a peer (a plain vector)",
                    PEERS,
                    [8.0 * n for n in PEERS],
                    style="dashed",
                ),
            ],
            "A vector of pairs is the bound of DS.",
            x_log=True,
            y_log=True,
        ),
    ]
    return Findings(
        study="hierarchy",
        title="The hierarchical protocol over the number of peers",
        source="Invented figures in the shape of 000, Section 6 (simulation results)",
        finding="Three of four protocols cost what the source says, within 10 %; Dependency Sequences cost half.",
        reading=[
            "Sigma is a quarter of the interval's width; as a variance, 0-50 ms gives 70 bytes where the source has 90 (`sigma=variance`).",
            "Integers take 4 bytes, an (id, SN) pair 8; headers are not counted.",
        ],
        conditions=[
            "50 to 900 peers, divided equally; one super peer",
            "3 seeds: 1, 2, 3",
            "warm-up 0.4 s, 10 s measured",
        ],
        sections=[
            Section(
                "Delays of 0 to 50 ms",
                "Overhead grows in a line. DS is at half of what the source has.",
                _rows("0-50 ms"),
                plots,
            ),
            Section(
                "All delays",
                "The same in three conditions.",
                [*_rows("0-50 ms"), *_rows("50-250 ms"), *_rows("50-550 ms")],
            ),
            Section(
                "Accounting, encoding and bound",
                "Encoded control information takes half of the accounting.",
                plots=[
                    Plot(
                        "encoded",
                        "Control information of a message",
                        "peers",
                        "bytes a message",
                        bars,
                        "Hollow: the source.",
                    ),
                    Plot(
                        "unneeded",
                        "Pairs ordered without need",
                        "accuracy of clocks, ms",
                        "pairs",
                        unneeded,
                        "",
                        x_log=True,
                        y_log=True,
                    ),
                ],
                columns=("super peers", "violations", "pruning"),
                table=[("1", "0", "safe"), ("2", "0", "safe"), ("3", "9", "as published")],
            ),
        ],
        not_reached=[
            "Dependency Sequences: 0.52 of the published overhead. The printed slopes doubled are 8.71 bytes a peer; "
            "pairs of 8 bytes leave 0.71 unexplained. Tried: with the sender's own vector, with headers, without pruning.",
        ],
        failed=["0-50 ms, 900 peers, 3 super peers, seed 2: needs 3.1 GiB, limit 2 GiB"],
    )
