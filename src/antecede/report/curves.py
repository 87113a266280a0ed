"""Panels of curves as SVG for the docs: the same bytes for the same numbers.

`drawing` has what makes them readable in light and dark; plots of studies are in `plots`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from antecede.report.drawing import SCHEMED, number, settings, svg_of

SOLID, DASHED, DOTTED = "-", "--", ":"
PANEL_INCHES = (3.7, 3.9)
NARROW = 3
"""Most curves of a panel whose legend has one column."""


class Curve(NamedTuple):
    """One line of a panel."""

    label: str
    points: Sequence[tuple[float, float]]
    colour: int | None = 0
    """0 to 7; None: the faint colour, for what is there to compare with."""
    style: str = SOLID
    marked: bool = True
    """Measured points are marked; bounds are not."""


class Panel(NamedTuple):
    """One pair of axes, both logarithmic."""

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
    """Draw a curve on matplotlib's axes; return its line."""
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
