"""Ids, causes and blanks as column expressions: the definition of `antecede.trace.identities`.

Tests hold both to each other over odd values.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.spark.columns import column_of
from antecede.trace.identities import BLANKS, MAX_EXACT, ROUNDED, UNREADABLE


def is_blank(name: Column) -> Column:
    """Return whether text names nothing: null, empty, or white space alone."""
    return F.coalesce(F.btrim(name, F.lit(BLANKS)) == "", F.lit(True))


def id_of(column: Column, kind: t.DataType) -> Column:
    """Return an id as text, null where a value names nothing or is no id."""
    if isinstance(kind, t.FloatType | t.DoubleType):
        return F.when(is_exact(column), column.cast("bigint").cast("string"))
    text = _text(column, kind)
    return F.when(~is_blank(text), text)


def cause_of(column: Column, kind: t.DataType) -> Column:
    """Return a cause as text, null where it names nothing; what is no id has a name of its own."""
    if not isinstance(kind, t.FloatType | t.DoubleType):
        return id_of(column, kind)
    finite = F.abs(column) < float("inf")
    rounded = finite & (F.abs(column) >= float(MAX_EXACT))
    ending = F.when(rounded, F.lit(ROUNDED)).otherwise(F.lit(UNREADABLE))
    unreadable = F.when(~F.isnan(column), F.concat(column.cast("string"), ending))
    return F.when(is_exact(column), column.cast("bigint").cast("string")).otherwise(unreadable)


def id_column(df: DataFrame, name: str) -> Column:
    """Return the ids in a column as text, null where there is none."""
    return id_of(column_of(name), df.schema[name].dataType)


def is_exact(column: Column) -> Column:
    """Return whether a floating-point number is whole and was not rounded."""
    whole = (F.abs(column) < float(MAX_EXACT)) & (F.floor(column) == column)
    return F.coalesce(whole & ~F.isnan(column), F.lit(False))


def _text(column: Column, kind: t.DataType) -> Column:
    text = column.cast("string")
    plain = not isinstance(kind, t.StringType) or kind == t.StringType()
    return text if plain else F.collate(text, "UTF8_BINARY")
