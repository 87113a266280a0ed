"""`replay_log` on Spark, batch and stream, against the local engine and a loop over `Group`."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import antecede.spark
from antecede.cli import main
from antecede.core.group.group import Group
from antecede.errors import InputError, SetupError
from antecede.spark.streams.replay import describe_stream
from antecede.tables.order.replay.spec import DeliverSpec
from antecede.tables.order.replay.table import deliver_table
from tests.spark.test_stream import PROVIDER, ROCKSDB, finish, source
from tests.tables.order.logs import NAMES, ended, many_groups, pieces, with_defects

BSS = DeliverSpec(
    order="bss", members=NAMES, group="run", tiebreak="number", sent="sent", patience_s=1.0
)
WAITING = {"several_parents": True, "on_missing_parent": "deliver", "patience_s": 0.4}
TIMED = dataclasses.replace(BSS, order="linear", patience_s=5.0)
PATIENT = dataclasses.replace(TIMED, order="sb", members=None, options=WAITING, late_s=0.0)
AGREED = dataclasses.replace(TIMED, order="total-agreed")


def make_group(observer: str, group: Any) -> Group:
    """Return a custom group."""
    return Group(observer, NAMES, order="bss", room=str(group))


SPECS = [
    pytest.param(BSS, {"expired"}, id="bss with patience"),
    pytest.param(PATIENT, {"released"}, id="sb with time-outs"),
    pytest.param(TIMED, {"control"}, id="linear time with heartbeats"),
    pytest.param(AGREED, {"control", "expired"}, id="total order, where own messages wait"),
]


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.few(1)
@pytest.mark.parametrize(("spec", "more"), SPECS)
def test_batch_on_spark_is_the_local_engine_bit_for_bit(
    spark: SparkSession, spec: DeliverSpec, more: set[str]
) -> None:
    table = with_defects(many_groups(spec, lost=0.02))
    local = deliver_table(table, spec)
    assert set(local["status"].to_pylist()) > more
    on_spark = (
        spark.createDataFrame(table).repartition(5).transform(antecede.spark.replay_log, spec)
    )
    assert rows_of(on_spark.toArrow()) == rows_of(local)


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "more"), SPECS)
def test_stream_delivers_what_the_batch_delivers(
    rocks: SparkSession, tmp_path: Path, spec: DeliverSpec, more: set[str]
) -> None:
    table = ended(with_defects(many_groups(spec, lost=0.02)))
    batch = deliver_table(table, spec)
    df = source(rocks, tmp_path / "in", pieces(table, 5))
    streamed = finish(df.transform(antecede.spark.replay_log, spec), tmp_path)
    assert set(batch["status"].to_pylist()) >= more | {"delivered", "sent", "duplicate", "rejected"}
    assert not {"held"} & set(batch["status"].to_pylist())
    assert rows_of(streamed) == rows_of(batch)


def test_columns_and_stores_that_cannot_serve_are_refused_before_anything_runs(
    spark: SparkSession,
) -> None:
    df = spark.createDataFrame([], "observer string, wire string, time double, run map<int, int>")
    good = df.select("observer", "time", df["wire"].cast("binary"), "run")
    for frame, spec, said in (
        (df, BSS, "no column number, sent; there are observer, wire"),
        (df, DeliverSpec(), "column wire must be binary; it is string"),
        (good, DeliverSpec(group="run"), "column run must hold plain values; it is"),
        (good, DeliverSpec(time="observer"), "time column observer must be a timestamp or a num"),
    ):
        with pytest.raises(InputError, match=said):
            frame.transform(antecede.spark.replay_log, spec)
    made = good.transform(antecede.spark.replay_log, DeliverSpec(prefix="my_"))
    assert made.columns[4:6] == ["my_position", "my_status"]
    assert made.count() == 0
    hdfs = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    stream = spark.readStream.format("rate").load()
    stream = stream.selectExpr("'a' observer", "timestamp time", "cast('' as binary) wire")
    spark.conf.set(PROVIDER, hdfs)
    try:
        with pytest.raises(SetupError, match="RocksDB"):
            stream.transform(antecede.spark.replay_log, DeliverSpec())
    finally:
        spark.conf.set(PROVIDER, ROCKSDB)


CHANGED: dict[str, dict[str, Any]] = {
    "order was 'bss', is 'idr'": {"order": "idr"},
    "members was": {"members": (*NAMES, "zoe")},
    "shards was 2, is 3": {"shards": 3},
    "sent was 'sent (boolean)', is None": {"sent": None},
}


@pytest.mark.slow
def test_a_stream_of_deliveries_started_again_as_another_one_is_refused(
    rocks: SparkSession, tmp_path: Path
) -> None:
    first, second = (piece.slice(0, 20) for piece in pieces(many_groups(BSS, 1), 2))
    spec = dataclasses.replace(BSS, shards=2)
    df = source(rocks, tmp_path / "in", [first])
    finish(df.transform(antecede.spark.replay_log, spec), tmp_path)
    pq.write_table(second, tmp_path / "in" / "part-900.parquet")
    for said, changes in CHANGED.items():
        other = dataclasses.replace(spec, **changes)
        with pytest.raises(StreamingQueryException, match=re.escape(said)):
            finish(df.transform(antecede.spark.replay_log, other), tmp_path)
    goes_on = dataclasses.replace(spec, late_s=1.0)
    assert finish(df.transform(antecede.spark.replay_log, goes_on), tmp_path).num_rows > 20


def test_what_a_checkpoint_of_deliveries_belongs_to(rocks: SparkSession) -> None:
    schema = "observer string, wire binary, time double, run int, number int, sent boolean, at long"
    df = rocks.createDataFrame([], schema)
    base = describe_stream(df, BSS, 4)
    for changes in (
        {"time": "at"}, {"time_unit": "ms"}, {"tick_s": 0.02}, {"group": None}, {"tiebreak": None},
        {"options": {"differences": True}}, {"members": None, "make": make_group},
    ):  # fmt: skip
        assert describe_stream(df, dataclasses.replace(BSS, **changes), 4) != base
    same = dataclasses.replace(BSS, late_s=2.0, patience_s=9.0, prefix="my_", finish_s=1.0)
    assert describe_stream(df, same, 4) == base


def test_the_command_writes_the_same_by_either_engine(spark: SparkSession, tmp_path: Path) -> None:
    table: Any = with_defects(many_groups(BSS, lost=0.02))
    odd = table.append_column("odd", pa.array([{"a": k} for k in range(len(table))]))
    nanos = odd.set_column(2, "time", odd["time"].cast(pa.timestamp("ns", "Europe/Berlin")))
    pq.write_table(nanos, tmp_path / "log.parquet")
    group = ("--order", "bss", "--members", ",".join(NAMES), "--group", "run")
    for engine in ("local", "spark"):
        out = str(tmp_path / f"{engine}.parquet")
        words = ("replay", str(tmp_path / "log.parquet"), *group, "-o", out, "--engine", engine)
        assert main(words) == 0
    local, on_spark = (pq.read_table(tmp_path / f"{e}.parquet") for e in ("local", "spark"))
    assert local.schema.equals(on_spark.schema)
    assert local.equals(on_spark)
    assert {"delivered", "held", "rejected"} < set(local["status"].to_pylist())
