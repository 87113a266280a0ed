"""Extra JSON values: unchanged in JSON lines, reported where a format changes them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from antecede.cli import main
from antecede.tables.trace.user_tables.extra_columns import (
    convert_json_columns,
    is_json,
    rows_to_table,
    together,
)
from antecede.tables.trace.user_tables.writing import write_table
from tests.tables.trace.files import run_command, write_lines

ROWS: list[dict[str, Any]] = [
    {"id": "a", "v": 1, "r": {"a": 1}, "n": 1, "w": "x", "big": 1, "plain": 1},
    {"id": "b", "v": "1", "r": {"b": [1]}, "n": 2.5, "w": "y", "big": 2**70, "plain": 2},
    {"id": "c", "v": True, "r": None, "n": 3, "w": "\ud800", "big": None, "plain": None},
    {"id": "d", "v": {"a": 1}, "r": {"a": None}, "n": None, "w": None, "big": None, "plain": 4},
    {"id": "e", "v": [1, "1", 1.0], "r": {}, "n": 0, "w": "", "big": 0, "plain": 5},
]


def write_values(values: Any) -> str:
    return json.dumps(values, sort_keys=True)  # 1, 1.0 and true differ


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.jsonl"
    write_lines(path, ROWS)
    return path


@pytest.mark.parametrize("command", ["order", "convert"])
def test_json_lines_keep_every_value_as_it_came(
    command: str, mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert "changed" not in run_command(capsys, command, str(mixed), "-o", str(out))
    found = [json.loads(line) for line in out.read_text().splitlines()]
    for name in ROWS[0]:
        assert write_values([row[name] for row in found]) == write_values(
            [row[name] for row in ROWS]
        )


@pytest.mark.parametrize("command", ["order", "convert"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_other_formats_name_each_column_whose_values_change(
    command: str, ending: str, mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"out.{ending}"
    assert main([command, str(mixed), "-o", str(out)]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "changed" in line]
    assert len(said) == 5
    for words in (
        "column v: 4 values of 5 became text",
        "column r: 4 values of 4 became records with keys added",
        "column n: 3 values of 4 became double",
        "column w: 1 value of 4 became text",
        "column big: 3 values of 3 became text",
    ):
        assert sum(words in line for line in said) == 1
    if ending == "csv":
        rows = list(csv.DictReader(out.read_text().splitlines()))
        assert [row["v"] for row in rows] == ["1", "1", "true", '{"a": 1}', '[1, "1", 1.0]']
    else:
        table = pq.read_table(str(out))
        assert table["n"].to_pylist() == [1.0, 2.5, 3.0, None, 0.0]
        assert all(b"antecede.own" not in (field.metadata or {}) for field in table.schema)


def test_a_type_that_changes_between_batches_is_no_different(tmp_path: Path) -> None:
    for size in (1, 2, 3, 5):
        parts = [rows_to_table(ROWS[k : k + size]) for k in range(0, len(ROWS), size)]
        table = together(parts)
        path = tmp_path / f"{size}.jsonl"
        assert write_table(table, path, "jsonl") == []
        found = [json.loads(line) for line in path.read_text().splitlines()]
        assert write_values(found) == write_values(ROWS)
        _, changed = convert_json_columns(table, keeps_json=False)
        assert {one.column: one.changed for one in changed} == {
            "v": 4,
            "r": 4,
            "n": 3,
            "w": 1,
            "big": 3,
        }


def test_columns_of_one_type_have_the_type_of_arrow() -> None:
    table = rows_to_table([{"s": "a", "i": 1, "f": 0.5, "b": True, "l": ["x"], "r": {"k": 1}}, {}])
    assert [str(field.type) for field in table.schema][:4] == ["string", "int64", "double", "bool"]
    assert not any(map(is_json, table.schema))


@pytest.mark.parametrize("command", ["order", "convert"])
def test_keys_that_records_lack_are_said_to_become_null(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Defect B6: absent keys became null without a report."""
    path, out = tmp_path / "t.jsonl", tmp_path / "out.jsonl"
    path.write_text('{"id": "a", "x": null}\n{"id": "b"}\n{"id": "c", "after": "a"}\n')
    assert main([command, str(path), "-o", str(out)]) == 0
    assert "4 absent keys of records written as null" in capsys.readouterr().out
    path.write_text('{"id": "a", "x": null}\n{"id": "b", "x": 1}\n')
    assert "written as null" not in run_command(
        capsys, command, str(path), "-o", str(out), "--force"
    )


def test_records_without_a_field_are_written_to_every_format(tmp_path: Path) -> None:
    rows = [{"id": "a", "x": {}, "y": None}, {"id": "b", "after": ["a"], "x": {}, "y": [{"k": {}}]}]
    path = tmp_path / "t.jsonl"
    write_lines(path, rows)
    for ending in ("parquet", "csv", "jsonl"):
        out = tmp_path / f"out.{ending}"
        assert main(["order", str(path), "-o", str(out)]) == 0
    found = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [(row["x"], row["y"]) for row in found] == [("{}", None), ("{}", '[{"k": {}}]')]
    kept = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(row["x"], row["y"]) for row in kept] == [({}, None), ({}, [{"k": {}}])]
