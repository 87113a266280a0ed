"""Programs on Spark of the README and the guide, run as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def rows(*events: tuple[str, str | None, int]) -> pa.Table:
    return pa.table(
        {
            "event_id": [name for name, _, _ in events],
            "caused_by": pa.array([cause for _, cause, _ in events], pa.string()),
            "order_id": ["o"] * len(events),
            "received_at": pa.array([at * 10**6 for _, _, at in events], pa.timestamp("us", "UTC")),
        }
    )


@pytest.mark.slow
def test_the_lines_for_a_stream_run_and_go_on(
    rocks: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs" / "guide.md").read_text()
    (lines,) = re.findall(r"## Order a stream.*?```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name in ("in", "out", "checkpoint"):
        lines = lines.replace(f'"{name}"', f'"{tmp_path / name}"')
    before, after = lines.split("\nspark.read.parquet", 1)
    for number, table in enumerate(
        (rows(("b", "a", 2), ("c", None, 3)), rows(("a", None, 4), ("d", "b", 5)))
    ):
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
        space: dict[str, object] = {}
        exec(before, space)
        query = space["query"]
        query.processAllAvailable()  # type: ignore[attr-defined]
        query.stop()  # type: ignore[attr-defined]
        exec("spark.read.parquet" + after, space)
    out = rocks.read.parquet(str(tmp_path / "out")).collect()
    assert [row.event_id for row in sorted(out, key=lambda row: row.position)] == list("cabd")


def test_the_table_of_the_readme_is_ordered(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text()
    ((program, expected),) = re.findall(
        r"```python\n(from pyspark.*?)```\n\n```text\n(.*?)```", text, re.DOTALL
    )
    capsys.readouterr()
    exec(program, {})
    assert capsys.readouterr().out.strip() == expected.strip()


def test_the_tutorial_prints_what_it_shows(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "tutorials" / "spark.md").read_text()
    blocks = re.findall(r"```(python|text)\n(.*?)```", text, re.DOTALL)
    capsys.readouterr()
    exec("".join(block for kind, block in blocks if kind == "python"), {})
    expected = [block.strip() for kind, block in blocks if kind == "text"]
    assert capsys.readouterr().out.strip().split("\n\n") == expected
