"""Deliveries of a protocol as a DataFrame.

Theory of operation
-------------------
Batch: the rows of one (group, observer) meet in one partition, which becomes one Arrow table in
a worker. `antecede.tables.order.replay.table`, which also delivers local tables, adds the
columns. A worker's memory must hold its partition.

Stream: `antecede.spark.streams.replay`, same spec, same columns.
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
from antecede.tables.order.replay import added as delivery_columns

pa: Any = pyarrow  # its stubs know too few of the types that meet here
ROWS_PER_FILE = 500_000
"""Rows of one Parquet file handed to Spark: what one task reads."""


def deliver_on_spark(table: pa.Table, spec: DeliverSpec) -> pa.Table:
    """Do what `deliver_table` does, on Spark; rows come back in any order.

    Uses the active session, or starts a local one and stops it again. Raises SetupError when
    there is no Java, MissingExtraError without pyspark.
    """
    with _open_session() as spark, tempfile.TemporaryDirectory(prefix="antecede-") as folder:
        done = replay_log(_table_to_frame(spark, table, folder), spec).toArrow()
    return done.cast(pa.schema([*table.schema, *delivery_columns(spec)]))


def _table_to_frame(spark: SparkSession, table: pa.Table, folder: str) -> DataFrame:
    """Hand a table to Spark by way of Parquet files in a folder."""
    for first in range(0, max(table.num_rows, 1), ROWS_PER_FILE):
        path = Path(folder, f"part-{first // ROWS_PER_FILE:06}.parquet")
        pq.write_table(table.slice(first, ROWS_PER_FILE), str(path), compression="zstd")
    return spark.read.parquet(folder)


@contextmanager
def _open_session() -> Iterator[SparkSession]:
    # Not above: `python -m antecede.spark.java` imports the package before it runs the module.
    from antecede.spark.session import local_session

    active = SparkSession.getActiveSession()
    session = local_session() if active is None else active
    try:
        yield session
    finally:
        if active is None:
            session.stop()


def replay_log(df: DataFrame, spec: DeliverSpec) -> DataFrame:
    """Add the outcome of each row under the protocol of `spec`; serves `df.transform(deliver,
    spec)`.

    The result has every input row once and the columns of `spec.added`: `position` (from 0 in the
    order of delivery to this observer; null without delivery), `status` (see `DeliverStatus`),
    `waited_ms`, `waits_for` ("sender:number" of what the row waited for when it came, or still
    lacks at the end), `reason`, `sender`, `seq` and `payload`. A stream holds a row until it is
    delivered or set aside.

    Raises InputError when a column is absent or its type cannot serve, and for a stream SetupError
    when its state store is not RocksDB. Bad values and malformed bytes never raise.
    """
    spec.check_columns(df.columns)
    # An empty table shows at once which types would fail in a worker.
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
