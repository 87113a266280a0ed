"""`antecede audit --engine spark`: the report and bad rows of the local engine."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from antecede.cli import main
from antecede.spark.sources.event_tables import parse_worker_error
from tests.spark.sampling import sample_cases
from tests.spark.test_order_files_on_spark import events

pa: Any = pyarrow
NAMING = ("separator_hint", "clock_skew")
"""Details that only the local engine has; the other lists them in `skipped_details`."""


def write_table(folder: Path, columns: dict[str, Any]) -> Path:
    table = pa.table(columns)
    place = folder / "in"
    place.mkdir()
    for k in range(3):
        part = table.slice(k * len(table) // 3, (k + 1) * len(table) // 3 - k * len(table) // 3)
        pyarrow.parquet.write_table(part, place / f"part-{k}.parquet", row_group_size=17)
    return place


def run_call(capsys: pytest.CaptureFixture[str], call: list[str]) -> str:
    code = main(call)
    told = capsys.readouterr()
    assert code == 0, told.err
    return told.out


def read_bad_rows(path: Path) -> list[str]:
    parts = [path] if path.is_file() else sorted(path.glob("*.parquet"))
    return sorted(str(r) for part in parts for r in pyarrow.parquet.read_table(part).to_pylist())


def run_both(
    folder: Path, path: str, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the two reports, once their bad rows are the same."""
    found, aside = {}, {}
    for engine in ("local", "spark"):
        bad = folder / f"{engine}.parquet"
        call = ["audit", path, "--json", "--engine", engine, "--quarantine", str(bad), *words]
        found[engine] = json.loads(run_call(capsys, call))
        aside[engine] = read_bad_rows(bad)
    assert aside["spark"] == aside["local"]
    assert len(aside["local"]) == found["local"]["details"]["quarantined"]
    return found["local"], found["spark"]


def check_same(local: dict[str, Any], spark: dict[str, Any]) -> list[str]:
    """Compare both reports; return the details left out."""
    skipped: list[str] = spark["details"].pop("skipped_details")
    dropped = {name: local["details"].pop(name, None) for name in NAMING}
    assert not {name for name, value in dropped.items() if value} - {*skipped}
    for name, value in local["details"].items():
        assert spark["details"].get(name) == value, name
    assert spark == local
    return skipped


@pytest.mark.slow
@pytest.mark.parametrize("seed", sample_cases(range(4), {1, 3}))
def test_folders_of_declared_causes(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    draw = random.Random(seed)
    columns = events(draw, 120, "ab")
    n = len(columns["id"])
    if seed % 2:
        columns["run"] = [draw.choice(["r1", "r2", "r3", None]) for _ in range(n)]
        columns["kind"] = [draw.choice(["send", "receive", "deliver", "event"]) for _ in range(n)]
    if seed == 2:
        columns["member"] = pa.nulls(n, pa.string())
    found = run_both(tmp_path, str(write_table(tmp_path, columns)), capsys)
    assert found[0]["details"]["quarantined"]
    assert found[0]["details"]["worst_inversions"]
    assert "separator_hint" in check_same(*found)


@pytest.mark.slow
def test_patterns_of_csv_with_clocks(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(5)
    for k in range(2):
        lines = ["id,member,clock"]
        for row in range(20):
            clock = json.dumps({m: draw.randrange(4) for m in "xy"}).replace('"', '""')
            lines.append(f'e{k}{row},{draw.choice("xy")},"{clock}"')
        (tmp_path / f"log-{k}.csv").write_text("\n".join(lines) + "\n")
    pattern = [str(tmp_path / f"log-{k}.csv") for k in range(2)]
    reports = []
    for engine in ("local", "spark"):
        call = ["audit", *pattern, "--json", "--clock", "clock", "--engine", engine]
        reports.append(json.loads(run_call(capsys, call)))
    assert reports[0]["clock_inconsistencies"] is not None
    assert check_same(reports[0], reports[1]) == []


@pytest.mark.slow
def test_the_text_is_the_local_one_where_nothing_is_left_out(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    causes = [["a"], [], ["c"], [], ["a", "b", "b"], []]  # two are equally far back
    columns = {"id": ["b", "a", "d", "c", "e", ""], "causes": causes}
    path = str(write_table(tmp_path, columns))
    local = run_call(capsys, ["audit", path, "--engine", "local"])
    assert run_call(capsys, ["audit", path, "--engine", "spark"]) == local
    assert "1 bad row quarantined: 1 x no id" in local
    assert "b before its cause a" in local


def test_refusals(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write_table(tmp_path, {"id": ["a", "b", "c"], "causes": [[], ["a"], ["b"]]}))
    calls = {
        "omit --list-missing": ["audit", path, "--engine", "spark", "--list-missing"],
        "--engine local runs in this process": ["audit", path, "--engine", "local", "--master=l"],
        "is not a complete folder of an earlier run": [
            *("audit", path, "--engine", "spark", "--quarantine", str(tmp_path / "other.csv"))
        ],
    }
    (tmp_path / "other.csv").mkdir()
    for words, call in calls.items():
        assert main(call) == 2
        assert words in capsys.readouterr().err


def test_an_error_of_a_worker_is_ours() -> None:
    text = "Job aborted\n  File x\nantecede.errors.InputError: run 'a': too large\n\tat org.x"
    error = parse_worker_error(text)
    assert type(error).__name__ == "InputError"
    assert str(error) == "run 'a': too large"
    assert parse_worker_error("java.lang.OutOfMemoryError: heap") is None
