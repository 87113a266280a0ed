from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import antecede.spark
from antecede.errors import InputError
from antecede.order.spec import OrderSpec
from antecede.order.table import order_table
from antecede.spark.ordering import ordering
from tests.order.reference import random_rows

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
    schema = pa.schema(
        [
            ("group", pa.string()),
            ("id", pa.string()),
            ("after", pa.list_(pa.string())),
            ("also", pa.string()),
            ("at", pa.timestamp("us", "UTC")),
            ("note", pa.string()),
            ("payload", pa.struct([("n", pa.int64())])),
        ]
    )
    return pa.Table.from_pylist(records, schema)


def rows_of(df: DataFrame) -> list[str]:
    return sorted(map(repr, df.toArrow().to_pylist()))


@pytest.mark.parametrize("shards", [None, 1, 3])
def test_spark_and_the_local_engine_agree_row_for_row(
    spark: SparkSession, shards: int | None
) -> None:
    table = sample()
    local = order_table(table, GROUPED)
    assert set(local.column("antecede_status").to_pylist()) == {
        "ordered",
        "missing_cause",
        "duplicate",
        "conflict",
        "self_parent",
        "cycle",
        "null_key",
    }
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
    assert made.columns == ["id", "after", "position", "waited_for", "missing", "waited_ms", "why"]
    assert made.count() == 0


def test_nothing_runs_before_an_action_and_bad_columns_are_refused_at_once(
    spark: SparkSession,
) -> None:
    df = spark.createDataFrame([], "id string, after map<string, int>, n double, host string")
    with pytest.raises(InputError, match="no column caused_by; there are id, after"):
        df.transform(antecede.spark.order(id="id", after="caused_by"))
    with pytest.raises(InputError, match="column after must be a plain value or an array"):
        df.transform(antecede.spark.order(id="id", after="after"))
    with pytest.raises(InputError, match="column n must be a whole number; it is double"):
        df.transform(antecede.spark.order(sender="id", seq="n"))
    with pytest.raises(InputError, match="column host must be a map"):
        df.transform(antecede.spark.order(clock="host", member="id"))
    with pytest.raises(InputError, match="column n must be a timestamp"):
        df.transform(antecede.spark.order(id="id", after="host", time="n"))
    with pytest.raises(InputError, match="exactly one"):
        antecede.spark.order(id="id")


def test_a_ready_spec_serves_too(spark: SparkSession) -> None:
    df = spark.createDataFrame([("a", "b"), ("b", None)], "id string, after string")
    made = df.transform(ordering(OrderSpec(id="id", after=("after",))))
    assert {r.id: r.position for r in made.collect()} == {"b": 0, "a": 1}
