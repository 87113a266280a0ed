"""Causal order in Spark's real-time mode, as in docs/design/streaming.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from antecede.spark import order

pytestmark = pytest.mark.skipif(
    "realTime" not in signature(DataStreamWriter.trigger).parameters,
    reason="this Spark has no real-time mode in Python",
)
DOCS = Path(__file__).resolve().parents[2] / "docs" / "design" / "streaming.md"


def source(spark: SparkSession) -> DataFrame:
    """A stream of one column `value` from a source that has real-time mode."""
    jvm: Any = spark._jvm
    sources = jvm.org.apache.spark.sql.execution.streaming.sources
    text = jvm.org.apache.spark.sql.Encoders.STRING()
    stream = sources.LowLatencyMemoryStream.singlePartition(spark._jsparkSession, text)
    return DataFrame(stream.toDF(), spark)


def order_rows(df: DataFrame) -> DataFrame:
    rows = df.selectExpr("value id", "cast(null as string) after", "current_timestamp() at")
    made: DataFrame = order(rows, id="id", after="after", time="at", shards=2, metrics=None)
    return made


def pass_through(df: DataFrame) -> DataFrame:
    def same(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        yield from batches

    return df.mapInArrow(same, df.schema)


def get_rejection(df: DataFrame, folder: Path, mode: str) -> str:
    """Start a query in real-time mode and return its error."""
    writer: Any = df.writeStream.format("console").outputMode(mode)
    writer = writer.option("checkpointLocation", str(folder))
    try:
        query = writer.trigger(realTime="5 seconds").start()
    except PySparkException as error:
        return str(error)
    try:
        with suppress(PySparkException):
            query.awaitTermination(60)
        return str(query.exception())
    finally:
        query.stop()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("make", "mode", "says"),
    [
        (order_rows, "append", "STREAMING_REAL_TIME_MODE.OUTPUT_MODE_NOT_SUPPORTED"),
        (order_rows, "update", "STDS_FAILED_TO_READ_OPERATOR_METADATA"),
        (pass_through, "update", "STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST"),
    ],
)
def test_spark_refuses_real_time_mode_as_the_page_says(
    rocks: SparkSession,
    tmp_path: Path,
    make: Callable[[DataFrame], DataFrame],
    mode: str,
    says: str,
) -> None:
    said = get_rejection(make(source(rocks)), tmp_path / "checkpoint", mode)
    assert said.startswith(f"[{says}]")
    assert f"`{says}`" in DOCS.read_text(encoding="utf-8")
    assert ("MapInArrowExec" in said) == (make is pass_through)


def test_a_source_without_the_mode_is_refused(rocks: SparkSession, tmp_path: Path) -> None:
    rate = rocks.readStream.format("rate").load().selectExpr("cast(value as string) value")
    says = "STREAMING_REAL_TIME_MODE.INPUT_STREAM_NOT_SUPPORTED"
    assert get_rejection(rate, tmp_path / "checkpoint", "update").startswith(f"[{says}]")
    assert f"`{says}`" in DOCS.read_text(encoding="utf-8")
