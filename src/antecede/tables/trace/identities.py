"""Ids, causes and blanks: one definition for all readers and engines.

- Null, NaN, and empty or white text or bytes (`BLANKS`) are blank. A row with a blank id is not an
  event; a blank cause is ignored.
- Text is an id as it is: `007` is not `7`, and surrounding white space belongs to the id.
- A whole number is its digits. A whole floating-point number below 2**53 is that number: 1.0 is 1.
- Other floating-point numbers are not ids: fractions, infinities, and rounded ones of 2**53 or
  more. As a cause they become an id of no event (`unreadable_name`), which counts as missing.

`antecede.spark.columns` implements the same rules as column expressions; tests compare both.
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
"""White space of Python's `str.strip` and of Arrow."""
MAX_EXACT = 2**53
"""Floating-point numbers of at least this size are rounded."""
ROUNDED, UNREADABLE = " (rounded)", " (not an id)"
"""Suffixes of causes that are not ids."""
ID_RULE = "ids are text, bytes or whole numbers"


def is_blank(value: object) -> bool:
    """Return whether a value is null, NaN, empty or white space."""
    if isinstance(value, bytes):
        value = text.decode(value)
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def is_rounded(value: object) -> bool:
    """Return whether a value is a floating-point number of 2**53 or more, thus rounded."""
    return isinstance(value, float) and math.isfinite(value) and abs(value) >= MAX_EXACT


def name_of(value: object) -> str | None:
    """Return a text, bytes or whole number as an id; None for blanks and other values."""
    if isinstance(value, bytes):
        value = text.decode(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_EXACT:
        value = int(value)  # a column of whole numbers that has nulls
    if isinstance(value, str):
        return value if value.strip() else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def unreadable_name(value: object) -> str:
    """Return the text for a cause that is not an id; no event has this id."""
    return f"{text.shorten(repr(value))}{ROUNDED if is_rounded(value) else UNREADABLE}"


# -- columns ---------------------------------------------------------------------------------------


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is a string type."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def are_blank(texts: Any) -> Any:
    """Return a mask of texts that are empty or white space [n]; null for null."""
    return pc.or_(pc.equal(pc.binary_length(texts), 0), pc.utf8_is_space(texts))


def without_blanks(texts: Any) -> Any:
    """Return texts [n] with null for blanks."""
    blank = are_blank(texts)
    if not pc.any(blank).as_py():
        return texts
    return pc.if_else(pc.fill_null(blank, False), pa.scalar(None, texts.type), texts)


def whole_numbers(floats: Any) -> tuple[Any, Any]:
    """Return numbers as int64 [n], null where they are not ids, and a mask of unreadable ones [n].

    The mask is true for fractions, infinities and rounded numbers, false for null and NaN.
    """
    values = floats.cast(pa.float64())
    there = pc.fill_null(pc.invert(pc.is_nan(values)), False)
    exact = pc.and_(pc.less(pc.abs(values), float(MAX_EXACT)), pc.equal(pc.floor(values), values))
    exact = pc.and_(there, pc.fill_null(exact, False))
    whole = pc.if_else(exact, values, pa.scalar(None, pa.float64())).cast(pa.int64())
    return whole, pc.and_not(there, exact)


def ids_of(column: Any) -> Any:
    """Return ids as text [n], null if blank or unreadable. Raise pyarrow.ArrowException."""
    if pa.types.is_floating(column.type):
        return whole_numbers(column)[0].cast(pa.string())
    column = column.cast(pa.string())
    return without_blanks(column)


def column_to_causes(column: Any) -> Any:
    """Return causes as text [n], null if blank, `unreadable_name` if no id; errors as `ids_of`."""
    return float_causes(column)[0] if pa.types.is_floating(column.type) else ids_of(column)


def float_causes(floats: Any) -> tuple[Any, bool]:
    """Return floating-point causes as text [n], and whether any is not an id."""
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
    """Return the unique key of each row [n]: `id`, with its `run` if the table has runs."""
    return in_run(events, flatten_column(events, "id"), None)


def in_run(
    events: pyarrow.Table, names: pyarrow.Array[Any], rows: pyarrow.Array[Any] | None
) -> pyarrow.Array[Any]:
    """Prefix each name with its run; `rows`: the row of each name (None: its index)."""
    if "run" not in events.column_names or events["run"].null_count == len(events):
        return names
    run: Any = pc.fill_null(flatten_column(events, "run"), "")
    run = run if rows is None else run.take(rows)
    length: Any = pc.utf8_length(run).cast(pa.string())  # makes the keys unambiguous
    return cast("pyarrow.Array[Any]", pc.binary_join_element_wise(length, run, names, ":"))


def flatten_column(events: pyarrow.Table, column: str) -> pyarrow.Array[Any]:
    """Return a text column as one array, also if the table has no chunks."""
    chunks: Any = events[column].combine_chunks()
    empty: pyarrow.Array[Any] = pa.array([], pa.string())
    return empty if isinstance(chunks, pyarrow.ChunkedArray) else cast("Any", chunks)
