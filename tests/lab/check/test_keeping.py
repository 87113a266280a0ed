"""Saved and drawn counterexample of a user's protocol with options."""

from __future__ import annotations

from pathlib import Path

import pytest

from antecede.cli import main
from antecede.errors import OptionError
from antecede.lab.check.check import run_check
from antecede.lab.check.scenario.parse import load_scenario

OWN = """
from antecede.core.protocols.base import Deliver, Guarantee, Relation
from antecede.core.protocols.basic.unordered import Unordered

class Hopeful(Unordered):
    guarantee = Guarantee(Relation.FIFO)

    def __init__(self, me, members, *, r: int, fails: bool = False):
        super().__init__(me, members)
        self.fails = fails

    def receive(self, message, *, now=None):
        if self.fails:
            raise ValueError("one line\\nand another")
        return [Deliver(message)]
"""
FAILS = OWN.splitlines().index("        if self.fails:") + 2


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my protocols").mkdir()
    path = tmp_path / "my protocols" / "own.py"
    path.write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path.relative_to(tmp_path)


def test_it_is_saved_where_it_is_asked_for_and_read_from_there(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "found").mkdir()
    saved, drawn = tmp_path / "found" / "it.scenario", tmp_path / "it.svg"
    arguments = ["--output-scenario", str(saved), "--output-svg", str(drawn)]
    assert main(["check", f"{own}:Hopeful", "r=3", *arguments]) == 1
    assert load_scenario(saved).setup.protocol == "../my protocols/own.py:Hopeful"
    assert load_scenario(saved).setup.options == (("r", "3"),)
    assert drawn.read_text(encoding="utf-8").startswith("<svg")
    capsys.readouterr()
    monkeypatch.chdir("/")  # the path is relative to the scenario, not to the working folder
    assert main(["draw", str(saved)]) == 0
    assert "BEFORE a1" in capsys.readouterr().out


def test_what_raises_is_saved_and_drawn_too(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, drawn = tmp_path / "it.scenario", tmp_path / "it.svg"
    arguments = ["r=3", "fails=true", "--output-scenario", str(saved), "--output-svg", str(drawn)]
    assert main(["check", f"{own}:Hopeful", *arguments]) == 1
    assert drawn.exists()
    capsys.readouterr()
    assert main(["draw", str(saved)]) == 2
    error = capsys.readouterr().err
    assert "ValueError: one line" in error
    assert f"own.py, line {FAILS}, in receive" in error


def test_the_protocols_own_file_is_not_overwritten(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", f"{own}:Hopeful", "r=3", "--output-scenario", str(own)]) == 2
    assert "is input of this command" in capsys.readouterr().err
    assert own.read_text(encoding="utf-8") == OWN


def test_nothing_is_written_without_a_counterexample(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "it.scenario"
    assert (
        main(
            ["check", "fifo", "--members", "2", "--messages", "2", "--output-scenario", str(saved)]
        )
        == 0
    )
    assert not saved.exists()
    assert "no file was written" in capsys.readouterr().err


def test_options_of_ones_own_class_and_of_built_in_ones(own: Path) -> None:
    assert run_check("bss", options=[("as_published", "true")]).failures
    with pytest.raises(OptionError, match="has no option 'k'; options are: r, fails"):
        run_check(f"{own}:Hopeful", options=[("k", "1")])
