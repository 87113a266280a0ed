"""Study on Spark that is killed with its driver, and continues."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from antecede.lab.reproductions.framework.execute import run_locally
from antecede.lab.reproductions.framework.runner import conduct
from pipeline.processes import kill
from tests.lab.reproductions import toy
from tests.spark import studying


@pytest.mark.slow
@pytest.mark.usefixtures("java")
def test_a_killed_driver_loses_only_what_was_under_way(tmp_path: Path) -> None:
    opened = [studying.run_gate(k, tmp_path, 50.0, closed=False) for k in range(4)]
    closed = [studying.run_gate(k, tmp_path, 9.0, closed=True) for k in (7, 8)]
    runs = [*opened, *closed, *toy.runs(True)]

    def in_the_middle() -> bool:
        return len(studying.list_stored(tmp_path)) >= 4 and studying.list_executed(tmp_path) == [
            0, 1, 2, 3, 7, 8
        ]  # fmt: skip

    child = studying.start(tmp_path, runs, "local[2]")
    studying.wait_for(in_the_middle, child, tmp_path)
    python, java = map(int, (tmp_path / "pids").read_text().split())
    assert python == child.pid
    for pid in (python, java):
        kill(pid)
    child.wait(10)
    stored = studying.list_stored(tmp_path)
    assert stored >= {run.key for run in opened}
    assert not stored & {run.key for run in closed}
    (tmp_path / "open").touch()
    told = studying.finish(studying.start(tmp_path, runs, "local[2]"), tmp_path)
    assert told == f"carried out {9 - len(stored)}, stored {len(stored)}, failed []"
    assert studying.list_executed(tmp_path) == [0, 1, 2, 3, 7, 7, 8, 8]

    elsewhere = tmp_path / "local"
    conduct(toy.with_runs(*runs), run_locally, elsewhere / "study", stream=io.StringIO())
    assert studying.read_metrics(tmp_path) == studying.read_metrics(elsewhere)
