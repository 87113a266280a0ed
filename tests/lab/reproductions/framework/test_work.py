"""A run's outcome: its figures, or why there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from antecede.lab.reproductions.framework.execute import (
    SCHEMA,
    execute_run,
    run_locally,
    sort_by_cost,
)
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import SECONDS, Metrics
from tests.lab.reproductions import toy

RUN = Run("a", 1, 1.0)


def rows(figures: Metrics) -> list[dict[str, Any]]:
    made: Any = execute_run(RUN, lambda run: figures)
    assert made.schema == SCHEMA
    found: list[dict[str, Any]] = made.to_pylist()
    return [row for row in found if row["quantity"] != SECONDS]


def test_figures_become_rows_by_name() -> None:
    found = rows({"b": 2, "a": np.float64(0.1), "s": [1, 2], "none": (), "t": np.arange(2)})
    assert [(row["quantity"], row["value"], row["series"]) for row in found] == [
        ("a", 0.1, None),
        ("b", 2.0, None),
        ("none", None, []),
        ("s", None, [1.0, 2.0]),
        ("t", None, [0.0, 1.0]),
    ]
    assert {(row["run"], row["reason"]) for row in found} == {("a", None)}


def test_every_run_says_how_long_it_took() -> None:
    made: Any = execute_run(RUN, lambda run: {})
    (row,) = made.to_pylist()
    assert row["quantity"] == SECONDS
    assert 0 <= row["value"] < 60


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("refuse", "ConfigError: peers: 0; it is 1 or more"),
        ("memory", "MemoryError: 12 GiB are needed"),
        ("nan", "ValueError: metric ratio is not a finite number; omit metrics that do not apply"),
        ("other", "ValueError: no kind 'other'"),
    ],
)
def test_a_failed_run_is_one_row_with_the_reason(kind: str, reason: str) -> None:
    made: Any = execute_run(RUN._replace(kind=kind), toy.execute)
    none = {"quantity": None, "value": None, "series": None}
    assert made.to_pylist() == [{"run": "a", **none, "reason": reason}]


def test_a_reason_is_one_line_however_long_the_message() -> None:
    def execute(run: Run) -> Metrics:
        raise ValueError("no\n  \n" + "such type\n" * 400)

    made: Any = execute_run(RUN, execute)
    (row,) = made.to_pylist()
    assert row["reason"].startswith("ValueError: no such type such type")
    assert "\n" not in row["reason"]
    assert len(row["reason"]) < 600


@pytest.mark.parametrize("value", [None, "many", float("inf"), [1.0, float("nan")], [[1], [2, 3]]])
def test_what_is_no_number_fails_the_run(value: Any) -> None:
    made: Any = execute_run(RUN, lambda run: {"x": value})
    assert made.num_rows == 1
    assert made.column("reason")[0].as_py().startswith(("ValueError", "TypeError"))


def test_the_dearest_runs_go_first() -> None:
    runs = [Run("b", 1, 2.0), Run("c", 2, 9.0), Run("a", 3, 2.0)]
    assert [run.key for run in sort_by_cost(runs)] == ["c", "a", "b"]


def test_a_failure_does_not_end_the_rest() -> None:
    runs = [*toy.runs(True), Run("bad", 1, 99.0, "other")]
    tables: list[Any] = list(run_locally(toy.STUDY, runs))
    assert pa.concat_tables(tables)["run"].unique().to_pylist() == [
        "bad",
        "sum/100000 steps/seed 1",
        "sum/1000 steps/seed 1",
        "sum/10 steps/seed 1",
    ]
