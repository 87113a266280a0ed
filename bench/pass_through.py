"""Plan of `order` on a stream with an operator that does nothing: Spark's own cost.

Rows are packed by shard, go through `transformWithState` unchanged and are unpacked. State is
opened, but not written.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from antecede.spark.columns import hash_columns
from antecede.spark.order_columns import ROW_HASH, SHARD
from antecede.spark.streams.ordering import plan_worker
from antecede.spark.streams.processor import (
    METRICS,
    PACKED_SCHEMA,
    RELEASED_SCHEMA,
    Processor,
    ShardPacker,
    find_latest_time,
    unpack,
)
from antecede.spark.streams.rows import from_bytes, to_bytes
from antecede.tables.order import OrderSpec


def pass_through(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Return the rows unchanged through a stateful operator; `spec` has a group."""
    job = plan_worker(df, spec)
    shard = F.pmod(hash_columns(df, [str(spec.group)]), F.lit(job.shards)).cast("int")
    with_keys = df.withColumns(
        {SHARD: shard, ROW_HASH: hash_columns(df, spec.content_of(df.columns))}
    )
    pack = ShardPacker(job.shards, partial(find_latest_time, job), always=True)
    packed = with_keys.mapInArrow(pack, PACKED_SCHEMA).groupBy("shard")
    made = packed.transformWithState(PassThroughProcessor(job), RELEASED_SCHEMA, "Append", "None")
    return made.mapInArrow(unpack, df.schema)


class PassThroughProcessor(Processor):
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        parts = [bytes(row.payload) for row in rows if row.payload is not None]
        if parts:
            leaving = from_bytes(parts).drop_columns([ROW_HASH]).combine_chunks()
            yield Row(payload=to_bytes(leaving), **dict.fromkeys(METRICS))
