"""Extra columns of a user's table as texts, for a page."""

from __future__ import annotations

from typing import Any, Final

import pyarrow
import pyarrow.compute

from antecede.formatting import pluralize
from antecede.tables.view.binary_block import Array, encode_texts

pa: Any = pyarrow
pc: Any = pyarrow.compute
MAX_COLUMNS: Final = 40
MAX_CELL_LENGTH: Final = 1000  # characters of a cell
MAX_BYTES: Final = 64 << 20  # of all texts of a page


def as_text(column: Any) -> Any:
    """Return a column as shortened texts: bytes in hexadecimal, lists in Spark's notation."""
    plain: Any = column
    if pa.types.is_dictionary(column.type):
        plain = column.cast(column.type.value_type)
    binary = pa.types.is_binary(plain.type) or pa.types.is_large_binary(plain.type)
    if binary or pa.types.is_nested(plain.type):
        values = (_format_cell(value) for value in plain.to_pylist())
        plain = pa.chunked_array([pa.array(values, pa.string())])
    try:
        found = plain.cast(pa.string())
    except pa.ArrowException:
        found = pa.chunked_array([pa.array(map(_format_cell, plain.to_pylist()), pa.string())])
    long = pc.fill_null(pc.greater(pc.utf8_length(found), MAX_CELL_LENGTH), False)
    if not pc.any(long).as_py():
        return found
    cut = pc.utf8_slice_codeunits(found, 0, MAX_CELL_LENGTH - 3)
    return pc.if_else(long, pc.binary_join_element_wise(cut, "...", ""), found)


def _format_cell(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list):  # Spark's notation
        return f"[{', '.join('null' if one is None else str(one) for one in value)}]"
    return value.hex() if isinstance(value, bytes) else str(value)


def build_column_arrays(
    extra: pyarrow.Table, notes: list[str]
) -> tuple[list[str], dict[str, Array]]:
    """Return names of extra columns, and arrays "own.0", "own.1", ...; note those beyond limits."""
    names: list[str] = []
    arrays: dict[str, Array] = {}
    size = 0
    for name in extra.column_names:
        encoded = encode_texts(f"own.{len(names)}", as_text(extra[name]))
        size += sum(one.nbytes for one in encoded.values())
        if len(names) == MAX_COLUMNS or size > MAX_BYTES:
            left = pluralize(len(extra.column_names) - len(names), "column")
            notes.append(f"{left} of the table omitted: {name} and later ones")
            break
        names.append(name)
        arrays |= encoded
    return names, arrays
