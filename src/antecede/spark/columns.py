"""Column expressions for ids, causes, blanks and row hashes.

They follow `antecede.tables.trace.identities`; tests compare both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from antecede.tables.trace import BLANKS, MAX_EXACT, ROUNDED, SCHEMA, UNREADABLE


def spark_schema(fields: Iterable[Any] = SCHEMA) -> t.StructType:
    """Return the Spark schema of Arrow fields, all nullable (default: the event schema)."""
    return t.StructType([t.StructField(f.name, from_arrow_type(f.type)) for f in fields])


def is_blank(name: Column) -> Column:
    """Return whether text is null, empty, or white space only."""
    return F.coalesce(F.btrim(name, F.lit(BLANKS)) == "", F.lit(True))


def to_id(column: Column, kind: t.DataType) -> Column:
    """Return an id as text; null if it is blank or not an id."""
    if isinstance(kind, t.FloatType | t.DoubleType):
        return F.when(is_exact(column), column.cast("bigint").cast("string"))
    text = _to_text(column, kind)
    return F.when(~is_blank(text), text)


def to_cause(column: Column, kind: t.DataType) -> Column:
    """Return a cause as text; null if it is blank. Unreadable numbers get a distinct id."""
    if not isinstance(kind, t.FloatType | t.DoubleType):
        return to_id(column, kind)
    finite = F.abs(column) < float("inf")
    rounded = finite & (F.abs(column) >= float(MAX_EXACT))
    ending = F.when(rounded, F.lit(ROUNDED)).otherwise(F.lit(UNREADABLE))
    unreadable = F.when(~F.isnan(column), F.concat(column.cast("string"), ending))
    return F.when(is_exact(column), column.cast("bigint").cast("string")).otherwise(unreadable)


def get_id_column(df: DataFrame, name: str) -> Column:
    """Return the ids in a column as text; null where there is none."""
    return to_id(column_of(name), df.schema[name].dataType)


def is_exact(column: Column) -> Column:
    """Return whether a floating-point number is an integer that was not rounded."""
    whole = (F.abs(column) < float(MAX_EXACT)) & (F.floor(column) == column)
    return F.coalesce(whole & ~F.isnan(column), F.lit(False))


def _to_text(column: Column, kind: t.DataType) -> Column:
    text = column.cast("string")
    plain = not isinstance(kind, t.StringType) or kind == t.StringType()
    return text if plain else F.collate(text, "UTF8_BINARY")


_BLANKS = r"[\x09-\x0d\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"


def column_of(name: str) -> Column:
    """Return the column with exactly this name, including dots and backticks."""
    return F.col("`" + name.replace("`", "``") + "`")


def hash_columns(df: DataFrame, names: Sequence[str]) -> Column:
    """Return a 64-bit hash of some columns of each row, as `tables.order.row_hash` does."""
    kinds = {name: df.schema[name].dataType for name in names}
    return F.xxhash64(
        *(
            column_of(name) if is_hashable(kind) else column_of(name).cast("string")
            for name, kind in kinds.items()
        )
    )


def is_hashable(kind: t.DataType) -> bool:
    """Return whether Spark can hash a type: it contains no map and no variant."""
    text = kind.simpleString()
    return "map<" not in text and "variant" not in text


def hash_content(df: DataFrame, names: Sequence[str]) -> Column:
    """Return a hash that includes nulls (`tables.order.row_hash.content_digests`)."""
    values: list[Column] = []
    nulls: list[Column] = []
    for name in names:
        column, kind = convert_maps(column_of(name), df.schema[name].dataType)
        values.append(column)
        nulls += mark_nulls(column, kind)
    return F.xxhash64(*values, *nulls)


def convert_maps(column: Column, kind: t.DataType) -> tuple[Column, t.DataType]:
    """Convert maps to lists of entries and variants to text; return value and type."""
    if is_hashable(kind):
        return column, kind
    if isinstance(kind, t.MapType):
        entry = t.StructType().add("key", kind.keyType).add("value", kind.valueType)
        return convert_maps(F.map_entries(column), t.ArrayType(entry))
    if isinstance(kind, t.ArrayType):
        inner = kind.elementType
        made = F.transform(column, lambda one: convert_maps(one, inner)[0])
        return made, t.ArrayType(convert_maps(column, inner)[1])
    if isinstance(kind, t.StructType):
        parts = {f.name: convert_maps(column.getField(f.name), f.dataType) for f in kind}
        fields = F.struct(*(part.alias(name) for name, (part, _) in parts.items()))
        made_kind = t.StructType([t.StructField(name, k) for name, (_, k) in parts.items()])
        return F.when(column.isNotNull(), fields), made_kind
    return column.cast("string"), t.StringType()


def mark_nulls(column: Column, kind: t.DataType) -> list[Column]:
    """Return non-null columns that mark which parts of a value are null."""
    made = [column.isNull()]
    if isinstance(kind, t.StructType):
        for field in kind:
            made += mark_nulls(column.getField(field.name), field.dataType)
    if isinstance(kind, t.ArrayType):
        inner = kind.elementType
        made.append(F.transform(column, lambda one: F.struct(*mark_nulls(one, inner))))
    return made


def to_binary_collation(df: DataFrame, name: str) -> Column:
    """Return a column that Spark compares by bytes, as `order` does."""
    kind = df.schema[name].dataType
    plain = not isinstance(kind, t.StringType) or kind == t.StringType()
    return column_of(name) if plain else F.collate(column_of(name), "UTF8_BINARY")


def strip_blanks(column: Column) -> Column:
    """Strip the blanks that Python strips."""
    return F.regexp_replace(column, rf"\A{_BLANKS}+|{_BLANKS}+\z", "")
