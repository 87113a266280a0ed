"""Usual ordering on Spark: a watermark, a buffer per group, a sort by time.

The stateful processor keeps the rows of a group and sets a timer. When the watermark passes, it
emits the rows behind it, sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType


def buffer_and_sort(df: DataFrame, *, group: str, time: str, delay: str) -> DataFrame:
    """Return the rows of each group sorted by time; late rows are lost."""
    grouped = df.withWatermark(time, delay).groupBy(group)
    processor = BufferAndSort(time, df.schema)
    return grouped.transformWithState(processor, df.schema, "Append", "EventTime")


class BufferAndSort(StatefulProcessor):
    def __init__(self, time: str, schema: StructType) -> None:
        self.time = time
        self.schema = schema

    def init(self, handle: Any) -> None:
        self.handle = handle
        self.rows = handle.getListState("rows", self.schema)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        passed = timerValues.getCurrentWatermarkInMs()
        kept = [tuple(row) for row in rows if _to_ms(row[self.time]) > passed]
        if kept:
            self.rows.appendList(kept)
            at = self.schema.names.index(self.time)
            self.handle.registerTimer(max(_to_ms(row[at]) for row in kept))
        yield from ()

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[Row]:
        passed = timerValues.getCurrentWatermarkInMs()
        at = self.schema.names.index(self.time)
        held = sorted(map(tuple, self.rows.get()), key=lambda row: row[at])
        stay = [row for row in held if _to_ms(row[at]) > passed]
        self.rows.clear()
        if stay:
            self.rows.put(stay)
        for row in held[: len(held) - len(stay)]:
            yield Row(**dict(zip(self.schema.names, row, strict=True)))

    def close(self) -> None:
        """Nothing to close: the state belongs to Spark."""


def _to_ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)
