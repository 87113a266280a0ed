"""Panels of curves as SVG for the docs: side by side, or in a grid with one legend.

Equal numbers give equal bytes. Colours are those of `antecede.lab.report.drawing`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from antecede.lab.report.drawing import SCHEMED, number, settings, svg_of

SOLID, DASHED, DOTTED = "-", "--", ":"
PANEL_INCHES = (3.7, 3.9)
CELL_INCHES = (3.6, 2.15)
_LEGEND_INCHES = 0.75
_LINE_INCHES = 0.17
NARROW = 3
"""Maximum number of curves for a legend with one column."""


class Curve(NamedTuple):
    label: str
    points: Sequence[tuple[float, float]]
    colour: int | None = 0
    """0 to 7; None: the faint colour of the reference."""
    style: str = SOLID
    marked: bool = True
    """Measured points are marked; bounds are not."""


class Panel(NamedTuple):
    """Pair of axes, both logarithmic."""

    title: str
    curves: Sequence[Curve]


def draw_curves(
    panels: Sequence[Panel],
    path: Path,
    *,
    x_label: str,
    ticks: Sequence[int],
    size: tuple[float, float] = PANEL_INCHES,
) -> None:
    """Write panels side by side as one SVG file; `size` is that of a panel, in inches."""
    with settings(SCHEMED):
        figure = Figure(figsize=(size[0] * len(panels), size[1]), layout="constrained")
        for place, panel in enumerate(panels):
            _draw(figure.add_subplot(1, len(panels), place + 1), panel, x_label, ticks)
        svg = svg_of(figure)
    path.write_text(svg, encoding="utf-8")


def draw_curve(axes: Any, curve: Curve) -> Any:
    (line,) = axes.plot(
        [x for x, _ in curve.points],
        [y for _, y in curve.points],
        color=SCHEMED.faint if curve.colour is None else SCHEMED.curves[curve.colour],
        linestyle=curve.style,
        linewidth=1.6,
        marker="o" if curve.marked else "",
        markersize=3.2,
        label=curve.label,
    )
    return line


def _draw(axes: Any, panel: Panel, x_label: str, ticks: Sequence[int]) -> None:
    for curve in panel.curves:
        draw_curve(axes, curve)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(panel.title, fontsize=10, loc="left")
    axes.set_xlabel(x_label)
    axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
    axes.xaxis.set_major_formatter(FuncFormatter(number))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(number))
    low, high = axes.get_ylim()
    first, last = math.log10(low), math.log10(high)
    if math.floor(last) - math.ceil(first) < 1:  # two labelled ticks at least
        axes.set_ylim(10 ** math.floor(first), 10 ** math.ceil(last))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(color=SCHEMED.line, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.legend(
        frameon=False,
        fontsize=8,
        loc="upper left",
        bbox_to_anchor=(-0.12, -0.2),
        ncols=2 if len(panel.curves) > NARROW else 1,
        columnspacing=1.2,
    )


class Cell(NamedTuple):
    """Pair of axes: x logarithmic, y logarithmic with a break above zero."""

    title: str
    curves: Sequence[Curve]
    note: str = ""
    """Text below the panel for values that cannot be drawn."""


def draw_grid(
    rows: Sequence[Sequence[Cell]],
    path: Path,
    *,
    x_ticks: Mapping[float, str],
    y_ticks: Sequence[Mapping[float, str]],
    x_label: str,
    footer: Sequence[str] = (),
) -> None:
    """Write rows of panels as one SVG file.

    `y_ticks` has the ticks of each row; all panels of a row share one scale, with zero below the
    least tick. Curves of one label look alike in every panel. `footer`: lines below all panels.
    """
    width, height = CELL_INCHES
    columns = max(len(row) for row in rows)
    with settings(SCHEMED):
        size = (width * columns, height * len(rows) + _LEGEND_INCHES + _LINE_INCHES * len(footer))
        figure = Figure(figsize=size, layout="constrained")
        named: dict[str, Any] = {}
        for r, row in enumerate(rows):
            values = [y for cell in row for curve in cell.curves for _, y in curve.points]
            for c, cell in enumerate(row):
                axes = figure.add_subplot(len(rows), columns, r * columns + c + 1)
                named = _draw_cell(axes, cell) | named
                _scale(axes, values, x_ticks, y_ticks[r])
                bottom = [x_label] if r == len(rows) - 1 else []
                axes.set_xlabel("\n".join([*([cell.note] if cell.note else []), *bottom]))
        figure.legend(
            named.values(), named.keys(), loc="outside upper left", frameon=False, ncols=2
        )
        figure.supxlabel("\n".join(footer), x=0.01, ha="left", fontsize=9)
        svg = svg_of(figure)
    path.write_text(svg, encoding="utf-8")


def _draw_cell(axes: Any, cell: Cell) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for curve in cell.curves:
        named.setdefault(curve.label, draw_curve(axes, curve))
    axes.set_title(cell.title, fontsize=9.5, loc="left")
    return named


def _scale(
    axes: Any, values: Sequence[float], x_ticks: Mapping[float, str], y_ticks: Mapping[float, str]
) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(list(x_ticks)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: x_ticks.get(x, "")))
    least = min(tick for tick in y_ticks if tick > 0)
    axes.set_yscale("symlog", linthresh=least, linscale=0.5)
    top = max([least, *(value for value in values if math.isfinite(value))])
    shown = [tick for tick in y_ticks if tick <= top * 1.5]
    axes.set_ylim(-0.12 * least, top * 2)
    axes.yaxis.set_major_locator(FixedLocator(shown))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: y_ticks.get(y, "")))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.grid(color=SCHEMED.line, linewidth=0.7)
    axes.set_axisbelow(True)
