"""Found of groups that are too large for one task, by row count.

A group of at most `max_rows_per_task` rows is one task for the kernel in Python
(`antecede_order_a_group_a_task` in the plan). A larger one is ordered by the fixpoint over joins
(`__antecede_fixpoint` in the plan). Counting is a job when `transform` is called, skipped if Spark
estimates few bytes, if `large_groups` is "never", and in Declarative Pipelines.
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
"""Size estimate up to which groups are not counted."""
_KEY = "__antecede_giant"
_REMOTE = (
    "the fixpoint over joins is nested too deeply for Spark Connect; use a session without "
    'Connect, or large_groups="never" (one task per group, about 0.5 KB per row)'
)


class OversizedGroups(NamedTuple):
    """Rows of all oversized groups, each with its group number."""

    rows: DataFrame
    row_count: int


def split_oversized(
    df: DataFrame, spec: OrderSpec
) -> tuple[DataFrame | None, OversizedGroups | None]:
    """Split the rows into groups of one task each and oversized groups; None: no rows.

    Runs a job unless `spec.large_groups` or Spark's estimate decides. Raises InputError for
    oversized groups through Spark Connect.
    """
    if spec.large_groups == "never" or (spec.large_groups == "auto" and _is_small(df)):
        return df, None
    remote = not hasattr(df.sparkSession, "_jsparkSession")
    if remote and spec.large_groups == "always":
        raise InputError(f'large_groups="always": {_REMOTE}')
    try:
        small, giant = (
            _split_ungrouped(df, spec) if spec.group is None else _split_by_group(df, spec)
        )
        if remote and giant is not None:
            raise InputError(
                f"{giant.row_count:,} rows are in groups of more than max_rows_per_task="
                f"{spec.max_rows_per_task:,}, or have no group: {_REMOTE}"
            )
        return small, giant
    except AnalysisException as error:
        if spec.large_groups == "auto" and "PIPELINE_QUERY_FUNCTION" in str(error.getCondition()):
            return df, None
        raise


def _is_small(df: DataFrame) -> bool:
    """Return whether Spark estimates the rows to be small; False for remote sessions."""
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
    if spec.large_groups == "auto" and count <= spec.max_rows_per_task:
        return df, None
    return None, OversizedGroups(df.withColumn(GROUP_NUMBER, F.lit(0)), count)


def _split_by_group(
    df: DataFrame, spec: OrderSpec
) -> tuple[DataFrame | None, OversizedGroups | None]:
    key = to_binary_collation(df, str(spec.group))
    counts = df.select(key.alias(_KEY)).groupBy(_KEY).count()
    if spec.large_groups == "auto":
        counts = counts.where(F.col("count") > spec.max_rows_per_task)
    numbered = counts.withColumn(GROUP_NUMBER, F.monotonically_increasing_id())
    oversized = numbered.localCheckpoint()
    found = oversized.agg(F.count(F.lit(1)), F.sum("count")).collect()[0]
    if not found[0]:
        return df, None
    same = key.eqNullSafe(F.col(_KEY))
    # With "auto" they are few, as each is large.
    oversized = F.broadcast(oversized) if spec.large_groups == "auto" else oversized
    rows = df.join(oversized.drop("count"), same).drop(_KEY)
    small = None if spec.large_groups == "always" else df.join(oversized, same, "left_anti")
    return small, OversizedGroups(rows, found[1])
