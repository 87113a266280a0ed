"""Time of a micro-batch of 1,000 rows through Spark, by numbers of known ids and held rows.

    python -m bench.stream_state [--ids 10000 1000000 30000000] [--held 1000000] [--batches 40]

One query per case first reads the known rows (each names the previous one in its group), or the
held rows (each names a missing one), in files of up to a million. Then it reads small files, one
per micro-batch. Medians are those of the small ones, of whole triggers; so are the bytes that the
operator wrote per row, of which about 60 are new. All cases run twice, in turns; the better median
counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from antecede.formatting import table
from antecede.spark import local_session
from antecede.spark.streams.ordering import order_stream
from antecede.tables.order import OrderSpec

pa: Any = pyarrow
pc: Any = pyarrow.compute

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}
SPEC = OrderSpec(id="id", after=("after",), group="group", time="at", shards=2, metrics="cost")
LARGE, SMALL = 1_000_000, 1_000
GROUPS = 1_000
HEADING = ("ids", "held", "ms", "of the first", "bytes a row", "state MB", "all in, s")


def make_rows(begin: int, end: int, held: bool) -> pyarrow.Table:
    """Return rows begin..end; each names the previous one in its group, or a missing one."""
    number = np.arange(begin, end)
    cause = make_ids(number) if held else make_ids(number - GROUPS)
    if held:
        cause = pc.binary_join_element_wise("never", cause, "-")
    made: pyarrow.Table = pa.table(
        {
            "id": make_ids(number),
            "after": pc.if_else(pa.array(number >= GROUPS), cause, None),
            "group": pc.binary_join_element_wise(
                "group", pa.array(number % GROUPS).cast(pa.string()), "-"
            ),
            "at": pa.array(3_600_000_000 + number * 1000, pa.timestamp("us", "UTC")),
        }
    )
    return made


def make_ids(number: Any) -> Any:
    return pc.utf8_lpad(pa.array(number).cast(pa.string()), 36, "0")


def write_input(folder: Path, remembered: int, held: int, batches: int) -> None:
    sizes = [(LARGE, False)] * (remembered // LARGE) + [(remembered % LARGE, False)]
    sizes += [(LARGE, True)] * (held // LARGE) + [(held % LARGE, True)]
    at = 0
    for index, (size, waits) in enumerate([*sizes, *[(SMALL, False)] * batches]):
        if not size:
            continue
        path = folder / f"part-{index:04}.parquet"
        # Held rows have their own range, so the small files name released rows.
        begin = 10**12 + at if waits else at
        pq.write_table(make_rows(begin, begin + size, waits), path)
        os.utime(path, (1_700_000_000 + index,) * 2)
        at += 0 if waits else size


def measure(spark: SparkSession, remembered: int, held: int, batches: int) -> tuple[float, ...]:
    """Return ms per small micro-batch, bytes written per row, bytes of state, total seconds."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "in"
        source.mkdir()
        write_input(source, remembered, held, batches)
        schema = spark.read.parquet(str(source)).schema
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        query = (
            order_stream(stream.parquet(str(source)), SPEC)
            .writeStream.format("noop")
            .option("checkpointLocation", f"{folder}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        done = [p for p in query.recentProgress if p["numInputRows"]]
        small = [p for p in done if p["numInputRows"] == SMALL][-batches:]
        cost = [p["observedMetrics"]["cost"] for p in small]
        if cost[-1]["held"] != held:
            raise SystemExit(f"{cost[-1]['held']:,} rows are held, not {held:,}")
    took = statistics.median(p["durationMs"]["triggerExecution"] for p in small)
    written = statistics.median(c["written_bytes"] for c in cost) / SMALL
    whole = sum(p["durationMs"]["triggerExecution"] for p in done) / 1000
    return float(took), written, float(cost[-1]["state_bytes"]), whole


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.stream_state")
    parser.add_argument("--ids", type=int, nargs="*", default=[10_000, 1_000_000, 30_000_000])
    parser.add_argument("--held", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=40, help="number of small micro-batches")
    parser.add_argument("--times", type=int, default=2)
    given = parser.parse_args(arguments)
    spark = local_session(settings=SETTINGS, memory="3g")
    cases = [(ids, 0) for ids in given.ids] + [(given.ids[0], given.held)]
    runs = [
        [measure(spark, ids, held, given.batches) for ids, held in cases]
        for _ in range(given.times)
    ]
    spark.stop()
    best = [min(found) for found in zip(*runs, strict=True)]
    lines = [
        (
            f"{ids:,}",
            f"{held:,}",
            f"{took:,.0f}",
            f"{took / best[0][0]:.2f}",
            f"{written:,.0f}",
            f"{state / 1e6:,.0f}",
            f"{whole:,.0f}",
        )
        for (ids, held), (took, written, state, whole) in zip(cases, best, strict=True)
    ]
    print(table(HEADING, lines))


if __name__ == "__main__":
    main()
