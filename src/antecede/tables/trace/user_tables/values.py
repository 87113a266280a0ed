"""Parsers of single cells: ids, lists, clocks, numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from antecede.tables.trace import text
from antecede.tables.trace.identities import is_blank, is_rounded


def join_id(parts: Sequence[str]) -> str:
    """Return an id of several parts, escaped and joined by ":", such as orders:3:17."""
    *first, last = parts
    return ":".join([*(part.replace("\\", r"\\").replace(":", r"\:") for part in first), last])


def can_be_joined_id(text: str, parts: int) -> bool:
    """Return whether a text has at least `parts` parts."""
    return text.replace(r"\\", "").replace(r"\:", "").count(":") >= parts - 1


def parse_json_list(value: object) -> object:
    """Return a list from its JSON text, other values unchanged."""
    if not isinstance(value, str) or not value.startswith("["):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def describe_rounded(value: object, columns: Sequence[str]) -> str:
    """Return the message for a rounded number."""
    where = f" of column {columns[0]}" if columns else ""
    return (
        f"{value!r}{where} is a floating-point number of 2**53 or more; save ids as text or int64"
    )


def combine_parts(cells: Sequence[Sequence[object]]) -> Iterator[object]:
    """Yield causes from the cells of their parts; a single value is combined with each of a list.

    Yield nothing if all cells are blank. Raise ValueError for lists of different lengths.
    """
    if all(is_blank(value) for cell in cells for value in cell):
        return
    sizes = {len(cell) for cell in cells} - {1}
    if len(sizes) > 1:
        raise ValueError(f"parts of causes are lists of different lengths: {sorted(sizes)}")
    size = sizes.pop() if sizes else 1
    yield from zip(*(cell if len(cell) != 1 else list(cell) * size for cell in cells), strict=True)


def decimal_to_number(value: object) -> object:
    """Return a decimal as an integer or the nearest float, other values unchanged."""
    if not isinstance(value, Decimal) or not value.is_finite():
        return value
    return int(value) if value == value.to_integral_value() else float(value)


def split_cell(value: object, separator: str | None) -> Sequence[object]:
    """Return the values in a cell: a list, a JSON list as text, or separated text."""
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, str):
        if value.startswith("["):
            try:
                listed: Any = json.loads(value)
            except (ValueError, RecursionError):
                listed = None
            if isinstance(listed, list):
                return listed
        if separator is not None:
            return [part.strip() for part in value.split(separator)]
    return (value,)


def check_clock(clock: Mapping[object, object]) -> dict[str, int]:
    """Return the positive entries of a clock. Raise ValueError for an invalid entry."""
    checked: dict[str, int] = {}
    for member, written in clock.items():
        count = None if isinstance(written, str) else text.parse_int64(written)
        if written is None or count == 0:
            continue
        if is_rounded(written):
            raise ValueError(
                f"the counter of {member!r} is rounded: {describe_rounded(written, ())}"
            )
        if count is None or count < 0:
            raise ValueError(
                f"invalid counter of {member!r}: {written!r}; expected an integer >= 0"
            )
        if is_blank(member):
            raise ValueError(f"the clock has a counter of a blank member: {member!r}")
        checked[str(member)] = count
    return checked


def is_number(value: object) -> bool:
    """Return whether a value is a number or numeric text."""
    try:
        return not isinstance(value, bool) and float(str(decimal_to_number(value))) is not None
    except ValueError:
        return False


def parse_finite(value: object) -> float | None:
    """Return a finite number, 0.0 for other values, None for null, NaN and infinities."""
    value = decimal_to_number(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0.0
    try:
        number = float(value)
    except ValueError:
        return 0.0
    except OverflowError:
        return None
    return number if abs(number) < 1e300 else None
