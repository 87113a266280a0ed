"""Columns of the event schema in a DataFrame, and tasks that read one run after another.

Hidden columns are the run as a key (null and empty names are one run), and the row order. The row
order is `file_order`, else a 64-bit hash of the row's schema columns: content alone decides which
of repeated rows is the event, and counts that depend on the row order are not made. Spark sorts
rows by run, on disk if needed; a task holds one run at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.errors import InputError
from antecede.spark.columns import column_of, to_cause, to_id
from antecede.tables.trace import SCHEMA, schema

pc: Any = pyarrow.compute  # its stubs lack array types

RUN_KEY, ROW_ORDER, ROW = "__antecede_run", "__antecede_place", "__antecede_row"
"""Hidden columns: run key, row order, and the original row."""
MAX_RUN_BYTES = 1 << 30
"""Default limit of a run's Arrow data in one task; counting needs four times as much memory."""
TIME_COLUMNS = tuple(name for name in schema.NAMES if name.endswith("_time") or name == "arrival")


def select_events(df: DataFrame, *, with_row: bool = False) -> DataFrame:
    """Return the schema's columns with `RUN_KEY` and `ROW_ORDER`; `with_row`: also `ROW`.

    Stamps become ns. Raises InputError without `id` and for unsupported column types.
    """
    if df.isStreaming:
        raise InputError(
            "this function needs all rows of a run, so it does not support streams: call it on "
            "the stream's output table, or in foreachBatch"
        )
    if "id" not in df.columns:
        raise InputError(f"no column id; there are {', '.join(df.columns)}")
    schema.check_cause_column(df.columns)
    names = [name for name in schema.NAMES if name in df.columns]
    chosen = [_cast_column(df, name).alias(name) for name in names]
    # `column_of`: a name with dots is one column.
    row = [F.struct(*map(column_of, df.columns)).alias(ROW)] if with_row else []
    events = df.select(*chosen, *row)
    key = F.coalesce(F.col("run"), F.lit("")) if "run" in names else F.lit("")
    place = F.col("file_order") if "file_order" in names else F.xxhash64(*names)
    return events.withColumns({RUN_KEY: key, ROW_ORDER: place})


def _cast_column(df: DataFrame, name: str) -> Column:
    kind, wanted = df.schema[name].dataType, str(SCHEMA.field(name).type)
    if ("list" in wanted) != isinstance(kind, t.ArrayType):
        raise InputError(f"column {name} must be {wanted}; it is {kind.simpleString()}")
    if name in TIME_COLUMNS and isinstance(kind, t.TimestampType):
        return F.try_multiply(F.unix_micros(F.col(name)), F.lit(1000))
    inner = kind.elementType if isinstance(kind, t.ArrayType) else kind
    good: tuple[type[t.DataType], ...] = (t.IntegralType, t.NullType)
    if "string" in wanted:
        good = (*good, t.StringType)
    if name in ("id", "causes", "member", "run"):
        good = (*good, t.FloatType, t.DoubleType)
    if not isinstance(inner, good):
        raise InputError(
            f"column {name} must be {wanted}; it is {kind.simpleString()}: cast the column"
        )
    if name in ("id", "member", "run"):
        return to_id(F.col(name), kind)
    if isinstance(inner, t.FloatType | t.DoubleType):
        return F.transform(F.col(name), lambda one: to_cause(one, inner))
    simple = t.StringType() if "string" in wanted else t.LongType()
    return F.col(name).cast(t.ArrayType(simple) if "list" in wanted else simple)


def partition_by_run(events: DataFrame) -> DataFrame:
    """Repartition by run and sort each partition by run and row order."""
    return events.repartition(F.col(RUN_KEY)).sortWithinPartitions(RUN_KEY, ROW_ORDER)


def describe_run_limit(what: str, max_bytes: int) -> str:
    """Return the error text for a run of more than `max_bytes`."""
    return (
        f"{what} is one task per run, limited to {max_bytes:,} bytes of rows (max_run_bytes=); "
        "this run has more: raise the limit if workers have four times as much memory, or split "
        "the run"
    )


def read_runs(
    batches: Iterable[pa.RecordBatch],
    max_size: int,
    error_text: str,
    measure_size: Callable[[pa.RecordBatch], int] = lambda piece: piece.nbytes,
) -> Iterator[tuple[str, pa.Table]]:
    """Yield key and rows of each run of a partition. Raises InputError above `max_size`."""
    name, parts, size = "", list[pa.RecordBatch](), 0
    for batch in batches:
        for key, piece in _split_by_run(batch):
            if parts and key != name:
                yield name, _join_batches(parts)
                parts, size = [], 0
            name = key
            parts.append(piece)
            size += measure_size(piece)
            if size > max_size:
                raise InputError(f"{describe_run(name)}: {error_text}")
    if parts:
        yield name, _join_batches(parts)


def describe_run(key: str) -> str:
    """Return the text for a run by its key."""
    return f"run {key!r}" if key else "the rows without a run"


def _join_batches(parts: list[pa.RecordBatch]) -> pa.Table:
    table: Any = pa.Table.from_batches(parts)
    plain: pa.Table = table.drop_columns([RUN_KEY, ROW_ORDER]).combine_chunks()
    return plain


def _split_by_run(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    if not batch.num_rows:
        return
    runs: Any = pc.run_end_encode(batch.column(RUN_KEY))
    start = 0
    for key, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield key, batch.slice(start, end - start)
        start = end
