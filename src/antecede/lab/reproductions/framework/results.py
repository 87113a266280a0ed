"""Metrics of a study's runs, selected by parameters.

A condition is `name=value`, of a run's parameters or its `kind`, `seed` or key (`run`). Failed runs
are absent, so each result may be None or empty.
"""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from antecede.errors import LocalError
from antecede.lab.report import Series
from antecede.lab.reproductions.framework.runs import Run
from antecede.quantiles import student_t


class Results:
    """Metrics of the successful runs, in the study's order of runs."""

    def __init__(self, table: pa.Table, runs: Sequence[Run]) -> None:
        """Read rows with the columns run, quantity, value and series."""
        self.table = table
        names = ("run", "quantity", "value", "series")
        self._metrics: dict[str, dict[str, Any]] = {}
        for key, quantity, value, series in zip(
            *(table[n].to_pylist() for n in names), strict=True
        ):
            if quantity is not None:
                self._metrics.setdefault(key, {})[quantity] = series if value is None else value
        self.runs = tuple(run for run in runs if run.key in self._metrics)
        self._values = [_collect_values(run) for run in self.runs]
        self.names = frozenset[str]().union(*map(_collect_values, runs))

    def select(self, **conditions: Any) -> Results:
        """Return the results of the runs that meet all conditions."""
        part = copy.copy(self)
        part.runs = tuple(self.find_runs(**conditions))
        part._values = [_collect_values(run) for run in part.runs]
        return part

    def find_runs(self, **conditions: Any) -> list[Run]:
        """Return the runs that meet all conditions. Raises LocalError for unknown parameters."""
        unknown = conditions.keys() - self.names
        if unknown and self.names:
            raise LocalError(
                f"unknown parameter {', '.join(sorted(unknown))}; choose from "
                f"{', '.join(sorted(self.names))}"
            )
        wanted = {k: list(v) if isinstance(v, tuple) else v for k, v in conditions.items()}
        return [
            run
            for run, values in zip(self.runs, self._values, strict=True)
            if all(name in values and values[name] == value for name, value in wanted.items())
        ]

    def list_parameter_values(self, name: str, /, **conditions: Any) -> list[Any]:
        """Return the sorted values of a parameter in the runs that meet the conditions."""
        return [value for (value,) in self.select(**conditions).list_points([name])]

    def list_points(self, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the sorted combinations of values of these parameters."""
        there = [point for point in self._values if point.keys() >= set(names)]
        return sorted({tuple(point[name] for name in names) for point in there})

    def describe_seeds(self, **conditions: Any) -> str:
        """Return "seeds 1, 2, 3" of the runs that meet the conditions."""
        found = self.list_parameter_values("seed", **conditions)
        return f"seeds {', '.join(map(str, found))}" if found else "no seeds: no run has results"

    def get_metrics(self, run: Run) -> Mapping[str, Any]:
        """Return all metrics of a run: numbers and lists of numbers."""
        return self._metrics[run.key]

    def values(self, quantity: str, /, **conditions: Any) -> list[float]:
        """Return the quantity of each run that meets the conditions and has it."""
        found = (self._metrics[run.key].get(quantity) for run in self.find_runs(**conditions))
        return [value for value in found if value is not None]

    def mean(self, quantity: str, /, **conditions: Any) -> float | None:
        """Return the mean over the runs that meet the conditions (None: no run)."""
        values = self.values(quantity, **conditions)
        return statistics.fmean(values) if values else None

    def total(self, quantity: str, /, **conditions: Any) -> float | None:
        """Return the sum over the runs that meet the conditions (None: no run)."""
        values = self.values(quantity, **conditions)
        return sum(values) if values else None

    def share(self, above: str, below: str, /, **conditions: Any) -> float | None:
        """Return total of one quantity / total of another (None: the divisor is missing or 0)."""
        of = self.total(below, **conditions)
        return sum(self.values(above, **conditions)) / of if of else None

    def ratio(self, above: str, below: str, /, **conditions: Any) -> float | None:
        """Return mean of one quantity / mean of another (None: the divisor is missing or 0)."""
        over, under = self.mean(above, **conditions), self.mean(below, **conditions)
        return over / under if over is not None and under else None

    def line(self, label: str, quantity: str, x: str, /, **conditions: Any) -> Series:
        """Return a line of a plot: the quantity over the parameter `x`, deviations over seeds."""
        places = self.list_parameter_values(x, **conditions)
        values = [(at, self.values(quantity, **{**conditions, x: at})) for at in places]
        known = [(float(at), found) for at, found in values if found]
        several = any(len(found) > 1 for _, found in known)
        return Series(
            label,
            [at for at, _ in known],
            [statistics.fmean(found) for _, found in known],
            [standard_deviation(found) for _, found in known] if several else (),
        )

    def slope(self, quantity: str, x: str, /, **conditions: Any) -> float | None:
        """Return the least-squares slope over `x` (None: fewer than two values of x)."""
        line = self.line("", quantity, x, **conditions)
        return statistics.linear_regression(line.x, line.y).slope if len(line.x) > 1 else None

    def power(self, quantity: str, x: str, /, **conditions: Any) -> float | None:
        """Return the exponent of growth over `x` (None: fewer than two values of x)."""
        return _fit_power(self.line("", quantity, x, **conditions).points)

    def power_interval(
        self, quantity: str, x: str, /, **conditions: Any
    ) -> tuple[float, float] | None:
        """Return the 95 % interval of the exponent over `x` (None: too few runs or values)."""
        runs = self.find_runs(**conditions)
        known = (
            (_collect_values(run).get(x, 0), self._metrics[run.key].get(quantity, 0))
            for run in runs
        )
        points: list[tuple[float, float]] = [(at, y) for at, y in known if at > 0 and y > 0]
        power, degrees = _fit_power(points), len(points) - 2
        if power is None or degrees < 1:
            return None
        logs = [(math.log(at), math.log(value)) for at, value in points]
        middle_x, middle_y = (statistics.fmean(axis) for axis in zip(*logs, strict=True))
        wide = math.fsum((at - middle_x) ** 2 for at, _ in logs)
        off = math.fsum((value - middle_y - power * (at - middle_x)) ** 2 for at, value in logs)
        half = student_t(degrees) * math.sqrt(off / degrees / wide)
        return power - half, power + half


def standard_deviation(values: Sequence[float]) -> float:
    """Return the standard deviation of the sample, 0 for one value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _fit_power(points: Sequence[tuple[float, float]]) -> float | None:
    kept = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in kept}) < 2:
        return None
    return statistics.linear_regression(*zip(*kept, strict=True)).slope


def _collect_values(run: Run) -> Mapping[str, Any]:
    return {**run.parameters, "kind": run.kind, "seed": run.seed, "run": run.key}
