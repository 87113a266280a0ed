from __future__ import annotations

import csv
import datetime as dt
import decimal
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antecede.errors import InputError
from antecede.tables.trace.user_tables.writing import format_of, table_writer, write_table

MOMENT = dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
TABLE: Any = pa.table(
    {
        "id": ["a", None, 'q"uote,\n'],
        "after": pa.array([["x", "y"], [], None], pa.list_(pa.string())),
        "at": pa.array([MOMENT, None, MOMENT], pa.timestamp("us", "UTC")),
        "fine": pa.array([1, None, 2], pa.timestamp("ns")),
        "price": [decimal.Decimal("1.50"), None, decimal.Decimal("2.00")],
        "wire": pa.array([b"\x00\xff", None, b""], pa.binary()),
        "share": [0.5, float("nan"), float("inf")],
        "flag": [True, None, False],
        "clock": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "kind": pa.array(["k", "k", None]).dictionary_encode(),
        "span": pa.array([dt.timedelta(seconds=1), None, None], pa.duration("s")),
        "nested": [{"x": [1]}, None, {"x": None}],
        "big": pa.array([2**63 - 1, None, -1], pa.int64()),
    }
)


def test_parquet_keeps_every_type(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "x", "parquet")
    found: Any = pq.read_table(str(tmp_path / "x"))
    assert found.column_names == TABLE.column_names
    without = TABLE.drop_columns(["share"])  # nan is not equal to nan
    assert found.drop_columns(["share"]).cast(without.schema).equals(without)


def test_json_lines_hold_every_value_that_json_knows(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "x", "jsonl")
    first, second, third = [json.loads(line) for line in (tmp_path / "x").read_text().splitlines()]
    assert first == {
        "id": "a",
        "after": ["x", "y"],
        "at": "2026-01-02 03:04:05.000006Z",
        "fine": "1970-01-01 00:00:00.000000001",
        "price": "1.50",
        "wire": "AP8=",
        "share": 0.5,
        "flag": True,
        "clock": {"a": 1},
        "kind": "k",
        "span": "0:00:01",
        "nested": {"x": [1]},
        "big": 2**63 - 1,
    }
    assert set(map(repr, second.values())) <= {"None", "[]", "'k'"}
    assert (third["id"], third["share"], third["wire"]) == ('q"uote,\n', None, "")


def test_csv_holds_lists_as_json(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "x", "csv")
    with (tmp_path / "x").open(newline="") as file:
        first, second, third = list(csv.DictReader(file))
    assert list(first) == TABLE.column_names
    assert (first["after"], first["clock"], first["nested"]) == (
        '["x", "y"]',
        '{"a": 1}',
        '{"x": [1]}',
    )
    assert (first["wire"], first["at"], first["price"]) == (
        "AP8=",
        "2026-01-02 03:04:05.000006Z",
        "1.50",
    )
    assert second["after"] == "[]"
    assert third["id"] == 'q"uote,\n'


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_pieces_are_appended_and_no_rows_still_make_a_file(tmp_path: Path, format: str) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    write_table(TABLE, whole, format)
    with table_writer(parts, format, TABLE.schema) as write:
        for batch in TABLE.to_batches(max_chunksize=1):
            write(batch)
    if format == "parquet":
        one, other = (pq.read_table(str(path)).drop_columns(["fine"]) for path in (whole, parts))
        assert repr(one.to_pylist()) == repr(other.to_pylist())
    else:
        assert parts.read_text() == whole.read_text()
    write_table(TABLE.slice(0, 0), tmp_path / "none", format)
    assert (tmp_path / "none").exists()


def test_an_ending_that_tells_no_format_is_refused_by_name() -> None:
    assert [format_of(name) for name in ("x.CSV", "x.ndjson")] == ["csv", "jsonl"]
    with pytest.raises(InputError, match=r"x\.xlsx.*\.parquet, \.csv, \.jsonl"):
        format_of("x.xlsx")
