"""What a study hands to the report: rows beside the paper's figures, plots, and what it found.

Plain values only, so that a page can be drawn again from the files alone (`summary.json`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One figure of ours, beside the paper's where it gives one."""

    figure: str
    """Figure, table or passage of the source, e.g. "Figure 4"."""
    quantity: str
    """E.g. "internal overhead", "external storage", "idr overhead slope"."""
    condition: str
    """E.g. "0-50 ms, 900 peers"."""
    paper: float | None
    ours: float
    unit: str = ""
    note: str = ""
    """Said beside the row, e.g. why it is not reached."""

    @property
    def ratio(self) -> float | None:
        """Ours by the paper's; None where there is none to compare with."""
        return self.ours / self.paper if self.paper else None


class Series(NamedTuple):
    """One line of a plot."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] = ()
    """Standard deviation over seeds at each point; empty: one seed."""
    paper: Sequence[tuple[float, float]] = ()
    """The paper's points, drawn over ours."""
    style: str = "line"
    """"line", "dashed" (a bound or a model), "points" or "bars"."""


class Plot(NamedTuple):
    """One pair of axes."""

    key: str
    """Name of its files: figures/KEY.svg and .png."""
    title: str
    x_label: str
    y_label: str
    """With the unit."""
    series: Sequence[Series]
    caption: str = ""
    x_log: bool = False
    y_log: bool = False


class Section(NamedTuple):
    """A part of the page: what was found, then table and plots."""

    title: str
    finding: str
    """One or two sentences."""
    rows: Sequence[Row] = ()
    plots: Sequence[Plot] = ()
    columns: Sequence[str] = ()
    """Of `table`, where figures are no rows beside a paper's."""
    table: Sequence[Sequence[str]] = ()


def filled(sections: Iterable[Section | None]) -> list[Section]:
    """Return the sections that show something: of the others no run gave figures."""
    return [
        section
        for section in sections
        if section is not None
        and (
            section.rows
            or section.table
            or any(line.x for plot in section.plots for line in plot.series)
        )
    ]


class Findings(NamedTuple):
    """Everything that a study's page says."""

    study: str
    title: str
    source: str
    """Paper and section; says so where the evaluation is ours."""
    finding: str
    """The study in a sentence."""
    reading: Sequence[str]
    """How the source was read, and which alternatives can be chosen."""
    conditions: Sequence[str]
    """Scenario, grid, seeds, warm-up."""
    sections: Sequence[Section]
    not_reached: Sequence[str] = ()
    """What does not come out, with the ratio and what was tried."""
    failed: Sequence[str] = ()
    """Runs that failed: scenario, seed, reason."""
