"""Release times r = max(time, r of the causes), by supersteps of joins, then by ranges of rows.

A superstep joins the edges with the rows that the previous one raised; real logs settle in 1 to 10.
If supersteps do not shrink or reach their limit, all edges are passed as packed arrays to the
compiled kernel. That is one task if they fit, else ranges of rows that exchange releases across
their borders until nothing changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.fixpoint.tables import IntermediateTables, TaskLimits, union_tables
from antecede.tables.kernels import BEFORE_ALL
from antecede.tables.order import release_of

BROADCAST_ROWS = 100_000
"""Limit of raised rows that are broadcast (16 bytes each) instead of shuffled."""
RELEASE_SCHEMA = "row bigint, released bigint"


def compute_releases(
    edges: DataFrame, counts: tuple[int, int], tables: IntermediateTables
) -> DataFrame:
    """Return (row, released) of late rows; `counts`: rows, edges. Raises InputError."""
    if max(counts) <= tables.limits.small_edges:
        return _compute_by_ranges(edges, None, counts, tables)
    later = edges.where("tc > te").groupBy(F.col("e").alias("row"))
    new = tables.checkpoint(later.agg(F.max("tc").alias("released")))
    known, sizes = new, [new.count()]
    while sizes[-1] and not _is_stalled(sizes, tables.limits):
        few = F.broadcast(new) if sizes[-1] <= BROADCAST_ROWS else new
        candidates = edges.join(few, F.col("c") == F.col("row")).where("released > te")
        candidates = candidates.groupBy(F.col("e").alias("row")).agg(
            F.max("released").alias("released")
        )
        new = tables.checkpoint(_select_raised(candidates, known))
        sizes.append(new.count())
        if sizes[-1]:
            known = tables.checkpoint(_merge_maxima([known, new]))
    tables.stats["raised"] = sizes
    return known if not sizes[-1] else _compute_by_ranges(edges, known, counts, tables)


def _is_stalled(sizes: list[int], limits: TaskLimits) -> bool:
    stalled = len(sizes) > 3 and sizes[-1] > BROADCAST_ROWS and sizes[-1] > sizes[-2] // 2
    return len(sizes) >= limits.max_supersteps or stalled


def _merge_maxima(tables: list[DataFrame]) -> DataFrame:
    return union_tables(tables).groupBy("row").agg(F.max("released").alias("released"))


def _select_raised(candidates: DataFrame, known: DataFrame) -> DataFrame:
    before = known.withColumnRenamed("released", "known")
    new = candidates.join(before, "row", "left")
    return new.where("known IS NULL OR released > known").select("row", "released")


def count_ranges(rows: int, edges: int, limits: TaskLimits) -> int:
    """Return the number of ranges of rows for a graph, one task each."""
    if max(rows, edges) <= limits.task_edges:
        return 1
    return max(-(-rows // limits.task_edges), -(-3 * edges // (2 * limits.task_edges)))


def _compute_by_ranges(
    edges: DataFrame, known: DataFrame | None, counts: tuple[int, int], tables: IntermediateTables
) -> DataFrame:
    rows, count = counts
    parts = count_ranges(rows, count, tables.limits)
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
        return tables.checkpoint(run_ranges(inner, release_of, RELEASE_SCHEMA, 1))
    if known is None:
        known = tables.checkpoint(
            inner.select(F.col("e").alias("row"), F.col("te").alias("released")).limit(0)
        )
    news = known
    for exchange in range(tables.limits.max_exchanges):
        tables.stats["exchanges"] = exchange + 1
        releases = known.select(
            F.lit(-1).cast("bigint").alias("c"),
            F.col("row").alias("e"),
            F.col("released").alias("tc"),
            F.lit(BEFORE_ALL).alias("te"),
            F.expr(f"row div {size}").alias("p"),
        )
        some = inner.unionByName(releases)
        if active is not None:
            some = some.join(F.broadcast(active), "p", "left_semi")
        new = tables.checkpoint(
            _select_raised(run_ranges(some, release_of, RELEASE_SCHEMA, parts), known)
        )
        known = tables.checkpoint(_merge_maxima([known, new]))
        if parts == 1:
            return known
        # Rows raised across a border may raise rows across the next border.
        source = _merge_maxima([new, news])
        crossing = border.join(
            source, F.col("c") == F.col("row"), "left" if not exchange else "inner"
        )
        crossing = crossing.withColumn("released", F.greatest("tc", "released")).where(
            "released > te"
        )
        crossing = crossing.groupBy(F.col("e").alias("row")).agg(
            F.max("released").alias("released")
        )
        news = tables.checkpoint(_select_raised(crossing, known))
        if not news.limit(1).count():
            return known
        known = tables.checkpoint(_merge_maxima([known, news]))
        active = tables.checkpoint(news.select(F.expr(f"row div {size}").alias("p")).distinct())
    raise InputError(
        f"{rows:,} rows with {count:,} causes exceed the limit of one task "
        f"({tables.limits.task_edges:,}), and their chains cross the {parts} ranges of time more "
        f"than {tables.limits.max_exchanges} times: give a time column that follows causality more "
        "closely, or a group that no cause crosses"
    )


def run_ranges(edges: DataFrame, work: Any, schema: str, ranges: int) -> DataFrame:
    """Apply a function of record batches to the edges of each range (column `p`), one task each."""

    # Spark evaluates these hints to choose the kind of function.
    def antecede_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield work(batches)

    if ranges == 1:
        return edges.drop("p").repartition(1).mapInArrow(antecede_parts, schema)
    return edges.groupBy("p").applyInArrow(antecede_parts, schema)
