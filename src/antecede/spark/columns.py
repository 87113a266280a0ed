"""Columns by exact names, and digests of them: what several of the functions here need."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

_BLANKS = r"[\x09-\x0d\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
"""What Python strips."""


def column_of(name: str) -> Column:
    """Return the column of exactly that name, whatever dots and backticks are in it."""
    return F.col("`" + name.replace("`", "``") + "`")


def digest(df: DataFrame, names: Sequence[str]) -> Column:
    """Return a 64-bit digest of some columns of each row (`order.digest` makes the same)."""
    return F.xxhash64(*(_hashable(df, name) for name in names))


def exact(df: DataFrame, name: str) -> Column:
    """Return a column that is equal where it is equal to `order`: text by its bytes."""
    kind = df.schema[name].dataType
    plain = not isinstance(kind, t.StringType) or kind == t.StringType()
    return column_of(name) if plain else F.collate(column_of(name), "UTF8_BINARY")


def _hashable(df: DataFrame, name: str) -> Column:
    """Spark does not hash maps and variants; their text will do."""
    kind = df.schema[name].dataType
    text = kind.simpleString()
    column = column_of(name)
    return column.cast("string") if "map<" in text or "variant" in text else column


def bare(column: Column) -> Column:
    """Return text without the blanks around it that Python strips."""
    return F.regexp_replace(column, rf"\A{_BLANKS}+|{_BLANKS}+\z", "")
