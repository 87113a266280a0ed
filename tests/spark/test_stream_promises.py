"""Guarantees of a stream to sinks, and damaged checkpoints."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from antecede.spark.ordering import order_with
from antecede.spark.streams.ordering import order_stream
from antecede.tables.order.table import order_table
from tests.spark.test_order_batch import GROUPED, rows_of, sample
from tests.spark.test_stream import DECLARED, finish, make_history, source, split_rows

BUSY = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.shuffle.partitions": "200",
}


@pytest.fixture
def busy(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark with default settings: adaptive plans, compiled stages, 200 partitions."""
    before = {name: spark.conf.get(name) for name in BUSY}
    for name, value in BUSY.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.set(name, str(old))


def test_a_batch_with_the_settings_that_users_have(busy: SparkSession) -> None:
    table = sample()
    got = busy.createDataFrame(table).repartition(5).transform(order_with(GROUPED))
    assert rows_of(got) == sorted(map(repr, order_table(table, GROUPED).to_pylist()))


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_a_stream_with_the_settings_that_users_have(
    busy: SparkSession, tmp_path: Path, partitions: int
) -> None:
    busy.conf.set("spark.sql.shuffle.partitions", str(partitions))
    table = make_history(300, seed=9)
    got = finish(order_stream(source(busy, tmp_path / "in", [table]), DECLARED), tmp_path)
    want = order_table(table, DECLARED).to_pylist()
    assert sorted(map(repr, got.to_pylist())) == sorted(map(repr, want))


@pytest.mark.slow
def test_each_micro_batch_has_the_rows_of_a_group_in_order_after_those_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    seen: dict[int, list[tuple[str, int, int]]] = {}

    def keep(rows: DataFrame, number: int) -> None:
        found = rows.selectExpr("`group`", "position", "spark_partition_id()").collect()
        seen[number] = [(r[0], r[1], r[2]) for r in found if r[1] is not None]

    table = make_history(400, seed=4)
    query = (
        order_stream(source(spark, tmp_path / "in", split_rows(table, 5)), DECLARED)
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    next_of: dict[str, int] = defaultdict(int)
    for number in sorted(seen):
        places: dict[str, set[int]] = defaultdict(set)
        for group, position, partition in seen[number]:
            assert position == next_of[group]
            next_of[group] += 1
            places[group].add(partition)
        assert all(len(partitions) == 1 for partitions in places.values())
    assert sum(next_of.values()) == table.num_rows
    assert len(seen) == 5


def damage_state(checkpoint: Path, how: str) -> None:
    """Damage the files of the state store."""
    partitions = [p for p in (checkpoint / "state" / "0").iterdir() if p.name.isdigit()]
    files = [p for part in partitions for p in part.rglob("*") if p.is_file()]
    assert files
    if how == "all deleted":
        shutil.rmtree(checkpoint / "state")
        return
    chosen = [p for p in files if p.name.endswith((".changelog", ".zip"))]
    assert chosen
    for path in chosen:
        data = path.read_bytes()
        if how == "deleted":
            path.unlink()
        elif how == "cut":
            path.write_bytes(data[: len(data) // 2])
        else:
            middle = len(data) // 2
            path.write_bytes(data[:middle] + bytes([data[middle] ^ 0x55]) + data[middle + 1 :])
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["all deleted", "deleted", "cut", "changed"])
def test_a_damaged_state_fails_the_query_and_gives_no_row(
    spark: SparkSession, tmp_path: Path, how: str
) -> None:
    table = make_history(200, seed=6)
    parts = split_rows(table, 4)
    whole = source(spark, tmp_path / "all", parts)
    late = tmp_path / "late"
    late.mkdir()
    for path in sorted((tmp_path / "all").glob("*.parquet"))[2:]:
        path.rename(late / path.name)
    before = finish(order_stream(whole, DECLARED), tmp_path)
    damage_state(tmp_path / "checkpoint", how)
    for path in late.iterdir():
        path.rename(tmp_path / "all" / path.name)
    _forget_loaded_state(spark)
    failure = None
    try:
        after = finish(order_stream(whole, DECLARED), tmp_path)
    except PySparkException as error:
        failure = str(error)
        after = spark.read.parquet(str(tmp_path / "out")).toArrow()
    assert failure, f"{after.num_rows} rows and no error"
    assert "loading state" in failure or "STATE_DIRECTORY" in failure, failure
    assert sorted(map(repr, after.to_pylist())) == sorted(map(repr, before.to_pylist()))


def _forget_loaded_state(spark: SparkSession) -> None:
    """Make the executor read the state again."""
    jvm: Any = spark.sparkContext._jvm
    jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
