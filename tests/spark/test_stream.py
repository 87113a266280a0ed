"""Streaming operator: types, causality sources, policies, duplicates, null keys."""

from __future__ import annotations

import datetime as dt
import os
import random
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError, SetupError
from antecede.spark import order
from antecede.spark.streams.ordering import order_stream
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from tests.spark.parts import write_parts

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DECLARED = OrderSpec(id="id", after=("after",), group="group", time="at")

SCHEMA_OF_ROWS = pa.schema(
    [
        ("id", pa.string()),
        ("after", pa.list_(pa.string())),
        ("group", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)

Run = Callable[..., list[dict[str, Any]]]


def source(spark: SparkSession, folder: Path, tables: list[pa.Table]) -> DataFrame:
    """Write one Parquet file a micro-batch and return the stream over them."""
    write_parts(folder, tables)
    schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def finish(df: DataFrame, folder: Path) -> pa.Table:
    """Run a stream to its end into Parquet and read the committed output."""
    out = str(folder / "out")
    writer = df.writeStream.format("parquet").trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start(out)
    try:
        assert query.awaitTermination(900)  # on a busy machine one takes minutes
    finally:
        query.stop()
    return df.sparkSession.read.option("mergeSchema", "true").parquet(out).toArrow()


def make_history(size: int, seed: int = 1) -> pa.Table:
    rng = random.Random(seed)
    past: dict[str, list[str]] = {"g": [], "h": [], "": []}
    rows = []
    for number in range(size):
        group = rng.choice(["g", "h", ""])
        name = f"{rng.randrange(1000)}-{number}"
        after = rng.sample(past[group], min(len(past[group]), rng.randrange(3)))
        at = START + dt.timedelta(milliseconds=rng.randrange(5000))
        rows.append({"id": name, "after": after, "group": group, "at": at})
        past[group].append(name)
    return pa.Table.from_pylist(rows, SCHEMA_OF_ROWS)


def make_timed(*rows: tuple[str, list[str], float, str]) -> pa.Table:
    """Rows of id, causes, seconds and group."""
    made = [
        {"id": id, "after": after, "group": group, "at": START + dt.timedelta(seconds=second)}
        for id, after, second, group in rows
    ]
    return pa.Table.from_pylist(made, SCHEMA_OF_ROWS)


def split_rows(table: pa.Table, count: int, seed: int = 2) -> list[pa.Table]:
    order = random.Random(seed).sample(range(table.num_rows), table.num_rows)
    size = -(-table.num_rows // count)
    return [table.take(order[k : k + size]) for k in range(0, table.num_rows, size)]


def by_id(table: pa.Table) -> dict[str, dict[str, Any]]:
    rows = table.to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row for row in rows}


def check_as_batch(got: pa.Table, table: pa.Table, spec: OrderSpec = DECLARED) -> None:
    """Check every row: released as in a batch, after its causes, positions without gaps."""
    streamed, batch = by_id(got), by_id(order_table(table, spec))
    assert streamed.keys() == batch.keys()
    for name, row in streamed.items():
        changed = {key for key in row if row[key] != batch[name][key]}
        assert changed <= {"position", "released_at"}
        assert row["released_at"] >= batch[name]["released_at"]
        assert all(streamed[cause]["position"] < row["position"] for cause in row["after"])
    for group in {row["group"] for row in streamed.values()}:
        places = sorted(row["position"] for row in streamed.values() if row["group"] == group)
        assert places == list(range(len(places)))


@pytest.mark.slow
def test_stream_and_batch_agree_on_all_but_the_position(
    rocks: SparkSession, tmp_path: Path
) -> None:
    table = make_history(150)
    df = order_stream(source(rocks, tmp_path / "in", split_rows(table, 4)), DECLARED)
    assert df.isStreaming
    check_as_batch(finish(df, tmp_path), table)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.decimal128(12, 2), pa.float64(), pa.string(), pa.date32()]
)
def test_ties_are_broken_alike_in_batch_and_stream_whatever_the_type_of_ids(
    rocks: SparkSession, tmp_path: Path, kind: Any
) -> None:
    ids = pa.array([2, 10, 9, 100, 1], pa.int32()).cast(kind)
    table = pa.table({"id": ids, "after": pa.nulls(5, kind), "at": [START] * 5})
    spec = OrderSpec(id="id", after=("after",), time="at", shards=1)
    df = order_stream(source(rocks, tmp_path / "in", [table]), spec)
    streamed = by_id(finish(df, tmp_path))
    batch = by_id(order_table(table, spec))
    assert {k: r["position"] for k, r in streamed.items()} == {
        k: r["position"] for k, r in batch.items()
    }


