"""`deliver` on Spark, batch and stream, against the local engine and a plain loop over `Group`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import antecede.spark
from antecede.errors import InputError, SetupError
from antecede.order.deliver_spec import DeliverSpec
from antecede.order.deliver_table import deliver_table
from tests.order.logs import NAMES, ended, many_groups, pieces, with_defects
from tests.spark.test_stream import PROVIDER, ROCKSDB, finish, source

BSS = DeliverSpec(
    order="bss", members=NAMES, group="run", tiebreak="number", sent="sent", patience_s=1.0
)
PATIENT = DeliverSpec(
    order="sb",
    options={"several_parents": True, "missing_parent": "release", "patience_s": 0.4},
    group="run",
    tiebreak="number",
    sent="sent",
    late_s=0.0,
    patience_s=5.0,
)


@pytest.fixture
def rocks(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(PROVIDER, ROCKSDB)
    yield spark
    spark.conf.unset(PROVIDER)


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize("spec", [BSS, PATIENT], ids=["bss", "sb with time-outs"])
def test_batch_on_spark_is_the_local_engine_bit_for_bit(
    spark: SparkSession, spec: DeliverSpec
) -> None:
    table = with_defects(many_groups(spec, lost=0.05))
    local = deliver_table(table, spec)
    assert len(set(local["status"].to_pylist())) >= 5
    on_spark = spark.createDataFrame(table).repartition(5).transform(antecede.spark.deliver, spec)
    assert rows_of(on_spark.toArrow()) == rows_of(local)


@pytest.mark.parametrize("spec", [BSS, PATIENT], ids=["bss", "sb with time-outs"])
def test_stream_delivers_what_the_batch_delivers(
    rocks: SparkSession, tmp_path: Path, spec: DeliverSpec
) -> None:
    table = ended(with_defects(many_groups(spec, lost=0.02)))
    batch = deliver_table(table, spec)
    df = source(rocks, tmp_path / "in", pieces(table, 5))
    streamed = finish(df.transform(antecede.spark.deliver, spec), tmp_path)
    wanted = {"delivered", "sent", "duplicate", "refused"}
    wanted.add("expired" if spec is BSS else "released")
    assert set(batch["status"].to_pylist()) == wanted
    assert rows_of(streamed) == rows_of(batch)


def test_columns_and_stores_that_cannot_serve_are_refused_before_anything_runs(
    spark: SparkSession,
) -> None:
    df = spark.createDataFrame([], "observer string, wire string, time double, run map<int, int>")
    with pytest.raises(InputError, match="no column number, sent; there are observer, wire"):
        df.transform(antecede.spark.deliver, BSS)
    with pytest.raises(InputError, match="column wire must be binary; it is string"):
        df.transform(antecede.spark.deliver, DeliverSpec())
    good = df.select("observer", "time", df["wire"].cast("binary"), "run")
    with pytest.raises(InputError, match="column run must hold plain values; it is"):
        good.transform(antecede.spark.deliver, DeliverSpec(group="run"))
    with pytest.raises(InputError, match="time column observer must be a timestamp or a number"):
        good.transform(antecede.spark.deliver, DeliverSpec(time="observer"))
    made = good.transform(antecede.spark.deliver, DeliverSpec(prefix="my_"))
    assert made.columns[4:6] == ["my_position", "my_status"]
    assert made.count() == 0
    hdfs = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    stream = spark.readStream.format("rate").load()
    stream = stream.selectExpr("'a' observer", "timestamp time", "cast('' as binary) wire")
    spark.conf.set(PROVIDER, hdfs)
    try:
        with pytest.raises(SetupError, match="RocksDB"):
            stream.transform(antecede.spark.deliver, DeliverSpec())
    finally:
        spark.conf.unset(PROVIDER)


def test_a_checkpoint_of_another_protocol_is_refused_with_the_reason(
    rocks: SparkSession, tmp_path: Path
) -> None:
    first, second, *_ = pieces(many_groups(BSS, 1), 2)
    df = source(rocks, tmp_path / "in", [first])
    finish(df.transform(antecede.spark.deliver, BSS), tmp_path)
    pq.write_table(second, tmp_path / "in" / "part-900.parquet")
    other = dataclasses.replace(BSS, order="idr")
    with pytest.raises(StreamingQueryException, match="checkpoint is of another spec"):
        finish(df.transform(antecede.spark.deliver, other), tmp_path)
