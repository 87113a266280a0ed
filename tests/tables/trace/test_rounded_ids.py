"""Numbers as ids and causes: decimals count by value, rounded ones match nothing."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from antecede.cli import main
from antecede.errors import FormatError
from antecede.tables.trace.arrow import read
from tests.tables.trace.files import join_lines, run_command, write_file

pa: Any = pyarrow
BIG = 1212092628029698048


def table(path: Path, **columns: Any) -> Path:
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def rounded(tmp_path: Path) -> Path:
    """Write three ids, two of which are equal as floating-point numbers."""
    causes = pa.array([None, float(BIG), float(BIG + 1)])
    return table(tmp_path / "f.parquet", id=pa.array([BIG, BIG + 1, BIG + 2]), after=causes)


def test_a_cause_that_may_be_several_ids_matches_none(
    rounded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Defect A4: rounded causes were matched as if they were exact."""
    assert read([rounded]).details["rounded_causes"] == 2
    out = tmp_path / "out.jsonl"
    assert "save ids as text or int64" in join_lines(
        run_command(capsys, "order", rounded, "-o", out)
    )
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["antecede_status"] for row in rows] == ["ordered"] + 2 * ["missing_cause"]
    assert all("rounded" in row["missing_causes"][0] for row in rows[1:])
    assert main(["false-causality", str(rounded)]) == 2  # no usable cause
    assert "names no other event of its run (example: '1.21" in capsys.readouterr().err


def test_the_last_exact_number_is_a_name(tmp_path: Path) -> None:
    last = 2**53 - 1
    causes = pa.array([None, float(last), 2.0**53])
    path = table(tmp_path / "f.parquet", id=pa.array([last, 2, 2**53]), after=causes)
    trace = read([path])
    assert [*trace.events["causes"].to_pylist()][1] == [str(last)]
    assert trace.details["rounded_causes"] == 1


@pytest.mark.parametrize("column", ["id", "member", "run", "topic", "seq"])
def test_other_columns_of_such_numbers_are_set_aside(column: str, tmp_path: Path) -> None:
    columns = {"id": pa.array(["a", "b"]), column: pa.array([1.0, float(BIG)])}
    trace = read([table(tmp_path / "f.parquet", **columns)])
    assert len(trace.events) == 1
    reason = str(trace.quarantine["reason"][0])
    assert "is rounded: " in reason
    assert f"column {column}" in reason
    assert "save ids as text or int64" in reason


def test_decimals_with_whole_values_are_names(tmp_path: Path) -> None:
    """Defect B3: large ids as decimals of databases were rejected."""
    kind = pa.decimal128(20, 0)
    ids = pa.array([Decimal(2**63 + k) for k in range(2)], kind)
    path = table(tmp_path / "d.parquet", id=ids, after=pa.array([None, Decimal(2**63)], kind))
    events = read([path]).events
    assert events["id"].to_pylist() == [str(2**63), str(2**63 + 1)]
    assert events["causes"].to_pylist() == [[], [str(2**63)]]
    lists = pa.array([[], [Decimal("1.00")]], pa.list_(pa.decimal128(9, 2)))
    ids = pa.array([Decimal("1.00"), Decimal("2.00")])
    times = pa.array([Decimal("1.50"), Decimal("2.00")])
    path = table(tmp_path / "l.parquet", id=ids, after=lists, seq=ids, time=times)
    events = read([path]).events
    assert events["id"].to_pylist() == ["1", "2"]
    assert events["seq"].to_pylist() == [1, 2]
    assert events["causes"].to_pylist() == [[], ["1"]]
    assert events["send_time"].to_pylist() == [1_500_000_000, 2_000_000_000]


@pytest.mark.parametrize(
    ("held", "words"), [(True, "True"), ({"a": 1}, "{'a': 1}"), (1.5, "1.5"), ([1], "[1]")]
)
def test_an_id_that_is_no_name_says_what_it_is(held: Any, words: str, tmp_path: Path) -> None:
    path = write_file(tmp_path, json.dumps({"id": held}) + "\n", "t.jsonl")
    with pytest.raises(FormatError, match="text, bytes or whole numbers") as caught:
        read([path])
    assert f"invalid id: {words}; ids are" in str(caught.value)
    path.write_text(json.dumps({"id": None, "after": "x"}) + "\n")
    with pytest.raises(FormatError, match="no id"):
        read([path])
