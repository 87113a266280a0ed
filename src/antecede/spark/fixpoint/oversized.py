"""Groups that are too large for one task.

A group goes to one task, to the kernel in Python, up to `rows_a_task` rows; a larger one goes to
the fixpoint over joins. Both come out as one frame. The plan of the former has
`antecede_order_a_group_a_task`, that of the latter `__antecede_fixpoint` columns.

Counting is a job over the group column when `transform` is called. It is not run where Spark
estimates few bytes, where `giant` is "never", for a stream, or in Declarative Pipelines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.columns import to_binary_collation
from antecede.spark.fixpoint.rows import GROUP_NUMBER
from antecede.tables.order import OrderSpec

SMALL_BYTES = 64 << 20
"""Of so few bytes, by Spark's estimate, no group is giant: they are not counted."""
_KEY = "__antecede_giant"
_REMOTE = (
    "such groups go to a fixpoint over joins, whose plan is nested deeper than Spark Connect can "
    'carry; use a session without Connect, or giant="never" (a group a task, some 0.5 KB a row)'
)


class OversizedGroups(NamedTuple):
    """The rows of all giant groups, each with the number of its group."""

    rows: DataFrame
    row_count: int


def split_oversized(
    df: DataFrame, spec: OrderSpec
) -> tuple[DataFrame | None, OversizedGroups | None]:
    """Return the rows of groups that go to one task each, and those of giant ones; None: no rows.

    Runs a job unless `spec.giant` is "never", or is "auto" and the rows are few by estimate. Raises
    InputError where there are giant groups through Spark Connect.
    """
    if spec.giant == "never" or (spec.giant == "auto" and _is_small(df)):
        return df, None
    remote = not hasattr(df.sparkSession, "_jsparkSession")
    if remote and spec.giant == "always":
        raise InputError(f'giant="always": {_REMOTE}')
    try:
        small, giant = (
            _split_ungrouped(df, spec) if spec.group is None else _split_by_group(df, spec)
        )
        if remote and giant is not None:
            raise InputError(
                f"{giant.row_count:,} rows are in groups of more than rows_a_task="
                f"{spec.rows_a_task:,}, or in none: {_REMOTE}"
            )
        return small, giant
    except AnalysisException as error:
        if spec.giant == "auto" and "PIPELINE_QUERY_FUNCTION" in str(error.getCondition()):
            return df, None
        raise


def _is_small(df: DataFrame) -> bool:
    """Tell whether Spark estimates all rows together to be small; a remote session does not say."""
    frame: Any = df
    try:
        size = frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
    except (AttributeError, TypeError):
        return False
    return int(str(size)) <= SMALL_BYTES


def _split_ungrouped(
    df: DataFrame, spec: OrderSpec
) -> tuple[DataFrame | None, OversizedGroups | None]:
    count = df.count()
    if spec.giant == "auto" and count <= spec.rows_a_task:
        return df, None
    return None, OversizedGroups(df.withColumn(GROUP_NUMBER, F.lit(0)), count)


def _split_by_group(
    df: DataFrame, spec: OrderSpec
) -> tuple[DataFrame | None, OversizedGroups | None]:
    key = to_binary_collation(df, str(spec.group))
    counts = df.select(key.alias(_KEY)).groupBy(_KEY).count()
    if spec.giant == "auto":
        counts = counts.where(F.col("count") > spec.rows_a_task)
    numbered = counts.withColumn(GROUP_NUMBER, F.monotonically_increasing_id())
    giants = numbered.localCheckpoint()
    found = giants.agg(F.count(F.lit(1)), F.sum("count")).collect()[0]
    if not found[0]:
        return df, None
    same = key.eqNullSafe(F.col(_KEY))
    giants = F.broadcast(giants) if spec.giant == "auto" else giants  # few: each has many rows
    rows = df.join(giants.drop("count"), same).drop(_KEY)
    small = None if spec.giant == "always" else df.join(giants, same, "left_anti")
    return small, OversizedGroups(rows, found[1])
