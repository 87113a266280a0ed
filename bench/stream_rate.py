"""Rows a second of the streaming operator against a pass-through of the same files, in one run.

    python bench/stream_rate.py [--rows 500000] [--files 5] [--late 0.1] [--groups 1000]

Reads Parquet files with one file a micro-batch and writes Parquet; the first micro-batch of
each query (start-up, compilation) is left out. "pass-through" is the same stream without the
operator, "arrow" sends every row through Python and back without ordering.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from antecede.spark.session import local_session
from antecede.spark.spec import OrderSpec
from antecede.spark.stream import order_stream

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
DECLARED = OrderSpec(id="id", after=("after",), group="group", time="at", shards=8)
FIFO = OrderSpec(sender="sender", seq="seq", group="group", time="at", shards=8)


def write_input(folder: Path, rows: int, files: int, groups: int, late: float) -> pa.Schema:
    """Every row names the row before it in its group; a part of them comes a file later."""
    rng = np.random.default_rng(1)
    total = rows * files
    group = rng.integers(0, groups, total)
    by_group = np.argsort(group, kind="stable")
    sorted_group = group[by_group]
    begin = np.searchsorted(sorted_group, np.arange(groups))
    seq = np.empty(total, np.int64)
    seq[by_group] = np.arange(total) - begin[sorted_group] + 1
    ids = [f"{g:08x}-0000-4000-8000-{s:012x}" for g, s in zip(group, seq, strict=True)]
    cause = [
        None if s == 1 else f"{g:08x}-0000-4000-8000-{s - 1:012x}"
        for g, s in zip(group, seq, strict=True)
    ]
    at = pa.array(np.arange(total) * 1000, pa.timestamp("us", "UTC"))
    columns = {
        "id": pa.array(ids),
        "after": pa.array(cause, pa.string()),
        "group": pa.array(np.char.mod("group-%d", group)),
        "sender": pa.array(np.char.mod("s%d", group)),
        "seq": pa.array(seq),
        "at": at,
        "value": pa.array(rng.random(total)),
    }
    table: Any = pa.table(columns)
    file = np.minimum(np.arange(total) // rows + (rng.random(total) < late), files - 1)
    for index in range(files):
        rows_here = np.flatnonzero(file == index)
        path = folder / f"part-{index:03}.parquet"
        pq.write_table(table.take(pa.array(rng.permutation(rows_here))), path)
        os.utime(path, (1_700_000_000 + index,) * 2)
    schema: pa.Schema = table.schema
    return schema


def through_arrow(df: DataFrame) -> DataFrame:
    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    return df.mapInArrow(same, df.schema)


def measure(
    spark: SparkSession, source: Path, name: str, make: Callable[[DataFrame], DataFrame]
) -> float:
    """Run a query to its end; print and return rows a second after its first micro-batch."""
    schema = spark.read.parquet(str(source)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    with tempfile.TemporaryDirectory() as out:
        query = (
            make(stream)
            .writeStream.format("parquet")
            .option("path", f"{out}/out")
            .option("checkpointLocation", f"{out}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        batches = [p for p in query.recentProgress if p["numInputRows"]]
        written = spark.read.parquet(f"{out}/out").count()
        rate: float = sum(p["numInputRows"] for p in batches[1:]) / (
            sum(p["durationMs"]["triggerExecution"] for p in batches[1:]) / 1000
        )
        millis = batches[-1]["durationMs"]["triggerExecution"]
        print(
            f"{name:24} {rate:12,.0f} rows/s   last batch {millis:6,} ms   {written:,} rows out",
            flush=True,
        )
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=500_000, help="rows a file")
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--late", type=float, default=0.1, help="part that comes a file later")
    args = parser.parse_args()
    spark = local_session(
        settings={"spark.sql.streaming.stateStore.providerClass": ROCKSDB}, memory="3g"
    )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        write_input(source, args.rows, args.files, args.groups, args.late)
        plain = measure(spark, source, "pass-through", lambda df: df)
        measure(spark, source, "arrow", through_arrow)
        ids = measure(spark, source, "order by causes", lambda df: order_stream(df, DECLARED))
        fifo = measure(spark, source, "order by number", lambda df: order_stream(df, FIFO))
        print(f"of pass-through: causes {ids / plain:.0%}, number {fifo / plain:.0%}")
    spark.stop()


if __name__ == "__main__":
    main()
