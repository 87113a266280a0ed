"""Zipkin span tables: Spark, Arrow and the file reader give the same events."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyspark.sql import SparkSession

from antecede.errors import InputError
from antecede.spark.sources.span_tables import spans_to_events as by_spark
from antecede.tables.trace.arrow import read
from antecede.tables.trace.formats.spans_table import COLUMNS
from antecede.tables.trace.formats.spans_table import events_of_spans as by_arrow
from antecede.tables.trace.formats.spans_zipkin import parts_of

pa: Any = pyarrow
TOLD = ("reason", "unreadable_times", "time_unit", "unreadable_causes")
EVENTS = tuple(name for name in COLUMNS if name not in TOLD)
ENDPOINT = pa.struct({"serviceName": pa.string(), "ipv4": pa.string()})
NOTE = pa.struct({"timestamp": pa.int64(), "value": pa.string(), "endpoint": ENDPOINT})
SCHEMA = pa.schema(
    {
        **dict.fromkeys(("traceId", "id", "parentId", "kind", "name"), pa.string()),
        **dict.fromkeys(("timestamp", "duration"), pa.int64()),
        "shared": pa.bool_(),
        "localEndpoint": ENDPOINT,
        "annotations": pa.list_(NOTE),
    }
)


TRACES: list[str | None] = [
    "a",
    "A",
    " b",
    "c" * 32,
    "C" * 16,
    "0x" + "c" * 16,
    f"{10:032x}",
    "d\u2003",
]
TRACES += ["", " ", None, "e" * 16, "1" * 16 + "e" * 16, "2" * 16 + "e" * 16]


def spans(seed: int, count: int = 300) -> list[dict[str, Any]]:
    """Return spans with few ids, so that spans are shared, split and repeated; some without ids."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        service = draw.choice(["front", "back", "Back", " ", None])
        made.append(
            {
                "traceId": draw.choice(TRACES),
                "id": draw.choice(["1", "2", "3", "4", "e", "E", "", None]),
                "parentId": draw.choice(["1", "2", "e", "0x2", "0", "0" * 16, "", None]),
                "kind": draw.choice(["CLIENT", "server", "Consumer", "PRODUCER", "x", None, None]),
                "name": draw.choice(["get", " ", None]),
                "timestamp": draw.choice(
                    [None, 0, 1, 2, 2**62, 1_700_000_000_000_000, 1_700_000_000]
                ),
                "duration": draw.choice([None, 0, 5, 2**62]),
                "shared": draw.choice([True, False, None]),
                "localEndpoint": draw.choice(
                    [{"serviceName": service, "ipv4": draw.choice(["1.2.3.4", None])}, None]
                ),
            }
        )
    return made


def to_record(record: dict[str, Any]) -> dict[str, Any]:
    """Return a row as Zipkin's JSON has it, without what is null."""
    ends = record.get("localEndpoint")
    inner = None if ends is None else {k: v for k, v in ends.items() if v is not None}
    plain = {k: v for k, v in record.items() if v is not None and k != "localEndpoint"}
    return plain | ({"localEndpoint": inner} if inner else {})


def sort_records(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows by time, then content, as tables are read."""

    def place(record: dict[str, Any]) -> Any:
        try:
            part = parts_of(to_record(record))[0]
        except ValueError:
            return (False, 0, "")
        return (part.start is None, part.start or 0, repr(part))

    return sorted(records, key=place)


def sort_rows(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(4))
def test_a_table_a_frame_and_a_file_tell_the_same(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    rows = spans(seed)
    path = tmp_path / "spans.json"
    path.write_text("\n".join(json.dumps(to_record(row)) for row in sort_records(rows)))
    trace = read([path], "spans")
    here = by_arrow(pa.Table.from_pylist(rows, schema=SCHEMA))
    good = [row for row in here.to_pylist() if row["reason"] is None]
    assert sort_rows({name: row[name] for name in EVENTS} for row in good) == sort_rows(
        trace.events.select(list(EVENTS)).to_pylist()
    )
    assert here.num_rows - len(good) == trace.quarantine.num_rows > 20
    details: dict[str, Any] = trace.details
    assert sum(row["unreadable_times"] for row in good) == details["unreadable_times"] > 5
    assert details["shared_spans"] > 2
    assert details["merged_rows"] > 2
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA))
    made = frame.repartition(3, "name").transform(by_spark).toArrow()
    assert made.schema.names == list(COLUMNS)
    assert sort_rows(made.to_pylist()) == sort_rows(here.to_pylist())


def test_columns_under_other_names_and_types(spark: SparkSession) -> None:
    table = pa.table(
        {
            "trace_id": pa.array([b"\x01", b"\x01"]),
            "id": pa.array([b"\x0a", b"\x0a"]),
            "kind": ["CLIENT", "SERVER"],
            "timestamp": pa.array([1, 2], pa.timestamp("us", "UTC")),
            "duration": [9, 3],
            "local_endpoint_service_name": ["front", "back"],
            "other": [1, 2],
        }
    )
    here = by_arrow(table).to_pylist()
    name = "0000000000000001/000000000000000a"
    assert [(row["id"], row["causes"], row["start_time"], row["end_time"]) for row in here] == [
        (name, [], 1000, 10_000),
        (f"{name}/back", [name], 2000, 5000),
    ]
    there = spark.createDataFrame(table).transform(by_spark).toArrow().to_pylist()
    assert sort_rows(there) == sort_rows(here)


def test_version_1_tells_both_sides_in_one_row(spark: SparkSession) -> None:
    def note(value: str, at: int, service: str) -> dict[str, Any]:
        return {"timestamp": at, "value": value, "endpoint": {"serviceName": service}}

    notes = [note("cs", 10, "front"), note("sr", 30, "back"), note("ss", 70, "back")]
    row = {"traceId": "t", "id": "2", "parentId": "1", "timestamp": 10, "duration": 90}
    table = pa.Table.from_pylist([{**row, "annotations": notes}], schema=SCHEMA)
    here = by_arrow(table).to_pylist()
    two = f"t/{2:016}"
    assert [(one["id"], one["member"], one["causes"]) for one in here] == [
        (two, "front", [f"t/{1:016}"]),
        (f"{two}/back", "back", [two]),
    ]
    there = spark.createDataFrame(table).transform(by_spark).toArrow().to_pylist()
    assert sort_rows(there) == sort_rows(here)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["ascend", "skew", "yelp", "smartthings-oauth-authorization"])
def test_real_spans(spark: SparkSession, shared_data: Path, name: str) -> None:
    path = shared_data / f"traces/{name}.json"
    trace = read([path])
    parts = [one if isinstance(one, list) else [one] for one in json.loads(path.read_text())]
    rows = [{k: v for k, v in one.items() if k in SCHEMA.names} for part in parts for one in part]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    made = spark.createDataFrame(table).transform(by_spark).toArrow()
    assert sort_rows(made.to_pylist()) == sort_rows(by_arrow(table).to_pylist())
    wanted = ["id", "causes", "start_time", "role"]
    assert sort_rows(made.select(wanted).to_pylist()) == sort_rows(
        trace.events.select(wanted).to_pylist()
    )


def test_what_cannot_serve_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    names = "traceId boolean, id string, parentId string"
    numbers = spark.createDataFrame([(True, "b", "")], names)
    said = "column traceId must be text, bytes or integers; it is boolean"
    with pytest.raises(InputError, match=said):
        by_spark(numbers)
    stream = spark.readStream.schema("traceId string, id string, parentId string").parquet(
        str(tmp_path)
    )
    with pytest.raises(InputError, match="all rows of their trace"):
        by_spark(stream)
