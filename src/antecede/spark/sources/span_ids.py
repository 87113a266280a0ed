"""Normal form of trace and span ids as column expressions.

The rules and patterns are those of `antecede.tables.trace.formats.spans_ids`. Each step is a
projection, because one expression would repeat its input hundreds of times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.errors import InputError
from antecede.spark.columns import column_of, is_exact, strip_blanks
from antecede.tables.trace.formats import spans_ids

INTEGER_TYPES = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
FLOAT_TYPES = (t.FloatType, t.DoubleType)
_HALF = 1 << 64
"""One more than the largest number of 16 hexadecimal digits."""
_NUMBER_MARK = "#"
"""Prefix of the digits of a number between two steps."""

NormalizationStep = Callable[[Column], Column]


class IdColumn(NamedTuple):
    """A column of ids of a fixed size."""

    name: str
    size_bytes: int


def add_ids(df: DataFrame, id_columns: Mapping[str, IdColumn]) -> DataFrame:
    """Add columns of ids in normal form, null for zero. Raises InputError for unsupported types."""
    found = {
        new: make_steps(one.name, df.schema[one.name].dataType, one.size_bytes)
        for new, one in id_columns.items()
    }
    df = df.withColumns({new: column_of(one.name) for new, one in id_columns.items()})
    for number in range(max(map(len, found.values()), default=0)):
        df = df.withColumns({new: made[number](column_of(new)) for new, made in found.items()})
    return df


def normalize_ids(array: Column, name: str, kind: t.DataType, size_bytes: int) -> Column:
    """Return a list of ids in normal form; `name` is the column, for errors."""
    for step in make_steps(name, kind, size_bytes):
        array = F.transform(array, step)
    return array


def make_steps(name: str, kind: t.DataType, size_bytes: int) -> list[NormalizationStep]:
    """Return the functions that compute the normal form, to be applied in order."""
    known = (t.StringType, t.BinaryType, t.NullType, *FLOAT_TYPES)
    if not (is_integer(kind) or isinstance(kind, known)):
        raise InputError(
            f"column {name} must be text, bytes or integers; it is {kind.simpleString()}"
        )

    def to_text(value: Column) -> Column:
        if isinstance(kind, INTEGER_TYPES):
            return F.hex(value.cast("long"))
        if isinstance(kind, FLOAT_TYPES):
            return F.when(is_exact(value), F.hex(value.cast("long")))
        if isinstance(kind, t.DecimalType):
            return _decimal_to_hex(value)
        if isinstance(kind, t.NullType):
            return value.cast("string")
        if isinstance(kind, t.BinaryType):
            inner = value.cast("string")
            value = F.when(inner.rlike(_anchor(spans_ids.INNER[size_bytes])), inner).otherwise(
                F.hex(value)
            )
        return strip_or_null(value)

    def decode_text(written: Column) -> Column:
        encoded = ~written.rlike(_anchor(spans_ids.HEX)) & written.rlike(
            _anchor(spans_ids.ENCODED_TEXT)
        )
        inner = F.when(encoded, _decode_base64(written).cast("string"))
        return F.when(inner.rlike(_anchor(spans_ids.INNER[size_bytes])), inner).otherwise(written)

    def to_digits(written: Column) -> Column:
        digits = (
            F.when(written.rlike(_anchor(spans_ids.HEX)), F.regexp_replace(written, r"\A0[xX]", ""))
            .when(written.rlike(_anchor(spans_ids.UUID)), F.regexp_replace(written, "-", ""))
            .when(
                written.rlike(_anchor(spans_ids.BASE64[size_bytes])), F.hex(_decode_base64(written))
            )
        )
        number = F.lower(F.regexp_replace(digits, r"\A0+", ""))
        return F.coalesce(F.concat(F.lit(_NUMBER_MARK), number), F.concat(F.lit("="), written))

    def to_normal(tagged: Column) -> Column:
        length = F.length(tagged) - 1
        number = F.substring(tagged, 2, 1 << 30)
        return (
            F.when(~tagged.startswith(_NUMBER_MARK), number)
            .when(length == 0, F.lit(None))
            .when(length <= spans_ids.DIGITS, F.lpad(number, spans_ids.DIGITS, "0"))
            .when(length <= 2 * size_bytes, F.lpad(number, 2 * size_bytes, "0"))
            .otherwise(number)
        )

    return [to_text, decode_text, to_digits, to_normal]


def is_integer(kind: t.DataType) -> bool:
    """Return whether a type holds integers."""
    return isinstance(kind, INTEGER_TYPES) or (isinstance(kind, t.DecimalType) and kind.scale == 0)


def is_unreadable(column: Column, kind: t.DataType) -> Column:
    """Return whether a value is not an id, although it is neither null nor not-a-number."""
    if not isinstance(kind, FLOAT_TYPES):
        return F.lit(False)
    return column.isNotNull() & ~F.isnan(column) & ~is_exact(column)


def _decimal_to_hex(value: Column) -> Column:
    """Convert a decimal without fraction to hexadecimal; negative numbers have 64 bits."""
    value = value.cast("decimal(38,0)")
    half = F.lit(str(_HALF)).cast("decimal(38,0)")
    low = F.conv(F.pmod(value, half).cast("string"), 10, 16)
    high = F.when(value >= half, F.hex(F.call_function("div", value, half)))
    return F.coalesce(F.concat(high, F.lpad(low, spans_ids.DIGITS, "0")), low)


def strip_or_null(column: Column) -> Column:
    """Return text without surrounding blanks, null for blank text."""
    stripped = strip_blanks(column)
    return F.when(stripped != "", stripped)


def _anchor(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"


def _decode_base64(text: Column) -> Column:
    plain = F.translate(F.regexp_replace(text, "=", ""), "-_", "+/")
    padded = F.concat(plain, F.repeat(F.lit("="), F.pmod(-F.length(plain), F.lit(4))))
    return F.try_to_binary(padded, F.lit("base64"))
