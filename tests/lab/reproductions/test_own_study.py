"""A study of one's own: found by its place, stale when its files change, checked in its words."""

from __future__ import annotations

import errno
import io
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from antecede.errors import InputError, LocalError
from antecede.lab.report.model import Findings, Row, Section
from antecede.lab.reproductions.framework.execute import run_locally
from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.runner import conduct
from antecede.lab.reproductions.framework.study import Study
from tests.lab.reproductions import toy

GUIDE = Path(__file__).parents[3] / "docs" / "design" / "studies.md"
HELPER = "FACTOR = 2.0\n"
MINE = """
from helper import FACTOR
from antecede.lab.report.model import Findings, Row, Section
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import Study


def runs(quick):
    return [Run(f"x {x}", 1, 0.1, "double", parameters={"x": x}) for x in (1, 2, 3)]


def execute(run):
    return {"y": FACTOR * run.parameters["x"]}


def findings(results, quick):
    rows = [Row("ours", "y", f"x {x}", None, found)
            for x in (1, 2, 3) if (found := results.mean("y", x=x))]
    return Findings("mine", "Mine", "ours", f"{len(rows)} rows.", [], [],
                    [Section("All", "", rows)])


STUDY = Study("mine", "Mine", "ours", runs, execute, findings)
"""


def called(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Call `antecede reproduce` in a folder, without PYTHONPATH for what is in it."""
    command = [sys.executable, "-m", "antecede", "reproduce", *arguments, "--engine", "local"]
    environ = dict(os.environ)
    return subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.slow
def test_it_is_found_where_one_stands_and_goes_stale(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "helper.py").write_text(HELPER)
    first = called(tmp_path, "mine:STUDY")
    assert (first.returncode, first.stderr) == (0, "")
    assert "runs        3 in " in first.stdout
    again = called(tmp_path, "mine.py:STUDY", "-o", "out/reproductions/mine")
    assert ", 3 from the cache" in again.stdout
    (tmp_path / "helper.py").write_text("FACTOR = 3.0\n")
    changed = called(tmp_path, "mine:STUDY")
    assert "runs        3 in " in changed.stdout
    assert "from the cache" not in changed.stdout
    assert "other code  wrote the cached results of 3 runs: not used" in changed.stdout
    away = called(tmp_path / "out", "mine:STUDY")
    assert away.returncode == 2
    assert re.search(r"no module mine in .*out .*FILE\.py:STUDY",
                     away.stderr)  # fmt: skip
    assert len(away.stderr.splitlines()) == 1
    assert called(tmp_path, "nosuch.py:STUDY").stderr == "antecede: nosuch.py: no such file\n"


@pytest.mark.slow
def test_the_guide_s_own_study_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(# loss\.py\n.*?)```", GUIDE.read_text(), re.DOTALL)
    (tmp_path / "loss.py").write_text(example)
    found = called(tmp_path, "loss.py:STUDY", "--quick")
    assert (found.returncode, found.stderr) == (0, "")
    assert "does not hold" in found.stdout or "holds" in found.stdout
    assert (tmp_path / "out" / "reproductions" / "loss" / "index.html").is_file()


def said(**changed: object) -> Study:
    good = Findings("toy", "T", "s", "f", ["r"], ["c"], [Section("S", "f")])
    return replace(toy.STUDY, findings=lambda results, quick: good._replace(**changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"conditions": "three sizes"}, "conditions is a string; write a list"),
        ({"reading": "as printed"}, "reading is a string; write a list"),
        ({"not_reached": "DS"}, "not_reached is a string; write a list"),
        (
            {"sections": [Section("S", "f", rows="none")]},  # type: ignore[arg-type]
            "section 'S': rows is a string",
        ),
        (
            {"sections": [Section("S", "f", [Row("F1", "sum", "9 steps", 1.0, None)])]},  # type: ignore[arg-type]
            "S: F1, sum, 9 steps: no result, although no run failed",
        ),
    ],
)
def test_findings_that_are_none_are_refused(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    with pytest.raises(LocalError, match=re.escape(message)):
        conduct(said(**changed), run_locally, tmp_path, stream=io.StringIO())


def test_a_row_without_a_figure_is_a_failure_where_runs_failed(tmp_path: Path) -> None:
    def findings(results: Results, quick: bool) -> Findings:
        rows = [Row("F1", "sum", f"{n} steps", 1.0, float("nan")) for n in (10, 20)]
        return Findings("toy", "T", "s", "f", ["r"], ["c"], [Section("S", "f", rows)])

    study = replace(toy.BROKEN, findings=findings)
    done = conduct(study, run_locally, tmp_path, stream=io.StringIO())
    assert not done.findings.sections[0].rows
    assert done.findings.failed[1:] == [f"S: F1, sum, {n} steps: no result" for n in (10, 20)]


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = toy.with_runs(*toy.sums(seeds=[1]))
    conduct(few, run_locally, tmp_path, stream=io.StringIO())
    before = (tmp_path / "results" / "results.parquet").read_bytes()

    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="cannot write the file: No space left on device"):
        conduct(toy.STUDY, run_locally, tmp_path, stream=io.StringIO())
    monkeypatch.undo()
    assert (tmp_path / "results" / "results.parquet").read_bytes() == before
    assert not list(tmp_path.glob("*/.*.draft"))
    done = conduct(toy.STUDY, run_locally, tmp_path, stream=io.StringIO())
    assert (done.stored, done.carried_out) == (3, 6)
