"""The figures of a study's runs, picked by their parameters: what `findings` reads.

A condition is `name=value`, of a run's parameters or its `kind`, `seed` or key (`run`). Runs that
failed are absent everywhere, so every answer may be None or empty.
"""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from antecede.lab.report import Series
from antecede.lab.reproductions.framework.runs import Run
from antecede.quantiles import student_t


class Spread(NamedTuple):
    """A quantity over the runs that differ in their seeds alone."""

    mean: float
    sd: float
    """Of the sample; 0 for one run."""
    runs: int


class Results:
    """All figures of the runs that have some, in the order in which the study lists its runs."""

    def __init__(self, table: pa.Table, runs: Sequence[Run]) -> None:
        """Take rows with the columns run, quantity, value and series (others are kept)."""
        self.table = table
        names = ("run", "quantity", "value", "series")
        self._figures: dict[str, dict[str, Any]] = {}
        for key, quantity, value, series in zip(
            *(table[n].to_pylist() for n in names), strict=True
        ):
            if quantity is not None:
                self._figures.setdefault(key, {})[quantity] = series if value is None else value
        self.runs = tuple(run for run in runs if run.key in self._figures)
        self._values = [_values(run) for run in self.runs]

    def of(self, **conditions: Any) -> Results:
        """Return the results of the runs that meet all conditions."""
        part = copy.copy(self)
        part.runs = tuple(self.where(**conditions))
        part._values = [_values(run) for run in part.runs]
        return part

    def along(self, name: str, /, **point: Any) -> Results:
        """Return the results of the runs that are at this point, one parameter aside."""
        return self.of(**{key: value for key, value in point.items() if key != name})

    def by(self, name: str, /) -> list[tuple[Any, Results]]:
        """Return each value that a parameter has, ascending, and the results of its runs."""
        return [(value, self.of(**{name: value})) for value in self.places(name)]

    def where(self, **conditions: Any) -> list[Run]:
        """Return the runs that meet all conditions."""
        wanted = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in conditions.items()
        }
        return [
            run
            for run, values in zip(self.runs, self._values, strict=True)
            if all(name in values and values[name] == value for name, value in wanted.items())
        ]

    def places(self, name: str, /, **conditions: Any) -> list[Any]:
        """Return the values that a parameter has in the runs that meet the conditions, sorted."""
        runs = map(_values, self.where(**conditions))
        return sorted({values[name] for values in runs if name in values})

    def points(self, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the combinations of values that these parameters have, sorted."""
        values = map(_values, self.runs)
        return sorted({tuple(one[n] for n in names) for one in values if one.keys() >= set(names)})

    def seeds(self, **conditions: Any) -> str:
        """Return "seeds 1, 2, 3" of the runs that meet the conditions."""
        found = self.places("seed", **conditions)
        return f"seeds {', '.join(map(str, found))}" if found else "no seeds: no run gave figures"

    def figures(self, run: Run) -> Mapping[str, Any]:
        """Return all figures of a run: numbers and lists of numbers."""
        return self._figures[run.key]

    def values(self, quantity: str, /, **conditions: Any) -> list[float]:
        """Return the quantity of every run that meets the conditions and has it."""
        found = (self._figures[run.key].get(quantity) for run in self.where(**conditions))
        return [value for value in found if value is not None]

    def spread(self, quantity: str, /, **conditions: Any) -> Spread | None:
        """Return mean and deviation over the runs that meet the conditions; None: there are none.

        Name every parameter but the seed, or what differs is averaged too.
        """
        values = self.values(quantity, **conditions)
        if not values:
            return None
        return Spread(
            math.fsum(values) / len(values),
            statistics.stdev(values) if len(values) > 1 else 0.0,
            len(values),
        )

    def mean(self, quantity: str, /, **conditions: Any) -> float | None:
        """Return the mean over the runs that meet the conditions; None: there are none."""
        found = self.spread(quantity, **conditions)
        return None if found is None else found.mean

    def total(self, quantity: str, /, **conditions: Any) -> float | None:
        """Return the sum over the runs that meet the conditions; None: there are none."""
        values = self.values(quantity, **conditions)
        return sum(values) if values else None

    def share(self, above: str, below: str, /, **conditions: Any) -> float | None:
        """Return the sum of a quantity by the sum of another; None where that is none or 0."""
        of = self.total(below, **conditions)
        return sum(self.values(above, **conditions)) / of if of else None

    def ratio(self, above: str, below: str, /, **conditions: Any) -> float | None:
        """Return the mean of a quantity by the mean of another; None where that is none or 0."""
        over, under = self.mean(above, **conditions), self.mean(below, **conditions)
        return over / under if over is not None and under else None

    def line(
        self,
        label: str,
        quantity: str,
        x: str,
        /,
        *,
        paper: Sequence[tuple[float, float]] = (),
        style: str = "line",
        **conditions: Any,
    ) -> Series:
        """Return a line of a plot: the quantity over the parameter `x`, deviations over seeds."""
        places = self.places(x, **conditions)
        found = [(at, self.spread(quantity, **{**conditions, x: at})) for at in places]
        points = [(at, spread) for at, spread in found if spread is not None]
        several = any(spread.runs > 1 for _, spread in points)
        return Series(
            label,
            [float(at) for at, _ in points],
            [spread.mean for _, spread in points],
            [spread.sd for _, spread in points] if several else (),
            paper,
            style,
        )

    def slope(self, quantity: str, x: str, /, **conditions: Any) -> float | None:
        """Return the least-squares slope of the quantity over `x`; None below two places of x."""
        line = self.line("", quantity, x, **conditions)
        if len(line.x) < 2:
            return None
        return statistics.linear_regression(line.x, line.y).slope

    def power(self, quantity: str, x: str, /, **conditions: Any) -> float | None:
        """Return the power of `x` as which the quantity grows; None below two places of x."""
        line = self.line("", quantity, x, **conditions)
        return _growth(line.points)

    def power_interval(
        self, quantity: str, x: str, /, **conditions: Any
    ) -> tuple[float, float] | None:
        """Return the 95 % interval of the power of `x` as which the quantity grows over the runs.

        None where runs cannot tell it: fewer than three, or one place of x.
        """
        runs = self.where(**conditions)
        known = ((_values(run).get(x, 0), self._figures[run.key].get(quantity, 0)) for run in runs)
        points: list[tuple[float, float]] = [(at, y) for at, y in known if at > 0 and y > 0]
        power, degrees = _growth(points), len(points) - 2
        if power is None or degrees < 1:
            return None
        logs = [(math.log(at), math.log(value)) for at, value in points]
        middle_x, middle_y = (statistics.fmean(axis) for axis in zip(*logs, strict=True))
        wide = math.fsum((at - middle_x) ** 2 for at, _ in logs)
        off = math.fsum((value - middle_y - power * (at - middle_x)) ** 2 for at, value in logs)
        half = student_t(degrees) * math.sqrt(off / degrees / wide)
        return power - half, power + half


def _growth(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the exponent of the power of x that fits y best; None: it cannot be told."""
    kept = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in kept}) < 2:
        return None
    return statistics.linear_regression(*zip(*kept, strict=True)).slope


def _values(run: Run) -> Mapping[str, Any]:
    return {**run.parameters, "kind": run.kind, "seed": run.seed, "run": run.key}
