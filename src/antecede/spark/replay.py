"""`deliver`: what a protocol would have delivered, as a DataFrame -> DataFrame function.

Theory of operation
-------------------
Batch: the rows of one (group, observer) meet in one partition, the partition becomes one Arrow
table in a Python worker, and `antecede.tables.order.replay.table`, which also delivers a local
table, adds the columns. A partition holds many observers; one call a partition saves the start of a
call for each. A worker's memory must hold its partition.

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
from pyspark.sql import types as t

from antecede.spark.streams.replay import delivered_schema
from antecede.spark.workers import ready_workers
from antecede.tables.order.replay import DeliverSpec, deliver_table, read_log
from antecede.tables.order.replay import added as delivery_columns

ROWS_A_FILE = 500_000
"""Rows of one Parquet file handed to Spark: what one task reads."""


def deliver_on_spark(table: pa.Table, spec: DeliverSpec) -> pa.Table:
    """Do what `deliver_table` does, on Spark; rows come back in any order.

    Uses the active session, or starts a local one and stops it again. Raises SetupError when
    there is no Java, MissingExtraError without pyspark.
    """
    with _session() as spark, tempfile.TemporaryDirectory(prefix="antecede-") as folder:
        done = deliver(_as_frame(spark, table, folder), spec).toArrow()
    return done.cast(pa.schema([*table.schema, *delivery_columns(spec)]))


def _as_frame(spark: SparkSession, table: pa.Table, folder: str) -> DataFrame:
    """Hand a table to Spark by way of Parquet files in a folder."""
    for first in range(0, max(table.num_rows, 1), ROWS_A_FILE):
        path = Path(folder, f"part-{first // ROWS_A_FILE:06}.parquet")
        pq.write_table(table.slice(first, ROWS_A_FILE), str(path), compression="zstd")
    return spark.read.parquet(folder)


@contextmanager
def _session() -> Iterator[SparkSession]:
    # Not above: `python -m antecede.spark.java` imports the package before it runs the module.
    from antecede.spark.session import local_session

    active = SparkSession.getActiveSession()
    session = local_session() if active is None else active
    try:
        yield session
    finally:
        if active is None:
            session.stop()


pa: Any = pyarrow
_ARROW: dict[type[t.DataType], Any] = {
    t.StringType: pa.string(),
    t.BinaryType: pa.binary(),
    t.BooleanType: pa.bool_(),
    t.FloatType: pa.float64(),
    t.DoubleType: pa.float64(),
    t.DateType: pa.date32(),
    t.TimestampType: pa.timestamp("us"),
    t.TimestampNTZType: pa.timestamp("us"),
    t.NullType: pa.null(),
}


def deliver(df: DataFrame, spec: DeliverSpec) -> DataFrame:
    """Add what the protocol of `spec` makes of each row; for `df.transform(deliver, spec)` too.

    Every input row comes out once, with its columns and those of `spec.added`: `position` (from 0
    in the order of delivery to this observer; null where nothing was delivered), `status` (see
    `DeliverStatus`), `waited_ms`, `waits_for` ("sender:number" of what it waited for when it
    came; of what it still lacks, where it was never delivered), `reason`, `sender`, `seq` and
    `payload`. A stream gives a row out when it is delivered or set aside, and holds it until then.

    Raises InputError when a column is absent or its type cannot serve, and for a stream SetupError
    when its state store is not RocksDB. Bad values and malformed bytes never raise.
    """
    spec.check_columns(df.columns)
    # An empty table shows at once which types would fail in a worker.
    kinds = [(name, _arrow(df.schema[name].dataType)) for name in spec.used]
    read_log(pa.schema(kinds).empty_table(), spec)
    ready_workers(df.sparkSession)
    if df.isStreaming:
        from antecede.spark.streams.replay import deliver_stream

        return deliver_stream(df, spec)
    keys = [df[name] for name in (spec.group, spec.observer) if name is not None]
    placed = df.repartition(*keys) if spec.shards is None else df.repartition(spec.shards, *keys)

    def run(chunks: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        batches = list(chunks)
        if batches:
            yield from deliver_table(pa.Table.from_batches(batches), spec).to_batches()

    return placed.mapInArrow(run, delivered_schema(df, spec))


def _arrow(kind: t.DataType) -> Any:
    """Return the Arrow type as which a column arrives in a worker, near enough for a check."""
    if isinstance(kind, t.IntegralType):
        return pa.int64()
    if isinstance(kind, t.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, t.ArrayType):
        return pa.list_(_arrow(kind.elementType))
    return _ARROW.get(type(kind), pa.struct([]))
