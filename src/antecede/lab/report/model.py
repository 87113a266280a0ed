"""Data model of a study's page: plain values, so `summary.json` is enough to draw it again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from antecede.errors import LocalError


class Row(NamedTuple):
    """A result, beside the published value if there is one."""

    figure: str
    """Figure, table or passage of the source, for example "Figure 4"."""
    quantity: str
    """For example "internal overhead" or "idr overhead slope"."""
    condition: str
    """For example "0-50 ms, 900 peers"."""
    paper: float | None
    ours: float
    unit: str = ""
    note: str = ""
    """Remark, for example the reason for a deviation."""

    @property
    def ratio(self) -> float | None:
        """This result / published value (None: no published value)."""
        return self.ours / self.paper if self.paper else None


class Series(NamedTuple):
    """A line of a plot."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] = ()
    """Standard deviation over seeds at each point (empty: one seed)."""
    paper: Sequence[tuple[float, float]] = ()
    style: str = "line"
    """"line", "dashed" (a bound or a model), "points" or "bars"."""

    @property
    def points(self) -> list[tuple[float, float]]:
        """The points (x, y)."""
        return list(zip(self.x, self.y, strict=True))


class Plot(NamedTuple):
    """A pair of axes."""

    key: str
    """Name of the files: figures/KEY.svg and figures/KEY.png."""
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    caption: str = ""
    x_log: bool = False
    y_log: bool = False


NO_METRICS = "no run has results"


class Claim(NamedTuple):
    """A statement and its result in the runs."""

    statement: str
    """Fixed text, in the source's own words if quoted."""
    where: str
    """Passage of the source, or "ours"."""
    found: str
    holds: bool | None
    """None: undecided, or no runs (`NO_METRICS`)."""
    reads: Sequence[str]
    """Quantities (patterns with `*`) that `observed` and `holds` depend on."""

    @property
    def verdict(self) -> str:
        """Verdict: "holds", "does not hold", "undecided" or "not run"."""
        open_verdict = "not run" if self.found == NO_METRICS else "undecided"
        return {True: "holds", False: "does not hold", None: open_verdict}[self.holds]


class Section(NamedTuple):
    """A section of the page: finding, table, plots, claims."""

    title: str
    finding: str
    """One or two sentences, computed from the quantities in `reads`."""
    rows: Sequence[Row] = ()
    plots: Sequence[Plot] = ()
    columns: Sequence[str] = ()
    """Column titles of `table`, which has no published values."""
    table: Sequence[Sequence[str]] = ()
    about: str = ""
    """Description that does not depend on results."""
    reads: Sequence[str] = ()
    """Quantities (patterns with `*`) that `finding` depends on."""
    claims: Sequence[Claim] = ()


def check_findings(findings: Findings) -> tuple[Findings, list[str]]:
    """Return the findings without empty rows, and a line per such row. Raises LocalError."""
    if not isinstance(findings, Findings):
        raise LocalError(f"findings: expected a Findings, got a {type(findings).__name__}")
    for name in ("reading", "conditions", "not_reached", "failed", "reads", "sections"):
        if isinstance(getattr(findings, name), str):
            raise LocalError(f"findings: {name} is a string; write a list: [{name!r}]")
    sections, blank = [], []
    for section in findings.sections:
        for name in ("rows", "plots", "columns", "table", "reads", "claims"):
            if isinstance(getattr(section, name), str):
                raise LocalError(f"section {section.title!r}: {name} is a string; write a list")
        rows = []
        for row in section.rows:
            if isinstance(row.ours, int | float) and math.isfinite(row.ours):
                rows.append(row)
            else:
                place = f"{row.figure}, {row.quantity}, {row.condition}"
                blank.append(f"{section.title}: {place}: no result")
        sections.append(section._replace(rows=rows))
    return findings._replace(sections=sections), blank


def drop_empty_sections(sections: Iterable[Section | None]) -> list[Section]:
    """Return the sections with content, without `reads` if the finding is empty."""
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
    """Empty as title and source: taken from the `Study`."""
    title: str = ""
    source: str = ""
    """Paper and section, or a note that the evaluation is ours."""
    finding: str = ""
    reading: Sequence[str] = ()
    """Interpretation of the source, and alternatives."""
    conditions: Sequence[str] = ()
    """Configuration, grid, seeds, warm-up."""
    sections: Sequence[Section] = ()
    not_reached: Sequence[str] = ()
    """Published values that are not reproduced, with ratio and attempts."""
    failed: Sequence[str] = ()
    """Failed runs: configuration, seed, reason."""
    reads: Sequence[str] = ()
    """Quantities (patterns with `*`) that `finding` depends on."""
