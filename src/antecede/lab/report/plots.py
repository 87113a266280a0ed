"""Plots of a study, as SVG for pages and PNG for slides.

Series differ in colour, and in marker, dashes or hatches for grey prints. Published points are
hollow diamonds, each tied to the result at the same x. SVG groups are named `ours-K`, `spread-K`
and `paper-K` for series K.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from antecede.errors import LocalError
from antecede.lab.report import drawing
from antecede.lab.report.axes import collect_x, collect_y, set_scales
from antecede.lab.report.model import Plot, Series

WIDTH_INCHES = 4.7
POINTS = 10
"""Font size. It is about as many pixels where the plot is as wide as a phone."""
AXES_INCHES = 3.1
"""Height without the legend, which is below the axes."""
MARKERS = ("o", "s", "^", "v", "X", "P", "*", "<")
DASHES = ((0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)), (0, (3, 1, 1, 1, 1, 1)))
HATCHES = ("", "////", "----", "\\\\\\\\", "xxxx", "||||", "++++", "//")
"""Lines only: a pattern of dots takes 170 kB."""
MAX_MARKERS = 40
"""Largest number of markers of a line."""
STYLES = ("line", "dashed", "points", "bars")
PAPER_LABEL = "the paper's points"
_Style = TypeVar("_Style")
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


class PlotFiles(NamedTuple):
    """A plot in both formats."""

    svg: str
    png: bytes


def draw_plot(plot: Plot, colours: Mapping[str, int] | None = None) -> PlotFiles:
    """Return the plot as SVG (both schemes) and PNG (light, twice the usual resolution).

    `colours`: label -> slot, so a series looks the same in all plots of a page. Points that are not
    finite are gaps. A logarithmic axis with zeros is linear below the smallest positive value.
    Raises LocalError for negative values on it, a bad key, and series of unequal lengths.
    """
    _check(plot)
    slots = colours if colours is not None else slots_of([plot])
    with drawing.settings(drawing.SCHEMED, POINTS):
        svg = drawing.svg_of(_draw_figure(plot, slots, drawing.SCHEMED))
    with drawing.settings(drawing.LIGHT_PALETTE, POINTS):
        png = drawing.figure_to_png(_draw_figure(plot, slots, drawing.LIGHT_PALETTE))
    return PlotFiles(drawing.add_description(svg, plot.title, describe_plot(plot)), png)


def slots_of(plots: Iterable[Plot]) -> dict[str, int]:
    """Return a slot for each label. Up to eight series of one plot differ in colour."""
    slots: dict[str, int] = {}
    for plot in plots:
        labels = dict.fromkeys(series.label for series in plot.series)
        taken = {slots[label] % drawing.COLOURS for label in labels if label in slots}
        for label in labels:
            if label not in slots:
                free = [k for k in range(drawing.COLOURS) if k not in taken]
                free.sort(key=lambda k: k in slots.values())
                slots[label] = free[0] if free else len(slots)
                taken.add(slots[label])
    return slots


def describe_plot(plot: Plot) -> str:
    """Return a text for readers who do not see the plot."""
    parts = [f"{plot.y_label} against {plot.x_label}."]
    for series in plot.series:
        known = [(x, y) for x, y in zip(series.x, series.y, strict=True) if math.isfinite(y)]
        if known:
            first, last = min(known), max(known)
            ends = [
                f"{drawing.number(float(f'{y:.3g}'))} at {drawing.number(x)}"
                for x, y in (first, last)
            ]
            parts.append(f"{series.label}: {', '.join(ends)}.")
        for x, y in series.paper:
            parts.append(f"The paper has {drawing.number(y)} at {drawing.number(x)}.")
    return " ".join(parts)


def _check(plot: Plot) -> None:
    if not _KEY.match(plot.key):
        raise LocalError(f"plot {plot.key!r}: invalid key; use letters, digits, '.', '_' and '-'")
    for series in plot.series:
        where = f"plot {plot.key}, series {series.label!r}"
        if len(series.x) != len(series.y) or len(series.spread) not in (0, len(series.y)):
            sizes = f"{len(series.x)} x, {len(series.y)} y, {len(series.spread)} spread"
            raise LocalError(f"{where}: unequal lengths: {sizes}")
        if series.style not in STYLES:
            raise LocalError(
                f"{where}: unknown style {series.style!r}; choose from {', '.join(STYLES)}"
            )
    for log, axis, values in (
        (plot.x_log, "x", collect_x(plot)),
        (plot.y_log, "y", collect_y(plot)),
    ):
        if log and any(value < 0 for value in values):
            raise LocalError(
                f"plot {plot.key}: {axis} = {min(values):g} is negative on a logarithmic axis; "
                f"remove {axis}_log"
            )


class _Pen(NamedTuple):
    k: int
    series: Series
    slot: int
    palette: drawing.Palette
    positions: Mapping[float, float] | None
    """x value -> position beside bars (None: the value itself)."""
    bar: int | None = None
    """Index of the bar at its position (None: not a bar)."""
    bars: int = 1

    @property
    def width(self) -> float:
        return 0.8 / self.bars

    @property
    def colour(self) -> str:
        return self.palette.curves[self.slot % drawing.COLOURS]

    def find_positions(self, x: Iterable[float]) -> list[float]:
        if self.positions is None:
            return [float(value) for value in x]
        shift = 0.0 if self.bar is None else self.width * (self.bar + 0.5) - 0.4
        return [self.positions.get(float(value), math.nan) + shift for value in x]


def _make_pens(plot: Plot, slots: Mapping[str, int], palette: drawing.Palette) -> list[_Pen]:
    barred = [k for k, series in enumerate(plot.series) if series.style == "bars"]
    places = {x: float(k) for k, x in enumerate(collect_x(plot))} if barred else None
    bars = {k: place for place, k in enumerate(barred)}
    return [
        _Pen(k, series, slots[series.label], palette, places, bars.get(k), len(bars))
        for k, series in enumerate(plot.series)
    ]


def _draw_figure(plot: Plot, slots: Mapping[str, int], palette: drawing.Palette) -> Figure:
    columns, lines = _measure_legend(plot)
    figure = Figure(figsize=(WIDTH_INCHES, AXES_INCHES + 0.2 * lines), layout="constrained")
    axes: Any = figure.add_subplot()
    pens = _make_pens(plot, slots, palette)
    handles = [
        _draw_bars(axes, p) if p.series.style == "bars" else _draw_line(axes, p) for p in pens
    ]
    axes.set_title(textwrap.fill(drawing.clean(plot.title), 48), fontsize=11, loc="left")
    axes.set_xlabel(textwrap.fill(drawing.clean(plot.x_label), 50))
    axes.set_ylabel(textwrap.fill(drawing.clean(plot.y_label), 36))
    places = pens[0].positions if pens else None
    axes.grid(color=palette.line, linewidth=0.7, axis="both" if places is None else "y")
    axes.set_axisbelow(True)
    set_scales(axes, plot, places)
    for pen in pens:
        _draw_published_points(axes, pen)
    if any(series.paper for series in plot.series):
        handles.append(Line2D([], [], **_make_diamond_style(palette.ink)))
    if handles:
        figure.legend(
            handles,
            _make_labels(plot),
            loc="outside lower left",
            ncols=columns,
            frameon=False,
            fontsize=9,
            columnspacing=1.4,
            handlelength=2.4,
        )
    return figure


def _make_labels(plot: Plot) -> list[str]:
    labels = [series.label for series in plot.series]
    if any(series.paper for series in plot.series):
        labels.append(PAPER_LABEL)
    return [textwrap.fill(drawing.clean(label), 52) or " " for label in labels]


def _measure_legend(plot: Plot) -> tuple[int, int]:
    labels = _make_labels(plot)
    longest = max((len(line) for label in labels for line in label.split("\n")), default=1)
    columns = max(1, min(3, int(72 * WIDTH_INCHES / (42 + 5.2 * longest)), len(labels)))
    tallest = max((label.count("\n") + 1 for label in labels), default=0)
    return columns, tallest * math.ceil(len(labels) / columns)


def _pick_style(styles: Sequence[_Style], slot: int) -> _Style:
    """Return the style for a slot. Slots with the same colour get different styles."""
    return styles[(slot + slot // drawing.COLOURS) % len(styles)]


def _draw_line(axes: Any, pen: _Pen) -> Any:
    series, slot = pen.series, pen.slot
    dashed, points = series.style == "dashed", series.style == "points"
    marker = "" if dashed else _pick_style(MARKERS, slot)
    _draw_spread(axes, pen, pen.colour)
    (drawn,) = axes.plot(
        pen.find_positions(series.x),
        [float(value) for value in series.y],
        color=pen.colour,
        linestyle="" if points else _pick_style(DASHES, slot) if dashed else "-",
        linewidth=1.5,
        marker=marker,
        markersize=6 if marker in "X*P" else 4.6,
        markeredgewidth=0,
        markevery=1 if points else max(1, math.ceil(len(series.x) / MAX_MARKERS)),
        clip_on=False,
        zorder=3 if points else 2.5,
        gid=f"ours-{pen.k}",
    )
    return drawn


def _draw_bars(axes: Any, pen: _Pen) -> Any:
    hatch = HATCHES[(pen.bar or 0) % len(HATCHES)]
    bars = axes.bar(
        pen.find_positions(pen.series.x),
        [float(value) for value in pen.series.y],
        0.92 * pen.width,
        facecolor="none" if hatch else to_rgba(pen.colour, 0.4),
        edgecolor=pen.colour,
        hatch=hatch,
        linewidth=1,
    )
    for place, bar in enumerate(bars):
        bar.set_gid(f"ours-{pen.k}-{place}")
    _draw_spread(axes, pen, pen.palette.ink)
    return bars


def _draw_spread(axes: Any, pen: _Pen, colour: str) -> None:
    """Draw error bars. The lower end stays above 0 if the value does."""
    if not any(pen.series.spread):
        return
    arms = [abs(float(value)) for value in pen.series.spread]
    pairs = zip(pen.series.y, arms, strict=True)
    down = [min(arm, 0.999 * float(y)) if y > 0 else arm for y, arm in pairs]
    _, caps, (drawn,) = axes.errorbar(
        pen.find_positions(pen.series.x),
        pen.series.y,
        yerr=[down, arms],
        fmt="none",
        ecolor=colour,
        elinewidth=1,
        capsize=2.4,
    )
    drawn.set_gid(f"spread-{pen.k}")
    for cap in caps:
        cap.set_markeredgewidth(1)
        cap.set_markerfacecolor(colour)


def _make_diamond_style(colour: str) -> dict[str, Any]:
    return {
        "color": colour,
        "linestyle": "",
        "marker": "D",
        "markersize": 7.5,
        "markerfacecolor": "none",
        "markeredgewidth": 1.5,
    }


def _draw_published_points(axes: Any, pen: _Pen) -> None:
    series = pen.series
    if not series.paper:
        return
    ours = {float(x): float(y) for x, y in zip(series.x, series.y, strict=True)}
    x = pen.find_positions(x for x, _ in series.paper)
    y = [float(value) for _, value in series.paper]
    for (key, _), place, value in zip(series.paper, x, y, strict=True):
        ends = [ours.get(float(key), math.nan), value]
        if all(map(math.isfinite, ends)):
            line = {"color": pen.colour, "linewidth": 0.9, "zorder": 4, "gid": f"gap-{pen.k}"}
            axes.plot([place, place], ends, **line)
    colour = pen.palette.ink if series.style == "bars" else pen.colour
    axes.plot(x, y, **_make_diamond_style(colour), zorder=5, gid=f"paper-{pen.k}", clip_on=False)
