"""`antecede explain` of every scenario that is shipped, as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.cli import main

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "scenarios").rglob("*.scenario"))


def test_there_are_scenarios_in_every_folder() -> None:
    assert len(FILES) > 50
    assert {path.parent.name for path in FILES} >= {"scenarios", "smallest"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_it_prints_what_the_file_expects(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["explain", str(path)])
    printed = capsys.readouterr()
    assert printed.err == ""
    assert status == 0
    assert "1" in printed.out


def test_a_line_that_is_not_printed_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "scenarios" / "bss-in-order.scenario").read_text(encoding="utf-8")
    wrong = tmp_path / "wrong.scenario"
    wrong.write_text(text.replace("= P2 delivers", "= P2 holds", 1), encoding="utf-8")
    assert main(["explain", str(wrong)]) == 1
    assert "expected" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"2026-01-01 12:00 <ann> hello\n", b"PAR1\xff\x00"])
def test_a_log_is_answered_with_the_commands_that_read_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    log = tmp_path / "chat.log"
    log.write_bytes(content)
    assert main(["explain", str(log)]) == 2
    error = capsys.readouterr().err
    assert "chat.log: is no script" in error
    assert "antecede audit FILE" in error
