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
from antecede.tables.trace.text import nanoseconds
from antecede.tables.trace.user_tables.blocks import as_read

pa: Any = pyarrow  # its stubs know too few of the types that meet here
pc: Any = pyarrow.compute
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
TEXTS = pa.list_(pa.string())
COUNTS = pa.list_(pa.int64())
NO_ARRAY = (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError)
"""Errors of Arrow for values that do not fit a type."""
_WHOLE = r"\A-?[0-9]{1,18}\z"
_DAY = r"(1[7-9]|2[01])[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_MOMENT = r"\A" + _DAY + r"[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z?\z"
_LEAST, _MOST = -(2**63), 2**63 - 1


class Found(NamedTuple):
    """Values of a column [n], null for blanks, and a mask of cells left to `Columns` [n]."""

    values: Any
    left: Bools


class Times(NamedTuple):
    """Times of a column in ns [n], and masks of its cells [n]."""

    values: Any
    left: Bools
    unreadable: Bools
    numbers: bool
    """True if any cell is a number, whose unit matters."""


def none(n: int) -> Bools:
    """Return a mask that is False everywhere [n]."""
    return np.zeros(n, np.bool_)


def mask(values: Any) -> Bools:
    """Return Arrow booleans as a NumPy mask; null is False."""
    found: Bools = np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), np.bool_)
    return found


def known(values: Any) -> Bools:
    """Return a mask of the cells that are not null."""
    found: Bools = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return found


def names(cells: Any) -> Found | None:
    """Return names as text, null for blanks and unreadable numbers."""
    kind = cells.type
    types = pa.types
    if types.is_null(kind):
        return Found(pa.nulls(len(cells), pa.string()), none(len(cells)))
    if types.is_dictionary(kind) and is_text(kind.value_type):
        return names(cells.cast(kind.value_type))
    if types.is_timestamp(kind):
        return Found(as_read(cells), none(len(cells)))
    if is_text(kind):
        return Found(without_blanks(_texts(cells)), none(len(cells)))
    if types.is_integer(kind):
        return Found(cells.cast(pa.string()), none(len(cells)))
    if types.is_floating(kind):
        whole, unreadable = whole_numbers(cells)
        return Found(whole.cast(pa.string()), mask(unreadable))
    return None


def numbers(cells: Any) -> Found | None:
    """Return 64-bit integers."""
    kind = cells.type
    types = pa.types
    if types.is_null(kind):
        return Found(pa.nulls(len(cells), pa.int64()), none(len(cells)))
    if types.is_uint64(kind):
        left = mask(pc.greater(cells, pa.scalar(_MOST, pa.uint64())))
        return Found(_without(cells, left).cast(pa.int64()), left)
    if types.is_integer(kind):
        return Found(cells.cast(pa.int64()), none(len(cells)))
    if types.is_floating(kind):
        whole, unreadable = whole_numbers(cells)
        return Found(whole, mask(unreadable))
    if is_text(kind):
        cells = _texts(cells)
        whole = mask(pc.match_substring_regex(cells, _WHOLE))
        empty = mask(pc.equal(cells, ""))
        return Found(_without(cells, ~whole).cast(pa.int64()), known(cells) & ~whole & ~empty)
    return None


def times(cells: Any, unit: str) -> Times | None:
    """Return times as nanoseconds since 1970; numbers are of `unit`."""
    kind = cells.type
    types = pa.types
    factor = nanoseconds(1, unit) or 1
    if types.is_null(kind):
        nothing = none(len(cells))
        return Times(pa.nulls(len(cells), pa.int64()), nothing, nothing, False)
    if types.is_timestamp(kind) or types.is_date32(kind):
        if types.is_date32(kind):
            cells = cells.cast(pa.timestamp("s"))
        of_second = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[cells.type.unit]
        return _scaled(cells.cast(pa.int64()), of_second, False)
    if types.is_integer(kind):
        found = numbers(cells)
        return None if found is None or found.left.any() else _scaled(found.values, factor, True)
    if types.is_floating(kind):
        return _times_of_floats(cells, factor)
    if is_text(kind):
        return _times_of_texts(_texts(cells), factor)
    return None


def _texts(cells: Any) -> Any:
    return as_read(cells.cast(pa.string()))


def _without(cells: Any, out: Bools) -> Any:
    return pc.if_else(pa.array(~out), cells, pa.scalar(None, cells.type)) if out.any() else cells


