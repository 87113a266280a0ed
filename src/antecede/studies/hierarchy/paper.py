"""What Evropeytsev et al. 2016 state about their evaluation (section 3.2),
figure by figure.

Its figures' pictures and Table 1 are lost, so these sentences are all there is to compare with.
Overhead is bytes a message, storage bytes a peer, slopes are bytes a peer of the whole system.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

DELAYS: Mapping[str, tuple[float, float]] = {
    "0-50 ms": (0.0, 0.05),
    "50-250 ms": (0.05, 0.25),
    "50-550 ms": (0.05, 0.55),
}
LARGEST: Mapping[str, int] = {"0-50 ms": 900, "50-250 ms": 500, "50-550 ms": 400}
"""Number of peers for which the text gives figures."""
FIGURES: Mapping[str, str] = {
    "0-50 ms": "Figure 4",
    "50-250 ms": "Figure 5",
    "50-550 ms": "Figure 6",
}
RATE_FIGURES: Mapping[str, str] = {
    "0-50 ms": "Figure 7",
    "50-250 ms": "Figure 8",
    "50-550 ms": "Figure 9",
}
RATES = (1000, 1500, 2000, 2500)
"""Messages a second of all peers together (scalability analysis)."""


class Stated(NamedTuple):
    """One quantity: its value at the largest number of peers and its slope, by delay."""

    quantity: str
    figure: str
    """Name in `Result.figures`."""
    values: tuple[float | None, float | None, float | None]
    slopes: tuple[float | None, float | None, float | None]


QUANTITIES = (
    Stated("internal overhead", "internal.overhead_bytes", (90, 230, 400), (0.098, 0.461, 0.990)),
    Stated("internal storage", "internal.storage_bytes", (128, 300, 550), (0.143, 0.603, 1.325)),
    Stated(
        "external overhead", "external.overhead_bytes", (950, 1700, 1400), (1.018, 3.480, 3.617)
    ),
    Stated("external storage", "external.storage_bytes", (2700, 2100, 1860), (2.952, 4.225, 4.680)),
    Stated("idr overhead", "idr.overhead_bytes", (1650, 2400, 1500), (1.760, 4.965, 3.830)),
    Stated("idr storage", "idr.storage_bytes", (4900, 3400, 2500), (5.388, 6.838, 6.378)),
    Stated("ds overhead", "ds.overhead_bytes", (3950, 2800, 2850), (4.356, 5.561, 7.162)),
)

FIGURE = {stated.quantity: stated.figure for stated in QUANTITIES}
"""Quantity -> its name in `Result.figures`."""

TIMES_LOWER: tuple[tuple[str, str, tuple[float, float, float]], ...] = (
    ("idr overhead", "internal overhead", (18.3, 10.0, 3.5)),
    ("idr storage", "internal storage", (38.0, 11.0, 4.5)),
    ("idr overhead", "external overhead", (1.7, 1.4, 1.0)),
    ("idr storage", "external storage", (1.7, 1.6, 1.3)),
    ("ds overhead", "external overhead", (4.1, 1.64, 2.0)),
)
"""(a, b, x by delay): "b is x times lower than a". By the text's own values 1500/400 is 3.75,
4900/2700 is 1.8."""

RATE_SLOPES: Mapping[tuple[str, str], Mapping[int, float]] = {
    ("0-50 ms", "internal overhead"): {2500: 0.0612, 2000: 0.0611, 1500: 0.0603, 1000: 0.0583},
    ("0-50 ms", "external overhead"): {2500: 0.0685, 2000: 0.0728, 1500: 0.0735, 1000: 0.0719},
    ("50-250 ms", "internal overhead"): {2500: 0.0083, 2000: 0.0041, 1500: 0.0045, 1000: 0.0241},
    ("50-250 ms", "external overhead"): {2500: 0.4632, 2000: 0.1215, 1500: 0.0147, 1000: -0.0374},
    ("50-550 ms", "internal overhead"): {
        2500: 0.002177379,
        2000: 0.00272099,
        1500: 0.005812997,
        1000: -0.006493243,
    },
}
"""(delay, quantity) -> rate -> slope of "the linear growth part" (above 100 to 200 peers)."""

RATE_TIMES: Mapping[str, tuple[str, Mapping[str, float]]] = {
    "0-50 ms": ("largest", {"internal overhead": 1.60, "external overhead": 13.9}),
    "50-250 ms": ("mean", {"internal overhead": 45.0, "external overhead": 25.0}),
}
"""delay -> by how much the slope of the first experiment exceeds those at fixed rates. By the
text's own slopes 1.60 and 13.9 are held against the largest of them (0.0979 / 0.0612, 1.0177 /
0.0735), 45 and 25 against their mean."""
ALIKE = 0.05
"""Figure 7: "the difference between slopes with the message limit is less than five percent"."""


def own_times(more: str, less: str, delay: str) -> float:
    """Return by how much `more` exceeds `less` by the values that the text itself gives."""
    place = list(DELAYS).index(delay)
    values = {stated.quantity: stated.values[place] for stated in QUANTITIES}
    above, below = values[more], values[less]
    assert above is not None
    assert below is not None
    return above / below
