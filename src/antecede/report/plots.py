"""Plots of a study's findings, as SVG for pages and as PNG for slides: one drawing, two inks.

What tells series apart is colour, and marker or dashes as well, so that a grey print can be read.
The paper's points are hollow diamonds over our curves, each tied to our value at the same x. Groups of
the SVG are named: `ours-K`, `spread-K`, `paper-K` for series K.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
    SymmetricalLogLocator,
)

from antecede.errors import LocalError
from antecede.report.drawing import (
    COLOURS,
    PAPER,
    SCHEMED,
    Inks,
    clean,
    described,
    number,
    png_of,
    settings,
    svg_of,
)
from antecede.studies.findings import Plot, Series

WIDTH_INCHES = 4.7
AXES_INCHES = 3.0
"""Height without the legend, which stands below and covers nothing."""
MARKERS = ("o", "s", "^", "v", "X", "P", "*")
"""Never the diamond: that is the paper's."""
DASHES = ((0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)), (0, (3, 1, 1, 1, 1, 1)))
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++", "oooo")
MARKED = 40
"""Most points of a line that all have a marker."""
NAMED_TICKS = 9
"""Most values of x that all have a tick on a logarithmic axis."""
STYLES = ("line", "dashed", "points", "bars")
PAPER_LABEL = "the paper's points"
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


class Drawn(NamedTuple):
    """One plot in both formats."""

    svg: str
    png: bytes


def draw_plot(plot: Plot, colours: Mapping[str, int] | None = None) -> Drawn:
    """Return the plot as SVG (both schemes) and PNG (light, twice the usual resolution).

    `colours` gives labels a number of colour, so that a series looks the same in all plots of a page.
    Points that are no finite numbers are gaps. A logarithmic axis with zeros is linear below the
    smallest value that is not; with values below zero it raises LocalError, as do a key that
    is no file name, and series whose x, y and spread have different lengths.
    """
    _check(plot)
    slots = colours if colours is not None else slots_of([plot])
    with settings(SCHEMED):
        svg = svg_of(_figure(plot, slots, SCHEMED))
    with settings(PAPER):
        png = png_of(_figure(plot, slots, PAPER))
    return Drawn(described(svg, plot.title, in_words(plot)), png)


def slots_of(plots: Iterable[Plot]) -> dict[str, int]:
    """Return a number for every label; no two of one plot share a colour, up to eight series."""
    slots: dict[str, int] = {}
    for plot in plots:
        labels = dict.fromkeys(series.label for series in plot.series)
        taken = {slots[label] % COLOURS for label in labels if label in slots}
        for label in labels:
            if label not in slots:
                free = [k for k in range(COLOURS) if k not in taken]
                slots[label] = free[0] if free else len(slots)
                taken.add(slots[label])
    return slots


def in_words(plot: Plot) -> str:
    """Return the plot for those who do not see it."""
    parts = [f"{plot.y_label} against {plot.x_label}."]
    for series in plot.series:
        known = [(x, y) for x, y in zip(series.x, series.y, strict=True) if math.isfinite(y)]
        if known:
            first, last = min(known), max(known)
            parts.append(
                f"{series.label}: {number(_short(first[1]))} at {number(first[0])}, "
                f"{number(_short(last[1]))} at {number(last[0])}."
            )
        for x, y in series.paper:
            parts.append(f"The paper has {number(y)} at {number(x)}.")
    return " ".join(parts)


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _check(plot: Plot) -> None:
    if not _KEY.match(plot.key):
        raise LocalError(f"plot {plot.key!r}: a key is letters, digits, '.', '_' and '-'")
    for series in plot.series:
        where = f"plot {plot.key}, series {series.label!r}"
        if len(series.x) != len(series.y) or len(series.spread) not in (0, len(series.y)):
            sizes = f"{len(series.x)} x, {len(series.y)} y, {len(series.spread)} spread"
            raise LocalError(f"{where}: lengths differ: {sizes}")
        if series.style not in STYLES:
            raise LocalError(f"{where}: style {series.style!r} is none of {', '.join(STYLES)}")
    for log, axis, values in ((plot.x_log, "x", _all_x(plot)), (plot.y_log, "y", _all_y(plot))):
        if log and any(value < 0 for value in values):
            raise LocalError(
                f"plot {plot.key}: {axis} is {min(values):g} on a logarithmic axis: "
                f"leave {axis}_log out"
            )


def _all_x(plot: Plot) -> list[float]:
    values = [x for series in plot.series for x in (*series.x, *(x for x, _ in series.paper))]
    return sorted({float(x) for x in values if math.isfinite(x)})


