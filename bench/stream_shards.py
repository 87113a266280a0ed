"""Time of a small micro-batch by number of shards: 1,000 rows, two tasks, 2 to 128 shards.

    python -m bench.stream_shards [BATCHES [ROUNDS]]

Each round runs every number of shards once, in one session, so other load affects all. Prints the
median time of a micro-batch without the first three of a query.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

import pyarrow
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from antecede.spark import local_session, order

ROWS = 1_000
GROUPS = 500
SHARDS = (2, 8, 16, 32, 128)
_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def _write(folder: Path, batches: int) -> None:
    folder.mkdir()
    for k in range(batches):
        numbers = range(k * ROWS, (k + 1) * ROWS)
        columns = {
            "id": [f"event-{n}" for n in numbers],
            "after": [f"event-{n - GROUPS}" if n >= GROUPS else None for n in numbers],
            "group": [f"group-{n % GROUPS}" for n in numbers],
        }
        path = folder / f"{k:04}.parquet"
        pq.write_table(pyarrow.table(columns), path)
        os.utime(path, (1_700_000_000 + k,) * 2)


def _run(spark: SparkSession, source: Path, folder: Path, shards: int) -> list[float]:
    rows = spark.readStream.schema("id string, after string, group string")
    rows = rows.option("maxFilesPerTrigger", 1)
    made = order(rows.parquet(str(source)), id="id", after="after", group="group", shards=shards)
    query = (
        made.writeStream.format("noop")
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    took = [p["durationMs"]["triggerExecution"] for p in query.recentProgress if p["numInputRows"]]
    return [float(ms) for ms in took[3:]]


def main(batches: int = 12, rounds: int = 2) -> None:
    settings = {
        "spark.sql.streaming.stateStore.providerClass": _STORE,
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    spark = local_session(2, memory="1g", settings=settings)
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _write(folder / "in", batches)
        took: dict[int, list[float]] = {shards: [] for shards in SHARDS}
        for k in range(rounds):
            for shards in SHARDS if k % 2 == 0 else SHARDS[::-1]:
                took[shards] += _run(spark, folder / "in", folder / f"{k}-{shards}", shards)
                median = statistics.median(took[shards])
                print(f"{shards} shards: {median:.0f} ms a micro-batch", flush=True)
    for shards in SHARDS:
        median, most = statistics.median(took[shards]), max(took[shards])
        print(f"{shards:4} shards  median {median:5.0f} ms  most {most:5.0f} ms")
    spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
