"""d: the longest chain of causes of one release; and cycles, where it never settles.

Only edges between rows of the same r matter. Up to `Limits.task_edges` of them go to the compiled kernel
in one task. More are cut into ranges of rows, which settle what they can and exchange it; rows that
never settle are on a cycle or after one. The same from the other end leaves cycles and what lies
between them, and that goes to the kernel.
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
    """Return (row, depth) where the depth is not 0, and the rows on cycles, or None.

    `tied` has `c` and `e`, the edges whose two rows go at the same time. Raises InputError when
    they fit no task and do not settle in `Limits.max_exchanges` rounds, or their cycles fit no task.
    """
    tied, count = tables.persist(tied)
    tables.stats["tied"] = count
    if not count:
        return tied.select(F.col("e").alias("row"), F.lit(0).cast("bigint").alias("depth")), None
    if count > tables.limits.task_edges:
        return _compute_by_ranges(tied, rows, count, tables)
    said = tables.checkpoint(_compute_in_one_task(tied))
    circle = said.where("cycle").select("row")
    return said.where("NOT cycle").select("row", "depth"), circle if circle.count() else None


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
            f"{count:,} causes lie on cycles or between them, and one task takes "
            f"{tables.limits.task_edges:,}: these are no causes; look at the columns that name them"
        )
    said = tables.checkpoint(_compute_in_one_task(core))
    return settled.where("depth > 0"), said.where("cycle").select("row")


def _settle(tied: DataFrame, rows: int, count: int, tables: IntermediateTables) -> DataFrame:
    """Return (row, depth) of all rows that no cycle holds back; depth 0 only where it is asked."""
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
        said = run_ranges(some, partial(depths_of, whole=False), _DEPTH_SCHEMA, parts)
        new = tables.checkpoint(said.select("row", "depth").join(settled, "row", "left_anti"))
        settled = tables.checkpoint(union_tables([settled, new]))
        told = border.join(new, F.col("c") == F.col("row"), "left_semi")
        active = tables.checkpoint(told.select("p").distinct())
        if not active.count():
            return settled
    raise InputError(
        f"{count:,} causes go at the same time as their effects, more than one task takes "
        f"({tables.limits.task_edges:,}), and their chains cross the {parts} ranges into which they were "
        f"cut more than {tables.limits.max_exchanges} times: give a time column, or a group where "
        "causes never cross it"
    )
