"""A study goes on where it stopped, tells what failed, and never uses what does not belong."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import InputError
from antecede.lab.report.model import Findings
from antecede.lab.reproductions.framework import code_digest, runner
from antecede.lab.reproductions.framework.execute import run_locally
from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.runner import (
    Conducted,
    Interrupted,
    StudyProgress,
    conduct,
)
from antecede.lab.reproductions.framework.runs import Run
from antecede.lab.reproductions.framework.study import COST, Study
from tests.lab.reproductions import toy

BAD = Run("bad", 5, 1e-3, "other", {"topology": {"peers": 0}}, {"x": 1})


class Counting:
    """The local engine; remembers what it carried out, and may be stopped after some runs."""

    def __init__(self, most: int | None = None) -> None:
        self.most, self.keys = most, list[str]()
        self.called = False

    def __call__(self, study: Study, runs: Sequence[Run]) -> Iterator[Any]:
        self.called = True
        return self.outcomes(study, runs)

    def outcomes(self, study: Study, runs: Sequence[Run]) -> Iterator[Any]:
        for table in run_locally(study, runs):
            if len(self.keys) == self.most:
                raise KeyboardInterrupt
            self.keys.append(str(table["run"][0]))
            yield table


def done_in(
    folder: Path, engine: Any = run_locally, study: Study = toy.STUDY, **more: Any
) -> Conducted:
    return conduct(study, engine, folder, stream=io.StringIO(), **more)


def figures(done: Conducted) -> list[Any]:
    """All rows but those about the machine."""
    rows: list[dict[str, Any]] = done.results.table.to_pylist()
    return [row for row in rows if not row["quantity"].startswith(COST)]


def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first, second = Counting(4), Counting()
    with pytest.raises(Interrupted, match="4 of 9 runs"):
        done_in(tmp_path / "a", first)
    done = done_in(tmp_path / "a", second)
    assert (done.carried_out, done.stored, done.left) == (5, 4, 0)
    assert sorted(first.keys + second.keys) == sorted(run.key for run in toy.runs(False))
    whole = done_in(tmp_path / "b")
    assert figures(done) == figures(whole)
    assert done.findings == whole.findings


def test_a_finished_study_carries_nothing_out(tmp_path: Path) -> None:
    done_in(tmp_path)
    again = Counting()
    assert done_in(tmp_path, again).stored == 9
    assert not again.called  # Spark need not start
    assert done_in(tmp_path, again, fresh=True).stored == 0
    assert len(again.keys) == 9


def test_changed_code_makes_results_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done_in(tmp_path)
    monkeypatch.setattr(runner, "code_digest", lambda modules: "other")
    drawn = done_in(tmp_path, redraw=True)
    assert (drawn.carried_out, drawn.stored, drawn.stale) == (0, 9, 9)
    assert "9 runs were executed by another version of the code" in drawn.findings.conditions[-1]
    done = done_in(tmp_path)
    assert (done.carried_out, done.stored, done.stale) == (9, 0, 9)
    assert done_in(tmp_path).stale == 0


def test_the_digest_of_the_code_follows_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest() -> str:
        code_digest.code_digest.cache_clear()
        return code_digest.code_digest(("own",))

    package = tmp_path / "antecede"
    for path in (
        "lab/simulate/run.py",
        "core/clocks/bits.py",
        "errors.py",
        "lab/report/page.py",
        "lab/reproductions/other.py",
    ):
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_text("1")
    (tmp_path / "own.py").write_text("1")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(code_digest, "files", lambda name: package)
    before = digest()
    for path in ("lab/report/page.py", "lab/reproductions/other.py"):
        (package / path).write_text("2")
        assert digest() == before
    seen = {before}
    followed = ("lab/simulate/run.py", "core/clocks/bits.py", "errors.py")
    for file in (*(package / path for path in followed), tmp_path / "own.py"):
        file.write_text("2")
        seen.add(digest())
    monkeypatch.setattr(code_digest, "__version__", "9.9")
    seen.add(digest())
    assert len(seen) == 6
    code_digest.code_digest.cache_clear()


def test_the_module_of_execute_and_those_it_names_decide() -> None:
    study = replace(toy.STUDY, code=("antecede.lab.reproductions.vector.study",))
    assert code_digest.collect_modules(study) == (
        "antecede.lab.reproductions.vector.study",
        "tests.lab.reproductions.toy",
    )
    assert code_digest.code_digest(("tests.lab.reproductions.toy",)) != code_digest.code_digest(())


def test_failed_runs_are_told_and_tried_again(tmp_path: Path) -> None:
    study = toy.with_runs(BAD, *toy.runs(False))
    done = done_in(tmp_path, study=study)
    assert [(f.run.key, f.reason) for f in done.failures] == [
        ("bad", "ValueError: no kind 'other'")
    ]
    assert done.findings.failed == [
        'bad (seed 5): ValueError: no kind \'other\'; other {"topology":{"peers":0}} {"x":1}'
    ]
    assert (done.carried_out, len(done.results.runs)) == (9, 9)
    again = Counting()
    assert len(done_in(tmp_path, again, study).failures) == 1
    assert again.keys == ["bad"]


def test_findings_that_lack_too_much_say_so(tmp_path: Path) -> None:
    def strict(results: Results, quick: bool) -> Findings:
        raise KeyError("sum")

    study = replace(toy.with_runs(BAD), findings=strict)
    findings = done_in(tmp_path, study=study).findings
    assert "Too few runs have results" in findings.finding
    assert len(findings.failed) == 1
    with pytest.raises(KeyError):  # nothing failed: a mistake of the study's
        done_in(tmp_path, study=replace(study, runs=lambda quick: toy.sums()))


def test_some_runs_by_their_keys(tmp_path: Path) -> None:
    engine = Counting()
    done = done_in(tmp_path, engine, only=["sum/10 *", "*00 steps/seed 3"])
    assert (done.carried_out, done.left) == (5, 4)
    assert "4 runs were not selected." in done.findings.conditions
    with pytest.raises(InputError, match=r"no run key matches 'peers'.*9 runs: 'sum/10 steps"):
        done_in(tmp_path, only=["peers"])
    assert done_in(tmp_path).carried_out == 4


def test_there_must_be_something_to_draw(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results to draw"):
        done_in(tmp_path, redraw=True)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "results").mkdir()
    with pytest.raises(InputError, match="no results of these runs to draw"):
        done_in(tmp_path, redraw=True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_tells_share_of_the_work_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antecede.progress.REDRAW_S", 0.0)
    stream = Terminal()
    runs = [Run("a", 1, 90.0), Run("b", 2, 5.0), Run("c", 3, 5.0)]
    with StudyProgress("toy", runs, runs[:2], stream) as watch:
        watch.advance([runs[0]])
    shown = stream.getvalue()
    assert "toy  1 of 3 runs" in shown
    assert "  5%" in shown
    assert "toy  2 of 3 runs, about" in shown
    assert " 95%" in shown


def test_a_pipe_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    runs = [Run("a", 1, 1.0), Run("b", 2, 3.0)]
    with StudyProgress("toy", runs, runs, stream) as watch:
        watch.advance([runs[0]])
        assert stream.getvalue() == ""
        monkeypatch.setattr(runner, "LINE_EVERY_S", 0.0)
        watch.advance([])
    assert stream.getvalue().startswith("toy: 1 of 2 runs, about ")
    assert stream.getvalue().endswith(" left, 25% of the estimated work\n")
