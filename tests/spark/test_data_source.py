"""`spark.read.format("antecede")`: rows of the local readers; a stream reads files once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import DataFrame, SparkSession

from antecede.spark.sources.data_source import FILE_ORDER_STEP, register_source
from antecede.tables.trace.arrow import read
from antecede.tables.trace.reader import ReadOptions
from tests.spark.test_stream import finish

pa: Any = pyarrow
SHIVIZ = 'a {"a": 1}\nhello\nb {"b": 1, "a": 1}\nthere\nb {"b": 2, "a": 1}\nthanks\n'
MAIL = "From a@x Mon Jan  1 10:00:00 2024\nMessage-ID: <1@x>\n"
MAIL += "Date: Mon, 1 Jan 2024 10:00 +0000\nFrom: a@x\n\nhi\n"
ZIPKIN = json.dumps(
    [
        {"traceId": "1", "id": "a", "kind": "CLIENT", "timestamp": 5},
        {"traceId": "1", "id": "a", "kind": "SERVER", "shared": True, "timestamp": 6},
        {"traceId": "1", "id": "b", "parentId": "a"},
        {"id": "no trace"},
    ]
)
LOGS = {
    "shiviz": SHIVIZ,
    "mail": MAIL,
    "spans": ZIPKIN,
    "table": "id,parent,time\na,,5\nb,a,x\n,b,7\n",
}


@pytest.fixture(scope="module")
def source(spark: SparkSession) -> SparkSession:
    register_source(spark)
    return spark


def rows(df: DataFrame) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = df.toArrow().to_pylist()
    return found


def read_here(paths: list[Path], format: str | None, **options: Any) -> tuple[list[Any], list[Any]]:
    """Return the rows of the local reader, with files numbered as in the data source."""
    events: list[Any] = []
    bad: list[Any] = []
    for number, path in enumerate(paths):
        trace = read([path], format, ReadOptions(**options))
        first = number * FILE_ORDER_STEP
        events += [
            {**row, "file_order": row["file_order"] + first} for row in trace.events.to_pylist()
        ]
        bad += trace.quarantine.to_pylist()
    return events, bad


def by_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: row["file_order"])


@pytest.mark.slow
@pytest.mark.parametrize("format", LOGS)
@pytest.mark.parametrize("told", [True, False])
def test_formats_read_as_locally(
    source: SparkSession, tmp_path: Path, format: str, told: bool
) -> None:
    paths = [tmp_path / f"{k}.{'csv' if format == 'table' else 'log'}" for k in range(3)]
    for path in paths:
        path.write_text(LOGS[format])
    (tmp_path / "_hidden").write_text("no trace at all")
    frame = source.read.format("antecede").option("quarantine", "exclude")
    frame = frame.option("as", format) if told else frame
    events, bad = read_here(paths, format)
    found = frame.load(str(tmp_path))
    assert found.rdd.getNumPartitions() == 3
    assert by_order(rows(found)) == events
    assert by_order(rows(frame.load(str(tmp_path / "*.*")))) == events
    assert events
    refused = rows(frame.option("quarantine", "only").load(str(tmp_path)))
    assert sorted(map(str, refused)) == sorted(map(str, bad))
    both = rows(frame.option("quarantine", "include").load(str(tmp_path)))
    assert len(both) == len(events) + len(bad)
    assert sorted(row["reason"] for row in both if row["reason"]) == sorted(
        row["reason"] for row in bad
    )


@pytest.mark.slow
def test_mailboxes_read_together_are_one_archive(source: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.mbox").write_text(MAIL)
    reply = "In-Reply-To: <gone@x>\nReferences: <1@x> <gone@x>"
    (tmp_path / "b.mbox").write_text(MAIL.replace("<1@x>", f"<2@x>\n{reply}"))
    here = read([tmp_path]).events
    found = by_order(rows(source.read.format("antecede").load(str(tmp_path))))
    assert [row["causes"] for row in found] == here["causes"].to_pylist()
    assert found[1]["causes"] == ["gone@x", "1@x"]


def test_bad_records_end_the_query_unless_told(source: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,x\na,1\n,2\n")
    with pytest.raises(Exception, match=r"t\.csv:3: no id; set option quarantine") as info:
        source.read.format("antecede").load(str(tmp_path)).collect()
    assert "include" in str(info.value)


@pytest.mark.slow
def test_options_and_details(source: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("key,why,when\na,,1700000000\nb,a;c,nonsense\n")
    given = {"id": "key", "after": "why", "time": "when", "separator": ";"}
    frame = source.read.format("antecede").options(**given)
    found = by_order(rows(frame.load(str(tmp_path))))
    assert [row["causes"] for row in found] == [[], ["a", "c"]]
    assert found[0]["send_time"] == 1_700_000_000 * 10**9
    told = rows(frame.option("rows", "details").load(str(tmp_path)))
    assert {(row["name"], row["value"]) for row in told} == {
        ("unreadable_times", "1"),
        ("guessed_time_unit", "s"),
        ("columns", "key, why, when"),
        ("candidate_columns", "causes in why"),
    }
    for name, value, said in (
        ("sperator", ";", "unknown option 'sperator'"),
        ("as", "shivz", "unknown format 'shivz'"),
        ("quarantine", "drop", "option quarantine: unknown value"),
        ("timeUnit", "h", "option timeUnit: unknown unit"),
    ):
        other = source.read.format("antecede").options(**given, **{name: value})
        with pytest.raises(Exception, match=said):
            other.load(str(tmp_path)).collect()
    with pytest.raises(Exception, match="no such file"):
        source.read.format("antecede").load(str(tmp_path / "nothing")).collect()


@pytest.mark.slow
def test_parquet_is_read_by_row_groups(
    source: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"id": [f"e{k}" for k in range(500)], "time": list(range(500))})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    pyarrow.parquet.write_table(table, tmp_path / "b.parquet", row_group_size=250)
    events, _ = read_here([tmp_path], None)
    found = source.read.format("antecede").load(str(tmp_path))
    assert by_order(rows(found)) == events
    assert found.rdd.getNumPartitions() == 2


@pytest.mark.slow
def test_a_stream_takes_each_file_once(source: SparkSession, tmp_path: Path) -> None:
    logs = tmp_path / "in"
    logs.mkdir()

    def run() -> list[str]:
        stream = source.readStream.format("antecede").option("as", "shiviz").load(str(logs))
        found = finish(stream, tmp_path).sort_by("file_order").to_pylist()
        return [
            f"{row['file_order'] % FILE_ORDER_STEP}:{Path(row['source']).name}" for row in found
        ]

    (logs / "b.log").write_text(SHIVIZ)
    first = [f"{k}:b.log" for k in range(3)]
    assert run() == first
    assert run() == first
    (logs / ".coming").write_text(SHIVIZ)
    (logs / ".coming").rename(logs / "a.log")
    (logs / "_not").write_text("nothing")
    then = first + [f"{k}:a.log" for k in range(3)]
    assert run() == then
    (logs / "b.log").unlink()  # taken long ago: moved away
    (logs / "c.log").write_text(SHIVIZ)
    assert run() == then + [f"{k}:c.log" for k in range(3)]
