"""Cells that hold lists, or become lists: names of causes and topics, entries of clocks.

As in `antecede.tables.trace.user_tables.cell_parsing`: what a cell means is decided by
`columns.Columns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.compute

from antecede.tables.trace.user_tables import cell_parsing
from antecede.tables.trace.user_tables.cell_parsing import Bools, Found

pa: Any = pyarrow  # its stubs know too few of the types that meet here
pc: Any = pyarrow.compute
TEXTS = pa.list_(pa.string())
COUNTS = pa.list_(pa.int64())
NO_ARRAY = (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError)
"""What Arrow raises for values that cannot be stored as a type."""
Ints = npt.NDArray[np.int64]


def array_of(values: list[Any]) -> Any:
    """Return Python values as an array of the type that all have; None if there is none."""
    kinds = {*map(type, values)} - {type(None)}
    kind = {str: pa.string(), int: pa.int64(), float: pa.float64(), list: TEXTS}
    try:
        if not kinds:
            return pa.nulls(len(values))
        return pa.array(values, kind[kinds.pop()]) if len(kinds) == 1 else None
    except (*NO_ARRAY, KeyError):
        return None


def unless(array: Any, out: Bools) -> Any:
    """Return cells, null where they are left out."""
    return array.take(pa.array(np.arange(len(out)), mask=out)) if out.any() else array


def lists(offsets: Ints, values: Any) -> Any:
    """Return lists [n] of values, cut at offsets [n + 1]."""
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


def name_lists(array: Any, separated: bool) -> Found | None:
    """Return the names in each cell; what needs a closer look is left over."""
    types = pa.types
    if types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    kind = array.type
    if types.is_list(kind) or types.is_large_list(kind):
        return None if types.is_timestamp(kind.value_type) else _of_lists(array)
    numbers = types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind)
    if separated and not numbers:
        return None
    found = cell_parsing.names(array)
    if found is None:
        return None
    left = found.left
    if not numbers and not types.is_timestamp(kind):  # a list may be written as JSON
        left = left | cell_parsing.mask(pc.starts_with(array, "["))
    offsets = np.concatenate([[0], np.cumsum(cell_parsing.known(found.values))])
    return Found(lists(offsets, found.values.drop_null()), left)


def _of_lists(array: Any) -> Found | None:
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    found = cell_parsing.names(array.flatten())
    if found is None:
        return None
    child = np.repeat(np.arange(len(array)), lengths)
    left = cell_parsing.none(len(array))
    left[child[found.left | ~cell_parsing.known(found.values)]] = True
    if lengths.max(initial=0) > 1:
        codes = pc.fill_null(found.values.dictionary_encode().indices, 0)
        pair = child * (len(codes) + 1) + codes.to_numpy(zero_copy_only=False)
        _, first = np.unique(pair, return_index=True)
        again = ~cell_parsing.none(len(pair))
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
    """Return numbers, those that are not there by the clock's entry of the event's member."""
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
