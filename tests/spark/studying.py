"""Start, observe and kill studies in their own processes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import COST, check_runs

DEADLINE_S = 100


def run_gate(number: int, folder: Path, cost_s: float, *, closed: bool) -> Run:
    """Run that leaves a mark, and waits for the file `open` if it is closed."""
    parameters = {"folder": str(folder), "closed": closed}
    return Run(f"gate {number}", number, cost_s, "gate", parameters=parameters)


def start(
    folder: Path,
    runs: Sequence[Run],
    master: str,
    *py_files: Path,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.Popen[bytes]:
    (folder / "runs").write_text("".join(f"{run.to_text()}\n" for run in check_runs(runs)))
    (folder / "pids").unlink(missing_ok=True)
    module = [sys.executable, "-m", "tests.spark.study_child", str(folder), master]
    with (folder / "log").open("ab") as log:
        command = [*module, *map(str, py_files)]
        return subprocess.Popen(command, stdout=log, stderr=log, env=environ, cwd=cwd)


def wait_for(ready: Callable[[], bool], child: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + DEADLINE_S
    while not ready():
        assert child.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < end, (folder / "log").read_text()
        time.sleep(0.02)


def finish(child: subprocess.Popen[bytes], folder: Path) -> str:
    """Wait for the end; return the output of the study."""
    assert child.wait(DEADLINE_S) == 0, (folder / "log").read_text()
    return (folder / "log").read_text().splitlines()[-1]


def list_executed(folder: Path) -> list[int]:
    """Return the numbers of the executed gates, with repeats."""
    log = folder / "executed"
    return sorted(map(int, log.read_text().split())) if log.exists() else []


def list_stored(folder: Path) -> set[str]:
    """Return the keys of the runs whose results are in a folder that is being written."""
    parts = (folder / "study" / "results").glob("part-*.parquet")
    tables: list[Any] = [pq.read_table(path) for path in parts]
    return {key for table in tables for key in table["run"].to_pylist()}


def read_metrics(folder: Path) -> list[Any]:
    """Return the results of a finished study without rows about the machine."""
    table: Any = pq.read_table(folder / "study" / "results" / "results.parquet")
    names = ("run", "seed", "quantity", "value", "series", "task", "digest")
    rows = table.select(names).to_pylist()
    return [row for row in rows if not row["quantity"].startswith(COST)]
