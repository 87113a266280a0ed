"""Normal form of trace and span ids as column expressions.

The rule, and its patterns, are those of `antecede.tables.trace.formats.spans_ids`. It is a row of
steps, each a projection of its own: one expression would repeat its input hundreds of times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.errors import InputError
from antecede.spark.columns import bare, column_of, is_exact
from antecede.tables.trace.formats import spans_ids

NUMBERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType)
FLOATS = (t.FloatType, t.DoubleType)
_HALF = 1 << 64
"""One more than the largest number of 16 hexadecimal digits."""
_NUMBER = "#"
"""Before the digits of a number, between two steps."""

Step = Callable[[Column], Column]


class Id(NamedTuple):
    """A column of ids of some bytes."""

    name: str
    size: int


def with_ids(df: DataFrame, wanted: Mapping[str, Id]) -> DataFrame:
    """Return a table with further columns: ids in their normal form, null for none and zero.

    Raises InputError for columns of types that hold no ids.
    """
    found = {
        new: steps(one.name, df.schema[one.name].dataType, one.size) for new, one in wanted.items()
    }
    df = df.withColumns({new: column_of(one.name) for new, one in wanted.items()})
    for number in range(max(map(len, found.values()), default=0)):
        df = df.withColumns({new: made[number](column_of(new)) for new, made in found.items()})
    return df


def ids_in(array: Column, name: str, kind: t.DataType, size: int) -> Column:
    """Return a list of ids in their normal form; `name`: of the column, for errors."""
    for step in steps(name, kind, size):
        array = F.transform(array, step)
    return array


def steps(name: str, kind: t.DataType, size: int) -> list[Step]:
    """Return the functions that make the normal form one after the other."""
    known = (t.StringType, t.BinaryType, t.NullType, *FLOATS)
    if not (is_whole(kind) or isinstance(kind, known)):
        raise InputError(
            f"column {name} must be text, bytes or integers; it is {kind.simpleString()}"
        )

    def to_text(value: Column) -> Column:
        if isinstance(kind, NUMBERS):
            return F.hex(value.cast("long"))
        if isinstance(kind, FLOATS):
            return F.when(is_exact(value), F.hex(value.cast("long")))
        if isinstance(kind, t.DecimalType):
            return _digits_of(value)
        if isinstance(kind, t.NullType):
            return value.cast("string")
        if isinstance(kind, t.BinaryType):
            inner = value.cast("string")
            value = F.when(inner.rlike(_whole(spans_ids.INNER[size])), inner).otherwise(
                F.hex(value)
            )
        return bare_or_null(value)

    def decode_text(written: Column) -> Column:
        encoded = ~written.rlike(_whole(spans_ids.HEX)) & written.rlike(
            _whole(spans_ids.ENCODED_TEXT)
        )
        inner = F.when(encoded, _bytes_of(written).cast("string"))
        return F.when(inner.rlike(_whole(spans_ids.INNER[size])), inner).otherwise(written)

    def to_digits(written: Column) -> Column:
        digits = (
            F.when(written.rlike(_whole(spans_ids.HEX)), F.regexp_replace(written, r"\A0[xX]", ""))
            .when(written.rlike(_whole(spans_ids.UUID)), F.regexp_replace(written, "-", ""))
            .when(written.rlike(_whole(spans_ids.BASE64[size])), F.hex(_bytes_of(written)))
        )
        number = F.lower(F.regexp_replace(digits, r"\A0+", ""))
        return F.coalesce(F.concat(F.lit(_NUMBER), number), F.concat(F.lit("="), written))

    def to_normal(tagged: Column) -> Column:
        length = F.length(tagged) - 1
        number = F.substring(tagged, 2, 1 << 30)
        return (
            F.when(~tagged.startswith(_NUMBER), number)
            .when(length == 0, F.lit(None))
            .when(length <= spans_ids.DIGITS, F.lpad(number, spans_ids.DIGITS, "0"))
            .when(length <= 2 * size, F.lpad(number, 2 * size, "0"))
            .otherwise(number)
        )

    return [to_text, decode_text, to_digits, to_normal]


def is_whole(kind: t.DataType) -> bool:
    """Return whether a column holds whole numbers."""
    return isinstance(kind, NUMBERS) or (isinstance(kind, t.DecimalType) and kind.scale == 0)


def is_unreadable(column: Column, kind: t.DataType) -> Column:
    """Return whether a value is no id although it is neither null nor not-a-number."""
    if not isinstance(kind, FLOATS):
        return F.lit(False)
    return column.isNotNull() & ~F.isnan(column) & ~is_exact(column)


def _digits_of(value: Column) -> Column:
    """Return a decimal without fraction in hexadecimal; negative ones are of 64 bits."""
    value = value.cast("decimal(38,0)")
    half = F.lit(str(_HALF)).cast("decimal(38,0)")
    low = F.conv(F.pmod(value, half).cast("string"), 10, 16)
    high = F.when(value >= half, F.hex(F.call_function("div", value, half)))
    return F.coalesce(F.concat(high, F.lpad(low, spans_ids.DIGITS, "0")), low)


def bare_or_null(column: Column) -> Column:
    """Return text without blanks around it, null for blanks alone."""
    stripped = bare(column)
    return F.when(stripped != "", stripped)


def _whole(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"


def _bytes_of(written: Column) -> Column:
    """Return what base64 holds, null if it is none."""
    plain = F.translate(F.regexp_replace(written, "=", ""), "-_", "+/")
    padded = F.concat(plain, F.repeat(F.lit("="), F.pmod(-F.length(plain), F.lit(4))))
    return F.try_to_binary(padded, F.lit("base64"))
