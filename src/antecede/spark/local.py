"""The Spark engine of `antecede deliver`: a table in, a table out, by way of the driver."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from antecede.order.replay.spec import DeliverSpec
from antecede.order.replay.table import added as delivery_columns
from antecede.spark.delivering import deliver
from antecede.spark.session import local_session

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
    active = SparkSession.getActiveSession()
    session = local_session() if active is None else active
    try:
        yield session
    finally:
        if active is None:
            session.stop()
