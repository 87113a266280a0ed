"""Vectorized parsers of columns, for cells that Arrow parses like `columns.Columns`.

Each function returns the values and a mask of the cells left to `Columns`, or None for unsupported
types. `Columns` is the reference; tests compare both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.compute

from antecede.tables.trace.identities import is_text, whole_numbers, without_blanks
from antecede.tables.trace.text import parse_nanoseconds
from antecede.tables.trace.user_tables.blocks import normalize_column

pa: Any = pyarrow  # its stubs know too few of the types that meet here
pc: Any = pyarrow.compute
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
TEXTS = pa.list_(pa.string())
COUNTS = pa.list_(pa.int64())
ARROW_ERRORS = (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError)
_WHOLE = r"\A-?[0-9]{1,18}\z"
_DAY = r"(1[7-9]|2[01])[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_MOMENT = r"\A" + _DAY + r"[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z?\z"
_MIN, _MAX = -(2**63), 2**63 - 1


class ParsedCells(NamedTuple):
    """Values of a column [n], null for blanks, and a mask of cells left to `Columns` [n]."""

    values: Any
    unparsed: Bools


class ParsedTimes(NamedTuple):
    """Times of a column in ns [n], and masks of its cells [n]."""

    values: Any
    unparsed: Bools
    unreadable: Bools
    has_numbers: bool
    """True if any cell is a number, whose unit matters."""


def make_false_mask(n: int) -> Bools:
    """Return a mask that is False everywhere [n]."""
    return np.zeros(n, np.bool_)


def to_mask(values: Any) -> Bools:
    """Return Arrow booleans as a NumPy mask; null is False."""
    found: Bools = np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), np.bool_)
    return found


def find_valid(values: Any) -> Bools:
    """Return a mask of the cells that are not null."""
    found: Bools = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return found


def parse_names(cells: Any) -> ParsedCells | None:
    """Return names as text, null for blanks and unreadable numbers."""
    kind = cells.type
    types = pa.types
    if types.is_null(kind):
        return ParsedCells(pa.nulls(len(cells), pa.string()), make_false_mask(len(cells)))
    if types.is_dictionary(kind) and is_text(kind.value_type):
        return parse_names(cells.cast(kind.value_type))
    if types.is_timestamp(kind):
        return ParsedCells(normalize_column(cells), make_false_mask(len(cells)))
    if is_text(kind):
        return ParsedCells(without_blanks(_to_text(cells)), make_false_mask(len(cells)))
    if types.is_integer(kind):
        return ParsedCells(cells.cast(pa.string()), make_false_mask(len(cells)))
    if types.is_floating(kind):
        whole, unreadable = whole_numbers(cells)
        return ParsedCells(whole.cast(pa.string()), to_mask(unreadable))
    return None


def parse_numbers(cells: Any) -> ParsedCells | None:
    """Return 64-bit integers."""
    kind = cells.type
    types = pa.types
    if types.is_null(kind):
        return ParsedCells(pa.nulls(len(cells), pa.int64()), make_false_mask(len(cells)))
    if types.is_uint64(kind):
        left = to_mask(pc.greater(cells, pa.scalar(_MAX, pa.uint64())))
        return ParsedCells(_mask_cells(cells, left).cast(pa.int64()), left)
    if types.is_integer(kind):
        return ParsedCells(cells.cast(pa.int64()), make_false_mask(len(cells)))
    if types.is_floating(kind):
        whole, unreadable = whole_numbers(cells)
        return ParsedCells(whole, to_mask(unreadable))
    if is_text(kind):
        cells = _to_text(cells)
        whole = to_mask(pc.match_substring_regex(cells, _WHOLE))
        empty = to_mask(pc.equal(cells, ""))
        return ParsedCells(
            _mask_cells(cells, ~whole).cast(pa.int64()), find_valid(cells) & ~whole & ~empty
        )
    return None


def parse_times(cells: Any, unit: str) -> ParsedTimes | None:
    """Return times as nanoseconds since 1970; numbers are of `unit`."""
    kind = cells.type
    types = pa.types
    factor = parse_nanoseconds(1, unit) or 1
    if types.is_null(kind):
        nothing = make_false_mask(len(cells))
        return ParsedTimes(pa.nulls(len(cells), pa.int64()), nothing, nothing, False)
    if types.is_timestamp(kind) or types.is_date32(kind):
        if types.is_date32(kind):
            cells = cells.cast(pa.timestamp("s"))
        of_second = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[cells.type.unit]
        return _scale(cells.cast(pa.int64()), of_second, False)
    if types.is_integer(kind):
        found = parse_numbers(cells)
        return None if found is None or found.unparsed.any() else _scale(found.values, factor, True)
    if types.is_floating(kind):
        return _parse_float_times(cells, factor)
    if is_text(kind):
        return _parse_text_times(_to_text(cells), factor)
    return None


def _to_text(cells: Any) -> Any:
    return normalize_column(cells.cast(pa.string()))


def _mask_cells(cells: Any, out: Bools) -> Any:
    return pc.if_else(pa.array(~out), cells, pa.scalar(None, cells.type)) if out.any() else cells


def _scale(cells: Any, factor: int, has_numbers: bool) -> ParsedTimes:
    """Return whole numbers times a factor, null beyond 64 bits."""
    values = cells.fill_null(0).to_numpy(zero_copy_only=False)
    there = find_valid(cells)
    good = there & (values >= -(-_MIN // factor)) & (values <= _MAX // factor)
    scaled = np.where(good, values, 0) * factor
    return ParsedTimes(
        pa.array(scaled, pa.int64(), mask=~good),
        make_false_mask(len(values)),
        there & ~good,
        has_numbers and bool(good.any()),
    )


def _parse_float_times(cells: Any, factor: int) -> ParsedTimes:
    values = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
    there = find_valid(cells)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(values * factor) < 9.2e18
    values = np.where(near, values, 0.0)
    whole = np.floor(values)
    found = whole.astype(np.int64) * factor + np.rint((values - whole) * factor).astype(np.int64)
    good = there & near
    return ParsedTimes(
        pa.array(found, pa.int64(), mask=~good),
        there & ~near,
        make_false_mask(len(values)),
        bool(good.any()),
    )


def _parse_text_times(cells: Any, factor: int) -> ParsedTimes | None:
    there = find_valid(cells)
    empty = to_mask(pc.equal(cells, ""))
    whole = to_mask(pc.match_substring_regex(cells, _WHOLE))
    moment = to_mask(pc.match_substring_regex(cells, _MOMENT))
    found = _scale(_mask_cells(cells, ~whole).cast(pa.int64()), factor, True)
    values = found.values
    if moment.any():
        written = _mask_cells(cells, ~moment)
        try:
            parsed = pc.replace_substring(written, "Z", "").cast(pa.timestamp("ns"))
        except pa.ArrowInvalid:  # such as February 30
            moment = make_false_mask(len(cells))
        else:
            values = pc.if_else(pa.array(moment), parsed.cast(pa.int64()), values)
    left = there & ~empty & ~whole & ~moment
    return ParsedTimes(values, left, found.unreadable, found.has_numbers)


# --- lists: names of causes and topics, entries of clocks ----------------------------------------


def list_to_array(values: list[Any]) -> Any:
    """Return Python values as an array of their common type; None without one."""
    kinds = {*map(type, values)} - {type(None)}
    kind = {str: pa.string(), int: pa.int64(), float: pa.float64(), list: TEXTS}
    try:
        if not kinds:
            return pa.nulls(len(values))
        return pa.array(values, kind[kinds.pop()]) if len(kinds) == 1 else None
    except (*ARROW_ERRORS, KeyError):
        return None


def mask_array(array: Any, out: Bools) -> Any:
    """Return an array of any type, null where `out` is true."""
    return array.take(pa.array(np.arange(len(out)), mask=out)) if out.any() else array


def make_lists(offsets: Ints, values: Any) -> Any:
    """Return lists [n] of values, split at offsets [n + 1]."""
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def parse_name_lists(array: Any, has_separator: bool) -> ParsedCells | None:
    """Return the names in each cell; repeats, blanks and JSON lists are left to `Columns`."""
    types = pa.types
    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    kind = array.type
    if types.is_list(kind) or types.is_large_list(kind):
        return None if types.is_timestamp(kind.value_type) else _parse_lists(array)
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind)
    if has_separator and not numbers:
        return None
    found = parse_names(array)
    if found is None:
        return None
    left = found.unparsed
    if not numbers and not types.is_timestamp(kind):  # may be a JSON list
        left = left | to_mask(pc.starts_with(array, "["))
    offsets = np.concatenate([[0], np.cumsum(find_valid(found.values))])
    return ParsedCells(make_lists(offsets, found.values.drop_null()), left)


def _parse_lists(array: Any) -> ParsedCells | None:
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    found = parse_names(array.flatten())
    if found is None:
        return None
    child = np.repeat(np.arange(len(array)), lengths)
    left = make_false_mask(len(array))
    left[child[found.unparsed | ~find_valid(found.values)]] = True
    if lengths.max(initial=0) > 1:
        codes = pc.fill_null(found.values.dictionary_encode().indices, 0)
        pair = child * (len(codes) + 1) + codes.to_numpy(zero_copy_only=False)
        _, first = np.unique(pair, return_index=True)
        again = ~make_false_mask(len(pair))
        again[first] = False
        left[child[again]] = True
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return ParsedCells(make_lists(offsets, found.values), left)


def clocks_to_lists(clocks: Sequence[dict[str, int] | None] | None, n: int) -> tuple[Any, Any]:
    """Return the members and the counters of clocks."""
    if clocks is None:
        return pa.nulls(n, TEXTS), pa.nulls(n, COUNTS)
    members = pa.array([None if clock is None else list(clock) for clock in clocks], TEXTS)
    counts = [None if clock is None else list(clock.values()) for clock in clocks]
    return members, pa.array(counts, COUNTS)


def fill_seq_from_clocks(
    seq: Any, member: Any, clocks: Sequence[dict[str, int] | None] | None
) -> Any:
    """Return sequence numbers, null ones replaced by the clock's entry of the member."""
    if clocks is None or not seq.null_count:
        return seq
    each = zip(seq.to_pylist(), member.to_pylist(), clocks, strict=True)
    return pa.array(
        [
            clock.get(name) if number is None and clock is not None and name is not None else number
            for number, name, clock in each
        ],
        pa.int64(),
    )
