"""Causal order of a DataFrame.

Batch: the rows of a group form one partition (`partitions`). A worker receives the columns of the
spec and two hashes of each row; `antecede.tables.order.table.order_rows` computes the added
columns. All other columns stay in the JVM, in a queue that spills to disk. So the memory of a
worker depends only on the columns of the spec, and payloads may have any type. Oversized groups,
and all rows without a group, are ordered by a fixpoint over joins instead (`fixpoint`), with the
same result.

Stream: `antecede.spark.streams.ordering.order_stream`, with the same spec and columns.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.spark.columns import column_of
from antecede.spark.evidence import warn_without_causes
from antecede.spark.fixpoint.ordering import order_oversized
from antecede.spark.fixpoint.oversized import split_oversized
from antecede.spark.order_columns import check_input, make_added_fields
from antecede.spark.partitions import make_worker_column, partition_by_group, split_array
from antecede.spark.streams.ordering import order_stream
from antecede.spark.workers import check_workers
from antecede.tables.order import (
    LargeGroupPolicy,
    MissingPolicy,
    OrderSpec,
    OverflowPolicy,
    TimeUnit,
    order_rows,
    whole,
)

_LOOKALIKES = str.maketrans({".": "\u2024", "`": "\u02cb"})
ADDED = "__antecede_added"
"""Hidden column of a batch: all added columns as one struct."""


def order(
    df: DataFrame | None = None,
    *,
    id: str | None = None,
    after: str | Sequence[str] = (),
    group: str | None = None,
    clock: str | None = None,
    member: str | None = None,
    sender: str | None = None,
    seq: str | None = None,
    first_seq: int = 1,
    time: str | None = None,
    time_unit: TimeUnit | None = None,
    on_missing: MissingPolicy = "hold",
    patience: str | dt.timedelta = "10 minutes",
    state_ttl: str | dt.timedelta | None = None,
    max_held_rows: int | None = 10_000_000,
    on_overflow: OverflowPolicy = "fail",
    checkpoint: str | None = None,
    metrics: str | None = "antecede",
    shards: int | None = None,
    content: Sequence[str] | None = None,
    large_groups: LargeGroupPolicy = "auto",
    max_rows_per_task: int = 4_000_000,
    position: str = "position",
    waited_for: str = "waited_for",
    missing_causes: str = "missing_causes",
    waited_ms: str = "waited_ms",
    released_at: str = "released_at",
    status: str = "antecede_status",
) -> Any:  # a DataFrame, or a function from one to another
    """Add causal order to a batch or stream; without a DataFrame, return the function that does.

    >>> import antecede.spark
    >>> events = spark.createDataFrame([("b", "a"), ("a", None)], "id string, after string")
    >>> made = antecede.spark.order(events, id="id", after="after")
    >>> [(row.position, row.id) for row in made.sort("position").collect()]
    [(0, 'a'), (1, 'b')]

    `df.transform(order(id="id", after="after"))` is the same. The result has every input row once,
    in undefined order, and these columns:

    - `position` (long): index within the group, from 0; null for an excluded row.
    - `waited_for` (array of strings): causes that were released after the row arrived.
    - `missing_causes` (array of strings): causes that are missing.
    - `waited_ms` (double): milliseconds until the causes were released; null without times.
    - `released_at` (type of `time`): the time of that; null without times. In a stream it is never
      before rows of earlier micro-batches, so a watermark on it drops nothing.
    - `antecede_status`: see `antecede.tables.order.spec.Status`.

    The other arguments are those of `OrderSpec`. Columns are given as text, not as `Column`; a name
    with dots is one column.

    A group of a batch with up to `max_rows_per_task` rows is one task; a larger one is ordered by a
    fixpoint over joins. `transform` therefore counts the rows of each group (a job), unless Spark
    estimates all rows at 64 MiB or less, and runs the supersteps of the fixpoint.
    `large_groups="never"` runs nothing before the result is used; "always" uses the fixpoint for
    all groups. "auto" is "never" in Declarative Pipelines, which allow no jobs. A batch without any
    cause, clock or sequence number gets a `NoEvidenceWarning`, after a job that ends at the first
    such row.

    Raises InputError here if the columns do not form one causality source. In `transform` it raises
    InputError for columns that are missing, duplicate or unsupported, and SetupError if Spark's
    Python workers lack antecede.
    """
    spec = OrderSpec(
        id=id,
        after=_to_names(after),
        group=group,
        clock=clock,
        member=member,
        sender=sender,
        seq=seq,
        first_seq=first_seq,
        time=time,
        time_unit=time_unit,
        on_missing=on_missing,
        patience=patience,
        state_ttl=state_ttl,
        max_held_rows=max_held_rows,
        on_overflow=on_overflow,
        checkpoint=checkpoint,
        metrics=metrics,
        shards=shards,
        content=None if content is None else _to_names(content),
        large_groups=large_groups,
        max_rows_per_task=max_rows_per_task,
        position=position,
        waited_for=waited_for,
        missing_causes=missing_causes,
        waited_ms=waited_ms,
        released_at=released_at,
        status=status,
    )

    def add(df: DataFrame) -> DataFrame:
        made = order_with(spec)(df)
        _warn_of_plain_numbers(df, spec)
        return made

    return add if df is None else add(df)


def _warn_of_plain_numbers(df: DataFrame, spec: OrderSpec) -> None:
    if spec.time is None or spec.time_unit is not None:
        return
    kind = df.schema[spec.time].dataType
    if isinstance(kind, t.IntegralType):
        warnings.warn(
            f"column {spec.time} ({kind.simpleString()}) has no unit, so "
            f"{spec.waited_ms} and {spec.released_at} are null: give time_unit= (s, ms, us or ns) "
            "if it holds times",
            stacklevel=3,
        )


def order_with(spec: OrderSpec, *, warn: bool = True) -> Callable[[DataFrame], DataFrame]:
    """Return the function for `DataFrame.transform` that orders by a spec; `warn`: see `order`."""

    def transform(df: DataFrame) -> DataFrame:
        check_input(df, spec)
        check_workers(df.sparkSession)
        if not df.isStreaming:
            if warn and spec.large_groups != "never":
                warn_without_causes(df, spec)
            return order_batch(df, spec)
        spec.check_stream()
        if any("." in name or "`" in name for name in df.columns):
            return _order_renamed(df, spec)
        return order_stream(df, spec)

    return transform


def _order_renamed(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Order with renamed columns, because mapInArrow reads dots as field access."""
    plain = {name: name.translate(_LOOKALIKES) for name in df.columns}
    single = ("id", "group", "clock", "member", "sender", "seq", "time")
    changed: dict[str, Any] = {
        field: plain[name] for field in single if (name := getattr(spec, field)) is not None
    }
    changed["after"] = tuple(plain[name] for name in spec.after)
    if spec.content is not None:
        changed["content"] = tuple(plain[name] for name in spec.content)
    for field in ("position", "waited_for", "missing_causes", "waited_ms", "released_at", "status"):
        changed[field] = f"added_{field}"
    made = order_stream(df.toDF(*plain.values()), replace(spec, **changed))
    return made.toDF(*df.columns, *spec.added)


