"""Studies on Spark: equal results for any distribution and any failures."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from antecede.errors import SetupError
from antecede.lab.reproductions.framework import spark_runner
from antecede.lab.reproductions.framework.code_digest import code_digest
from antecede.lab.reproductions.framework.execute import run_locally
from antecede.lab.reproductions.framework.registry import load
from antecede.lab.reproductions.framework.runner import conduct
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.spark_runner import (
    Work,
    bundles,
    outcomes,
    runs_frame,
    spark_engine,
    work_of,
)
from antecede.lab.reproductions.framework.study import COST
from antecede.spark.session import quiet_failures
from tests.lab.reproductions import toy

RUNS = toy.runs(False)
BAD = Run("bad", 5, 1e-3, "other")


def figures(tables: Any) -> list[dict[str, Any]]:
    """All outcomes in one order, but those about the machine."""
    rows: list[dict[str, Any]] = pa.concat_tables(list(tables)).to_pylist()
    kept = [row for row in rows if not (row["quantity"] or "").startswith(COST)]
    return sorted(kept, key=lambda row: (row["run"], row["quantity"] or ""))


@pytest.fixture(scope="module")
def quiet(spark: SparkSession) -> SparkSession:
    quiet_failures(spark)
    return spark


@pytest.mark.few(1)
@pytest.mark.parametrize("partitions", [1, 2, 5, 40])
def test_no_partitioning_changes_a_figure(quiet: SparkSession, partitions: int) -> None:
    runs = [*RUNS, BAD]
    frame = runs_frame(quiet, runs).repartition(partitions)
    made = outcomes(frame, work_of(toy.STUDY, quiet)).toArrow()
    assert figures([made]) == figures(run_locally(toy.STUDY, runs))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["hierarchy", "clocks", "topics", "vector", "semantic"])
def test_a_simulation_is_the_same_here_in_parallel_and_on_spark(
    quiet: SparkSession, name: str
) -> None:
    study = load(name)
    kinds = {run.kind: run for run in sorted(study.runs(True), key=lambda run: -run.cost_s)}
    runs = list(kinds.values())
    frame = runs_frame(quiet, runs).repartition(2)
    made = outcomes(frame, work_of(study, quiet)).toArrow()
    here = figures(run_locally(study, runs))
    assert all(row["reason"] is None for row in here)
    assert figures([made]) == here


@pytest.mark.few(1)
@pytest.mark.parametrize("bundle_s", [1e-9, 0.01, 100.0])
def test_no_bundling_changes_a_figure(
    quiet: SparkSession, monkeypatch: pytest.MonkeyPatch, bundle_s: float
) -> None:
    monkeypatch.setattr(spark_runner, "BUNDLE_S", bundle_s)
    runs = [*RUNS, BAD]
    made = spark_engine(quiet)(toy.STUDY, runs)
    assert figures(made) == figures(run_locally(toy.STUDY, runs))


def test_a_study_on_spark_is_the_study_here(quiet: SparkSession, tmp_path: Path) -> None:
    study = toy.with_runs(*RUNS, BAD)
    here = conduct(study, run_locally, tmp_path / "here", stream=io.StringIO())
    there = conduct(study, spark_engine(quiet), tmp_path / "there", stream=io.StringIO())
    assert there.findings == here.findings
    assert figures([there.results.table]) == figures([here.results.table])
    assert [failure.run.key for failure in there.failures] == ["bad"]


@pytest.mark.slow
def test_a_worker_that_dies_is_reported_and_takes_nobody_along(quiet: SparkSession) -> None:
    deaths = [Run("first", 1, 99.0, "die"), Run("in a bundle", 2, 1e-6, "die")]
    memory = Run("memory", 3, 1e-6, "memory")
    made = figures(spark_engine(quiet)(toy.STUDY, [*RUNS, *deaths, memory]))
    failed = {row["run"]: row["reason"] for row in made if row["reason"]}
    assert failed.keys() == {"first", "in a bundle", "memory"}
    assert failed["first"].startswith("the worker died twice: Python worker exited unexpectedly")
    assert failed["memory"] == "MemoryError: 12 GiB are needed"
    assert [row for row in made if not row["reason"]] == figures(run_locally(toy.STUDY, RUNS))


def test_executors_without_the_study_end_it_at_once(quiet: SparkSession) -> None:
    jobs = spark_runner._Jobs(quiet, Work("no_such_package.toy", "execute", (), None))
    with pytest.raises(SetupError, match=r"No module named 'no_such_package'.*ship the package"):
        list(jobs.run(RUNS))


@pytest.mark.slow
def test_executors_with_other_code_end_it_at_once(quiet: SparkSession) -> None:
    other = Work("tests.lab.reproductions.toy", "execute", ("tests.lab.reproductions.toy",), "0123")
    with pytest.raises(SetupError, match="executors and the driver have different versions"):
        list(spark_runner._Jobs(quiet, other).run(RUNS))
    same = code_digest(other.modules)
    assert Work(other.module, other.function, other.modules, same).load() is toy.execute


@pytest.mark.slow
def test_stopping_in_the_middle_cancels_what_is_under_way(
    quiet: SparkSession, tmp_path: Path
) -> None:
    parameters = {"folder": str(tmp_path), "closed": True}
    gates = [Run(f"gate {k}", k, 9.0, "gate", parameters=parameters) for k in range(6)]
    made = spark_engine(quiet)(toy.STUDY, gates)
    while not (tmp_path / "executed").exists():
        next(made)
    made.close()  # type: ignore[attr-defined]
    assert quiet.sparkContext.statusTracker().getActiveJobsIds() == []
    (tmp_path / "open").touch()
    assert len((tmp_path / "executed").read_text().splitlines()) <= 2


def test_the_dearest_start_first_and_the_cheap_are_bundled() -> None:
    runs = [Run(f"{cost}/{k}", k, cost, "x") for cost in (0.3, 30.0, 1.5, 0.02) for k in range(20)]
    made = bundles(runs, slots=2)
    starts = [run.cost_s for bundle in made for run in bundle]
    assert starts == sorted(starts, reverse=True)
    assert [len(bundle) for bundle in made[:40]] == [1] * 40
    costs = [sum(run.cost_s for run in bundle) for bundle in made[40:]]
    assert max(costs) <= spark_runner.BUNDLE_S + 1e-9
    assert sorted(run.key for bundle in made for run in bundle) == sorted(run.key for run in runs)
    assert len(made) <= 48


def test_few_cheap_runs_still_use_all_slots() -> None:
    runs = [Run(str(k), k, 0.001) for k in range(40)]
    assert 4 * spark_runner.BUNDLES_A_SLOT <= len(bundles(runs, slots=4)) < 40
    assert bundles([], slots=4) == []