@pytest.mark.slow
def test_every_type_comes_back_from_the_state_as_it_was(
    rocks: SparkSession, tmp_path: Path
) -> None:
    values = rocks.sql(
        """SELECT 'b' AS id, 'a' AS after, cast(1 AS byte) AS i8, cast(2 AS short) AS i16, 3 AS i32,
        cast(0.1 AS float) AS f32, double('NaN') AS f64, cast(1.10 AS decimal(38, 18)) AS dec,
        true AS flag, X'00ff' AS raw, date'1582-10-15' AS day,
        timestamp'2026-01-01 12:00:00.123456' AS ts, timestamp_ntz'2026-01-01 12:00:00.5' AS ntz,
        interval '1 02:03:04.5' day to second AS span, array(1, null) AS list,
        map('k', named_struct('x', array('y'))) AS nested, cast(null AS string) AS nothing,
        'Ünïcode \U0001f600' AS text, named_struct('a b', 1, 'c', map(1, null)) AS struct"""
    )
    first, second = values, values.withColumns({"id": F.lit("a"), "after": F.lit(None)})
    second = second.withColumn("after", F.col("after").cast("string"))
    folder = tmp_path / "in"
    for part in (first, second):
        part.coalesce(1).write.mode("append").parquet(str(folder))
    for path in folder.glob("*.parquet"):  # the row that must wait comes in the first batch
        stamp = 1_700_000_000 + (pq.read_table(path, columns=["id"])[0][0].as_py() == "a")
        os.utime(path, (stamp, stamp))
    reader = rocks.readStream.schema(first.schema).option("maxFilesPerTrigger", 1)
    df = reader.parquet(str(folder))
    spec = OrderSpec(id="id", after=("after",))
    assert order_stream(df, spec).schema.fields[: len(first.columns)] == df.schema.fields
    finish(order_stream(df, spec), tmp_path)
    got = rocks.read.parquet(str(tmp_path / "out"))
    assert [row.id for row in got.orderBy("position").collect()] == ["a", "b"]
    plain = got.select(*first.columns)
    kinds = [field.dataType.simpleString() for field in first.schema]  # files forget "not null"
    assert [field.dataType.simpleString() for field in plain.schema] == kinds
    assert sorted(map(repr, plain.collect())) == sorted(map(repr, first.union(second).collect()))
    assert got.where("id = 'b'").collect()[0].dec == Decimal("1.10")
    assert got.where("id = 'b'").collect()[0].waited_for == ["a"]


def rows(*items: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(items))


