"""Content of a study's page: rows beside the paper's figures, plots, findings.

Plain values only, so that a page can be drawn again from the files alone (`summary.json`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from antecede.errors import LocalError


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
    """Remark, e.g. why it is not reached."""

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
    style: str = "line"
    """"line", "dashed" (a bound or a model), "points" or "bars"."""

    @property
    def points(self) -> list[tuple[float, float]]:
        """Return its points (x, y)."""
        return list(zip(self.x, self.y, strict=True))


class Plot(NamedTuple):
    """One pair of axes."""

    key: str
    """Name of its files: figures/KEY.svg and .png."""
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    caption: str = ""
    x_log: bool = False
    y_log: bool = False


NO_FIGURES = "no run gave figures"


class Claim(NamedTuple):
    """Fixed statement, and what the runs say to it."""

    statement: str
    """Fixed words, the source's own where they are quoted."""
    where: str
    """Passage of the source, or "ours"."""
    found: str
    holds: bool | None
    """None: the figures do not decide it, or there are none (`NO_FIGURES`)."""
    reads: Sequence[str]
    """Quantities (patterns with `*`) that `found` and `holds` are computed from."""

    @property
    def verdict(self) -> str:
        """Return the verdict in words."""
        open_verdict = "not run" if self.found == NO_FIGURES else "undecided"
        return {True: "holds", False: "does not hold", None: open_verdict}[self.holds]


class Section(NamedTuple):
    """Part of the page: finding, then table and plots."""

    title: str
    finding: str
    """One or two sentences, computed from the figures named in `reads`."""
    rows: Sequence[Row] = ()
    plots: Sequence[Plot] = ()
    columns: Sequence[str] = ()
    """Columns of `table`, for figures that are no rows beside a paper's."""
    table: Sequence[Sequence[str]] = ()
    about: str = ""
    """Description that is true whatever the figures are."""
    reads: Sequence[str] = ()
    """Quantities (patterns with `*`) that `finding` is computed from; empty where it is empty."""
    claims: Sequence[Claim] = ()


def checked_findings(findings: Findings) -> tuple[Findings, list[str]]:
    """Return findings without rows that have no figure, and a line for each of these.

    Raises LocalError for a text in place of a list of texts, and for values that are no `Findings`.
    """
    if not isinstance(findings, Findings):
        raise LocalError(f"findings returns a Findings, not a {type(findings).__name__}")
    for name in ("reading", "conditions", "not_reached", "failed", "reads", "sections"):
        if isinstance(getattr(findings, name), str):
            raise LocalError(f"findings: {name} is a text; it is a list: [{name!r}]")
    sections, blank = [], []
    for section in findings.sections:
        for name in ("rows", "plots", "columns", "table", "reads", "claims"):
            if isinstance(getattr(section, name), str):
                raise LocalError(f"section {section.title!r}: {name} is a text; it is a list")
        rows = []
        for row in section.rows:
            if isinstance(row.ours, int | float) and math.isfinite(row.ours):
                rows.append(row)
            else:
                place = f"{row.figure}, {row.quantity}, {row.condition}"
                blank.append(f"{section.title}: {place}: no figure of ours")
        sections.append(section._replace(rows=rows))
    return findings._replace(sections=sections), blank


def filled(sections: Iterable[Section | None]) -> list[Section]:
    """Return the sections with content; `reads` is empty where nothing was found."""
    return [
        section if section.finding else section._replace(reads=())
        for section in sections
        if section is not None
        and (
            section.rows
            or section.table
            or any(line.x for plot in section.plots for line in plot.series)
        )
    ]


class Findings(NamedTuple):
    """Content of a study's page."""

    study: str = ""
    """Empty, as title and source: taken from the `Study`."""
    title: str = ""
    source: str = ""
    """Paper and section; says so where the evaluation is ours."""
    finding: str = ""
    reading: Sequence[str] = ()
    """Reading of the source, and alternatives."""
    conditions: Sequence[str] = ()
    """Scenario, grid, seeds, warm-up."""
    sections: Sequence[Section] = ()
    not_reached: Sequence[str] = ()
    """Figures that do not come out, with the ratio and attempts."""
    failed: Sequence[str] = ()
    """Runs that failed: scenario, seed, reason."""
    reads: Sequence[str] = ()
    """Quantities (patterns with `*`) that `finding` is computed from."""
