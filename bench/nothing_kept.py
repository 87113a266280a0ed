"""The plan of `order` on a stream with a stateful operator that does nothing: the floor of Spark.

Rows are packed by shard, go through `transformWithState` as they are and are unpacked again; state
is opened, and nothing is put there. What `order` costs beyond this is its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from antecede.spark.columns import digest
from antecede.spark.order_columns import DIGEST, SHARD
from antecede.spark.streams.ordering import job_of
from antecede.spark.streams.processor import (
    FIGURES,
    PACKED,
    RELEASED,
    Pack,
    Processor,
    latest_time,
    unpack,
)
from antecede.spark.streams.rows import from_bytes, to_bytes
from antecede.tables.order import OrderSpec


def passed_through(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Return the rows as they are, by way of a stateful operator; `spec` has a group."""
    job = job_of(df, spec)
    shard = F.pmod(digest(df, [str(spec.group)]), F.lit(job.shards)).cast("int")
    with_keys = df.withColumns({SHARD: shard, DIGEST: digest(df, spec.content_of(df.columns))})
    pack = Pack(job.shards, partial(latest_time, job), always=True)
    packed = with_keys.mapInArrow(pack, PACKED).groupBy("shard")
    made = packed.transformWithState(Nothing(job), RELEASED, "Append", "None")
    return made.mapInArrow(unpack, df.schema)


class Nothing(Processor):
    """Gives the rows of a shard out as they came."""

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Unpack and pack again."""
        parts = [bytes(row.payload) for row in rows if row.payload is not None]
        if parts:
            leaving = from_bytes(parts).drop_columns([DIGEST]).combine_chunks()
            yield Row(payload=to_bytes(leaving), **dict.fromkeys(FIGURES))