def order_batch(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Order a batch DataFrame; see `order`. Runs jobs if groups are counted or oversized."""
    spec.check_batch()
    small, giant = split_oversized(df, spec)
    orders = [order_by_group(small, spec)] if small is not None else []
    if giant is not None:
        orders.append(order_oversized(giant.rows, spec, giant.row_count))
    return reduce(DataFrame.union, orders)


def order_by_group(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Order each group in one task; without `group` all rows."""
    kernel_spec = replace(spec, content=None)  # the hashes replace these columns

    def antecede_order_a_group_a_task(
        table: pa.Table, digests: Any, sizes: list[int]
    ) -> Iterator[pa.StructArray]:
        made, _ = order_rows(table, kernel_spec, digests)
        columns = [whole(made.column(name)) for name in spec.added]
        yield from split_array(pa.StructArray.from_arrays(columns, list(spec.added)), sizes)

    added = make_worker_column(df, spec, antecede_order_a_group_a_task, make_added_fields(df, spec))
    made = partition_by_group(df, spec).withColumn(ADDED, added)
    own = [column_of(name) for name in df.columns]
    return made.select(*own, *(F.col(ADDED)[name].alias(name) for name in spec.added))


def _to_names(value: Any) -> tuple[Any, ...]:
    several = isinstance(value, Sequence) and not isinstance(value, str)
    return tuple(value) if several else (value,)
