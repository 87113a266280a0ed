"""Values of cells: lists, clocks and numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from antecede.tables.trace import text
from antecede.tables.trace.identities import is_blank, is_rounded


def joined_id(parts: Sequence[str]) -> str:
    """Return the id of some parts, joined by ":": orders:3:17.

    A colon or backslash in any part but the last has a backslash before it: no two ids look alike.
    """
    *first, last = parts
    return ":".join([*(part.replace("\\", r"\\").replace(":", r"\:") for part in first), last])


def could_be_joined_id(text: str, parts: int) -> bool:
    """Return whether a text has as many parts as an id."""
    return text.replace(r"\\", "").replace(r"\:", "").count(":") >= parts - 1


def as_list(value: object) -> object:
    """Return the list that a cell of text holds as JSON; other values as they are."""
    if not isinstance(value, str) or not value.startswith("["):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def rounded_words(value: object, columns: Sequence[str]) -> str:
    """Return the defect of a number that may be several ids."""
    where = f" of column {columns[0]}" if columns else ""
    return (
        f"{value!r}{where} is a floating-point number from 2**53 on, which several whole numbers "
        "become; save ids as text or int64"
    )


def filled(cells: Sequence[Sequence[object]]) -> Iterator[object]:
    """Yield causes that the cells of their parts make; a single value goes with each of a list.

    Nothing where all cells are blank. Raise ValueError for lists of different lengths.
    """
    if all(is_blank(value) for cell in cells for value in cell):
        return
    sizes = {len(cell) for cell in cells} - {1}
    if len(sizes) > 1:
        raise ValueError(f"the parts of causes are lists of different lengths: {sorted(sizes)}")
    size = sizes.pop() if sizes else 1
    yield from zip(*(cell if len(cell) != 1 else list(cell) * size for cell in cells), strict=True)


def plain(value: object) -> object:
    """Return a decimal as a whole number or the nearest float; other values as they are."""
    if not isinstance(value, Decimal) or not value.is_finite():
        return value
    return int(value) if value == value.to_integral_value() else float(value)


def cells_in(value: object, separator: str | None) -> Sequence[object]:
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


def checked_clock(clock: Mapping[object, object]) -> dict[str, int]:
    """Return a clock's entries above zero; ValueError for a bad counter."""
    checked: dict[str, int] = {}
    for member, written in clock.items():
        count = None if isinstance(written, str) else text.int64(written)
        if written is None or count == 0:
            continue
        if is_rounded(written):
            raise ValueError(f"the counter of {member!r} is rounded: {rounded_words(written, ())}")
        if count is None or count < 0:
            raise ValueError(f"the counter of {member!r} is no whole number from 0: {written!r}")
        if is_blank(member):
            raise ValueError(f"the clock has a counter of a member without a name: {member!r}")
        checked[str(member)] = count
    return checked


def is_number(value: object) -> bool:
    """Return whether a value is a number, or text that is one."""
    try:
        return not isinstance(value, bool) and float(str(plain(value))) is not None
    except ValueError:
        return False


def finite(value: object) -> float | None:
    """Return a finite number; 0.0 for no number; None for null or nan."""
    value = plain(value)
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
