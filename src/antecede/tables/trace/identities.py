"""Definition of ids, causes and blanks: the same in every reader, engine and function.

- Null, not-a-number, and text or bytes that are empty or white space (`BLANKS`) name nothing. A row
  with such an id has no identity; such a cause is no cause.
- Text is a name as it stands: `007` is not `7`, and white space around a name belongs to it.
- A whole number is its digits. A floating-point number that is whole and below 2**53 is that whole
  number: 1.0 is 1.
- Every other floating-point number is no id: fractions, infinities, and numbers from 2**53 on,
  which several whole numbers become. As a cause it is a name that no event has
  (`unreadable_name`), so that the row keeps its place and the cause counts as missing.

`antecede.spark.columns` has the same as column expressions; tests hold both to each other.
"""

from __future__ import annotations

import math
from typing import Any, cast

import pyarrow
import pyarrow.compute

from antecede.tables.trace import text

pa: Any = pyarrow  # its stubs know too few kinds of arrays
pc: Any = pyarrow.compute

BLANKS = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680" + (
    "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
"""White space, as Python's `str.strip` and Arrow know it."""
MAX_EXACT = 2**53
"""Floating-point numbers from here on stand for several whole numbers each."""
ROUNDED, UNREADABLE = " (rounded)", " (not an id)"
"""Endings of names of causes that cannot be ids."""
IDS_ARE = "ids are text, bytes or whole numbers"


def is_blank(value: object) -> bool:
    """Return whether a value is null, not-a-number, or white space alone."""
    if isinstance(value, bytes):
        value = text.decode(value)
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def is_rounded(value: object) -> bool:
    """Return whether a value may stand for other whole numbers than its own."""
    return isinstance(value, float) and math.isfinite(value) and abs(value) >= MAX_EXACT


def name_of(value: object) -> str | None:
    """Return an id as text: text, bytes or a whole number; None for what is blank or no id."""
    if isinstance(value, bytes):
        value = text.decode(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT:
        value = int(value)  # a column of whole numbers that has nulls
    if isinstance(value, str):
        return value if value.strip() else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def unreadable_name(value: object) -> str:
    """Return the name of a cause that cannot be an id; no event has it."""
    return f"{text.shorten(repr(value))}{ROUNDED if is_rounded(value) else UNREADABLE}"


# -- columns ---------------------------------------------------------------------------------------


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def are_blank(texts: Any) -> Any:
    """Return which texts are empty or white space alone [n]; null for null."""
    return pc.or_(pc.equal(pc.binary_length(texts), 0), pc.utf8_is_space(texts))


def without_blanks(texts: Any) -> Any:
    """Return texts [n], null where they are blank."""
    blank = are_blank(texts)
    if not pc.any(blank).as_py():
        return texts
    return pc.if_else(pc.fill_null(blank, False), pa.scalar(None, texts.type), texts)


def whole_numbers(floats: Any) -> tuple[Any, Any]:
    """Return numbers as int64 [n], null where they are no id, and a mask of the unreadable ones
    [n].

    The mask is true for fractions, infinities and rounded numbers, false for null and NaN.
    """
    values = floats.cast(pa.float64())
    there = pc.fill_null(pc.invert(pc.is_nan(values)), False)
    exact = pc.and_(pc.less(pc.abs(values), float(MAX_EXACT)), pc.equal(pc.floor(values), values))
    exact = pc.and_(there, pc.fill_null(exact, False))
    whole = pc.if_else(exact, values, pa.scalar(None, pa.float64())).cast(pa.int64())
    return whole, pc.and_not(there, exact)


def ids_of(column: Any) -> Any:
    """Return the ids in a column as text [n], null for blanks and for what is no id.

    Raise pyarrow.ArrowException for a type that has no text.
    """
    if pa.types.is_floating(column.type):
        return whole_numbers(column)[0].cast(pa.string())
    column = column.cast(pa.string())
    return without_blanks(column)


def causes_of(column: Any) -> Any:
    """Return the causes in a column as text [n], null for blanks; `unreadable_name` for what is no
    id.

    Raise pyarrow.ArrowException for a type that has no text.
    """
    return float_causes(column)[0] if pa.types.is_floating(column.type) else ids_of(column)


def float_causes(floats: Any) -> tuple[Any, bool]:
    """Return floating-point causes as text [n], and whether any is no id."""
    whole, unreadable = whole_numbers(floats)
    texts = whole.cast(pa.string())
    if not pc.any(unreadable).as_py():
        return texts, False
    values = floats.cast(pa.float64()).to_pylist()
    names = [
        unreadable_name(value) if bad else None
        for value, bad in zip(values, unreadable.to_pylist(), strict=True)
    ]
    odd = pa.array(names, pa.string())
    odd = pa.chunked_array([odd]) if isinstance(texts, pyarrow.ChunkedArray) else odd
    return pc.coalesce(texts, odd), True


# -- events of several runs ------------------------------------------------------------------------


def keys(events: pyarrow.Table) -> pyarrow.Array[Any]:
    """Return the identity of each row: `id`, within its `run` where there are several [n]."""
    return in_run(events, flat(events, "id"), None)


def in_run(
    events: pyarrow.Table, names: pyarrow.Array[Any], rows: pyarrow.Array[Any] | None
) -> pyarrow.Array[Any]:
    """Put the run before each name; `rows`: the row of each name (None: its position)."""
    if "run" not in events.column_names or events["run"].null_count == len(events):
        return names
    run: Any = pc.fill_null(flat(events, "run"), "")
    run = run if rows is None else run.take(rows)
    length: Any = pc.utf8_length(run).cast(pa.string())  # so that no two pairs look alike
    return cast("pyarrow.Array[Any]", pc.binary_join_element_wise(length, run, names, ":"))


def flat(events: pyarrow.Table, column: str) -> pyarrow.Array[Any]:
    """Return a column of text as one array, also of a table without chunks."""
    chunks: Any = events[column].combine_chunks()
    empty: pyarrow.Array[Any] = pa.array([], pa.string())
    return empty if isinstance(chunks, pyarrow.ChunkedArray) else cast("Any", chunks)
