"""d: the longest chain of causes of one release; and cycles, where it never settles.

Only edges between rows of the same r matter. Up to `Limits.task` of them go to the compiled kernel
in one task. More are cut into ranges of rows, which settle what they can and exchange it; rows that
never settle are on a cycle or after one. The same from the other end leaves cycles and what lies
between them, and that goes to the kernel.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.fixpoint.supersteps import parts_of, run_parts
from antecede.spark.fixpoint.tables import Tables, merged, without
from antecede.tables.order import KNOWN, OPEN, depths_of

_SAID = "row bigint, depth bigint, cycle boolean"


def depths(tied: DataFrame, rows: int, tables: Tables) -> tuple[DataFrame, DataFrame | None]:
    """Return (row, depth) where the depth is not 0, and the rows on cycles, or None.

    `tied` has `c` and `e`, the edges whose two rows go at the same time. Raises InputError when
    they fit no task and do not settle in `Limits.exchanges` rounds, or their cycles fit no task.
    """
    tied, count = tables.keep(tied)
    tables.notes["tied"] = count
    if not count:
        return tied.select(F.col("e").alias("row"), F.lit(0).cast("bigint").alias("depth")), None
    if count > tables.limits.task:
        return _by_parts(tied, rows, count, tables)
    said = tables.cut(_in_one(tied))
    circle = said.where("cycle").select("row")
    return said.where("NOT cycle").select("row", "depth"), circle if circle.count() else None


def _in_one(tied: DataFrame) -> DataFrame:
    given = tied.select("c", "e", F.lit(0).cast("bigint").alias("v"))
    return run_parts(given, partial(depths_of, whole=True), _SAID, 1)


def _by_parts(
    tied: DataFrame, rows: int, count: int, tables: Tables
) -> tuple[DataFrame, DataFrame | None]:
    settled = _settled(tied, rows, count, tables)
    left, stuck = tables.keep(without(tied, settled))
    if not stuck:
        return settled.where("depth > 0"), None
    back = left.select(F.col("e").alias("c"), F.col("c").alias("e"))
    core = without(back, _settled(back, rows, stuck, tables))
    core, count = tables.keep(core)
    if count > tables.limits.task:
        raise InputError(
            f"{count:,} causes lie on cycles or between them, and one task takes "
            f"{tables.limits.task:,}: these are no causes; look at the columns that name them"
        )
    said = tables.cut(_in_one(core))
    return settled.where("depth > 0"), said.where("cycle").select("row")


def _settled(tied: DataFrame, rows: int, count: int, tables: Tables) -> DataFrame:
    """Return (row, depth) of all rows that no cycle holds back; depth 0 only where it is asked."""
    parts = max(2, parts_of(rows, 2 * count, tables.limits))
    size = -(-rows // parts)
    placed = tied.withColumns({"pc": F.expr(f"c div {size}"), "p": F.expr(f"e div {size}")})
    none = F.lit(0).cast("bigint")
    inner = placed.where("pc = p").select("c", "e", none.alias("v"), "p")
    border, _ = tables.keep(placed.where("pc <> p").select("c", "e", "p"))
    first = border.select(F.col("c").alias("row")).distinct()
    after = tied.select(F.col("e").alias("row")).distinct()
    settled = tables.cut(first.join(after, "row", "left_anti").withColumn("depth", none))
    active: DataFrame | None = None
    for exchange in range(tables.limits.exchanges):
        tables.notes["depth_exchanges"] = exchange + 1
        known = border.join(settled, F.col("c") == F.col("row"), "left").select(
            F.when(F.isnull("depth"), OPEN).otherwise(KNOWN).cast("bigint").alias("c"),
            "e",
            (F.coalesce("depth", none) + 1).alias("v"),
            "p",
        )
        some = inner.unionByName(known)
        if active is not None:
            some = some.join(F.broadcast(active), "p", "left_semi")
        said = run_parts(some, partial(depths_of, whole=False), _SAID, parts)
        new = tables.cut(said.select("row", "depth").join(settled, "row", "left_anti"))
        settled = tables.cut(merged([settled, new]))
        told = border.join(new, F.col("c") == F.col("row"), "left_semi")
        active = tables.cut(told.select("p").distinct())
        if not active.count():
            return settled
    raise InputError(
        f"{count:,} causes go at the same time as their effects, more than one task takes "
        f"({tables.limits.task:,}), and their chains cross the {parts} ranges into which they were "
        f"cut more than {tables.limits.exchanges} times: give a time column, or a group where "
        "causes never cross it"
    )
