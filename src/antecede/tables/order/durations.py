"""Durations as text ("10 minutes", "90 s", "1 hour 30 min") or as a timedelta."""

from __future__ import annotations

import datetime as dt
import math
import re
from fractions import Fraction

from antecede.errors import InputError

_UNITS_MS: dict[Fraction | int, tuple[str, ...]] = {
    Fraction(1, 10**6): ("ns", "nanosecond"),
    Fraction(1, 1000): ("us", "microsecond"),
    1: ("ms", "millisecond"),
    1000: ("s", "sec", "second"),
    60_000: ("min", "minute"),
    3_600_000: ("h", "hour"),
    86_400_000: ("d", "day"),
    604_800_000: ("w", "week"),
}
_MS = {name: Fraction(size) for size, names in _UNITS_MS.items() for name in names}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")


def duration_ms(length: str | dt.timedelta, argument: str = "the duration") -> int:
    """Return a duration in milliseconds, rounded up.

    Text is numbers with units (ns, us, ms, s, min, h, d, w, or spelt out), added up; "interval" may
    precede them, as in Spark. Raises InputError otherwise, also for a number without a unit.
    """
    if isinstance(length, dt.timedelta):
        if length < dt.timedelta(0):
            raise InputError(f"{argument} is negative: {length}")
        return math.ceil(Fraction(length // dt.timedelta(microseconds=1), 1000))
    if not isinstance(length, str):
        raise InputError(
            f"{argument}={length!r} has no unit: write for instance '10 minutes' or '600 s'"
        )
    text = length.strip().lower().removeprefix("interval ")
    parts = _PART.findall(text)
    units = [_MS.get(unit) or _MS.get(unit.removesuffix("s")) for _, unit in parts]
    rest = re.sub(r"(?:,|\band\b)", " ", _PART.sub(" ", text)).strip()
    if rest or not parts or None in units:
        raise InputError(
            f"cannot read {argument} {length!r}: write for instance '10 minutes' or '1 h 30 min'"
        )
    total = sum(Fraction(n) * size for (n, _), size in zip(parts, units, strict=True) if size)
    return math.ceil(total)
