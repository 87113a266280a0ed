"""`antecede draw` of every shipped scenario, and pages with its output."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from antecede.cli import main
from antecede.lab.check.check import run_check

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "scenarios").rglob("*.scenario"))
DESIGN = ROOT / "docs" / "design"


def test_there_are_scenarios_in_every_folder() -> None:
    assert len(FILES) > 50
    assert {path.parent.name for path in FILES} >= {"scenarios", "smallest"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_it_prints_what_the_file_expects(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["draw", str(path)])
    printed = capsys.readouterr()
    assert printed.err == ""
    assert status == 0
    assert "1" in printed.out


@pytest.mark.parametrize("content", [b"2026-01-01 12:00 <ann> hello\n", b"PAR1\xff\x00"])
def test_a_log_is_answered_with_the_commands_that_read_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    log = tmp_path / "chat.log"
    log.write_bytes(content)
    assert main(["draw", str(log)]) == 2
    error = capsys.readouterr().err
    assert "chat.log: is not a scenario" in error
    assert "antecede audit" in error


def test_the_example_in_the_docs_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    page = (DESIGN / "scenarios.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```$", page, re.M | re.S)
    path = ROOT / "scenarios" / "bss-condition-2-as-published.scenario"
    assert path.read_text(encoding="utf-8") in blocks
    assert main(["draw", str(path), "--width", "80"]) == 0
    assert capsys.readouterr().out in blocks


def test_the_example_of_judging_is_answered_as_the_page_says(tmp_path: Path) -> None:
    text = (DESIGN / "checking.md").read_text(encoding="utf-8")
    start = text.index("    from typing import NamedTuple")
    end = text.index("`antecede check hopeful.py:Hopeful`")
    path = tmp_path / "hopeful.py"
    path.write_text(textwrap.dedent(text[start:end]), encoding="utf-8")
    failure = run_check(f"{path}:Hopeful").failures[0]
    assert f"`{failure.sentence()}`" in text.replace("\n", " ")
    assert len(failure.actions) == 3
