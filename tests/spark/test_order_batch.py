"""Batch ordering on Spark against the local engine."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import antecede.spark
from antecede.errors import InputError
from antecede.spark.ordering import order_with
from antecede.tables.order.spec import OrderSpec
from antecede.tables.order.table import order_table
from tests.tables.order.reference import random_rows

GROUPED = OrderSpec(
    id="id", after=("after", "also"), group="group", time="at", time_unit=None, content=("note",)
)


def sample() -> pa.Table:
    """Return rows of three groups with every kind of defect."""
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    records: list[dict[str, Any]] = []
    for g, group in enumerate(("x", "y", None)):
        rows = random_rows(g, 60, backward=0.03)
        for k, row in enumerate([*rows, *rows[:5]]):
            at = None if row.time is None else moment + dt.timedelta(milliseconds=row.time)
            also = f"e{k - 1}" if k % 11 == 10 else None
            records.append(
                {
                    "group": group,
                    "id": None if k == 7 else row.id,
                    "after": list(row.after),
                    "also": also,
                    "at": at,
                    "note": str(k % 60 + (k == 62)),
                    "payload": {"n": k},
                }
            )
    kinds: dict[str, Any] = dict.fromkeys(("group", "id", "also", "note"), pa.string())
    kinds |= {"after": pa.list_(pa.string()), "at": pa.timestamp("us", "UTC")}
    kinds["payload"] = pa.struct([("n", pa.int64())])
    return pa.Table.from_pylist(records, pa.schema(kinds))


def rows_of(df: DataFrame) -> list[str]:
    return sorted(map(repr, df.toArrow().to_pylist()))


@pytest.mark.parametrize("shards", [None, 1, 3])
def test_spark_and_the_local_engine_agree_row_for_row(
    spark: SparkSession, shards: int | None
) -> None:
    table = sample()
    local = order_table(table, GROUPED)
    every = "ordered missing_cause duplicate conflict self_cause cycle null_key"
    assert set(local.column("antecede_status").to_pylist()) == set(every.split())
    made = antecede.spark.order(
        id="id", after=["after", "also"], group="group", time="at", content=["note"], shards=shards
    )
    on_spark = spark.createDataFrame(table).repartition(5).transform(made)
    assert rows_of(on_spark) == sorted(map(repr, local.to_pylist()))


def test_without_a_group_all_partitions_are_one(spark: SparkSession) -> None:
    df = spark.range(100).select(
        f.col("id"), f.when(f.col("id") > 0, f.col("id") - 1).alias("previous")
    )
    made = df.repartition(7).transform(antecede.spark.order(id="id", after="previous"))
    assert made.where("position = id").count() == 100


@pytest.mark.slow
def test_vectors_and_numbers_on_spark(spark: SparkSession) -> None:
    df = spark.createDataFrame(
        [("b", {"a": 1, "b": 1}, 1), ("a", {"a": 1}, 1), ("b", {"a": 1, "b": 2}, 2)],
        "host string, clock map<string, bigint>, n int",
    )
    by_clock = df.transform(antecede.spark.order(clock="clock", member="host"))
    got = {(r.host, r.n): r.position for r in by_clock.collect()}
    assert got == {("a", 1): 0, ("b", 1): 1, ("b", 2): 2}
    by_number = df.transform(antecede.spark.order(sender="host", seq="n", group="host"))
    got = {(r.host, r.n): r.position for r in by_number.collect()}
    assert got == {("a", 1): 0, ("b", 1): 0, ("b", 2): 1}


def test_an_empty_frame_gains_the_columns(spark: SparkSession) -> None:
    df = spark.createDataFrame([], "id string, after array<string>")
    made = df.transform(antecede.spark.order(id="id", after="after", status="why"))
    names = ["position", "waited_for", "missing_causes", "waited_ms", "released_at", "why"]
    assert made.columns == ["id", "after", *names]
    assert made.count() == 0


def test_nothing_runs_before_an_action_and_bad_columns_are_refused_at_once(
    spark: SparkSession,
) -> None:
    df = spark.createDataFrame([], "id string, after map<string, int>, n double, host string")
    wrong: dict[str, dict[str, Any]] = {
        "no column caused_by; there are id, after": {"id": "id", "after": "caused_by"},
        "column after must be a plain value or an array": {"id": "id", "after": "after"},
        "column n must be a whole number; it is double": {"sender": "id", "seq": "n"},
        "column host must be a map": {"clock": "host", "member": "id"},
        "column n must be a timestamp": {"id": "id", "after": "host", "time": "n"},
    }
    for said, ways in wrong.items():
        with pytest.raises(InputError, match=said):
            df.transform(antecede.spark.order(**ways))
    with pytest.raises(InputError, match="exactly one"):
        antecede.spark.order(id="id")


def test_only_what_is_asked_for_is_read_and_shuffled(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(sample()).write.parquet(str(tmp_path / "rows"))
    df = spark.read.parquet(str(tmp_path / "rows")).transform(order_with(GROUPED))
    plan = plan_of(df.select("id", "position"))
    scan = next(line for line in plan.splitlines() if "FileScan" in line)
    assert "payload" not in scan
    assert "payload" in next(line for line in plan_of(df).splitlines() if "FileScan" in line)
    assert plan.count("ArrowEvalPython") == 1


def plan_of(df: DataFrame) -> str:
    frame: Any = df
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_a_filter_above_chooses_of_what_is_ordered(spark: SparkSession) -> None:
    df = spark.createDataFrame(sample()).transform(order_with(GROUPED))
    whole = [row for row in df.toArrow().to_pylist() if row["note"] == "30"]
    assert any(row["position"] for row in whole)
    assert rows_of(df.where("note = '30'")) == sorted(map(repr, whole))
    assert rows_of(df.where("note = '30'").limit(100)) == sorted(map(repr, whole))


@pytest.mark.slow
def test_a_limit_takes_of_what_is_ordered(spark: SparkSession) -> None:
    rows = spark.range(300).selectExpr(
        "CAST(id AS STRING) AS id", "IF(id < 299, CAST(id + 1 AS STRING), NULL) AS after"
    )
    done = rows.transform(antecede.spark.order(id="id", after="after"))
    for few in (done.limit(5), done.select("id", "position").limit(5)):
        assert {row["id"]: row["position"] for row in few.collect()} == {
            str(k): 299 - k for k in range(5)
        }
    positions = done.select("position")
    assert sorted(r[0] for r in positions.union(positions).limit(2).collect()) == [298, 299]


@pytest.mark.slow
def test_every_type_of_payload_comes_through(spark: SparkSession) -> None:
    df = spark.sql(
        "SELECT 'a' AS id, CAST(NULL AS STRING) AS after, INTERVAL '1-2' YEAR TO MONTH AS months, "
        "map('k', array(1)) AS m, parse_json('[1]') AS v, array(map(1, 2)) AS am, "
        "X'FF00' AS raw, 1 AS `http.method`, make_interval(1, 2, 3) AS calendar"
    )
    done = df.union(df).transform(antecede.spark.order(id="id", after="after"))
    assert done.columns[:-6] == df.columns
    own = ["`" + name + "`" for name in df.columns]
    texts = [f.to_json(f.struct(*own)), f.hex("raw"), f.col("calendar").cast("string")]
    assert done.where("position = 0").select(*texts).collect() == df.select(*texts).collect()
    statuses = [row[0] for row in done.select("antecede_status").collect()]
    assert sorted(statuses) == ["duplicate", "ordered"]


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, ("note",)])
def test_of_conflicting_rows_every_engine_keeps_the_same(
    spark: SparkSession, content: tuple[str, ...] | None
) -> None:
    rows = [
        {"id": "a", "at": k // 6, "note": f"{k % 3}", "more": {"x": [k % 2, None]}}
        for k in range(12)
    ]
    schema = "id string, at bigint, note string, more struct<x:array<int>>"
    df = spark.createDataFrame(rows, schema)
    spec = OrderSpec(id="id", after=("note",), time="at", content=content)
    local = order_table(df.toArrow(), spec)
    for shuffled in (df, df.orderBy("note"), df.orderBy(f.desc("at"))):
        made = shuffled.transform(order_with(spec)).toArrow()
        if content is None:
            assert sorted(map(repr, made.to_pylist())) == sorted(map(repr, local.to_pylist()))
        names = ["at", "note", "position", "antecede_status"]
        pick = [sorted(map(repr, t.select(names).to_pylist())) for t in (made, local)]
        assert pick[0] == pick[1]
