"""Orders and payments: events name their causes, and each order is a group."""

import datetime as dt

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede.spark import order

NOON = dt.datetime(2026, 11, 22, 12, tzinfo=dt.UTC)
EVENTS = [  # id, order, kind, caused by, seconds after noon at which it came
    ("p1", "A", "paid", ["o1"], 1),  # came before the order that it pays
    ("s1", "A", "shipped", ["p1"], 2),
    ("o1", "A", "placed", [], 4),
    ("o2", "B", "placed", [], 5),
    ("p2", "B", "paid", ["o2"], 6),
    ("p2", "B", "paid", ["o2"], 7),  # delivered twice
]


def run(spark: SparkSession) -> DataFrame:
    """Return the events with their position in their order, and their wait."""
    rows = [(*event[:4], NOON + dt.timedelta(seconds=event[4])) for event in EVENTS]
    schema = "id string, order string, kind string, caused_by array<string>, came timestamp"
    df = spark.createDataFrame(rows, schema)
    done = df.transform(order(id="id", after=["caused_by"], group="order", time="came"))
    columns = ["order", "position", "kind", "waited_for", "waited_ms", "antecede_status"]
    return done.orderBy("order", F.col("position").asc_nulls_last()).select(*columns)
