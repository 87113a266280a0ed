"""From causes as (text, count) to edges between numbered rows.

Identities are hashed once; a hash finds where to look, the identity itself decides. With clocks
and numbers a cause that is nowhere still orders: the row stands after the greatest count of that
member below it, which is looked up in ranges of (member, count), so that a member with any number
of rows is spread too.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from antecede.order.spec import OrderSpec
from antecede.spark.fixpoint.tables import Tables

EDGE = ("c", "e", "k", "tc", "te", "timed", "lacks")
"""An edge: rows of cause and effect (`c` null: nowhere), the place of the cause among those of the
effect, the times of both, whether the effect has one, and whether the cause is nowhere."""


def edges(rows: DataFrame, spec: OrderSpec, tables: Tables) -> tuple[DataFrame, int]:
    """Return the edges of the ranked rows, and how many there are."""
    identity = ["h", "g", "a", "n"]
    parts = tables.limits.parts(tables.rows)
    rows = rows.where("NOT aside")
    there = rows.select(*identity, F.col("row").alias("c"), F.col("t").alias("tc"))
    named = rows.select(
        F.col("row").alias("e"),
        F.col("t").alias("te"),
        (~F.col("u")).alias("timed"),
        "g",
        F.posexplode("causes").alias("k", "cause"),
    )
    named = named.select(
        "e", "te", "timed", "g", "k", F.col("cause.a"), F.col("cause.n"), F.col("cause.required")
    ).withColumn("h", F.xxhash64("g", "a", "n"))
    found = named.repartition(parts, *identity).join(
        there.repartition(parts, *identity), identity, "left"
    )
    if spec.id is None:
        return _with_earlier(found, there, tables)
    found = found.withColumn("lacks", F.isnull("c")).select(*EDGE)
    return tables.keep(found.repartition(parts, "c"))


def _with_earlier(found: DataFrame, there: DataFrame, tables: Tables) -> tuple[DataFrame, int]:
    """Let an edge whose cause is nowhere go to the greatest earlier count of its member."""
    found, count = tables.keep(found)
    exact = found.where("c IS NOT NULL").withColumn("lacks", F.lit(False)).select(*EDGE)
    without = found.where("c IS NULL").drop("c", "tc")
    if not without.limit(1).count():
        return tables.keep(exact.repartition(tables.limits.parts(count), "c"))
    near = _earlier(without, there, tables).withColumn("lacks", F.col("required")).select(*EDGE)
    return tables.keep(exact.unionByName(near).repartition(tables.limits.parts(count), "c"))


def _earlier(asked: DataFrame, there: DataFrame, tables: Tables) -> DataFrame:
    """Add `c` and `tc` of the row with the greatest count below the one asked for, or null."""
    member = ["hm", "g", "a"]
    rows = there.select("g", "a", "n", F.struct("c", "tc").alias("row"))
    both = asked.drop("h").unionByName(rows, allowMissingColumns=True)
    both = both.withColumns({"hm": F.xxhash64("g", "a"), "asks": F.isnull("row")})
    both, count = tables.keep(both)
    by = [*member, "n", "asks"]
    spread = both.repartitionByRange(tables.limits.parts(count), *by)
    spread, _ = tables.keep(spread.withColumn("p", F.spark_partition_id()))
    here = Window.partitionBy("p", *member).orderBy("n", "asks")
    local = spread.withColumn("near", F.last("row", ignorenulls=True).over(here)).where("asks")
    # The last row of each member in each partition but those where it is the only one: few.
    ends = spread.where("NOT asks").groupBy("p").agg(F.max(F.struct(*by, "row")).alias("end"))
    ends = ends.select(F.col("p").alias("before"), "end.hm", "end.g", "end.a", "end.row")
    local, _ = tables.keep(local.drop("row"))
    sure = local.where("near IS NOT NULL")
    open_ = local.where("near IS NULL").withColumn("q", F.monotonically_increasing_id())
    ends = ends.withColumnsRenamed({"hm": "hm2", "g": "g2", "a": "a2"})
    meets = (
        (F.col("hm") == F.col("hm2"))
        & (F.col("g") == F.col("g2"))
        & (F.col("a") == F.col("a2"))
        & (F.col("before") < F.col("p"))
    )
    asked_columns = [name for name in local.columns if name != "near"]
    carried = (
        open_.join(F.broadcast(ends), meets, "left")
        .groupBy("q")
        .agg(
            *(F.first(name).alias(name) for name in asked_columns),
            F.max_by("row", "before").alias("near"),
        )
    )
    made = sure.unionByName(carried.drop("q"))
    return made.withColumns({"c": F.col("near.c"), "tc": F.col("near.tc")})
