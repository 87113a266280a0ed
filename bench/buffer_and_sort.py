"""Rows put in order as people do it on Spark today: a watermark, a buffer a group, a sort by time.

The stateful processor keeps the rows of a group in a list, asks for a timer at the latest of
them, and when the watermark has passed it gives out what the watermark has passed, sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType


def buffer_and_sort(df: DataFrame, *, group: str, time: str, delay: str) -> DataFrame:
    """Return the rows of each group sorted by time; what the watermark has passed is lost."""
    grouped = df.withWatermark(time, delay).groupBy(group)
    processor = BufferAndSort(time, df.schema)
    return grouped.transformWithState(processor, df.schema, "Append", "EventTime")


class BufferAndSort(StatefulProcessor):
    """The rows of one group until the watermark has passed them."""

    def __init__(self, time: str, schema: StructType) -> None:
        self.time = time
        self.schema = schema

    def init(self, handle: Any) -> None:
        """Open the list of rows."""
        self.handle = handle
        self.rows = handle.getListState("rows", self.schema)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Keep what came, but for rows that the watermark has passed, and ask to be called."""
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
        """Give out what the watermark has passed, by time, and keep the rest."""
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
