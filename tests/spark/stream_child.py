"""Child process: a streaming query that is killed and restarted."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from antecede.spark.replay import replay_log
from antecede.spark.session import local_session
from antecede.spark.streams.ordering import order_stream
from antecede.tables.order.replay.spec import DeliverSpec
from antecede.tables.order.spec import OrderSpec
from tests.spark.dirty_rows import CONTENT

ORDER = OrderSpec(id="id", after=("after",), group="group", time="at")
DELIVER = DeliverSpec(
    order="idr",
    members=("ann", "bob", "cat", "dan"),
    group="run",
    tiebreak="number",
    sent="sent",
    patience_s=1.0,
)


DIRTY = OrderSpec(
    id="id", after=("causes",), group="parcel", time="seen", content=CONTENT, shards=4
)


def operate(operator: str, df: DataFrame, folder: Path) -> DataFrame:
    if operator == "dirty":
        return order_stream(df, replace(DIRTY, checkpoint=str(folder / "checkpoint")))
    return order_stream(df, ORDER) if operator == "order" else replay_log(df, DELIVER)


def main(operator: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    spark = local_session(
        2,
        partitions=2,
        java_options=("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        settings={"spark.sql.codegen.wholeStage": "false"},
    )
    jvm: Any = spark.sparkContext._jvm
    java = jvm.java.lang.ProcessHandle.current().pid()
    (folder / "pids").write_text(f"{os.getpid()} {java}")
    columns = folder / "columns.parquet"  # where they change from start to start
    schema = spark.read.parquet(str(columns if columns.exists() else folder / "in")).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    query = (
        operate(operator, stream.parquet(str(folder / "in")), folder)
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