def _scaled(cells: Any, factor: int, numbers: bool) -> Times:
    """Return whole numbers times a factor, null beyond 64 bits."""
    values = cells.fill_null(0).to_numpy(zero_copy_only=False)
    there = known(cells)
    good = there & (values >= -(-_LEAST // factor)) & (values <= _MOST // factor)
    scaled = np.where(good, values, 0) * factor
    return Times(
        pa.array(scaled, pa.int64(), mask=~good),
        none(len(values)),
        there & ~good,
        numbers and bool(good.any()),
    )


def _times_of_floats(cells: Any, factor: int) -> Times:
    values = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)
    there = known(cells)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(values * factor) < 9.2e18
    values = np.where(near, values, 0.0)
    whole = np.floor(values)
    found = whole.astype(np.int64) * factor + np.rint((values - whole) * factor).astype(np.int64)
    good = there & near
    return Times(
        pa.array(found, pa.int64(), mask=~good), there & ~near, none(len(values)), bool(good.any())
    )


def _times_of_texts(cells: Any, factor: int) -> Times | None:
    there = known(cells)
    empty = mask(pc.equal(cells, ""))
    whole = mask(pc.match_substring_regex(cells, _WHOLE))
    moment = mask(pc.match_substring_regex(cells, _MOMENT))
    found = _scaled(_without(cells, ~whole).cast(pa.int64()), factor, True)
    values = found.values
    if moment.any():
        written = _without(cells, ~moment)
        try:
            parsed = pc.replace_substring(written, "Z", "").cast(pa.timestamp("ns"))
        except pa.ArrowInvalid:  # such as February 30
            moment = none(len(cells))
        else:
            values = pc.if_else(pa.array(moment), parsed.cast(pa.int64()), values)
    left = there & ~empty & ~whole & ~moment
    return Times(values, left, found.unreadable, found.numbers)


# --- lists: names of causes and topics, entries of clocks ----------------------------------------


def array_of(values: list[Any]) -> Any:
    """Return Python values as an array of their common type; None without one."""
    kinds = {*map(type, values)} - {type(None)}
    kind = {str: pa.string(), int: pa.int64(), float: pa.float64(), list: TEXTS}
    try:
        if not kinds:
            return pa.nulls(len(values))
        return pa.array(values, kind[kinds.pop()]) if len(kinds) == 1 else None
    except (*NO_ARRAY, KeyError):
        return None


def unless(array: Any, out: Bools) -> Any:
    """Return an array of any type, null where `out` is true."""
    return array.take(pa.array(np.arange(len(out)), mask=out)) if out.any() else array


def lists(offsets: Ints, values: Any) -> Any:
    """Return lists [n] of values, split at offsets [n + 1]."""
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def name_lists(array: Any, separated: bool) -> Found | None:
    """Return the names in each cell; repeats, blanks and JSON lists are left to `Columns`."""
    types = pa.types
    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    kind = array.type
    if types.is_list(kind) or types.is_large_list(kind):
        return None if types.is_timestamp(kind.value_type) else _of_lists(array)
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind)
    if separated and not numbers:
        return None
    found = names(array)
    if found is None:
        return None
    left = found.left
    if not numbers and not types.is_timestamp(kind):  # may be a JSON list
        left = left | mask(pc.starts_with(array, "["))
    offsets = np.concatenate([[0], np.cumsum(known(found.values))])
    return Found(lists(offsets, found.values.drop_null()), left)


def _of_lists(array: Any) -> Found | None:
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    found = names(array.flatten())
    if found is None:
        return None
    child = np.repeat(np.arange(len(array)), lengths)
    left = none(len(array))
    left[child[found.left | ~known(found.values)]] = True
    if lengths.max(initial=0) > 1:
        codes = pc.fill_null(found.values.dictionary_encode().indices, 0)
        pair = child * (len(codes) + 1) + codes.to_numpy(zero_copy_only=False)
        _, first = np.unique(pair, return_index=True)
        again = ~none(len(pair))
        again[first] = False
        left[child[again]] = True
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Found(lists(offsets, found.values), left)


def listed(clocks: Sequence[dict[str, int] | None] | None, n: int) -> tuple[Any, Any]:
    """Return the members and the counters of clocks."""
    if clocks is None:
        return pa.nulls(n, TEXTS), pa.nulls(n, COUNTS)
    members = pa.array([None if clock is None else list(clock) for clock in clocks], TEXTS)
    counts = [None if clock is None else list(clock.values()) for clock in clocks]
    return members, pa.array(counts, COUNTS)


def with_counts(seq: Any, member: Any, clocks: Sequence[dict[str, int] | None] | None) -> Any:
    """Return sequence numbers, null ones replaced by the clock's entry of the member."""
    if clocks is None or not seq.null_count:
        return seq
    each = zip(seq.to_pylist(), member.to_pylist(), clocks, strict=True)
    return pa.array(
        [
            clock.get(who) if number is None and clock is not None and who is not None else number
            for number, who, clock in each
        ],
        pa.int64(),
    )
