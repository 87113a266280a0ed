"""Streaming query of the pipeline: lake topics, `order`, a table. `python -m pipeline.spark_job`.

Runs in a driver process with two executor processes (`local-cluster`, because threads of `local[n]`
cannot be killed separately). It may be killed and restarted with the same arguments, and continues
from its checkpoint. When FINISH_FILE exists, it processes all records and writes the table to one
file.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from antecede.spark import OrderSpec, cluster_session, order_with, read_context
from pipeline.courier import LAKE

SPEC = OrderSpec(
    id="message_id",
    after=("causes",),
    group="customer",
    time="arrived",
    content=("value",),
    shards=4,
)
FINISH_FILE = "finish"
PIDS_FILE = "pids"
TABLE_FILE = "table.parquet"
"""Final rows of the table, with the file of each row."""
PROGRESS_FILE = "progress.jsonl"
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
RUN_PROPERTY = "antecede.pipeline"
"""Java property that identifies the JVM of a run's driver."""
_JAVA = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
MAX_ROWS_PER_BATCH, MAX_FILES_PER_BATCH = 150, 16
"""Small limits, so that a short run has many micro-batches."""
_VALUE_SCHEMA = "service string, kind string, customer string, orders array<string>, sent_ns bigint"
_LINE_SCHEMA = (
    "topic string, key string, value string, "
    "headers array<struct<key: string, value: string>>, timestamp timestamp"
)


def start_session(folder: Path, jars: Path | None, master: str) -> SparkSession:
    """Start Spark; executors log under `folder`/spark."""
    home = folder / "spark"
    if not home.exists():
        home.mkdir()
        for part in Path(pyspark.__file__).parent.iterdir():
            if part.name != "work":
                (home / part.name).symlink_to(part)
    os.environ["SPARK_HOME"] = str(home.resolve())
    os.environ["SPARK_LOCAL_DIRS"] = str((folder / "scratch").resolve())
    settings = {
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.locality.wait": "100ms",  # avoid seconds of waiting for a killed executor
    }
    if jars is not None:
        settings |= {**_DELTA, "spark.jars": ",".join(str(p) for p in sorted(jars.glob("*.jar")))}
    return cluster_session(
        master,
        memory="640m",
        name="antecede-pipeline",
        java_options=(f"-D{RUN_PROPERTY}={folder.resolve()}", *_JAVA),
        settings={**settings, "spark.executor.extraJavaOptions": " ".join(_JAVA)},
    )


def read_arrivals(spark: SparkSession, address: str, max_per_batch: int = 0) -> DataFrame:
    """Return the stream of all lake topics: headers, value, timestamp.

    `max_per_batch`: limit of records (with files: files) of a micro-batch; 0: default.
    """
    kind, _, where = address.partition(":")
    if kind == "kafka":
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", where)
        reader = reader.option("subscribe", ",".join(LAKE)).option("startingOffsets", "earliest")
        # Fail on missing offsets, which are lost rows.
        reader = reader.option("maxOffsetsPerTrigger", max_per_batch or MAX_ROWS_PER_BATCH)
        stream = reader.option("includeHeaders", "true").option("failOnDataLoss", "true").load()
        return stream.withColumn("value", F.col("value").cast("string"))
    files = spark.readStream.schema(_LINE_SCHEMA)
    files = files.option("maxFilesPerTrigger", max_per_batch or MAX_FILES_PER_BATCH)
    return files.json(str(Path(where, "lake.*")))


def order_events(stream: DataFrame) -> DataFrame:
    """Return the rows of the table in causal order, with context and fields as columns."""
    fields = F.from_json("value", _VALUE_SCHEMA)
    rows = read_context(stream).select(
        "message_id", "causes", "value", F.col("timestamp").alias("arrived"), fields.alias("of")
    )
    rows = rows.select("message_id", "causes", "value", "arrived", "of.customer", "of.sent_ns")
    return order_with(SPEC)(rows)


def run(given: argparse.Namespace) -> None:
    """Run the query until FINISH_FILE exists and all records are processed."""
    folder, sink = given.folder, given.sink
    spark = start_session(folder, given.jars, given.master)
    jvm: Any = spark.sparkContext._jvm
    (folder / PIDS_FILE).write_text(f"{os.getpid()} {jvm.java.lang.ProcessHandle.current().pid()}")
    query = (
        order_events(read_arrivals(spark, given.address, given.a_batch))
        .writeStream.format(sink)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start(str(folder / "table"))
    )
    with (folder / PROGRESS_FILE).open("a", encoding="utf-8") as log:
        _watch(query, folder / FINISH_FILE, log)
    query.stop()
    table = spark.read.format(sink).load(str(folder / "table"))
    rows = table.select("*", F.col("_metadata.file_name").alias("file")).toArrow()
    pq.write_table(rows, folder / f".{TABLE_FILE}")
    (folder / f".{TABLE_FILE}").rename(folder / TABLE_FILE)
    spark.stop()


def _watch(query: StreamingQuery, finish: Path, log: Any) -> None:
    """Log the progress of the query until all records are processed. Raises its errors."""
    logged = -1
    while True:
        over = finish.exists()
        if over:
            query.processAllAvailable()
        for progress in query.recentProgress:
            if progress.batchId > logged and progress.numInputRows:
                logged = progress.batchId
                log.write(json.dumps(_format_progress(progress)) + "\n")
                log.flush()
        if over:
            return
        if not query.isActive:
            query.awaitTermination()  # raises the query's error
        time.sleep(0.2)


def _format_progress(progress: Any) -> dict[str, Any]:
    observed = progress.observedMetrics.get("antecede")
    return {
        "batch": progress.batchId,
        "rows": progress.numInputRows,
        "ms": progress.batchDuration,
        "observed": observed.asDict() if observed is not None else {},
    }


def main(arguments: list[str] | None = None) -> None:
    """Run the driver."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.spark_job")
    parser.add_argument("--address", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--sink", choices=("delta", "parquet"), required=True)
    parser.add_argument("--jars", type=Path)
    parser.add_argument("--master", required=True)
    parser.add_argument("--a-batch", type=int, default=0)
    run(parser.parse_args(arguments))


if __name__ == "__main__":
    main()
