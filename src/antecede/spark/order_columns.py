"""Hidden columns, output schema and input checks of an ordered DataFrame."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_type

from antecede.errors import InputError
from antecede.spark.columns import spark_schema
from antecede.tables.order import OrderSpec, keys_of, kind_of, list_added_fields, times_of

SHARD = "__antecede_shard"
ROW_HASH = "__antecede_digest"
"""Hidden columns of a stream: the row's shard, and a 64-bit hash of its content."""


def make_output_schema(df: DataFrame, spec: OrderSpec) -> t.StructType:
    """Return the fields of the input, then those of the added columns."""
    return t.StructType([*df.schema.fields, *make_added_fields(df, spec)])


def make_added_fields(df: DataFrame, spec: OrderSpec) -> t.StructType:
    """Return the fields of the added columns, in order."""
    return spark_schema(list_added_fields(spec, kind_of(make_empty_table(df, spec), spec)))


def check_input(df: DataFrame, spec: OrderSpec) -> None:
    """Check columns and types on the driver. Raises InputError."""
    spec.check_columns(df.columns)
    _check_names(df, spec)
    _check_types(df, spec)
    table = make_empty_table(df, spec)  # unsupported types fail here instead of in a worker
    keys_of(table, spec)
    times_of(table, spec)


def _check_names(df: DataFrame, spec: OrderSpec) -> None:
    hidden = [name for name in df.columns if name.lower().startswith("__antecede_")]
    if hidden:
        raise InputError(f"{', '.join(hidden)}: reserved column name; rename the column")
    if str(df.sparkSession.conf.get("spark.sql.caseSensitive")).lower() == "true":
        return
    names = Counter(name.lower() for name in (*df.columns, *spec.added))
    alike = [name for name in (*df.columns, *spec.added) if names[name.lower()] > 1]
    if alike:
        raise InputError(
            f"columns {', '.join(alike)} differ in case only, and Spark ignores case: "
            "rename a column (the added ones with position=, waited_for=, missing_causes=, "
            "waited_ms=, released_at=, status=), "
            "or set spark.sql.caseSensitive"
        )


def make_empty_table(df: DataFrame, spec: OrderSpec) -> pa.Table:
    """Return an empty Arrow table of the columns that a spec reads. Raises InputError."""
    kinds = [(name, get_arrow_type(name, df.schema[name].dataType)) for name in spec.used]
    return pa.schema(kinds).empty_table()


def get_arrow_type(name: str, kind: t.DataType) -> Any:
    """Return the Arrow type of a column. Raises InputError if it has none."""
    type_text = kind.simpleString()
    try:
        return to_arrow_type(kind, timezone="UTC")
    except (PySparkException, pa.ArrowException, ValueError) as error:
        typed = f"; cast it, as with cast('{type_text.replace('void', 'string')}')"
        hint = typed if "void" in type_text else ""
        raise InputError(
            f"column {name}: type {type_text} has no Arrow equivalent: {error}{hint}"
        ) from error


def _check_types(df: DataFrame, spec: OrderSpec) -> None:
    whole = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
    plain = (*whole, t.StringType)
    keys: tuple[Any, ...] = (t.ArrayType, t.MapType, t.StructType, t.NullType)
    for name in (spec.id, spec.member, spec.sender, spec.group):
        if name is not None:
            _reject_if(df, name, isinstance(df.schema[name].dataType, keys), "a plain value")
    for name in spec.after:
        kind = df.schema[name].dataType
        inner = kind.elementType if isinstance(kind, t.ArrayType) else kind
        _reject_if(df, name, isinstance(inner, keys[:3]), "a plain value or an array of them")
    if spec.seq is not None:
        kind = df.schema[spec.seq].dataType
        _reject_if(df, spec.seq, not isinstance(kind, whole), "a whole number")
    if spec.time is not None:
        times = (*whole, t.TimestampType, t.TimestampNTZType, t.DateType)
        kind = df.schema[spec.time].dataType
        hint = f": to_timestamp({spec.time}) reads text" if isinstance(kind, t.StringType) else ""
        wrong = not isinstance(kind, times)
        _reject_if(df, spec.time, wrong, "a timestamp, date or whole number", hint)
    if spec.clock is not None:
        _reject_if(
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


def _reject_if(df: DataFrame, name: str, is_wrong: bool, expected: str, hint: str = "") -> None:
    if is_wrong:
        kind = df.schema[name].dataType.simpleString()
        raise InputError(f"column {name} must be {expected}; it is {kind}{hint}")