def _all_y(plot: Plot) -> list[float]:
    values = [y for series in plot.series for y in (*series.y, *(y for _, y in series.paper))]
    return [float(y) for y in values if math.isfinite(y)]


def _figure(plot: Plot, slots: Mapping[str, int], inks: Inks) -> Figure:
    columns, lines = _legend_shape(plot)
    height = AXES_INCHES + 0.19 * lines
    figure = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
    axes: Any = figure.add_subplot()
    places = _places(plot)
    handles: list[Any] = []
    barred = [series.label for series in plot.series if series.style == "bars"]
    for k, series in enumerate(plot.series):
        slot = slots[series.label]
        if series.style == "bars":
            share = 0.8 / len(barred), barred.index(series.label)
            handles.append(_bars(axes, k, series, slot, inks, places, *share))
        else:
            handles.append(_line(axes, k, series, slot, inks, places))
    _axes(axes, plot, places, inks)
    for k, series in enumerate(plot.series):
        _paper(axes, k, series, inks.curves[slots[series.label] % COLOURS], places)
    if any(series.paper for series in plot.series):
        handles.append(Line2D([], [], **_diamond(inks.ink), label=PAPER_LABEL))
    if handles:
        figure.legend(
            handles,
            [_label(handle.get_label()) for handle in handles],
            loc="outside lower left",
            ncols=columns,
            frameon=False,
            fontsize=8,
            columnspacing=1.4,
            handlelength=2.4,
        )
    return figure


def _legend_shape(plot: Plot) -> tuple[int, int]:
    """Return columns and lines of the legend."""
    labels = [_label(series.label) for series in plot.series]
    if any(series.paper for series in plot.series):
        labels.append(PAPER_LABEL)
    longest = max((len(line) for label in labels for line in label.split("\n")), default=1)
    columns = max(1, min(3, int(72 * WIDTH_INCHES / (40 + 4.7 * longest)), len(labels)))
    tallest = max((label.count("\n") + 1 for label in labels), default=0)
    return columns, tallest * math.ceil(len(labels) / columns)


def _label(text: str) -> str:
    return textwrap.fill(clean(text), 58) or " "


def _places(plot: Plot) -> Mapping[float, float] | None:
    """Return where each x stands: with bars one beside the other, else None (where it is)."""
    if all(series.style != "bars" for series in plot.series):
        return None
    return {x: float(k) for k, x in enumerate(_all_x(plot))}


def _at(x: Iterable[float], places: Mapping[float, float] | None) -> list[float]:
    if places is None:
        return [float(value) for value in x]
    return [places.get(float(value), math.nan) for value in x]


def _line(
    axes: Any, k: int, series: Series, slot: int, inks: Inks, places: Mapping[float, float] | None
) -> Any:
    """Draw a line, dashes or points, with error bars where there are several seeds."""
    colour = inks.curves[slot % COLOURS]
    x, y = _at(series.x, places), [float(value) for value in series.y]
    dashed, points = series.style == "dashed", series.style == "points"
    marker = "" if dashed else MARKERS[slot % len(MARKERS)]
    if any(series.spread):
        _, caps, (arms,) = axes.errorbar(
            x, y, yerr=_arms(series), fmt="none", ecolor=colour, elinewidth=1, capsize=2.4
        )
        arms.set_gid(f"spread-{k}")
        for cap in caps:
            cap.set_markeredgewidth(1)
    (drawn,) = axes.plot(
        x,
        y,
        color=colour,
        linestyle="" if points else DASHES[slot % len(DASHES)] if dashed else "-",
        linewidth=1.5,
        marker=marker,
        markersize=6 if marker in "X*P" else 4.6,
        markeredgewidth=0,
        markevery=max(1, math.ceil(len(x) / MARKED)) if not points else 1,
        label=series.label,
        clip_on=False,
        zorder=3 if points else 2.5,
        gid=f"ours-{k}",
    )
    return drawn


def _arms(series: Series) -> list[list[float]]:
    """Return the lengths of error bars down and up; down stays above zero where the value does."""
    spread = [abs(float(value)) for value in series.spread]
    pairs = zip(series.y, spread, strict=True)
    down = [min(arm, 0.999 * float(y)) if y > 0 else arm for y, arm in pairs]
    return [down, spread]


