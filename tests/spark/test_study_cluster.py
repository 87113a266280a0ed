"""Study on a standalone cluster with the shipped package; an executor is killed."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from antecede.lab.reproductions.framework.execute import run_locally
from antecede.lab.reproductions.framework.runner import conduct
from antecede.lab.reproductions.framework.runs import Run
from pipeline.processes import kill
from tests.lab.reproductions import toy
from tests.spark import studying
from tests.spark.standalone import copy_package, run_cluster


@pytest.mark.slow
def test_a_killed_executor_changes_no_figure(tmp_path: Path) -> None:
    gates = [studying.run_gate(k, tmp_path, 50.0, closed=True) for k in (1, 2)]
    runs = [*gates, *toy.runs(False), Run("bad", 5, 1e-3, "other")]
    copy, shipped = copy_package(tmp_path)
    environ = {**os.environ, "PYTHONPATH": str(copy)}
    with run_cluster(tmp_path) as made:
        child = studying.start(tmp_path, runs, made.master, shipped, environ=environ, cwd=copy)
        try:
            studying.wait_for(lambda: studying.list_executed(tmp_path) == [1, 2], child, tmp_path)
            executors = made.executors()
            assert len(executors) == 2
            kill(executors[0])
            (tmp_path / "open").touch()
            told = studying.finish(child, tmp_path)
        finally:
            child.kill()
            child.wait(10)

        assert executors[0] not in made.executors()
    bad = "bad (seed 5): ValueError: no kind 'other'; other "
    assert told == f"carried out 11, stored 0, failed {[bad]}"
    assert studying.list_executed(tmp_path) in ([1, 1, 2], [1, 2, 2])

    elsewhere = tmp_path / "local"
    study = toy.with_runs(*runs)
    conduct(study, run_locally, elsewhere / "study", stream=io.StringIO())
    assert studying.read_metrics(tmp_path) == studying.read_metrics(elsewhere)
