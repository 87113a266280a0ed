"""`order`: causal order as a DataFrame -> DataFrame function.

Theory of operation
-------------------
Batch: the rows of a group meet in one partition (a hash of the group column). A scalar-iterator
Arrow UDF takes the columns that the spec reads, and two digests of each row made in the JVM, to a
Python worker; there the partition becomes one Arrow table, and
`antecede.tables.order.table.order_rows`, the same function that orders a local table, works out the
added columns. All other columns stay in the JVM, in a queue that spills to disk: so a worker's
memory follows the control columns alone, Spark reads no column that nobody asks for, and
payloads may be of any type. A partition holds many groups at once: one call a partition is several
times faster than one call a group. The result does not depend on the number of partitions, on the
order of rows or on how they are cut into Arrow chunks.

A worker's memory must hold the control columns of its partition. Groups of more rows than fit one
(`giants` counts them), and all rows where there is no group, go to a fixpoint over joins instead
(`fixpoint`), which says the same of every row and holds no group in one process.

Stream: `antecede.spark.streams.ordering.order_stream`, same spec, same columns.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.spark.columns import column_of, content_digest
from antecede.spark.fixpoint.ordering import order_giant
from antecede.spark.fixpoint.oversized import parted
from antecede.spark.order_columns import (
    DIGEST,
    added_fields,
    check,
)
from antecede.spark.workers import ready_workers
from antecede.tables.order import (
    GiantPolicy,
    MissingPolicy,
    OrderSpec,
    OverHeld,
    TimeUnit,
    order_rows,
    whole,
)

_LOOKALIKES = str.maketrans({".": "\u2024", "`": "\u02cb"})
ADDED = "__antecede_added"
"""Hidden column of a batch: all that is added, as one struct."""


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
    missing: MissingPolicy = "hold",
    patience: str | dt.timedelta = "10 minutes",
    remember: str | dt.timedelta | None = None,
    max_held: int | None = 10_000_000,
    over_held: OverHeld = "fail",
    checkpoint: str | None = None,
    metrics: str | None = "antecede",
    shards: int | None = None,
    content: Sequence[str] | None = None,
    giant: GiantPolicy = "auto",
    rows_a_task: int = 4_000_000,
    position: str = "position",
    waited_for: str = "waited_for",
    missing_causes: str = "missing",
    waited_ms: str = "waited_ms",
    released_at: str = "released_at",
    status: str = "antecede_status",
) -> Any:  # a DataFrame, or a function from one to another
    """Add causal order to a DataFrame, batch or stream; without one, return the function that does.

    >>> import antecede.spark
    >>> events = spark.createDataFrame([("b", "a"), ("a", None)], "id string, after string")
    >>> antecede.spark.order(events, id="id", after="after").select("position", "id").orderBy(
    ...     "position"
    ... ).show()
    +--------+---+
    |position| id|
    +--------+---+
    |       0|  a|
    |       1|  b|
    +--------+---+
    <BLANKLINE>

    `df.transform(order(id="id", after="after"))` is the same. Every input row comes out once, with
    its columns and `position` (long, from 0 within its group; null for a row set aside),
    `waited_for` (array of strings: causes that came out later than the row came), `missing` (array
    of strings: causes that never came), `waited_ms` (double, milliseconds until they had come out;
    null without times), `released_at` (when they had, in the type of `time`; null without times; in
    a stream never before what left in earlier micro-batches, so that a watermark on it drops
    nothing) and `antecede_status` (see
    `antecede.tables.order.spec.Status`). Rows come in no particular order: sort by group and
    position. The other arguments are those of `OrderSpec`.

    A group of a batch goes to one task up to `rows_a_task` rows, above to a fixpoint over joins.
    So `transform` runs a job that counts the rows of each group, unless Spark estimates all rows
    together at 64 MiB or less, and the rounds of the fixpoint where a group is giant. Of a batch it
    warns with `NoEvidenceWarning` where no row has a cause, clock or number (a job that ends at the
    first that has; causes that are nowhere have a status). "never" as `giant` runs nothing before
    the result is used; "always" takes the fixpoint for all groups. In Declarative Pipelines, which
    allow no job there, "auto" is "never".

    Columns are named by text, not by `Column`; names with dots are whole names. Raises InputError
    here when the columns do not make up one way to tell causes, and in `transform` when a column
    is absent or there twice, when its type cannot serve, or when ids and causes are of types that
    can never be equal. Raises SetupError there when Spark's Python workers lack antecede.
    """
    spec = OrderSpec(
        id=id,
        after=_names(after),
        group=group,
        clock=clock,
        member=member,
        sender=sender,
        seq=seq,
        first_seq=first_seq,
        time=time,
        time_unit=time_unit,
        missing=missing,
        patience=patience,
        remember=remember,
        max_held=max_held,
        over_held=over_held,
        checkpoint=checkpoint,
        metrics=metrics,
        shards=shards,
        content=None if content is None else _names(content),
        giant=giant,
        rows_a_task=rows_a_task,
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
            f"column {spec.time} ({kind.simpleString()}) holds plain numbers, so "
            f"{spec.waited_ms} and {spec.released_at} are null: give time_unit= (s, ms, us or ns) "
            "if they are times",
            stacklevel=3,
        )


def order_with(spec: OrderSpec, *, warn: bool = True) -> Callable[[DataFrame], DataFrame]:
    """Return the function for `DataFrame.transform` that orders by a ready spec.

    `warn`: look for evidence of causality in a batch, and warn where there is none.
    """

    def transform(df: DataFrame) -> DataFrame:
        check(df, spec)
        ready_workers(df.sparkSession)
        if not df.isStreaming:
            if warn and spec.giant != "never":
                from antecede.spark.evidence import warn_without_causes  # it builds on this one

                warn_without_causes(df, spec)
            return order_batch(df, spec)
        spec.check_stream()
        if any("." in name or "`" in name for name in df.columns):
            return _under_other_names(df, spec)
        return _streamed(df, spec)

    return transform


def _streamed(df: DataFrame, spec: OrderSpec) -> DataFrame:
    from antecede.spark.streams.ordering import order_stream

    return order_stream(df, spec)


def _under_other_names(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Order with other names and give the old ones back: mapInArrow takes dots for fields.

    A column has the same name at every start, as the state knows its rows by it.
    """
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
    made = _streamed(df.toDF(*plain.values()), replace(spec, **changed))
    return made.toDF(*df.columns, *spec.added)


