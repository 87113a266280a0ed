"""The page on judging: its example is answered as it says."""

from __future__ import annotations

import textwrap
from pathlib import Path

from antecede.lab.check.check import run_check

PAGE = Path(__file__).resolve().parents[3] / "docs" / "design" / "judging.md"


def test_the_example_is_answered_as_the_page_says(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    start = text.index("    from typing import NamedTuple")
    end = text.index("`antecede check hopeful.py:Hopeful`")
    path = tmp_path / "hopeful.py"
    path.write_text(textwrap.dedent(text[start:end]), encoding="utf-8")
    failure = run_check(f"{path}:Hopeful").failures[0]
    assert f"`{failure.sentence()}`" in text.replace("\n", " ")
    assert len(failure.actions) == 3
