"""Examples of the guide: each gives the output in docs/guide.md."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "examples" / "guide"
PAGE = (ROOT / "docs" / "guide.md").read_text()
NAMES = sorted(path.stem for path in GUIDE.glob("*.py"))


def load_example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(GUIDE / f"{name}.py"))


def format_rows(rows: list[Any]) -> str:
    """Rows as the page shows them: aligned cells, a dash for null."""
    cells = [list(rows[0].asDict()), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(cells[0]))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return ",".join(value) or "[]"
    return f"{value:g}" if isinstance(value, float) else str(value)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_example_gives_what_the_guide_shows(spark: SparkSession, name: str) -> None:
    part = PAGE.partition(f"(../examples/guide/{name}.py)")[2]
    block = re.search(r"```text\n(.*?)\n```", part, re.DOTALL)
    assert block is not None, f"docs/guide.md does not show {name}"
    assert format_rows(load_example(name)["run"](spark).collect()) == block[1]


@pytest.mark.slow
def test_in_the_giant_log_nothing_stands_before_what_its_clock_names(spark: SparkSession) -> None:
    rows = sorted(
        load_example("giant_log")["order_log"](spark).collect(), key=lambda row: row.position
    )
    assert [row.position for row in rows] == list(range(20_000))
    seen: dict[str, int] = {}
    for row in rows:
        known = {**seen, row.member: row.clock[row.member]}
        assert row.clock[row.member] == seen.get(row.member, 0) + 1
        assert all(count <= known.get(member, 0) for member, count in row.clock.items())
        seen = known
    assert any(row.waited_ms for row in rows)
