"""Model of watermarks in docs/watermarks.md against Spark: released and dropped rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from bench.watermark_model import FeedRow, run_watermark
from tests.spark.test_stream import source

START_MS = 1_800_000_000_000
BATCHES, ROWS = 7, 4
STEP_MS = 1_000


class BufferAndSort(StatefulProcessor):
    """Usual operator: buffer rows, and emit those behind the watermark in order."""

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.rows = handle.getListState("rows", "stamp long, number long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        for row in rows:
            self.rows.appendValue((row.stamp, row.number))
            self.handle.registerTimer(row.stamp)
        yield from ()

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[Row]:
        mark = timerValues.getCurrentWatermarkInMs()
        kept = sorted(tuple(row) for row in self.rows.get())
        staying = [row for row in kept if row[0] > mark]
        if staying:
            self.rows.put(staying)
        else:
            self.rows.clear()
        for stamp, number in kept:
            if stamp <= mark:
                yield Row(number=number)

    def close(self) -> None:
        pass


def rows_of(seed: int) -> list[FeedRow]:
    """Rows in micro-batches; many stand exactly at a watermark, some far behind it."""
    rng = random.Random(seed)
    return [
        FeedRow((batch + 1) * STEP_MS, START_MS + 1_000 * (batch - rng.choice([0, 1, 1, 2, 2, 5])))
        for batch in range(BATCHES)
        for _ in range(ROWS)
    ]


def run(spark: SparkSession, folder: Path, rows: list[FeedRow], delay_ms: int) -> Any:
    stamps = pa.array([row.stamp for row in rows])
    at = stamps.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
    table: Any = pa.table({"number": range(len(rows)), "stamp": stamps, "at": at})
    tables = [table.slice(k, ROWS) for k in range(0, len(rows), ROWS)]
    left: list[list[int]] = []

    def take(df: DataFrame, batch: int) -> None:
        left.append([row.number for row in df.collect()])

    query = (
        source(spark, folder / "in", tables)
        .selectExpr("*", "1 as one")
        .withWatermark("at", f"{delay_ms} milliseconds")
        .groupBy("one")
        .transformWithState(BufferAndSort(), "number long", "Append", "EventTime")
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120)
        dropped = sum(
            operator["numRowsDroppedByWatermark"]
            for progress in query.recentProgress
            for operator in progress["stateOperators"]
        )
    finally:
        query.stop()
    return left, dropped


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "delay_ms"), [(1, 1_000), (2, 2_000), (3, 0)])
def test_spark_drops_and_releases_what_the_model_says(
    rocks: SparkSession, tmp_path: Path, seed: int, delay_ms: int
) -> None:
    rows = rows_of(seed)
    model = run_watermark(rows, delay_ms, STEP_MS)
    left, dropped = run(rocks, tmp_path, rows, delay_ms)
    assert 0 < sum(model.dropped) == dropped < len(rows)
    assert BATCHES < len(left) <= BATCHES + 2  # the last ones have no rows
    expected = [
        [k for k, _ in sorted(enumerate(model.place), key=lambda p: p[1]) if model.left[k] == tick]
        for tick in range(1, len(left) + 1)
    ]
    assert left == expected
