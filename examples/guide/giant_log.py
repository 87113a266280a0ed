"""One log of many members with vector clocks, without groups."""

import random

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from antecede.spark import order

MEMBERS, ROWS, LATE = 8, 20_000, 50


def log(seed: int = 1) -> list[tuple[str, dict[str, int], int]]:
    """Return (member, clock, arrival) of messages, shuffled."""
    chance = random.Random(seed)
    names = [f"m{k}" for k in range(MEMBERS)]
    clocks = {name: dict.fromkeys(names, 0) for name in names}
    rows = []
    for number in range(ROWS):
        name, other = chance.sample(names, 2)
        heard = clocks[other]
        clocks[name] = {m: max(count, heard[m]) for m, count in clocks[name].items()}
        clocks[name][name] += 1
        rows.append((name, dict(clocks[name]), number + chance.randrange(LATE)))
    chance.shuffle(rows)
    return rows


def order_log(spark: SparkSession) -> DataFrame:
    """Return the rows in one order, each after everything that its clock names."""
    df = spark.createDataFrame(log(), "member string, clock map<string, int>, came long")
    return df.transform(order(clock="clock", member="member", time="came", time_unit="ms"))


def run(spark: SparkSession) -> DataFrame:
    """Return the number of rows, of rows before a cause, and the longest wait."""
    return order_log(spark).agg(
        F.count("position").alias("rows"),
        F.count_if(F.col("waited_ms") > 0).alias("waited"),
        F.max("waited_ms").alias("longest_ms"),
    )
