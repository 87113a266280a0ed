"""Columns computed by a Python worker from a whole partition that holds complete groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.errors import InputError
from antecede.spark.columns import column_of, hash_content
from antecede.spark.order_columns import ROW_HASH
from antecede.tables.order import OrderSpec

PartitionFunction = Callable[[pa.Table, Any, list[int]], Iterable[Any]]


def partition_by_group(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Repartition so that each group is in one partition; without `group` all rows are."""
    if spec.group is None:
        return df.repartition(1)
    if spec.shards is None:
        return df.repartition(column_of(spec.group))
    return df.repartition(spec.shards, column_of(spec.group))


def make_worker_column(
    df: DataFrame,
    spec: OrderSpec,
    work: PartitionFunction,
    kind: t.DataType,
    extra_columns: Mapping[str, Column] | None = None,
) -> Column:
    """Return the column of type `kind` that `work` computes from a whole partition.

    `work` receives the columns of the spec and `extra_columns`, two hashes of each row, shape
    (rows, 2), and the batch sizes. It yields one array for each size. `asNondeterministic` keeps
    Spark from pushing filters below the column and from computing it twice.
    """
    extra = dict(extra_columns or {})
    columns = [*spec.used, *extra]
    names = [*columns, f"{ROW_HASH}0", f"{ROW_HASH}1"]

    # Spark evaluates these hints, and pa.Array takes no parameters at run time.
    def run(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        parts = [pa.RecordBatch.from_arrays(list(arrays), names) for arrays in batches]
        if not parts:
            return
        sizes = [part.num_rows for part in parts]
        table = pa.Table.from_batches(parts)
        parts.clear()
        digests = np.stack([table.column(name).to_numpy() for name in names[-2:]], axis=1)
        yield from work(table.select(columns), digests, sizes)

    run.__name__ = work.__name__
    functions: Any = F  # the stubs lack arrow_udf
    given = [*map(column_of, spec.used), *extra.values(), *_hash_rows(df, spec)]
    column: Column = functions.arrow_udf(run, kind).asNondeterministic()(*given)
    return column


def split_array(array: Any, sizes: list[int]) -> Iterator[Any]:
    """Yield consecutive slices of an array with these sizes."""
    for end, size in zip(np.cumsum(sizes), sizes, strict=True):
        yield array.slice(end - size, size)


def _hash_rows(df: DataFrame, spec: OrderSpec) -> list[Column]:
    if is_analyzed(df):
        return [hash_content(df, spec.content_of(df.columns)), hash_content(df, spec.used)]
    if spec.content is not None:
        content = _hash_unresolved(spec.content)
    elif spec.time is None:  # JSON includes nulls, which the hash ignores
        content = F.xxhash64("*", F.to_json(F.struct("*"), {"ignoreNullFields": "false"}))
    else:
        raise InputError(
            "in a declarative pipeline the columns are unknown: give content=, the columns that "
            "distinguish duplicates from conflicts"
        )
    return [content, _hash_unresolved(spec.used)]


def _hash_unresolved(names: Sequence[str]) -> Column:
    """Return a hash of columns of unknown types that includes which of them are null."""
    columns = [column_of(name) for name in names]
    return F.xxhash64(*columns, *(column.isNull() for column in columns))


def is_analyzed(df: DataFrame) -> bool:
    """Return whether Spark can list the columns: not in a declarative pipeline."""
    try:
        df.columns  # noqa: B018
        return True
    except AnalysisException as error:
        if error.getCondition() == "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION":
            return False
        raise
