"""Depths of rows that are released at the same time, and cycles.

The depth d is the longest chain of causes within one release. Up to `TaskLimits.task_edges` edges
are one task of the compiled kernel. Larger graphs are split into ranges of rows, which compute
depths and exchange them. Rows without a depth are on a cycle or behind one; the same procedure from
the other end leaves the cycles and the rows between them.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.fixpoint.supersteps import count_ranges, run_ranges
from antecede.spark.fixpoint.tables import IntermediateTables, remove_rows, union_tables
from antecede.tables.order import KNOWN, OPEN, depths_of

_DEPTH_SCHEMA = "row bigint, depth bigint, cycle boolean"


def compute_depths(
    tied: DataFrame, rows: int, tables: IntermediateTables
) -> tuple[DataFrame, DataFrame | None]:
    """Return (row, depth) for depths other than 0, and the rows on cycles, or None.

    `tied` holds `c` and `e`, the edges between rows of the same release. Raises InputError beyond
    the limits.
    """
    tied, count = tables.persist(tied)
    tables.stats["tied"] = count
    if not count:
        return tied.select(F.col("e").alias("row"), F.lit(0).cast("bigint").alias("depth")), None
    if count > tables.limits.task_edges:
        return _compute_by_ranges(tied, rows, count, tables)
    solved = tables.checkpoint(_compute_in_one_task(tied))
    circle = solved.where("cycle").select("row")
    return solved.where("NOT cycle").select("row", "depth"), circle if circle.count() else None


def _compute_in_one_task(tied: DataFrame) -> DataFrame:
    given = tied.select("c", "e", F.lit(0).cast("bigint").alias("v"))
    return run_ranges(given, partial(depths_of, whole=True), _DEPTH_SCHEMA, 1)


def _compute_by_ranges(
    tied: DataFrame, rows: int, count: int, tables: IntermediateTables
) -> tuple[DataFrame, DataFrame | None]:
    settled = _settle(tied, rows, count, tables)
    left, stuck = tables.persist(remove_rows(tied, settled))
    if not stuck:
        return settled.where("depth > 0"), None
    back = left.select(F.col("e").alias("c"), F.col("c").alias("e"))
    core = remove_rows(back, _settle(back, rows, stuck, tables))
    core, count = tables.persist(core)
    if count > tables.limits.task_edges:
        raise InputError(
            f"{count:,} causes are on cycles or between them; one task is limited to "
            f"{tables.limits.task_edges:,}: check the columns in after=, which cannot all be causes"
        )
    solved = tables.checkpoint(_compute_in_one_task(core))
    return settled.where("depth > 0"), solved.where("cycle").select("row")


def _settle(tied: DataFrame, rows: int, count: int, tables: IntermediateTables) -> DataFrame:
    """Return (row, depth) of all rows that no cycle holds back; depth 0 only where needed."""
    parts = max(2, count_ranges(rows, 2 * count, tables.limits))
    size = -(-rows // parts)
    placed = tied.withColumns({"pc": F.expr(f"c div {size}"), "p": F.expr(f"e div {size}")})
    none = F.lit(0).cast("bigint")
    inner = placed.where("pc = p").select("c", "e", none.alias("v"), "p")
    border, _ = tables.persist(placed.where("pc <> p").select("c", "e", "p"))
    first = border.select(F.col("c").alias("row")).distinct()
    after = tied.select(F.col("e").alias("row")).distinct()
    settled = tables.checkpoint(first.join(after, "row", "left_anti").withColumn("depth", none))
    active: DataFrame | None = None
    for exchange in range(tables.limits.max_exchanges):
        tables.stats["depth_exchanges"] = exchange + 1
        known = border.join(settled, F.col("c") == F.col("row"), "left").select(
            F.when(F.isnull("depth"), OPEN).otherwise(KNOWN).cast("bigint").alias("c"),
            "e",
            (F.coalesce("depth", none) + 1).alias("v"),
            "p",
        )
        some = inner.unionByName(known)
        if active is not None:
            some = some.join(F.broadcast(active), "p", "left_semi")
        solved = run_ranges(some, partial(depths_of, whole=False), _DEPTH_SCHEMA, parts)
        new = tables.checkpoint(solved.select("row", "depth").join(settled, "row", "left_anti"))
        settled = tables.checkpoint(union_tables([settled, new]))
        crossing = border.join(new, F.col("c") == F.col("row"), "left_semi")
        active = tables.checkpoint(crossing.select("p").distinct())
        if not active.count():
            return settled
    raise InputError(
        f"{count:,} causes have the release time of their effects; one task is limited to "
        f"{tables.limits.task_edges:,}, and their chains cross the {parts} ranges of rows more "
        f"than {tables.limits.max_exchanges} times: give a time column, or a group that no cause "
        "crosses"
    )
