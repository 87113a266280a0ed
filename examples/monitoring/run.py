"""A query with waiting rows, exported to Prometheus: python examples/monitoring/run.py

Ten rows per second. Every seventh names a cause that arrives half a second later, every fiftieth a
missing one: it waits for 20 seconds and leaves as `missing_cause`.
"""

import tempfile
import time

from exporter import Exporter
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from antecede.spark import local_session, order

PORT = 9108


def start(spark: SparkSession, checkpoint: str) -> StreamingQuery:
    """Start the query with a sink that discards its rows."""
    rows: DataFrame = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    rows = rows.selectExpr(
        "cast(value as string) id",
        """case when value % 50 = 0 then concat('lost-', value)
                when value % 7 = 0 then cast(value + 5 as string) end after""",
        "timestamp at",
    )
    ordered = rows.transform(
        order(id="id", after="after", time="at", on_missing="release", patience="20 s", shards=2)
    )
    writer = ordered.writeStream.queryName("example").format("noop")
    return writer.option("checkpointLocation", checkpoint).start()


def main() -> None:
    """Run until it is interrupted."""
    spark = local_session(2, partitions=2, name="antecede-monitoring")
    listener = Exporter()
    spark.streams.addListener(listener)
    server, _ = listener.serve(PORT)
    print(f"http://127.0.0.1:{server.server_port}/metrics", flush=True)
    with tempfile.TemporaryDirectory() as checkpoint:
        query = start(spark, checkpoint)
        try:
            while query.isActive:
                time.sleep(1)
        finally:
            query.stop()
            spark.stop()


if __name__ == "__main__":
    main()
