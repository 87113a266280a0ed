"""Rows per second of the streaming operator, and of a pass-through of the same files.

    python -m bench.stream_rate [--rows 500000 50000] [--files 5] [--late 0.1] [--groups 1000]

Reads Parquet files with one file per micro-batch and writes Parquet. All queries but the last run
twice, in turns; the better run counts. Rates exclude the first micro-batch, which is printed
separately, as is the time of creating the query (`--cold`: with an empty kernel cache).

- "pass-through": the same stream without the operator.
- "Arrow and back": every row through Python without ordering.
- "stateful, nothing kept": the plan of `order` with an operator that does nothing
  (`bench.pass_through`).
- "buffer and sort": `bench.buffer_and_sort` with a watermark that loses nothing here. Rows behind
  the watermark at the end are not written; `lost` is what Spark dropped.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from antecede.formatting import table
from antecede.spark import local_session
from antecede.spark.streams.ordering import order_stream
from antecede.tables.order import OrderSpec
from bench.buffer_and_sort import buffer_and_sort
from bench.pass_through import pass_through

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
DECLARED = OrderSpec(id="id", after=("after",), group="group", time="at")
FIFO = OrderSpec(sender="sender", seq="seq", group="group", time="at")
HEADING = (
    "a file",
    "query",
    "rows/s",
    "of plain",
    "making s",
    "first ms",
    "last ms",
    "rows out",
    "lost",
)


def write_input(folder: Path, rows: int, files: int, groups: int, late: float) -> pa.Schema:
    """Write rows that each name the previous one in their group; a part of them is a file late."""
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
    at = pa.array(3_600_000_000 + np.arange(total) * 1000, pa.timestamp("us", "UTC"))
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


def pass_through_arrow(df: DataFrame) -> DataFrame:
    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    return df.mapInArrow(same, df.schema)


class QueryRate(NamedTuple):
    """Rows per second without the first micro-batch, that one in ms, and row counts."""

    rows_per_s: float
    making_s: float
    first_ms: int
    last_ms: int
    written: int
    lost: int


def measure(spark: SparkSession, source: Path, make: Callable[[DataFrame], DataFrame]) -> QueryRate:
    schema = spark.read.parquet(str(source)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
    with tempfile.TemporaryDirectory() as out:
        begin = time.perf_counter()
        made = make(stream)
        making = time.perf_counter() - begin
        query = (
            made.writeStream.format("parquet")
            .option("path", f"{out}/out")
            .option("checkpointLocation", f"{out}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        batches = [p for p in query.recentProgress if p["numInputRows"]]
        millis = [p["durationMs"]["triggerExecution"] for p in batches]
        rows = sum(p["numInputRows"] for p in batches[1:])
        lost = sum(o["numRowsDroppedByWatermark"] for p in batches for o in p["stateOperators"])
        written = spark.read.parquet(f"{out}/out").count()
    return QueryRate(rows / sum(millis[1:]) * 1000, making, millis[0], millis[-1], written, lost)


def compare(spark: SparkSession, rows: int, given: argparse.Namespace) -> list[tuple[str, ...]]:
    # Rows are a millisecond apart, and late by up to two files.
    delay = f"{2 * rows} milliseconds"
    queries: dict[str, Callable[[DataFrame], DataFrame]] = {
        "pass-through": lambda df: df,
        "Arrow and back": pass_through_arrow,
        "stateful, nothing kept": lambda df: pass_through(df, DECLARED),
        "order by causes": lambda df: order_stream(df, DECLARED),
        "order by number": lambda df: order_stream(df, FIFO),
    }
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        write_input(source, rows, given.files, given.groups, given.late)
        both = [
            {name: measure(spark, source, make) for name, make in queries.items()} for _ in range(2)
        ]
        sort = measure(
            spark,
            source,
            lambda df: buffer_and_sort(df, group="group", time="at", delay=delay),
        )
    best = {name: max(run[name] for run in both) for name in queries} | {"buffer and sort": sort}
    cold = both[0] | {"buffer and sort": sort}
    plain = best["pass-through"].rows_per_s
    return [
        (
            f"{rows:,}",
            name,
            f"{rate.rows_per_s:,.0f}",
            f"{rate.rows_per_s / plain:.2f}",
            f"{cold[name].making_s:.1f}",
            f"{cold[name].first_ms:,}",
            f"{rate.last_ms:,}",
            f"{rate.written:,}",
            f"{rate.lost:,}",
        )
        for name, rate in best.items()
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.stream_rate")
    parser.add_argument(
        "--rows", type=int, nargs="*", default=[500_000, 50_000], help="rows per file"
    )
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument(
        "--late", type=float, default=0.1, help="fraction of rows that arrive a file late"
    )
    parser.add_argument("--cold", action="store_true", help="kernels compile into an empty cache")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as cache:
        if given.cold:
            os.environ["NUMBA_CACHE_DIR"] = cache
        spark = local_session(
            settings={
                "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
                "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
            },
            memory="3g",
        )
        lines = [line for rows in given.rows for line in compare(spark, rows, given)]
        spark.stop()
    print(table(HEADING, lines))


if __name__ == "__main__":
    main()
