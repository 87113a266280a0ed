"""Child process: order a table and a stream on workers without antecede.

    python shipped_child.py FOLDER MASTER PYTHON ZIP

PYTHON is the interpreter of the workers, ZIP the package shipped to them. Reads FOLDER/in, and
writes FOLDER/batch.parquet, stream.parquet, deliver.parquet, and the import result of a worker
before shipping to FOLDER/said.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

from antecede.spark.ordering import order_with
from antecede.spark.replay import replay_log
from antecede.spark.session import cluster_session
from antecede.spark.streams.ordering import order_stream
from antecede.tables.order.replay.spec import DeliverSpec
from antecede.tables.order.spec import OrderSpec

SPEC = OrderSpec(id="id", after=("after",), group="group", time="at", shards=4)
DELIVER = DeliverSpec(
    order="idr",
    members=("ann", "bob", "cat", "dan"),
    group="run",
    tiebreak="number",
    sent="sent",
    patience_s=1.0,
)


def try_import(_: Iterable[int]) -> list[str]:
    try:
        import antecede  # noqa: F401
    except ModuleNotFoundError as error:
        return [str(error)]
    return ["antecede is there"]


def main(folder: Path, master: str, python: str, shipped: str) -> None:
    settings = {"spark.sql.shuffle.partitions": "4", "spark.executor.memory": "512m"}
    spark = cluster_session(master, python=python, settings=settings)
    said = spark.sparkContext.parallelize([0, 1], 2).mapPartitions(try_import).collect()
    (folder / "said").write_text("\n".join(said))
    spark.sparkContext.addPyFile(shipped)
    rows = spark.read.parquet(str(folder / "in"))
    pq.write_table(rows.transform(order_with(SPEC)).toArrow(), folder / "batch.parquet")
    logs = spark.read.parquet(str(folder / "logs"))
    pq.write_table(replay_log(logs, DELIVER).toArrow(), folder / "deliver.parquet")
    stream = spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1)
    query = (
        order_stream(stream.parquet(str(folder / "in")), SPEC)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )
    query.awaitTermination()
    pq.write_table(spark.read.parquet(str(folder / "out")).toArrow(), folder / "stream.parquet")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
