"""Curves as SVG for pages: readable in light and dark, the same bytes for the same numbers.

Needs matplotlib, which nothing else here does (dependency group `dev`). Matplotlib knows no
colour schemes, so it draws in placeholder colours, which are then replaced by CSS variables of the
picture's own style sheet. Text stays text, in the reader's font.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

SOLID, DASHED, DOTTED = "-", "--", ":"
PANEL_INCHES = (3.7, 3.9)
NARROW = 3
"""Most curves of a panel whose legend has one column."""

_PLACEHOLDERS = {
    "#010101": "ink",
    "#020202": "faint",
    "#030303": "line",
    **{f"#0{k}0{k}0{k}": f"c{k - 4}" for k in range(4, 10)},
    "#0a0a0a": "c6",
    "#0b0b0b": "c7",
}
_INK, _FAINT, _LINE, *_CURVES = _PLACEHOLDERS
_STYLE = """<style>
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
:root{--ink:#1f2933;--faint:#667585;--line:#d5dce3;--c0:#1d4ed8;--c1:#b45309;--c2:#15803d;
--c3:#c81e1e;--c4:#7c3aed;--c5:#0e7490;--c6:#be185d;--c7:#57534e}
@media (prefers-color-scheme:dark){:root{--ink:#e6ebf0;--faint:#93a1b0;--line:#3a4551;
--c0:#8ab4ff;--c1:#f0a95c;--c2:#5fd38a;--c3:#ff7b72;--c4:#c4a1ff;--c5:#5cc8dd;--c6:#ff8fc0;
--c7:#c9c4bd}}
</style>
"""
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "antecede",
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
}


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
    with mpl.rc_context(cast("Any", _SETTINGS)):
        figure = Figure(figsize=(size[0] * len(panels), size[1]), layout="constrained")
        FigureCanvasSVG(figure)
        for place, panel in enumerate(panels):
            _draw(figure.add_subplot(1, len(panels), place + 1), panel, x_label, ticks)
        written = io.StringIO()
        figure.savefig(
            written, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    path.write_text(_schemed(written.getvalue()), encoding="utf-8")


def _draw(axes: Any, panel: Panel, x_label: str, ticks: Sequence[int]) -> None:
    for curve in panel.curves:
        axes.plot(
            [x for x, _ in curve.points],
            [y for _, y in curve.points],
            color=_FAINT if curve.colour is None else _CURVES[curve.colour],
            linestyle=curve.style,
            linewidth=1.6,
            marker="o" if curve.marked else "",
            markersize=3.2,
            label=curve.label,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(panel.title, fontsize=10, loc="left")
    axes.set_xlabel(x_label)
    axes.xaxis.set_major_locator(FixedLocator(list(ticks)))
    axes.xaxis.set_major_formatter(FuncFormatter(_number))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(_number))
    low, high = axes.get_ylim()
    first, last = math.log10(low), math.log10(high)
    if math.floor(last) - math.ceil(first) < 1:  # two labelled ticks at least
        axes.set_ylim(10 ** math.floor(first), 10 ** math.ceil(last))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(color=_LINE, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.legend(
        frameon=False,
        fontsize=8,
        loc="upper left",
        bbox_to_anchor=(-0.12, -0.2),
        ncols=2 if len(panel.curves) > NARROW else 1,
        columnspacing=1.2,
    )


def _number(value: float, _: int) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _schemed(svg: str) -> str:
    """Replace placeholder colours by variables, fonts by the reader's; leave out idle text."""
    for colour, name in _PLACEHOLDERS.items():
        svg = svg.replace(colour, f"var(--{name})")
    svg = re.sub(r" font-family: [^;]*;", "", svg)
    svg = re.sub(r" <metadata>.*?</metadata>\n", "", svg, flags=re.DOTALL)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(r"(\d\.\d\d)\d+", r"\1", svg)
    head, defs, rest = svg.partition(" <defs>")
    body = " ".join(line.strip() for line in f"{defs}{rest}".splitlines())
    return f"{head}{_STYLE}{body.replace('> <', '>' + chr(10) + '<')}\n"
