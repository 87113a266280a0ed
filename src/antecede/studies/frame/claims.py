"""What a study's page claims, as tables, and what its sections are built of from them.

A figure of a page is an `Asked`: quantity, condition, ours, and what the source states of it where.
A statement is a `Claim` with the answer of the runs, which is None where they gave nothing. Rows,
tables, lines and sentences are built from these alone, so nothing is said that no run has shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from antecede.report.values import NO_FIGURES, Claim, Findings, Row, Section, Series
from antecede.studies.frame.compare_paper import unmet
from antecede.studies.frame.results import Results

Answer: TypeAlias = tuple[str, bool | None] | None
"""Figures about a statement, and whether it holds (None: undecided); None: no figures."""


class Quantity(NamedTuple):
    """Something that runs measure."""

    name: str
    """On the page."""
    figure: str
    """In the figures of a run."""
    unit: str = ""


class Asked(NamedTuple):
    """A figure that a page asks the runs for, beside what the source states."""

    quantity: str
    condition: str
    ours: float | None
    """None: no run gave it."""
    unit: str = ""
    stated: float | None = None
    """The source's figure, where it has one."""
    where: str = "ours"
    """Figure, table or passage that states it."""
    note: str = ""


def page(
    finding: str,
    reads: Sequence[str],
    *,
    reading: Sequence[str],
    conditions: Sequence[str],
    sections: Sequence[Section],
    otherwise: str = "No run gave figures.",
    not_reached: Sequence[str] = (),
) -> Findings:
    """Return the findings of a study; `finding` is computed from `reads`, `otherwise` stands for
    an empty one.

    Claims that do not hold are told under what does not come out, before `not_reached`.
    """
    return Findings(
        finding=finding or otherwise,
        reading=reading,
        conditions=conditions,
        sections=sections,
        not_reached=[*unmet(sections), *not_reached],
        reads=reads if finding else (),
    )


def rows(asked: Iterable[Asked]) -> list[Row]:
    """Return a row for everything that runs gave a figure for."""
    return [
        Row(one.where, one.quantity, one.condition, one.stated, one.ours, one.unit, one.note)
        for one in asked
        if one.ours is not None
    ]


def all_of(values: Iterable[float | None]) -> list[float]:
    """Return the values, or nothing where one of them is missing."""
    found = list(values)
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else []


def means(results: Results, quantities: Iterable[Quantity], condition: str) -> list[Asked]:
    """Ask for the mean of each quantity over these runs."""
    return [Asked(one.name, condition, results.mean(one.figure), one.unit) for one in quantities]


def lines(results: Results, over: str, quantities: Iterable[Quantity]) -> list[Series]:
    """Return a line over a parameter for each quantity that has points there."""
    found = (results.line(one.name, one.figure, over) for one in quantities)
    return [line for line in found if line.x]


def table(columns: Mapping[str, str], items: Iterable[object]) -> dict[str, Any]:
    """Return `columns` and `table` of a section: titles, and how each cell shows an item.

    A cell is a format of the item, "{0.taken:.0%}" or "{0[sent]:,.0f}".
    """
    cells = columns.values()
    return {
        "columns": tuple(columns),
        "table": [tuple(cell.format(item) for cell in cells) for item in items],
    }


def claim(statement: str, where: str, reads: Sequence[str], answer: Answer) -> Claim:
    """Return a statement with what the figures say to it."""
    found, holds = answer or (NO_FIGURES, None)
    return Claim(statement, where, found, holds, reads)


def as_power(
    results: Results, quantity: str, over: str, low: float, high: float, *, unit: str = ""
) -> Answer:
    """Answer whether a quantity grows as a power from `low` to `high` of the parameter `over`.

    It holds if the 95 % interval of the power lies within the limits, and does not hold if the
    interval lies outside. Otherwise, and without an interval, it is undecided.
    """
    line, power = results.line("", quantity, over), results.power(quantity, over)
    if power is None:
        return None
    interval = results.power_interval(quantity, over)
    said = f"{min(line.y):,.1f} to {max(line.y):,.1f}{unit}, as the power {power:.3f}"
    if interval is None:
        return f"{said} (too few runs for an interval)", None
    said += f" (95 % interval {interval[0]:.3f} to {interval[1]:.3f})"
    if low <= interval[0] and interval[1] <= high:
        return said, True
    return said, None if interval[0] <= high and low <= interval[1] else False


def figure_or_dash(value: float | None, form: str = ",.0f", unit: str = "") -> str:
    """Return a cell of a table of words; a dash where no run gave a figure."""
    return "-" if value is None else f"{value:{form}}{unit}"
