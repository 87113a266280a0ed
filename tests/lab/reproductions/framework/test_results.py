"""Figures are picked by what runs have in common, and are absent where runs failed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from antecede.errors import LocalError
from antecede.lab.reproductions.framework.execute import SCHEMA, run_locally
from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import Study
from tests.lab.reproductions import toy


def results_of(study: Study, runs: list[Run]) -> Results:
    table: Any = pa.concat_tables(run_locally(study, runs))
    return Results(table, runs)


def grid() -> tuple[Results, list[Run]]:
    """Twice and thrice x, y times, at the seeds 1 and 3; twice x failed at x = 4, seed 3."""
    runs = [
        Run(f"{factor}/{x}/{seed}", seed, 1.0, "line", {}, {"factor": factor, "x": x})
        for factor in (2, 3)
        for x in (4, 1, 2)
        for seed in (1, 3)
    ]
    rows: list[dict[str, Any]] = [
        {
            "run": r.key,
            "quantity": "y",
            "value": r.parameters["factor"] * r.parameters["x"] + r.seed,
        }
        for r in runs
        if r.key != "2/4/3"
    ]
    rows += [{"run": "2/1/1", "quantity": "s", "series": [1.0, 2.0]}]
    return Results(pa.Table.from_pylist(rows, SCHEMA), runs), runs


def test_runs_are_picked_by_parameters_kind_and_seed() -> None:
    results, runs = grid()
    assert len(results.runs) == len(runs) - 1
    assert [run.key for run in results.find_runs(factor=2, x=4)] == ["2/4/1"]
    assert [run.key for run in results.find_runs(kind="line", seed=3, x=1)] == ["2/1/3", "3/1/3"]
    assert results.find_runs(factor=9) == []
    with pytest.raises(LocalError, match="unknown parameter style; choose from"):
        results.line("one", "y", "x", style="dashed")
    assert results.get_metrics(runs[2]) == {"y": 3.0, "s": [1.0, 2.0]}


def test_means_are_over_seeds() -> None:
    results, _ = grid()
    assert results.mean("y", factor=3, x=2) == 8.0
    assert results.mean("y", factor=2, x=4) == 9.0
    assert results.mean("y", factor=5) is results.mean("z", factor=2) is None


def test_a_line_has_its_places_in_order_and_leaves_out_what_failed() -> None:
    results, _ = grid()
    line = results.line("twice", "y", "x", factor=2)
    assert (line.label, line.x, line.y) == ("twice", [1.0, 2.0, 4.0], [4.0, 6.0, 9.0])
    assert line.spread == [math.sqrt(2), math.sqrt(2), 0.0]
    assert results.line("one seed", "y", "x", factor=2, seed=1).spread == ()
    assert results.line("none", "y", "x", factor=9).x == []


def test_slopes_are_least_squares() -> None:
    results, _ = grid()
    assert results.slope("y", "x", factor=3) == pytest.approx(3.0)
    assert results.slope("y", "x", factor=3, x=4) is None
    assert results.slope("y", "nothing", factor=3) is None


def test_conditions_are_compared_as_workers_read_them() -> None:
    runs = [Run("a", 1, 1.0, "sum", {}, {"steps": 10, "delay": [1, 2]})]
    assert len(results_of(toy.STUDY, runs).find_runs(delay=(1, 2))) == 1


def powers(values: dict[int, list[float]]) -> Results:
    """Runs of x -> values of y, one a seed."""
    runs = [
        Run(f"{x}/{seed}", seed, 1.0, "line", {}, {"x": x})
        for x, of in values.items()
        for seed in range(len(of))
    ]
    rows = [
        {"run": run.key, "quantity": "y", "value": values[int(run.parameters["x"])][run.seed]}
        for run in runs
    ]
    return Results(pa.Table.from_pylist(rows, SCHEMA), runs)


def test_a_power_has_the_interval_of_its_regression() -> None:
    found = powers({1_000: [51.8], 10_000: [73.4], 100_000: [48.3], 1_000_000: [46.2]})
    power, interval = found.power("y", "x"), found.power_interval("y", "x")
    assert power is not None
    assert interval is not None
    xs, ys = [3.0, 4.0, 5.0, 6.0], [math.log10(y) for y in (51.8, 73.4, 48.3, 46.2)]
    fit = np.polyfit(xs, ys, 1)
    rest = np.asarray(ys) - np.polyval(fit, xs)
    half = 4.303 * math.sqrt(float(rest @ rest) / 2 / 5.0)
    assert power == pytest.approx(fit[0])
    assert interval == pytest.approx((fit[0] - half, fit[0] + half))
    assert powers({1: [2.0], 10: [3.0]}).power_interval("y", "x") is None
    assert powers({1: [2.0, 2.1, 2.2]}).power_interval("y", "x") is None
    assert powers({1: [2.0, 2.1], 10: [2.0]}).power_interval("y", "x") is not None
