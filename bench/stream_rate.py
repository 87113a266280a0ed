"""Rows a second of the streaming operator against a pass-through of the same files, in one run.

    python -m bench.stream_rate [--rows 500000 50000] [--files 5] [--late 0.1] [--groups 1000]

Reads Parquet files with one file a micro-batch and writes Parquet, all but the last query twice, in
turns; the better run counts. The rate leaves the first micro-batch of each query out; that one is
told beside it, and what making the query took before (kernels compiled or loaded: `--cold` into
an empty cache). "pass-through" is the same stream without the operator, "Arrow and back" sends
every row through Python without ordering, "stateful, nothing kept" is the plan of `order` with an
operator that does nothing (`bench.pass_through`), "buffer and sort" is `bench.buffer_and_sort`
behind a watermark that is long enough to lose nothing here. What has not come out of that by the
end of the files waits for the watermark; `lost` is what Spark dropped.
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
    """What a query took: rows a second but for its first micro-batch, that one in ms, rows."""

    rows_per_s: float
    making_s: float
    first_ms: int
    last_ms: int
    written: int
    lost: int


def measure(spark: SparkSession, source: Path, make: Callable[[DataFrame], DataFrame]) -> QueryRate:
    """Run a query to its end."""
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
    """Return a line a query, over files of that many rows; the better of two runs each."""
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
    """Run all queries over large files, then over small ones, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.stream_rate")
    parser.add_argument("--rows", type=int, nargs="*", default=[500_000, 50_000], help="a file")
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--late", type=float, default=0.1, help="part that comes a file later")
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
