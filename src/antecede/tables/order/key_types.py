"""Common form of ids and causes from columns of any type.

An id and its mention as a cause must be equal as values and as text, because a stream compares
text. Columns without a common form are rejected. `tables.trace.identities` defines blanks.

- whole numbers of any width: unchanged ("7"); beside text, their digits
- decimals: the largest scale of all ("7.00")
- floats: whole numbers below 2**53 ("7")
- text and dictionaries: unchanged
- bytes: hexadecimal digits ("ff00")
- timestamps of one kind: the finest unit of all
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.trace import float_causes, is_blank, is_text, whole_numbers, without_blanks

Array: TypeAlias = Any
pa: Any = pyarrow
pc: Any = pyarrow.compute
_UNITS = ("s", "ms", "us", "ns")
_WIDEST = 38
_LONGEST = 2**31 - 1


def plain(column: Array, what: str) -> Array:
    """Return a column of keys in its common form. Raises InputError for other types."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return plain(column.dictionary_decode(), what)
    if _is_bytes(kind):
        text = pa.large_string() if 2 * column.nbytes > _LONGEST else pa.string()
        return pa.array([None if v is None else v.hex() for v in column.to_pylist()], text)
    if types.is_floating(kind):
        values = column.cast(pa.float64())
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
        return pc.add(values, 0.0)  # -0.0 + 0.0 is 0.0
    if _find_family(kind) is None:
        raise InputError(f"{what} has type {kind}: expected numbers, text, bytes or times")
    return column


def normalize_ids(column: Array, what: str) -> Array:
    """Return ids in their common form, null for blanks. Raises InputError as `plain`."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return normalize_ids(column.dictionary_decode(), what)
    if types.is_floating(kind):
        return whole_numbers(column)[0]
    if types.is_string_view(kind):
        column = column.cast(pa.large_string())
    if is_text(column.type):
        return without_blanks(column)
    if _is_bytes(kind):
        blank = pa.array(map(is_blank, column.to_pylist()), pa.bool_())
        return pc.if_else(blank, pa.scalar(None, pa.string()), plain(column, what))
    return plain(column, what)


def normalize_causes(column: Array, what: str) -> Array:
    """Return causes in the common form of ids. Raises InputError as `plain`.

    Floats that are no id become text, so that all are compared as text.
    """
    if pa.types.is_dictionary(column.type):
        return normalize_causes(column.dictionary_decode(), what)
    if pa.types.is_floating(column.type):
        texts, unreadable = float_causes(column)
        return texts if unreadable else normalize_ids(column, what)
    return normalize_ids(column, what)


def cast_to_common(columns: list[Array], names: list[str], types: list[Array]) -> list[Array]:
    """Cast ids and causes, each in its common form, to one type; else raise InputError."""
    kinds = [column.type for column in columns]
    known = [kind for kind in kinds if not pa.types.is_null(kind)]
    if all(kind == kinds[0] for kind in kinds):
        return columns
    families = {_find_family(kind) for kind in known}
    if "decimal" in families and any(map(pa.types.is_floating, types)):
        raise _make_type_error(types, names)
    if families <= {"text", "whole"}:
        return [column.cast(pa.large_string()) for column in columns]
    if families <= {"whole", "decimal"}:
        target = _find_decimal_type(known, types, names)
    elif families == {"time"} and len({bool(kind.tz) for kind in known}) == 1:
        unit = max((kind.unit for kind in known), key=_UNITS.index)
        target = pa.timestamp(unit, known[0].tz)
    elif len(families) == 1 and families != {"time"}:
        target = known[0]
    else:
        raise _make_type_error(types, names)
    try:
        return [column.cast(target) for column in columns]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _make_type_error(types, names) from error


def _find_decimal_type(known: list[Array], kinds: list[Array], names: list[str]) -> Array:
    scale, whole = 0, 0
    for kind in known:
        if pa.types.is_decimal(kind):
            scale = max(scale, kind.scale)
            whole = max(whole, kind.precision - kind.scale)
        else:
            whole = max(whole, 19 if kind.bit_width == 64 else 10)
    if scale + whole > 2 * _WIDEST:
        raise _make_type_error(kinds, names)
    return (pa.decimal128 if scale + whole <= _WIDEST else pa.decimal256)(scale + whole, scale)


def _find_family(kind: Array) -> str | None:
    types = pa.types
    tests = {
        "text": is_text,
        "whole": types.is_integer,
        "decimal": types.is_decimal,
        "float": types.is_floating,
        "time": types.is_timestamp,
        "date": types.is_date,
        "flag": types.is_boolean,
        "none": types.is_null,
    }
    return next((name for name, test in tests.items() if test(kind)), None)


def _is_bytes(kind: Array) -> bool:
    types = pa.types
    tests = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    return any(test(kind) for test in tests)


def _make_type_error(kinds: list[Array], names: list[str]) -> InputError:
    columns = dict.fromkeys(f"{name} is {kind}" for name, kind in zip(names, kinds, strict=True))
    return InputError(
        f"ids and causes can never be equal: {', '.join(columns)}; cast them to one type"
    )