@pytest.mark.slow
def test_repeats_and_null_keys_are_marked_and_no_row_is_lost(
    rocks: SparkSession, tmp_path: Path
) -> None:
    fields: dict[str, Any] = {"id": pa.int64(), "after": pa.int32(), "text": pa.string()}
    kinds = pa.schema(fields)
    batches = [
        pa.Table.from_pylist(list[Any](part), kinds)
        for part in (
            [{"id": 1, "after": 0, "text": "x"}, {"id": None, "after": 1, "text": "lost"}],
            [{"id": 0, "text": "y"}, {"id": 1, "after": 0, "text": "x"}, {"id": 5, "after": 5}],
            [{"id": 0, "text": "z"}, {"id": 7, "after": 8}],
            [{"id": 8, "after": 7}],
        )
    ]
    spec = OrderSpec(id="id", after=("after",))
    df = order_stream(source(rocks, tmp_path / "in", batches), spec)
    got = finish(df, tmp_path).to_pylist()
    seen = sorted((r["id"] is None, r["id"], r["text"] or "", r["antecede_status"]) for r in got)
    assert [s[1:] for s in seen if not s[0]] == [
        (0, "y", "ordered"),
        (0, "z", "conflict"),
        (1, "x", "duplicate"),
        (1, "x", "ordered"),
        (5, "", "self_cause"),
        (7, "", "cycle"),
        (8, "", "cycle"),
    ]
    assert [s[2:] for s in seen if s[0]] == [("lost", "null_key")]
    waited = {(r["id"], r["position"]): r["waited_for"] for r in got if r["position"] is not None}
    assert waited == {(0, 0): [], (1, 1): ["0"]}
    assert {r["waited_ms"] for r in got} == {None}


@pytest.mark.slow
def test_sender_and_number(rocks: SparkSession, tmp_path: Path) -> None:
    numbers = [4, 2, 5, 1, 3, 3, 8]
    batches = [rows({"who": who, "n": n}) for n in numbers for who in ("a", "b")]
    merged = [pa.concat_tables(batches[k : k + 4]) for k in range(0, 14, 4)]
    spec = OrderSpec(sender="who", seq="n")
    got = finish(order_stream(source(rocks, tmp_path / "in", merged), spec), tmp_path)
    for who in ("a", "b"):
        own = [r for r in got.to_pylist() if r["who"] == who]
        placed = sorted((r["position"], r["n"]) for r in own if r["position"] is not None)
        assert [n for _, n in placed] == [1, 2, 3, 4, 5]
        assert [r["n"] for r in own if r["antecede_status"] == "duplicate"] == [3]
        assert {r["n"]: r["waited_for"] for r in own}[4] == [f"{who}:3"]


@pytest.mark.slow
def test_vector_clock(rocks: SparkSession, tmp_path: Path) -> None:
    kind = pa.schema({"host": pa.string(), "clock": pa.map_(pa.string(), pa.int64())})
    events = [
        ("a", {"a": 1}),
        ("b", {"b": 1, "a": 1}),
        ("b", {"b": 2, "a": 1}),
        ("a", {"a": 2, "b": 2}),
        ("c", {"c": 1, "a": 2, "b": 2}),
    ]
    parts = [
        pa.Table.from_pylist([{"host": h, "clock": list(c.items())}], kind)
        for h, c in [*reversed(events), ("c", {"a": 1})]
    ]
    spec = OrderSpec(clock="clock", member="host")
    df = order_stream(
        source(rocks, tmp_path / "in", [*parts[:2], pa.concat_tables(parts[2:])]), spec
    )
    got = finish(df, tmp_path).to_pylist()
    placed = {r["position"]: (r["host"], dict(r["clock"])) for r in got}
    assert [placed[k] for k in range(5)] == events
    assert [r["antecede_status"] for r in got if r["position"] is None] == ["bad_clock"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "statuses"),
    [
        ("hold", {}),
        ("release", {"b": "missing_cause", "c": "ordered", "a": "late"}),
        ("drop", {"b": "dropped", "c": "dropped", "a": "ordered"}),
    ],
)
def test_causes_that_do_not_come_in_time(
    rocks: SparkSession, tmp_path: Path, missing: Any, statuses: dict[str, str]
) -> None:
    # Time is told by rows of another group, in another shard: quiet shards hear of it too.
    batches = [
        make_timed(("b", ["a"], 0, "g"), ("c", ["b"], 1, "g")),
        make_timed(("free", ["x"], 5, "h")),
        make_timed(("x", [], 60, "h")),
    ]
    if missing != "hold":
        batches.append(make_timed(("a", [], 100, "g")))
    spec = OrderSpec(
        id="id", after=("after",), group="group", time="at",
        on_missing=missing, patience="58 seconds", shards=8,
    )  # fmt: skip
    df = order_stream(source(rocks, tmp_path / "in", batches), spec)
    got = by_id(finish(df, tmp_path))
    assert {name: row["antecede_status"] for name, row in got.items()} == {
        **statuses, "x": "ordered", "free": "ordered"
    }  # fmt: skip
    if missing == "release":
        assert (got["b"]["waited_for"], got["b"]["missing_causes"]) == ([], ["a"])
        assert got["b"]["waited_ms"] == 58_000.0
        assert got["c"]["waited_ms"] == 57_000.0


