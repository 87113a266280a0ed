"""Transport of Arrow columns of any type through Spark and back.

Types that Spark lacks are sent as integers of the same width or as text.
"""

from __future__ import annotations

from typing import Any

import pyarrow
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_type

from antecede.errors import InputError

pa: Any = pyarrow  # its stubs lack types
_BY_WIDTH = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def to_wire_type(kind: Any) -> Any:
    """Return the Arrow type that represents a type in Spark."""
    types = pa.types
    if types.is_null(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_dictionary(kind):
        return to_wire_type(kind.value_type)
    plain = types.is_signed_integer(kind) or types.is_boolean(kind) or types.is_floating(kind)
    if types.is_primitive(kind) and not (plain and not types.is_float16(kind)):
        return _BY_WIDTH[kind.bit_width]
    return kind


def to_spark_type(name: str, kind: Any) -> t.DataType:
    """Return Spark's type for a column. Raises InputError if there is none."""
    try:
        found = from_arrow_type(to_wire_type(kind))
    except Exception as error:  # PySparkTypeError or an Arrow error
        raise InputError(
            f"column {name}: Spark does not support type {kind}; use --engine local"
        ) from error
    if pa.types.is_nested(kind) and not _is_preserved(kind):
        raise InputError(
            f"column {name}: Spark does not preserve type {kind}; use --engine local, or select "
            "its fields first"
        )
    return found


def _is_preserved(kind: Any) -> bool:
    types = pa.types
    if types.is_list(kind):
        return _is_preserved(kind.value_type)
    if types.is_struct(kind):
        return all(_is_preserved(field.type) for field in kind)
    if types.is_map(kind):
        return _is_preserved(kind.key_type) and _is_preserved(kind.item_type)
    plain = (types.is_string, types.is_signed_integer, types.is_boolean, types.is_binary)
    return any(test(kind) for test in plain) or kind in (pa.float32(), pa.float64())


def to_wire(column: Any) -> Any:
    """Convert an array to its transport type."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return to_wire(column.cast(kind.value_type))
    wanted = to_wire_type(kind)
    if wanted == kind:
        return column
    same = pa.types.is_primitive(kind) and not pa.types.is_null(kind)
    return column.view(wanted) if same else column.cast(wanted)


def from_wire(column: Any, kind: Any) -> Any:
    """Convert an array back to the type it had before `to_wire`."""
    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    if pa.types.is_dictionary(kind):
        return from_wire(column, kind.value_type).cast(kind)
    wanted = to_wire_type(kind)
    column = column.cast(wanted)
    if wanted == kind:
        return column
    return column.view(kind) if pa.types.is_primitive(kind) else column.cast(kind)
