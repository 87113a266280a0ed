"""Range, scale and ticks of the axes of a plot. Logarithmic axes show zeros."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from matplotlib import ticker

from antecede.lab.report.drawing import number
from antecede.lab.report.model import Plot

MAX_NAMED_TICKS = 9
"""Largest number of x values with a tick each on a logarithmic axis."""
FROM_ZERO = 0.6
"""An axis starts at 0 if minimum / maximum is below this."""
MAX_DECADES_FOR_2_AND_5 = 2.5
"""Largest number of decades with ticks at 2 and 5."""


def collect_x(plot: Plot) -> list[float]:
    """Return the finite x values of all series and published points, ascending and unique."""
    values = [x for series in plot.series for x in (*series.x, *(x for x, _ in series.paper))]
    return sorted({float(x) for x in values if math.isfinite(x)})


def collect_y(plot: Plot) -> list[float]:
    """Return the finite y values of all series and published points."""
    values = [y for series in plot.series for y in (*series.y, *(y for _, y in series.paper))]
    return [float(y) for y in values if math.isfinite(y)]


def set_scales(axes: Any, plot: Plot, positions: Mapping[float, float] | None) -> None:
    """Set limits, scale and ticks of both axes. `positions`: x value -> position beside bars."""
    x, y = collect_x(plot), collect_y(plot)
    if not (x and y):
        axes.text(0.5, 0.5, "no values", transform=axes.transAxes, ha="center", va="center")
    else:
        ends = (x[0], x[-1]) if positions is None else (0.0,)
        axes.update_datalim([(at, value) for at in ends for value in (min(y), max(y))])
    if positions is None:
        _scale(axes, "x", x, plot.x_log)
    else:
        names = {place: number(value) for value, place in positions.items()}
        axes.xaxis.set_major_locator(ticker.FixedLocator(list(names)))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda at, _: names.get(at, "")))
        axes.set_xlim(-0.6, len(positions) - 0.4)
    _scale(axes, "y", y, plot.y_log)


def _scale(axes: Any, name: str, values: Sequence[float], log: bool) -> None:
    axis = axes.xaxis if name == "x" else axes.yaxis
    set_scale = axes.set_xscale if name == "x" else axes.set_yscale
    set_limits = axes.set_xlim if name == "x" else axes.set_ylim
    positive = [value for value in values if value > 0]
    if not log or not positive:
        axes.autoscale_view()
        whole = name == "x" and all(value == round(value) for value in values)
        axis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 2.5, 5, 10], integer=whole))
        if name == "y" and positive and 0 <= min(values) < FROM_ZERO * max(values):
            set_limits(0, None)
        elif name == "y" and not any(values):
            set_limits(0, 1)
    elif min(values) > 0:
        set_scale("log")
        axes.autoscale_view()
        low, high = axes.get_xlim() if name == "x" else axes.get_ylim()
        span = math.log10(high / low)
        if span < 1:
            set_limits(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high)))
        subs = (1.0,) if span > MAX_DECADES_FOR_2_AND_5 else (1.0, 2.0, 5.0)
        axis.set_major_locator(ticker.LogLocator(base=10, subs=subs, numticks=8))
        if name == "x" and _has_room_for_ticks(positive):
            axis.set_major_locator(ticker.FixedLocator(positive))
    else:
        least = 10.0 ** math.floor(math.log10(min(positive)))
        set_scale("symlog", linthresh=least, linscale=0.4)
        axes.autoscale_view()
        set_limits(0, None)
        axis.set_major_locator(ticker.SymmetricalLogLocator(base=10, linthresh=least))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(number))


def _has_room_for_ticks(values: Sequence[float]) -> bool:
    if not 2 <= len(values) <= MAX_NAMED_TICKS:
        return False
    places = [math.log10(value) for value in values]
    return min(b - a for a, b in pairwise(places)) > 0.1 * (places[-1] - places[0])