def _bars(
    axes: Any,
    k: int,
    series: Series,
    slot: int,
    inks: Inks,
    places: Mapping[float, float] | None,
    width: float,
    place: int,
) -> Any:
    """Draw one series of bars beside the others."""
    colour = inks.curves[slot % COLOURS]
    middle = -0.4 + width * (place + 0.5)
    x = [value + middle for value in _at(series.x, places)]
    hatch = HATCHES[slot % len(HATCHES)]
    bars = axes.bar(
        x,
        [float(value) for value in series.y],
        0.92 * width,
        facecolor=colour if not hatch else "none",
        edgecolor=colour,
        hatch=hatch,
        linewidth=1,
        label=series.label,
    )
    for bar in bars:
        bar.set_gid(f"ours-{k}")
    if any(series.spread):
        _, _, (arms,) = axes.errorbar(
            x, series.y, yerr=_arms(series), fmt="none", ecolor=inks.ink, elinewidth=1, capsize=2.4
        )
        arms.set_gid(f"spread-{k}")
    return bars


def _diamond(colour: str) -> dict[str, Any]:
    return {
        "color": colour,
        "linestyle": "",
        "marker": "D",
        "markersize": 7.5,
        "markerfacecolor": "none",
        "markeredgewidth": 1.5,
    }


def _paper(
    axes: Any, k: int, series: Series, colour: str, places: Mapping[float, float] | None
) -> None:
    """Draw the paper's points over ours; a thin line leads to our value at the same x."""
    if not series.paper:
        return
    x = _at((x for x, _ in series.paper), places)
    y = [float(value) for _, value in series.paper]
    ours = {float(x): float(y) for x, y in zip(series.x, series.y, strict=True)}
    for (key, _), place, value in zip(series.paper, x, y, strict=True):
        if series.style != "bars" and math.isfinite(ours.get(float(key), math.nan)):
            ends = [ours[float(key)], value]
            axes.plot([place, place], ends, color=colour, linewidth=0.9, zorder=4, gid=f"gap-{k}")
    axes.plot(x, y, **_diamond(colour), zorder=5, gid=f"paper-{k}", clip_on=False)


def _axes(axes: Any, plot: Plot, places: Mapping[float, float] | None, inks: Inks) -> None:
    axes.set_title(textwrap.fill(clean(plot.title), 56), fontsize=10, loc="left")
    axes.set_xlabel(textwrap.fill(clean(plot.x_label), 60))
    axes.set_ylabel(textwrap.fill(clean(plot.y_label), 44))
    axes.grid(color=inks.line, linewidth=0.7, axis="both" if places is None else "y")
    axes.set_axisbelow(True)
    # The paper's points count for the range, and are drawn later, over everything.
    if places is None:
        axes.update_datalim([(x, y) for x in _all_x(plot)[:1] for y in _all_y(plot)])
        axes.update_datalim([(x, y) for x in _all_x(plot) for y in _all_y(plot)[:1]])
        _scale(axes, "x", _all_x(plot), plot.x_log)
    else:
        axes.update_datalim([(0, y) for y in _all_y(plot)])
        axes.xaxis.set_major_locator(FixedLocator(list(places.values())))
        names = {place: number(x) for x, place in places.items()}
        axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: names.get(at, "")))
        axes.set_xlim(-0.6, len(places) - 0.4)
    _scale(axes, "y", _all_y(plot), plot.y_log)


def _scale(axes: Any, name: str, values: Sequence[float], log: bool) -> None:
    """Set scale, range and ticks of one axis."""
    axis = axes.xaxis if name == "x" else axes.yaxis
    set_scale = axes.set_xscale if name == "x" else axes.set_yscale
    set_limits = axes.set_xlim if name == "x" else axes.set_ylim
    positive = [value for value in values if value > 0]
    if not log or not positive:
        axes.autoscale_view()
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        if name == "y" and positive and min(values) >= 0 and min(values) < 0.6 * max(values):
            set_limits(0, None)
    elif min(values) > 0:
        set_scale("log")
        axes.autoscale_view()
        _decades(axis, set_limits, *(axes.get_xlim() if name == "x" else axes.get_ylim()))
        if name == "x" and _apart(positive):
            axis.set_major_locator(FixedLocator(positive))
    else:
        least = 10.0 ** math.floor(math.log10(min(positive)))
        set_scale("symlog", linthresh=least, linscale=0.4)
        axes.autoscale_view()
        set_limits(0, None)
        axis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=least))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(number))


def _decades(axis: Any, set_limits: Any, low: float, high: float) -> None:
    """Choose ticks of a logarithmic axis: decades, or 1, 2 and 5 where there are few."""
    span = math.log10(high / low)
    if span < 0.7:
        set_limits(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
    subs = (1.0,) if span > 2.5 else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=8))


def _apart(values: Sequence[float]) -> bool:
    """Return whether every value has room for a tick of its own."""
    if not 2 <= len(values) <= NAMED_TICKS:
        return False
    places = [math.log10(value) for value in values]
    least = min(b - a for a, b in zip(places, places[1:], strict=False))
    return least > 0.07 * (places[-1] - places[0])
