"""Spans of two services with different clocks: by time the reply starts before the request."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede.spark import order

SPANS = [  # trace, span, parent, service, name, start in microseconds by the service's own clock
    ("t1", "a", None, "shop", "checkout", 1_000_000),
    ("t1", "b", "a", "till", "charge", 940_000),  # the till's clock is 80 ms behind
    ("t1", "c", "b", "till", "print", 950_000),
    ("t1", "d", "a", "shop", "thank", 1_050_000),
]


def run(spark: SparkSession) -> DataFrame:
    """Return the spans in causal order, with their position by time."""
    schema = "trace string, span string, parent string, service string, name string, start long"
    df = spark.createDataFrame(SPANS, schema)
    by = order(id="span", after="parent", group="trace", time="start", time_unit="us")
    done = df.transform(by)
    place = F.expr("row_number() over (partition by trace order by start) - 1").alias("by_time")
    columns = ["position", place, "service", "name", "waited_ms"]
    return done.select(*columns).orderBy("position")
