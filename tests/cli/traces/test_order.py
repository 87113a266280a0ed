from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from antecede.cli import main
from antecede.cli.traces import order
from antecede.errors import InputError
from antecede.tables.trace.arrow import read
from tests.helpers.fixtures import Call, Capture


def run(*words: str | Path) -> int:
    parser = argparse.ArgumentParser()
    order.add_arguments(parser)
    return order.run(parser.parse_args([str(word) for word in words]))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Events with every defect, as JSON lines."""
    rows = [
        {"id": "c", "causes": ["b"], "send_time": 1, "member": "x"},
        {"id": "b", "causes": ["a"], "send_time": 2, "member": "y"},
        {"id": "a", "causes": [], "send_time": 3, "member": "x"},
        {"id": "a", "causes": [], "send_time": 9, "member": "x"},
        {"id": "a", "causes": ["b"], "send_time": 9, "member": "x"},
        {"id": "orphan", "causes": ["gone"], "send_time": 4, "member": "x"},
        {"id": "self", "causes": ["self"], "send_time": 5, "member": "x"},
        {"id": "p", "causes": ["q"], "send_time": 6, "member": "x"},
        {"id": "q", "causes": ["p"], "send_time": 7, "member": "x"},
        {"id": None, "causes": [], "send_time": 8, "member": "x"},
    ]
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_writes_causal_order_and_quarantine(trace: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out.parquet"
    assert run(trace, "-o", out) == 0
    table = pq.read_table(str(out))
    assert table["id"].to_pylist() == ["a", "b", "c", "orphan", "self"]
    assert table["position"].to_pylist() == [0, 1, 2, 3, 4]
    assert table["antecede_status"].to_pylist()[3] == "missing_cause"
    assert pq.ParquetFile(str(out)).metadata.row_group(0).column(0).compression == "ZSTD"
    aside = pq.read_table(str(tmp_path / "out.quarantine.parquet"))
    assert sorted(str(i) for i in aside["id"].to_pylist()) == ["None", "a", "p", "q"]
    assert aside.num_rows + table.num_rows == 9  # and one repeated row, which says nothing new
    printed = capsys.readouterr().out
    assert "engine      local (needs under 1 MB of memory, " in printed
    assert "1 event with causes that are not in the trace" in printed
    assert "2 is its own cause" in printed
    assert "1 reference of an event to itself, ignored; the event and its other causes" in printed


def test_an_existing_file_is_kept_unless_forced(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    out.write_text("precious")
    with pytest.raises(InputError, match="exists"):
        run(trace, "-o", out)
    assert out.read_text() == "precious"
    run(trace, "-o", out, "--force")
    assert pq.read_table(str(out)).num_rows == 5
    assert not list(tmp_path.glob(".*"))


def test_the_quarantine_of_an_earlier_run_is_kept_too(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "out.quarantine.parquet").write_text("precious")
    with pytest.raises(InputError, match=r"quarantine.*exists"):
        run(trace, "-o", tmp_path / "out.parquet")


def test_ties_by_a_column_that_nobody_knows(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="no event has a value of commit_time; choose from send_time"
    ):
        run(trace, "-o", tmp_path / "out.parquet", "--by", "commit_time")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "late"), [("linux-edac", 620), ("speakup", 7), ("linux-watchdog", 835)]
)
def test_real_mail_comes_out_with_every_parent_first(
    shared_data: Path, tmp_path: Path, name: str, late: int
) -> None:
    out = tmp_path / "out.parquet"
    run(shared_data / "lore" / f"{name}.jsonl.gz", "-o", out)
    table = pq.read_table(str(out), columns=["id", "causes", "arrival", "waited_for"])
    rows: list[dict[str, Any]] = table.to_pylist()
    place = {row["id"]: k for k, row in enumerate(rows)}
    before = 0
    for k, row in enumerate(rows):
        for cause in row["causes"]:
            if cause in place:
                assert place[cause] < k
                before += row["arrival"] < rows[place[cause]]["arrival"]
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


OWN = """\
{"id": 7, "after": [], "kind": "in", "price": 1.5, "position": "desk", "tags": ["x"], "room": "r"}
{"id": 2, "after": [7], "kind": "out", "price": 2, "position": null, "tags": [], "room": "s"}
{"id": 10, "after": [7], "kind": "out", "price": null, "position": "hut", "tags": null, "room": "r"}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.jsonl"
    path.write_text(OWN)
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_table_keeps_all_its_columns_their_names_types_and_values(
    own: Path, tmp_path: Path, capsys: Capture
) -> None:
    run(own, "-o", tmp_path / "out.parquet")
    table = pq.read_table(str(tmp_path / "out.parquet"))
    given = [json.loads(line) for line in OWN.splitlines()]
    assert table.column_names[:7] == list(given[0])
    assert table.select(table.column_names[:7]).to_pylist() == given
    added = ["antecede_position", "waited_for", "missing_causes", "waited_ms", "antecede_status"]
    assert table.column_names[7:] == added
    assert table["antecede_position"].to_pylist() == [0, 1, 2]
    assert "renamed     the added column position is antecede_position" in capsys.readouterr().out


