"""Replay of logged messages through a protocol, as a DataFrame.

Batch: the rows of one (group, observer) form one partition, which must fit into a worker's memory.
`antecede.tables.order.replay.table` adds the columns. Stream: `antecede.spark.streams.replay`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from antecede.spark.order_columns import get_arrow_type
from antecede.spark.streams.replay import make_replay_schema, replay_stream
from antecede.spark.workers import check_workers
from antecede.tables.order.replay import DeliverSpec, deliver_table, read_log
from antecede.tables.order.replay import list_added_fields as delivery_columns

pa: Any = pyarrow  # its stubs lack types
ROWS_PER_FILE = 500_000
"""Rows of a Parquet file that is passed to Spark, for one task."""


def deliver_on_spark(table: pa.Table, spec: DeliverSpec) -> pa.Table:
    """Replay an Arrow table in the active or a local session; the order of rows is undefined.

    Raises SetupError without Java and MissingExtraError without pyspark.
    """
    with _open_session() as spark, tempfile.TemporaryDirectory(prefix="antecede-") as folder:
        done = replay_log(_table_to_frame(spark, table, folder), spec).toArrow()
    return done.cast(pa.schema([*table.schema, *delivery_columns(spec)]))


def _table_to_frame(spark: SparkSession, table: pa.Table, folder: str) -> DataFrame:
    for first in range(0, max(table.num_rows, 1), ROWS_PER_FILE):
        path = Path(folder, f"part-{first // ROWS_PER_FILE:06}.parquet")
        pq.write_table(table.slice(first, ROWS_PER_FILE), str(path), compression="zstd")
    return spark.read.parquet(folder)


@contextmanager
def _open_session() -> Iterator[SparkSession]:
    # A top-level import would run before `python -m antecede.spark.java`.
    from antecede.spark.session import local_session

    active = SparkSession.getActiveSession()
    session = local_session() if active is None else active
    try:
        yield session
    finally:
        if active is None:
            session.stop()


def replay_log(df: DataFrame, spec: DeliverSpec) -> DataFrame:
    """Add the outcome of each row under the protocol of `spec`.

    The result has every input row once and the columns of `spec.added`: `position` (delivery number
    at this observer, from 0), `status` (`DeliverStatus`), `waited_ms`, `waits_for` ("sender:number"
    of messages that the row waited for at arrival, or that are missing at the end), `reason`,
    `sender`, `seq` and `payload`. A stream holds a row until it is delivered or dropped.

    Raises InputError for missing or unsupported columns, and SetupError for a stream whose state
    store is not RocksDB. Invalid values and malformed bytes do not raise.
    """
    spec.check_columns(df.columns)
    # Check types on the driver with an empty table.
    kinds = [(name, get_arrow_type(name, df.schema[name].dataType)) for name in spec.used]
    read_log(pa.schema(kinds).empty_table(), spec)
    check_workers(df.sparkSession)
    if df.isStreaming:
        return replay_stream(df, spec)
    keys = [df[name] for name in (spec.group, spec.observer) if name is not None]
    placed = df.repartition(*keys) if spec.shards is None else df.repartition(spec.shards, *keys)

    def run(chunks: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        batches = list(chunks)
        if batches:
            yield from deliver_table(pa.Table.from_batches(batches), spec).to_batches()

    return placed.mapInArrow(run, make_replay_schema(df, spec))
