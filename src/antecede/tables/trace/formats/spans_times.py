"""Parser of span times, with detection of a wrong unit.

Some programs do not write the unit that their format declares. A number is read in another unit if
only that unit gives a time from 2010 to 2039; ranges of units do not overlap. Such spans are
counted, and the report names the option that sets the unit. The unit of the start also applies to
the duration, and to an end that fits no unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from antecede.tables.trace import text
from antecede.tables.trace.causes import UNREADABLE_CAUSES as UNREADABLE_CAUSES
from antecede.tables.trace.causes import UNREADABLE_IN
from antecede.tables.trace.time_text import DECLARED_UNIT, SPANS_READ_AS, UNREADABLE_TIMES

FACTORS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Nanoseconds of each unit."""
CAUSES_PLACE: Final = "parent or links"
_FIRST_S, _LAST_S = 1_262_304_000, 2_208_988_800  # 2010-01-01, 2040-01-01

RANGES: Final = {
    unit: (_FIRST_S * (10**9 // factor), _LAST_S * (10**9 // factor))
    for unit, factor in FACTORS.items()
}
"""[first, end) of the plausible numbers of each unit."""


class Unit(NamedTuple):
    """Unit of numeric times."""

    declared: str
    is_fixed: bool = False
    """True if the user set it, which disables detection."""


class SpanTimes(NamedTuple):
    """Start and end of a span, ns."""

    start: int | None
    end: int | None
    unreadable_times: int
    actual_unit: str | None
    """Unit of the numbers, if not the declared one."""


def choose_unit(declared: str, given: str | None) -> Unit:
    """Return the unit of the user, else of the format."""
    return Unit(given or declared, given is not None)


def read_times(
    unit: Unit,
    start: object,
    end: object = None,
    duration: object = None,
    duration_unit: str | None = None,
) -> SpanTimes:
    """Return the times of a span from numbers or numeric text; None, zero and "" are absent.

    Without an end, `duration` gives it, in `duration_unit` (default: unit of the start).
    """
    begins = start if _is_present(start) else end
    taken = unit.declared if unit.is_fixed else find_fitting_unit(begins, unit.declared)
    first, bad = _parse_time(start, taken)
    ends = taken if unit.is_fixed else find_fitting_unit(end, taken)
    last, also_bad = _parse_time(end, ends)
    if not _is_present(end) and duration not in (None, ""):
        length = text.parse_nanoseconds(duration, duration_unit or taken)
        also_bad = int(length is None)
        last = None if first is None or length is None else text.parse_int64(first + length)
    suspected = next((one for one in (taken, ends) if one != unit.declared), None)
    return SpanTimes(first, last, bad + also_bad, suspected)


def find_fitting_unit(value: object, declared: str) -> str:
    """Return the unit whose range contains the number, else the declared one."""
    number = value
    if isinstance(number, str) and len(number) < 40:
        try:
            number = float(number)
        except ValueError:
            return declared
    if isinstance(number, bool) or not isinstance(number, int | float):
        return declared
    return next((unit for unit, (low, end) in RANGES.items() if low <= number < end), declared)


def _is_present(value: object) -> bool:
    return value is not None and value not in (0, "", "0")


def _parse_time(value: object, unit: str) -> tuple[int | None, int]:
    if not _is_present(value):
        return None, 0
    found = text.parse_nanoseconds(value, unit)
    return found, int(found is None)


class TimeCounts:
    """Counts of a file's spans: unreadable times and causes, undeclared units."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._counts: Counter[str] = Counter()
        self._actual_units: Counter[str] = Counter()

    def add(self, unreadable_times: int, actual_unit: str | None, causes: int = 0) -> None:
        """Count a span; `causes`: number of its invalid parents and links."""
        self._counts[UNREADABLE_TIMES] += unreadable_times
        self._counts[UNREADABLE_CAUSES] += causes
        if actual_unit is not None:
            self._actual_units[f"{SPANS_READ_AS}{actual_unit}"] += 1

    def collect_details(self) -> Mapping[str, Any]:
        """Return the details for counts above zero."""
        found: dict[str, Any] = {**+self._counts, **self._actual_units}
        if UNREADABLE_CAUSES in found:
            found[UNREADABLE_IN] = CAUSES_PLACE
        if self._actual_units:
            found[DECLARED_UNIT] = self._unit.declared
        return found