def test_parquet_comes_out_with_the_types_it_had(tmp_path: Path) -> None:
    table: Any = pa.table(
        {
            "id": pa.array([2, 1], pa.int16()),
            "after": pa.array([[1], []], pa.list_(pa.int16())),
            "kind": pa.array(["x", "y"]).dictionary_encode(),
            "price": pa.array([1, 2], pa.decimal128(9, 2)),
            "at": pa.array([5, 6], pa.timestamp("ms", "UTC")),
        }
    )
    pq.write_table(table.slice(0, 1), tmp_path / "a.parquet")
    pq.write_table(table.slice(1, 1), tmp_path / "b.parquet")
    run(tmp_path / "a.parquet", tmp_path / "b.parquet", "-o", tmp_path / "out.parquet")
    found: Any = pq.read_table(str(tmp_path / "out.parquet"))
    assert found.select(table.column_names).cast(table.schema).equals(table.take([1, 0]))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "ndjson", "parquet"])
def test_a_file_is_written_as_its_name_says(trace: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"out.{ending}"
    run(trace, "-o", out)
    aside = tmp_path / f"out.quarantine.{ending}"
    if ending == "parquet":
        rows, bad = (pq.read_table(str(path)).to_pylist() for path in (out, aside))
    elif ending == "csv":
        rows, bad = (list(csv.DictReader(path.read_text().splitlines())) for path in (out, aside))
    else:
        rows, bad = read_lines(out), read_lines(aside)
    assert [row["id"] for row in rows] == ["a", "b", "c", "orphan", "self"]
    assert [int(row["position"]) for row in rows] == [0, 1, 2, 3, 4]
    assert len(bad) == 4
    again: Any = read([out])
    assert again.events["causes"].to_pylist() == [[], ["a"], ["b"], ["gone"], ["self"]]


def test_positions_are_within_the_topic_that_was_asked_for(
    own: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out.jsonl"
    run(own, "-o", out, "--topic", "room")
    rows = [(row["room"], row["antecede_position"], row["id"]) for row in read_lines(out)]
    assert rows == [("r", 0, 7), ("r", 1, 10), ("s", 0, 2)]
    assert "positions   within each of 2 topics; causes hold across them" in capsys.readouterr().out


def test_an_event_of_several_topics_has_no_position_within_one(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": "a", "tags": ["x", "y"]}\n')
    with pytest.raises(InputError, match=r"t\.jsonl:1 \(id a\): has 2 topics"):
        run(path, "-o", tmp_path / "out.csv", "--topic", "tags")


def test_force_replaces_only_a_quarantine_that_order_made(
    trace: Path, own: Path, tmp_path: Path, capsys: Capture
) -> None:
    for ending in ("parquet", "csv", "jsonl"):
        out, aside = tmp_path / f"out.{ending}", tmp_path / f"out.quarantine.{ending}"
        run(trace, "-o", out)
        written = aside.read_bytes()
        run(trace, "-o", out, "--force")
        assert aside.read_bytes() == written
        run(own, "-o", out, "--force")
        assert not aside.exists()
        assert f"removed     {aside}" in capsys.readouterr().out
        aside.write_bytes(own.read_bytes())
        with pytest.raises(InputError, match="is not a quarantine of an earlier run"):
            run(own, "-o", out, "--force")
        assert aside.read_bytes() == own.read_bytes()


def test_the_neighbour_that_is_read_stays(own: Path, tmp_path: Path) -> None:
    trace = own.rename(tmp_path / "x.quarantine.jsonl")
    with pytest.raises(InputError, match="is input of this command"):
        run(trace, "-o", tmp_path / "x.jsonl", "--force")
    assert trace.read_text() == OWN


def test_repeated_rows_are_told_in_what_they_agree(tmp_path: Path, capsys: Capture) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_text('id,member,clock\na,x,"{""x"": 1}"\na,y,"{""x"": 1}"\n')
    assert main(["order", str(path), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "by vector clocks" in said
    assert "excluded    1 repeated row" in said
    assert "clock and text agree; other columns were not compared" in said


def test_a_row_in_conflict_is_counted_once(tmp_path: Path, capsys: Capture) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_text("id,after,text\na,,x\nb,a,y\nb,a,again\nb,,else\nc,b,q\n")
    assert main(["order", str(path), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "excluded    1 repeated row: the first row of an id counts" in said
    assert "member, causes and clock agree; other columns were not compared" in said
    assert "quarantined 1 row, with reasons" in said
    assert "1 an earlier row of this id differs in causes" in said
    assert main(["audit", str(path)]) == 0
    said = capsys.readouterr().out
    assert "2 later rows of an id already seen" in said
    assert "the first row of an id counts; 1 of them, which differ from it, are quarantined" in said


@pytest.mark.parametrize("suffix", [".jsonl", ".txt"])
def test_a_named_column_may_begin_late_in_json_lines(
    suffix: str, tmp_path: Path, refused: Call
) -> None:
    path, out = tmp_path / f"late{suffix}", tmp_path / "o.csv"
    lines = [f'{{"id":"r{k}"}}' for k in range(1500)]
    path.write_text("\n".join([*lines, '{"id":"z","because":"r1","when":1700000000}']))
    call = ["order", str(path), "-o", str(out), "--format", "table"]
    assert main([*call, "--after", "because", "--time", "when"]) == 0
    rows = {row["id"]: row for row in csv.DictReader(out.read_text().splitlines())}
    assert rows["z"]["because"] == "r1"
    assert int(rows["z"]["position"]) > int(rows["r1"]["position"])
    assert len(rows) == 1501
    assert "no column 'never'; columns are id, because, when" in refused(
        *call, "--after", "never", "--force"
    )
    assert len(out.read_text().splitlines()) == 1502  # what was there stays


def test_an_output_needs_a_name(tmp_path: Path, refused: Call) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,parent\na,\n")
    assert "is not a file name" in refused("order", str(path), "-o", "")
