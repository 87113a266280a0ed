"""The page on scenarios shows what the program prints today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from antecede.cli import main

ROOT = Path(__file__).resolve().parents[3]


def test_the_example_in_the_docs_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "design" / "scenarios.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```$", page, re.M | re.S)
    path = ROOT / "scenarios" / "bss-condition-2-as-published.scenario"
    assert path.read_text(encoding="utf-8") in blocks
    assert main(["explain", str(path), "--width", "80"]) == 0
    assert capsys.readouterr().out in blocks
