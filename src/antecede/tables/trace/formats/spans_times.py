"""Times of spans, and the unit of their numbers.

Formats declare a unit, and programs write another. A number is read in another unit if it is no
time from 2010 to 2039 in the declared unit and is one in the other. It is counted and reported with
the option that forbids it. No number is in the range of two units. The start decides for the
duration, and for an end that fits no unit better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from antecede.tables.trace import text
from antecede.tables.trace.causes import UNREADABLE_CAUSES as UNREADABLE_CAUSES
from antecede.tables.trace.causes import UNREADABLE_IN
from antecede.tables.trace.time_text import DECLARED, TAKEN_AS, UNREADABLE

FACTORS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Nanoseconds of each unit."""
CAUSES_IN: Final = "parent or links"
"""Place of causes, for reports."""
_FIRST_S, _LAST_S = 1_262_304_000, 2_208_988_800  # 2010-01-01, 2040-01-01

RANGES: Final = {
    unit: (_FIRST_S * (10**9 // factor), _LAST_S * (10**9 // factor))
    for unit, factor in FACTORS.items()
}
"""[first, end) of the plausible numbers of each unit."""


class Unit(NamedTuple):
    """The unit of a format's numbers."""

    declared: str
    is_fixed: bool = False
    """Whether the user named it: no other is suspected."""


class Times(NamedTuple):
    """Start and end of a span, ns."""

    start: int | None
    end: int | None
    unreadable: int
    taken: str | None
    """Unit of the numbers, if not the declared one."""


def unit_for(declared: str, given: str | None) -> Unit:
    """Return the unit that the user gave, else that of the format."""
    return Unit(given or declared, given is not None)


def read_times(
    unit: Unit,
    start: object,
    end: object = None,
    duration: object = None,
    duration_unit: str | None = None,
) -> Times:
    """Return the times of a span from numbers, as numbers or text.

    `duration` counts without an end; its default unit is that of the start. None, zero and empty
    text are no time.
    """
    begins = start if _is_there(start) else end
    taken = unit.declared if unit.is_fixed else fitting_unit(begins, unit.declared)
    first, bad = _nanoseconds(start, taken)
    ends = taken if unit.is_fixed else fitting_unit(end, taken)
    last, also_bad = _nanoseconds(end, ends)
    if not _is_there(end) and duration not in (None, ""):
        length = text.nanoseconds(duration, duration_unit or taken)
        also_bad = int(length is None)
        last = None if first is None or length is None else text.int64(first + length)
    suspected = next((one for one in (taken, ends) if one != unit.declared), None)
    return Times(first, last, bad + also_bad, suspected)


def fitting_unit(value: object, declared: str) -> str:
    """Return the declared unit, or the other whose range holds the number."""
    number = value
    if isinstance(number, str) and len(number) < 40:
        try:
            number = float(number)
        except ValueError:
            return declared
    if isinstance(number, bool) or not isinstance(number, int | float):
        return declared
    return next((unit for unit, (low, end) in RANGES.items() if low <= number < end), declared)


def _is_there(value: object) -> bool:
    return value is not None and value not in (0, "", "0")


def _nanoseconds(value: object, unit: str) -> tuple[int | None, int]:
    if not _is_there(value):
        return None, 0
    found = text.nanoseconds(value, unit)
    return found, int(found is None)


class TimeCounts:
    """Counts over the spans of a file: unreadable times and causes, other units."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._counts: Counter[str] = Counter()
        self._taken: Counter[str] = Counter()

    def add(self, unreadable: int, taken: str | None, causes: int = 0) -> None:
        """Count a span; `causes`: its parents and links that name no span."""
        self._counts[UNREADABLE] += unreadable
        self._counts[UNREADABLE_CAUSES] += causes
        if taken is not None:
            self._taken[f"{TAKEN_AS}{taken}"] += 1

    def details(self) -> Mapping[str, Any]:
        """Return details for counts above zero."""
        found: dict[str, Any] = {**+self._counts, **self._taken}
        if UNREADABLE_CAUSES in found:
            found[UNREADABLE_IN] = CAUSES_IN
        if self._taken:
            found[DECLARED] = self._unit.declared
        return found
