"""Part of Evropeytsev et al.'s evaluation: overhead by number of peers."""

from __future__ import annotations

import statistics
from typing import NamedTuple

from antecede.formatting import table
from antecede.lab.reproductions import config_of
from antecede.lab.reproductions.framework import read_page
from antecede.lab.simulate import simulate
from antecede.lab.simulate.outputs import Measures

DELAY = "0-50 ms"
PEERS = (50, 100, 150, 200)
MEASURED_S = 0.2
SEED = 1


class MeasuredOverhead(NamedTuple):
    """Overhead of one quantity by number of peers."""

    quantity: str
    bytes_per_message: tuple[float, ...]
    slope: float
    paper_slope: float | None


def evaluate() -> list[MeasuredOverhead]:
    """Simulate the groups and return the average overhead of a message."""
    measures = Measures(encoded=False, ds=False, storage=False)
    figures = [
        simulate(config_of(DELAY, peers, MEASURED_S), SEED, measures=measures).figures
        for peers in PEERS
    ]
    page, measured = read_page("antecede.lab.reproductions.hierarchy"), []
    for one in page["each"]["overheads"]:
        values = tuple(figure[one["quantity"]] for figure in figures)
        slope = statistics.linear_regression(PEERS, values).slope
        stated = page["published"].get(f"{one['name']} slope, {DELAY}")
        measured.append(MeasuredOverhead(one["name"], values, slope, stated))
    return measured


def format_evaluation(found: list[MeasuredOverhead]) -> str:
    """Return the table that the demo prints."""
    peers = [f"{n} peers" for n in PEERS]
    header = ["bytes a message", *peers, "slope", "Evropeytsev et al.'s slope"]
    lines = [
        [
            one.quantity,
            *(f"{value:.1f}" for value in one.bytes_per_message),
            f"{one.slope:.3f}",
            "–" if one.paper_slope is None else f"{one.paper_slope:.3f}",
        ]
        for one in found
    ]
    return table(header, lines, indent="   ")
