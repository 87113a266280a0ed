"""r = max(time, r of the causes), first by rounds of joins, then by whole parts at once.

Only an edge whose cause is later than its effect starts work. A round joins the edges with the rows
that the round before raised: real logs settle in 1 to 10 rounds. A long chain raises rows in every
round. So when rounds do not shrink or pass a bound, all edges go as packed arrays to the compiled
kernel: in one task if they fit, else in ranges of rows that exchange news of their borders until
there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.fixpoint.tables import Limits, Tables, merged
from antecede.tables.kernels import BEFORE_ALL
from antecede.tables.order import release_of

FEW = 100_000
"""Raised rows that go to every task as they are (16 bytes each), instead of by a shuffle."""
RAISED = "row bigint, released bigint"


def raised(edges: DataFrame, counts: tuple[int, int], tables: Tables) -> DataFrame:
    """Return (row, released) of the rows that go later than their own time.

    `counts` are the numbers of rows and edges. Raises InputError when parts have told each other
    news `Limits.exchanges` times and are not done.
    """
    if max(counts) <= tables.limits.at_once:
        return _by_parts(edges, None, counts, tables)
    later = edges.where("tc > te").groupBy(F.col("e").alias("row"))
    new = tables.cut(later.agg(F.max("tc").alias("released")))
    known, sizes = new, [new.count()]
    while sizes[-1] and not _hopeless(sizes, tables.limits):
        few = F.broadcast(new) if sizes[-1] <= FEW else new
        got = edges.join(few, F.col("c") == F.col("row")).where("released > te")
        got = got.groupBy(F.col("e").alias("row")).agg(F.max("released").alias("released"))
        new = tables.cut(_news(got, known))
        sizes.append(new.count())
        if sizes[-1]:
            known = tables.cut(_highest([known, new]))
    tables.notes["raised"] = sizes
    return known if not sizes[-1] else _by_parts(edges, known, counts, tables)


def _hopeless(sizes: list[int], limits: Limits) -> bool:
    """Tell whether rounds have come to their bound, or no longer become smaller."""
    stalled = len(sizes) > 3 and sizes[-1] > FEW and sizes[-1] > sizes[-2] // 2
    return len(sizes) >= limits.rounds or stalled


def _highest(tables: list[DataFrame]) -> DataFrame:
    return merged(tables).groupBy("row").agg(F.max("released").alias("released"))


def _news(got: DataFrame, known: DataFrame) -> DataFrame:
    """Return what is greater than what is known."""
    before = known.withColumnRenamed("released", "known")
    new = got.join(before, "row", "left")
    return new.where("known IS NULL OR released > known").select("row", "released")


def parts_of(rows: int, edges: int, limits: Limits) -> int:
    """Return into how many ranges of rows a graph goes, each for one task."""
    if max(rows, edges) <= limits.task:
        return 1
    return max(-(-rows // limits.task), -(-3 * edges // (2 * limits.task)))


def _by_parts(
    edges: DataFrame, known: DataFrame | None, counts: tuple[int, int], tables: Tables
) -> DataFrame:
    rows, count = counts
    parts = parts_of(rows, count, tables.limits)
    size = -(-rows // parts)
    real = edges.where("c IS NOT NULL").select(
        "c",
        "e",
        "tc",
        "te",
        F.expr(f"c div {size}").alias("pc"),
        F.expr(f"e div {size}").alias("p"),
    )
    inner, border = real.where("pc = p").drop("pc"), real.where("pc <> p")
    active: DataFrame | None = None
    if parts == 1 and known is None:
        return tables.cut(run_parts(inner, release_of, RAISED, 1))
    if known is None:
        known = tables.cut(
            inner.select(F.col("e").alias("row"), F.col("te").alias("released")).limit(0)
        )
    news = known
    for exchange in range(tables.limits.exchanges):
        tables.notes["exchanges"] = exchange + 1
        said = known.select(
            F.lit(-1).cast("bigint").alias("c"),
            F.col("row").alias("e"),
            F.col("released").alias("tc"),
            F.lit(BEFORE_ALL).alias("te"),
            F.expr(f"row div {size}").alias("p"),
        )
        some = inner.unionByName(said)
        if active is not None:
            some = some.join(F.broadcast(active), "p", "left_semi")
        new = tables.cut(_news(run_parts(some, release_of, RAISED, parts), known))
        known = tables.cut(_highest([known, new]))
        if parts == 1:
            return known
        # What came over a border last time is raised too, and may go on over the next one.
        source = _highest([new, news])
        told = border.join(source, F.col("c") == F.col("row"), "left" if not exchange else "inner")
        told = told.withColumn("released", F.greatest("tc", "released")).where("released > te")
        told = told.groupBy(F.col("e").alias("row")).agg(F.max("released").alias("released"))
        news = tables.cut(_news(told, known))
        if not news.limit(1).count():
            return known
        known = tables.cut(_highest([known, news]))
        active = tables.cut(news.select(F.expr(f"row div {size}").alias("p")).distinct())
    raise InputError(
        f"{rows:,} rows with {count:,} causes are more than one task takes "
        f"({tables.limits.task:,}), and their chains cross the {parts} ranges of time into "
        f"which they were cut more than {tables.limits.exchanges} times: give a time column that "
        "follows causality more closely, or a group where causes never cross it"
    )


def run_parts(edges: DataFrame, settle: Any, schema: str, parts: int) -> DataFrame:
    """Give the edges of each part, column `p`, to a function of record batches, in one task."""

    # Spark evaluates these hints: the function takes batches one after the other.
    def antecede_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield settle(batches)

    if parts == 1:
        return edges.drop("p").repartition(1).mapInArrow(antecede_parts, schema)
    return edges.groupBy("p").applyInArrow(antecede_parts, schema)