def order_batch(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Order a batch DataFrame; see `order`. Runs jobs where groups are counted, or are giant."""
    spec.check_batch()
    small, giant = parted(df, spec)
    orders = [one_task_a_group(small, spec)] if small is not None else []
    if giant is not None:
        orders.append(order_giant(giant.rows, spec, giant.count))
    return reduce(DataFrame.union, orders)


def one_task_a_group(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Order the rows of each group in one task; without `group` all rows."""
    if spec.group is None:
        placed = df.repartition(1)
    elif spec.shards is None:
        placed = df.repartition(column_of(spec.group))
    else:
        placed = df.repartition(spec.shards, column_of(spec.group))
    digests = (content_digest(df, spec.content_of(df.columns)), content_digest(df, spec.used))
    made = placed.withColumn(ADDED, _ordering_udf(df, spec)(*map(column_of, spec.used), *digests))
    own = [column_of(name) for name in df.columns]
    return made.select(*own, *(F.col(ADDED)[name].alias(name) for name in spec.added))


def _ordering_udf(df: DataFrame, spec: OrderSpec) -> Any:
    """Return the function of columns that a Python worker runs over a whole partition.

    Of a partition each row depends on all others, which Spark knows of no column function: so it
    must neither push filters below this one nor call it twice (`asNondeterministic`).
    """
    told = replace(spec, content=None)  # the digest tells, and the columns stay in the JVM

    # Spark evaluates these hints, and pa.Array takes no parameters at run time.
    # The plan shows the name.
    def antecede_order_a_group_a_task(
        batches: Iterator[tuple[pa.Array, ...]],  # type: ignore[type-arg]
    ) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        names = [*spec.used, *(f"{DIGEST}{k}" for k in range(2))]
        parts = [pa.RecordBatch.from_arrays(list(columns), names) for columns in batches]
        if not parts:
            return
        table = pa.Table.from_batches(parts)
        sizes = [part.num_rows for part in parts]
        del parts
        both = [table.column(name).to_numpy() for name in names[-2:]]
        made, _ = order_rows(table.select(names[:-2]), told, np.stack(both, axis=1))
        columns = [whole(made.column(name)) for name in spec.added]
        done = 0
        for size in sizes:
            pieces = [column.slice(done, size) for column in columns]
            yield pa.StructArray.from_arrays(pieces, list(spec.added))
            done += size

    functions: Any = F  # the stubs do not know arrow_udf
    made = t.StructType(added_fields(df, spec))
    return functions.arrow_udf(antecede_order_a_group_a_task, made).asNondeterministic()


def _names(given: Any) -> tuple[Any, ...]:
    several = isinstance(given, Sequence) and not isinstance(given, str)
    return tuple(given) if several else (given,)
