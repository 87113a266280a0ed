"""`antecede reproduce`: what it writes, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from antecede.cli import main
from antecede.cli.experiments.reproduce.command import check_same_study
from antecede.cli.experiments.reproduce.report import report, rows_text
from antecede.errors import InputError
from antecede.lab.report.model import Findings, Row, Section
from antecede.lab.reproductions.framework.registry import STUDIES, load
from antecede.lab.reproductions.framework.results import Results
from antecede.lab.reproductions.framework.runner import Conducted
from antecede.lab.reproductions.framework.store import SCHEMA
from antecede.lab.reproductions.framework.summary import write_summary
from tests.helpers.fixtures import Call, Capture

TOY, BROKEN = "tests.lab.reproductions.toy:STUDY", "tests.lab.reproductions.toy:BROKEN"


def study(name: str, folder: Path, *more: str) -> int:
    where = () if "--report-only" in more else ("--engine", "local")
    return main(["reproduce", name, "-o", str(folder), *where, *more])


def test_results_summary_and_page_are_written(tmp_path: Path, capsys: Capture) -> None:
    assert study(TOY, tmp_path / "a" / "b") == 0
    out = capsys.readouterr().out
    written = {path.name for path in (tmp_path / "a" / "b").iterdir()}
    assert {"results", "summary.json", "index.html", "figures"} <= written
    found = json.loads((tmp_path / "a" / "b" / "summary.json").read_text())
    assert [(row["condition"], row["paper"]) for row in found["rows"]] == [
        ("10 steps", 5), ("1000 steps", 500), ("100000 steps", 50_000)
    ]  # fmt: skip
    assert found["rows"][0]["ratio"] == found["rows"][0]["ours"] / 5
    assert "runs        9 in " in out
    assert f"page        {tmp_path / 'a' / 'b' / 'index.html'}" in out
    assert "  Figure 1, units:" in out
    assert "  sum       100000 steps  50,000" in out


@pytest.mark.slow
def test_what_is_there_is_used_and_said(tmp_path: Path, capsys: Capture) -> None:
    study(TOY, tmp_path, "--quick")
    assert study(TOY, tmp_path) == 0
    assert ", 3 from the cache" in capsys.readouterr().out
    assert study(TOY, tmp_path, "--report-only") == 0
    assert "runs        0 in " in capsys.readouterr().out
    assert study(TOY, tmp_path, "--no-cache", "--filter", "sum/10 *") == 0
    assert ", 6 filtered out" in capsys.readouterr().out


def test_failed_runs_end_with_1_and_are_told(tmp_path: Path, capsys: Capture) -> None:
    assert study(BROKEN, tmp_path) == 1
    line = "bad (seed 5): ValueError: no kind 'other'; other {\"peers\":0}"
    out = capsys.readouterr().out
    assert "failed      1; the same command retries them" in out
    assert line in out
    assert json.loads((tmp_path / "summary.json").read_text())["failed"] == [line]
    assert "no kind" in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["hierarchie"], "unknown reproduction 'hierarchie'; choose from hierarchy"),
        ([TOY, "--filter", "peers"], "no run key matches 'peers'"),
        ([TOY, "--conf", "spark.executor.cores"], "expected KEY=VALUE"),
        (
            [TOY, "--master", "nonsense://x"],
            "--master 'nonsense://x': expected spark://HOST:PORT, yarn",
        ),
        ([TOY, "--master", "local[0]"], "--master 'local[0]': expected spark://HOST:PORT"),
        ([TOY, "--master", ""], "--master '': expected spark://HOST:PORT"),
        ([TOY, "--py-files", "a.zip"], "--py-files has no effect without --master"),
        (
            [TOY, "--master", "local[2]", "--py-files", "none.zip"],
            "none.zip: --py-files: no such file",
        ),
    ],
)
def test_wrong_calls_end_with_2(
    tmp_path: Path, refused: Call, arguments: Sequence[str], message: str
) -> None:
    assert message in refused("reproduce", *arguments, "-o", str(tmp_path / "out"))


def test_without_a_name_the_studies_are_listed(said: Call) -> None:
    assert [line.split()[0] for line in said("reproduce").splitlines()] == list(STUDIES)


@pytest.mark.slow
def test_interrupted_it_says_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "antecede", "reproduce", "tests.lab.reproductions.toy:GATED"]
    command += ["-o", str(tmp_path / "out"), "--engine", "local"]
    environ = {**os.environ, "TOY_FOLDER": str(tmp_path)}
    child = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)
    log, end = tmp_path / "executed", time.monotonic() + 60
    while not log.exists() or log.read_text() != "0\n1\n":
        assert child.poll() is None
        assert time.monotonic() < end
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 130
    where = tmp_path / "out" / "results"
    assert said.splitlines() == [
        f"antecede: 1 of 3 runs are kept in {where}; the same command continues",
        "antecede: interrupted",
    ]
    (tmp_path / "open").touch()
    assert subprocess.run(command, env=environ, capture_output=True, check=False).returncode == 0
    assert log.read_text() in ("0\n1\n1\n2\n", "0\n1\n2\n1\n")


def test_rows_are_aligned_and_empty_columns_left_out() -> None:
    rows = [Row("Figure 4", "a", "9 peers", 12.5, 12.0), Row("F5", "abc", "x", None, 1234.5)]
    assert rows_text(rows).splitlines() == [
        "  figure    quantity  condition  paper   ours  ratio",
        "  Figure 4  a         9 peers     12.5     12  0.960",
        "  F5        abc       x                 1,234",
    ]


def test_rows_fit_the_terminal() -> None:
    rows = [
        Row("ours", f"bytes of protocol {k}", f"{k} members", None, float(k), "bytes", "a note")
        for k in range(2)
    ]
    assert rows_text(rows, 80).splitlines() == [
        "  ours, bytes, a note:",
        "  quantity             condition  ours",
        "  bytes of protocol 0  0 members     0",
        "  bytes of protocol 1  1 members     1",
    ]
    wide = [
        Row("Figure 4", "a" * 40, "c" * 40, 1.0, float(k), f"unit {k}", "n" * 60) for k in range(3)
    ]
    for width in (60, 80, 120):
        lines = rows_text(wide, width).splitlines()
        assert max(map(len, lines)) <= width
        assert all("1" in line and line.rstrip()[-1] != "…" for line in lines[2:])
    assert "…" in rows_text(wide, 60)


def test_a_long_section_is_cut_and_says_so(capsys: Capture) -> None:
    rows = [Row("ours", f"own {k}", "", None, 1.0) for k in range(20)]
    rows += [Row("Figure 1", "theirs", "", 2.0, 2.0)]
    found = Findings(
        "toy", "A title", "000", "A finding " * 20, (), (), [Section("One", "Found.", rows)]
    )
    none = Results(SCHEMA.empty_table(), [])
    report(Conducted(found, none, [], 0, 0, 0, 0, []), Path("out"), 1.0, report_only=False)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    first = next(k for k, line in enumerate(lines) if "quantity" in line)
    assert "theirs" in lines[first + 1]
    assert "  and 9 more on the page and in summary.json" in lines


def test_all_studies_and_the_page_in_front_of_them(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"toy": TOY, "none": "tests.lab.reproductions.toy:NOTHING", "broken": BROKEN}
    framework = "antecede.lab.reproductions.framework"
    monkeypatch.setattr(f"{framework}.STUDIES", dict.fromkeys(places, ""))
    monkeypatch.setattr(f"{framework}.load", lambda name: load(places[name]))
    assert main(["reproduce", "all", "-o", str(tmp_path), "--engine", "local", "--quick"]) == 2
    said = capsys.readouterr()
    assert said.err == (
        f"antecede: none: reproduction '{places['none']}': {places['none']} is not a Study\n"
    )
    assert f"all pages   {tmp_path / 'index.html'}" in said.out
    page = (tmp_path / "index.html").read_text()
    assert "toy/index.html" in page
    assert "broken/index.html" in page
    assert (tmp_path / "toy" / "summary.json").is_file()


def test_the_page_of_another_study_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("somebody's page")
    with pytest.raises(InputError, match=r"of another program, not of vector; name another"):
        check_same_study(tmp_path, "vector")
    findings = Findings("semantic", "a title", "a source", "a finding", [], [], [])
    write_summary(findings, tmp_path)
    with pytest.raises(InputError, match="of semantic, not of vector"):
        check_same_study(tmp_path, "vector")
    check_same_study(tmp_path, "semantic")
    check_same_study(tmp_path / "new", "vector")
