from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from antecede.cli import order as command
from antecede.errors import InputError


def run(*words: str | Path) -> int:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([str(word) for word in words]))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Events with every defect, as JSON lines."""
    rows = [
        {"id": "c", "parents": ["b"], "send_time": 1, "member": "x"},
        {"id": "b", "parents": ["a"], "send_time": 2, "member": "y"},
        {"id": "a", "parents": [], "send_time": 3, "member": "x"},
        {"id": "a", "parents": [], "send_time": 9, "member": "x"},
        {"id": "a", "parents": ["b"], "send_time": 9, "member": "x"},
        {"id": "orphan", "parents": ["gone"], "send_time": 4, "member": "x"},
        {"id": "self", "parents": ["self"], "send_time": 5, "member": "x"},
        {"id": "p", "parents": ["q"], "send_time": 6, "member": "x"},
        {"id": "q", "parents": ["p"], "send_time": 7, "member": "x"},
        {"id": None, "parents": [], "send_time": 8, "member": "x"},
    ]
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_writes_causal_order_and_quarantine(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.parquet"
    assert run(trace, "-o", out) == 0
    table = pq.read_table(str(out))
    assert table["id"].to_pylist() == ["a", "b", "c", "orphan"]
    assert table["position"].to_pylist() == [0, 1, 2, 3]
    assert table["antecede_status"].to_pylist()[3] == "missing_cause"
    assert pq.ParquetFile(str(out)).metadata.row_group(0).column(0).compression == "ZSTD"
    aside = pq.read_table(str(tmp_path / "out.quarantine.parquet"))
    assert sorted(str(i) for i in aside["id"].to_pylist()) == ["None", "a", "p", "q", "self"]
    assert aside.num_rows + table.num_rows == 9  # and one repeated row, which says nothing new
    printed = capsys.readouterr().out
    assert "engine      local (7 events" in printed
    assert "1 events name causes that are nowhere" in printed
    assert "2 is its own cause" in printed


def test_an_existing_file_is_kept_unless_forced(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    out.write_text("precious")
    with pytest.raises(InputError, match="exists already"):
        run(trace, "-o", out)
    assert out.read_text() == "precious"
    run(trace, "-o", out, "--force")
    assert pq.read_table(str(out)).num_rows == 4
    assert not list(tmp_path.glob(".*"))


def test_the_quarantine_of_an_earlier_run_is_kept_too(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "out.quarantine.parquet").write_text("precious")
    with pytest.raises(InputError, match=r"quarantine.*exists already"):
        run(trace, "-o", tmp_path / "out.parquet")


def test_a_place_that_cannot_be_written_is_refused_before_reading(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        run("no-such-trace", "-o", tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        run("no-such-trace", "-o", tmp_path / "absent" / "out.parquet")


def test_ties_by_a_column_that_nobody_knows(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="no event has a value of commit_time; known are send_time"
    ):
        run(trace, "-o", tmp_path / "out.parquet", "--by", "commit_time")


@pytest.mark.parametrize(
    ("name", "late"), [("linux-edac", 620), ("speakup", 7), ("linux-watchdog", 835)]
)
def test_real_mail_comes_out_with_every_parent_first(
    shared_data: Path, tmp_path: Path, name: str, late: int
) -> None:
    out = tmp_path / "out.parquet"
    run(shared_data / "lore" / f"{name}.jsonl.gz", "-o", out)
    table = pq.read_table(str(out), columns=["id", "parents", "arrival", "waited_for"])
    rows: list[dict[str, Any]] = table.to_pylist()
    place = {row["id"]: k for k, row in enumerate(rows)}
    before = 0
    for k, row in enumerate(rows):
        for parent in row["parents"]:
            if parent in place:
                assert place[parent] < k
                before += row["arrival"] < rows[place[parent]]["arrival"]
    assert before == late  # the truth file's count: what sorting by arrival gets wrong


def test_a_real_vector_clock_log_follows_happened_before(shared_data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    run(shared_data / "shiviz" / "simpledb.log", "-o", out)
    rows = pq.read_table(str(out)).to_pylist()
    clocks = [dict(zip(r["clock_members"], r["clock_counts"], strict=True)) for r in rows]
    assert len(rows) == 509
    for later, clock in enumerate(clocks):
        for row, other in zip(rows[later + 1 :], clocks[later + 1 :], strict=True):
            happened_before = other[row["member"]] <= clock.get(row["member"], 0)
            assert not happened_before
