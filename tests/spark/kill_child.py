"""Child process: a stream on a cluster whose executors are killed.

    python -m tests.spark.kill_child FOLDER SOURCE SINK MASTER [JARS]

SOURCE is `files` (FOLDER/in, one file per micro-batch) or kafka:HOST:PORT (topic `rows`). The query
runs until FOLDER/finish exists and all rows are processed, and writes the sink's rows to
FOLDER/table.parquet. It may be killed and restarted with the same arguments. SOURCE
`fill:HOST:PORT` only sends the new rows of FOLDER/in/*.parquet to the topic.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede.spark.streams.ordering import order_stream
from pipeline.spark_job import FINISH_FILE, PIDS_FILE, TABLE_FILE, start_session
from tests.spark.kill_data import A_BATCH, DDL, SPEC

TOPIC = "rows"


def read_rows(spark: SparkSession, source: str, folder: Path) -> DataFrame:
    kind, _, where = source.partition(":")
    if kind == "files":
        files = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1)
        return files.parquet(str(folder / "in"))
    kafka = spark.readStream.format("kafka").option("kafka.bootstrap.servers", where)
    kafka = kafka.option("subscribe", TOPIC).option("startingOffsets", "earliest")
    kafka = kafka.option("maxOffsetsPerTrigger", A_BATCH).option("failOnDataLoss", "true")
    value = F.from_json(F.col("value").cast("string"), DDL)
    return kafka.load().select(value.alias("of")).select("of.*")


def fill_topics(address: str, folder: Path, names: list[str]) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    where = {"bootstrap.servers": address}
    admin = AdminClient(where)
    if TOPIC not in admin.list_topics(timeout=20).topics:
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(20)
    producer = Producer({**where, "enable.idempotence": True})
    for name in names:
        for row in pq.read_table(folder / "in" / name).to_pylist():
            producer.produce(TOPIC, json.dumps({**row, "at": row["at"].isoformat()}))
    assert producer.flush(60) == 0


def main(folder: Path, source: str, sink: str, master: str, jars: Path | None) -> None:
    warnings.simplefilter("ignore")
    spark = start_session(folder, jars, master)
    jvm: Any = spark.sparkContext._jvm
    java = jvm.java.lang.ProcessHandle.current().pid()
    (folder / f".{PIDS_FILE}").write_text(f"{os.getpid()} {java}")
    (folder / f".{PIDS_FILE}").rename(folder / PIDS_FILE)
    query = (
        order_stream(read_rows(spark, source, folder), SPEC)
        .writeStream.format(sink)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start(str(folder / "out"))
    )
    while not (folder / FINISH_FILE).exists():
        if not query.isActive:
            query.awaitTermination()  # raises what ended it
        time.sleep(0.1)
    query.processAllAvailable()
    query.stop()
    pq.write_table(spark.read.format(sink).load(str(folder / "out")).toArrow(), folder / "draft")
    (folder / "draft").rename(folder / TABLE_FILE)
    spark.stop()


if __name__ == "__main__":
    where, what, *more = sys.argv[1:]
    if what.startswith("fill:"):
        fill_topics(what.removeprefix("fill:"), Path(where), more)
    else:
        main(Path(where), what, more[0], more[1], Path(more[2]) if more[2:] else None)
