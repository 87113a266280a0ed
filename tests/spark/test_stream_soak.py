"""Three hundred small micro-batches: state, writes and time per batch stay constant."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median

import pytest
from pyspark.sql import SparkSession

from antecede.spark.streams.ordering import order_stream
from antecede.spark.streams.processor import STATE
from tests.spark.kill_data import SPEC, check_rows, make_files
from tests.spark.parts import write_parts
from tests.spark.test_stream import finish, source

BATCHES = int(os.environ.get("ANTECEDE_SOAK_BATCHES", "300"))
ROWS = 200
RATIO = 1.5
BYTES = ("state_bytes", "written_bytes")
SLOWER = 2.0
"""Wide limit, because the time per batch depends on other load."""


@pytest.mark.soak
def test_three_hundred_small_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    parts = make_files(BATCHES, seed=21, a_batch=ROWS)
    df = order_stream(source(spark, tmp_path / "in", parts[:-1]), SPEC)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(2 * BATCHES))
    try:
        query = (
            df.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        told = [progress for progress in query.recentProgress if progress.numInputRows]
        assert len(told) == BATCHES
    finally:
        spark.conf.unset("spark.sql.streaming.numRecentProgressUpdates")
    figures = [
        {**p.observedMetrics["antecede"].asDict(), "batch_ms": p.batchDuration} for p in told
    ]
    assert all(figure["held"] > 0 for figure in figures[BATCHES // 4 :])
    quarter = BATCHES // 4
    flat = {}
    for name in (*BYTES, "held", "batch_ms"):
        second = median(f[name] for f in figures[quarter : 2 * quarter])
        last = median(f[name] for f in figures[-quarter:])
        flat[name] = (second, last)
    print("median of the second quarter, of the last:", flat)
    for name in BYTES:
        assert flat[name][1] < RATIO * flat[name][0], flat
    assert flat["batch_ms"][1] < SLOWER * flat["batch_ms"][0], flat

    store = spark.read.format("statestore").option("stateVarName", STATE)
    parts_now = store.load(str(tmp_path / "checkpoint")).groupBy("key.shard").count().collect()
    print("parts a shard:", sorted(row[1] for row in parts_now))
    assert all(row[1] < 200 for row in parts_now), parts_now

    write_parts(tmp_path / "in", parts[-1:], BATCHES)
    rows = finish(df, tmp_path).to_pylist()
    check_rows(rows, parts)
