"""Hints of `antecede order` on how to view its output."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from antecede.cli import main
from antecede.lab.simulate.outputs.trace import write_trace
from antecede.lab.simulate.reference_engine import run_readable
from tests.lab.simulate.small_configs import config_of

CLOCKED = 'P {"P":1}\nfirst\nQ {"P":1,"Q":1}\nsecond\n'


def told(out: str) -> list[str]:
    (line,) = (line for line in out.splitlines() if line.startswith("Explore it: "))
    return shlex.split(line.removeprefix("Explore it: "))


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("kind", ["own columns", "numbers", "clocks", "a simulated run"])
def test_what_is_printed_opens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, suffix: str
) -> None:
    log, out = tmp_path / "in.log", tmp_path / f"an order{suffix}"
    words: list[str] = []
    if kind == "own columns":
        log = tmp_path / "in.csv"
        log.write_text("mail,-to,who\na,,P\nb,a,Q\n")
        words = ["--id", "mail", "--after=-to", "--member", "who"]
    elif kind == "numbers":
        log = tmp_path / "in.csv"
        log.write_text("id,who,n\na,P,1\nb,P,2\n")
        words = ["--member", "who", "--seq", "n", "--by", "seq"]
    elif kind == "clocks":
        log.write_text(CLOCKED)
    else:
        log = tmp_path / "run.parquet"
        write_trace(run_readable(config_of("idr"), 0, True)[1], log)
    assert main(["order", str(log), "-o", str(out), *words]) == 0
    command = told(capsys.readouterr().out)
    assert command[:2] == ["antecede", "view"]
    page = tmp_path / "page.html"
    assert main([*command[1:], "-o", str(page)]) == 0
    assert page.stat().st_size > 10_000


def test_nothing_is_said_where_it_would_not_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, out = tmp_path / "in.csv", tmp_path / "out.csv"
    log.write_text("id,after,antecede\na,,x\nb,a,y\n")

    def full(**_: object) -> object:
        raise OSError("no room")

    monkeypatch.setattr("antecede.cli.files.pages.tempfile.TemporaryDirectory", full)
    assert main(["order", str(log), "-o", str(out)]) == 0
    assert "Explore it" not in capsys.readouterr().out
