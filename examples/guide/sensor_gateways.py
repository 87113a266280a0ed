"""A sensor heard by many gateways: its sequence numbers give the order."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede.spark import order

UPLINKS = [  # sensor, number, temperature, gateway, milliseconds at which it came
    ("s1", 2, 20.5, "north", 10),  # by a faster way than number 1
    ("s1", 1, 20.0, "south", 25),
    ("s1", 2, 20.5, "south", 30),
    ("s1", 2, 20.5, "west", 31),
    ("s1", 4, 21.5, "north", 50),  # number 3 is missing
    ("s2", 1, 7.0, "north", 60),
]


def run(spark: SparkSession) -> DataFrame:
    """Return each reading once in its position; copies are marked as duplicates."""
    schema = "sensor string, number int, degrees double, gateway string, came long"
    df = spark.createDataFrame(UPLINKS, schema)
    by = order(
        sender="sensor", seq="number", group="sensor", time="came", time_unit="ms",
        content=["degrees"],
    )  # fmt: skip
    done = df.transform(by).orderBy("sensor", F.col("position").asc_nulls_last(), "came")
    return done.select(
        "sensor", "number", "gateway", "position", "missing_causes", "antecede_status"
    )