@pytest.mark.slow
def test_patience_on_processing_time_needs_no_further_rows(
    rocks: SparkSession, tmp_path: Path
) -> None:
    spec = OrderSpec(id="id", after=("after",), on_missing="release", patience="1 second")
    df = order_stream(source(rocks, tmp_path / "in", [rows({"id": "b", "after": "a"})]), spec)
    query = (
        df.writeStream.format("memory")
        .queryName("patience")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="300 milliseconds")
        .start()
    )
    try:
        for _ in range(200):
            got = rocks.table("patience").collect()
            if got:
                break
            time.sleep(0.2)
    finally:
        query.stop()
    assert [(r.id, r.missing_causes, r.antecede_status) for r in got] == [
        ("b", ["a"], "missing_cause")
    ]


def test_wrong_calls_say_what_to_do(rocks: SparkSession, tmp_path: Path) -> None:
    df = source(rocks, tmp_path / "in", [rows({"id": "b", "after": "a"})])
    with pytest.raises(InputError, match="10 minutes"):
        order_stream(df, OrderSpec(id="id", after=("after",), patience="soon"))
    rocks.conf.unset(PROVIDER)
    if not str(rocks.conf.get(PROVIDER, "")).endswith("RocksDBStateStoreProvider"):
        with pytest.raises(SetupError, match=r"spark\.conf\.set"):
            order_stream(df, OrderSpec(id="id", after=("after",)))


def test_order_takes_a_stream_as_it_takes_a_table(rocks: SparkSession, tmp_path: Path) -> None:
    tables = [make_timed(("b", ["a"], 1, "g")), make_timed(("a", [], 3, "g"))]
    stream = source(rocks, tmp_path / "in", tables)
    add = order(id="id", after="after", group="group", time="at")
    released = finish(stream.transform(add), tmp_path).sort_by("position").to_pylist()
    batch = rocks.read.parquet(str(tmp_path / "in")).transform(add).toArrow()
    assert [row["id"] for row in released] == ["a", "b"]
    assert released == batch.sort_by("position").to_pylist()
    assert released[1]["waited_for"] == ["a"]
    assert released[1]["waited_ms"] == 2000.0


@pytest.mark.slow
def test_what_was_waited_for_and_what_never_came_stand_apart(
    rocks: SparkSession, tmp_path: Path
) -> None:
    tables = [
        make_timed(("c", ["a", "b"], 0, "g")),
        make_timed(("a", [], 5, "g")),
        make_timed(("z", [], 120, "g")),
    ]
    stream = source(rocks, tmp_path / "in", tables)
    add = order(
        id="id", after="after", group="group", time="at", on_missing="release", patience="1 min"
    )
    got = by_id(finish(stream.transform(add), tmp_path))
    assert got["c"]["antecede_status"] == "missing_cause"
    assert (got["c"]["waited_for"], got["c"]["missing_causes"]) == (["a"], ["b"])
    batch = by_id(rocks.read.parquet(str(tmp_path / "in")).transform(add).toArrow())
    assert (batch["c"]["waited_for"], batch["c"]["missing_causes"]) == (["a"], ["b"])
