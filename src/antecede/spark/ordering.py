"""`order`: causal order as a DataFrame -> DataFrame function.

Theory of operation
-------------------
Batch: the rows of a group meet in one partition (a hash of the group column), the partition
becomes one Arrow table in a Python worker, and `antecede.order.table.order_table`, the same
function that orders a local table, adds the columns. A partition holds many groups at once:
one call a partition is several times faster than one call a group. The result does not depend
on the number of partitions, on the order of rows or on how they are cut into Arrow chunks.

A worker's memory must hold its partition. Without `group` everything is one group and ONE task:
give a group where causes never cross it.

Stream: `antecede.spark.stream.order_stream`, same spec, same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from antecede.errors import InputError
from antecede.order.spec import MissingPolicy, OrderSpec, TimeUnit
from antecede.order.table import order_table


def order(
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
    patience: str = "10 minutes",
    remember: str | None = None,
    shards: int | None = None,
    content: Sequence[str] | None = None,
    position: str = "position",
    waited_for: str = "waited_for",
    waited_ms: str = "waited_ms",
    status: str = "antecede_status",
) -> Callable[[DataFrame], DataFrame]:
    """Return a function for `DataFrame.transform` that adds causal order.

    Every input row comes out once, with its columns and `position` (long, from 0 within its
    group; null for a row set aside), `waited_for` (array of strings: causes not released when
    the row came, or nowhere), `waited_ms` (double, milliseconds until they were; null without
    times) and `antecede_status` (see `antecede.order.spec.Status`). Rows come in no particular
    order: sort by group and position. The other arguments are those of `OrderSpec`.

    Raises InputError here when the columns do not make up one way to tell causes, and in
    `transform` when a column is absent or its type cannot serve.
    """
    spec = OrderSpec(
        id=id,
        after=(after,) if isinstance(after, str) else tuple(after),
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
        shards=shards,
        content=None if content is None else tuple(content),
        position=position,
        waited_for=waited_for,
        waited_ms=waited_ms,
        status=status,
    )
    return ordering(spec)


def ordering(spec: OrderSpec) -> Callable[[DataFrame], DataFrame]:
    """Return the function for `DataFrame.transform` that orders by a ready spec."""

    def transform(df: DataFrame) -> DataFrame:
        spec.check_columns(df.columns)
        _check_types(df, spec)
        if df.isStreaming:
            from antecede.spark.stream import order_stream

            return order_stream(df, spec)
        return order_batch(df, spec)

    return transform


def order_batch(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Order a batch DataFrame; see `order`."""
    if spec.group is None:
        placed = df.repartition(1)
    elif spec.shards is None:
        placed = df.repartition(df[spec.group])
    else:
        placed = df.repartition(spec.shards, df[spec.group])
    return placed.mapInArrow(partition_function(spec), output_schema(df, spec))


def output_schema(df: DataFrame, spec: OrderSpec) -> t.StructType:
    """Return the schema of the ordered frame: the input's, then the four added columns."""
    kinds = (t.LongType(), t.ArrayType(t.StringType()), t.DoubleType(), t.StringType())
    more = [t.StructField(name, kind) for name, kind in zip(spec.added, kinds, strict=True)]
    return t.StructType([*df.schema.fields, *more])


def partition_function(
    spec: OrderSpec,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that a Python worker runs on the chunks of one partition."""

    def run(chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batches = list(chunks)
        if batches:
            yield from order_table(pa.Table.from_batches(batches), spec).to_batches()

    return run


def _check_types(df: DataFrame, spec: OrderSpec) -> None:
    """Refuse on the driver what would fail in a worker with a long trace."""
    whole = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
    plain = (*whole, t.StringType)
    keys: tuple[Any, ...] = (t.ArrayType, t.MapType, t.StructType, t.NullType)
    for name in (spec.id, spec.member, spec.sender, spec.group):
        if name is not None:
            _refuse(df, name, isinstance(df.schema[name].dataType, keys), "a plain value")
    for name in spec.after:
        kind = df.schema[name].dataType
        inner = kind.elementType if isinstance(kind, t.ArrayType) else kind
        _refuse(df, name, isinstance(inner, keys[:3]), "a plain value or an array of them")
    if spec.seq is not None:
        kind = df.schema[spec.seq].dataType
        _refuse(df, spec.seq, not isinstance(kind, whole), "a whole number")
    if spec.time is not None:
        times = (*whole, t.TimestampType, t.TimestampNTZType, t.DateType)
        kind = df.schema[spec.time].dataType
        _refuse(df, spec.time, not isinstance(kind, times), "a timestamp, date or whole number")
    if spec.clock is not None:
        _refuse(
            df,
            spec.clock,
            not _is_clock(df.schema[spec.clock].dataType, whole, plain),
            "a map<member, number>, struct<array, array of numbers> or array of numbers",
        )


def _is_clock(kind: t.DataType, whole: tuple[Any, ...], plain: tuple[Any, ...]) -> bool:
    if isinstance(kind, t.MapType):
        return isinstance(kind.keyType, plain) and isinstance(kind.valueType, whole)
    if isinstance(kind, t.StructType) and len(kind.fields) == 2:
        members, counts = (field.dataType for field in kind.fields)
        return (
            isinstance(members, t.ArrayType)
            and isinstance(counts, t.ArrayType)
            and isinstance(members.elementType, plain)
            and isinstance(counts.elementType, whole)
        )
    return isinstance(kind, t.ArrayType) and isinstance(kind.elementType, whole)


def _refuse(df: DataFrame, name: str, wrong: bool, wanted: str) -> None:
    if wrong:
        kind = df.schema[name].dataType.simpleString()
        raise InputError(f"column {name} must be {wanted}; it is {kind}")
