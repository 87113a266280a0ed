"""Time as whole numbers: how seconds become nanoseconds, and nanoseconds a text.

All arithmetic on readings, delays and bounds is that of integers, so that a bound which holds
exactly is kept exactly: with seconds as floats, `0.1 + 0.2` is more than `0.3`, and at readings
near 1.7e9 s a float is off by 200 ns. Seconds are taken at the door as the decimal that was
typed (0.1 is a tenth, not the float nearest to it) and rounded there to the side that is safe.

Readings may be rounded down: if one is later than another by whole nanoseconds or more, it still
is when both are rounded, so no rule that compares their difference with a bound is touched.
"""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from antecede.errors import LocalError
from antecede.formatting import shown

NS = 10**9
"""Nanoseconds in a second."""
DIGITS = 400
"""Digits before or behind the point that a time may have, at most; floats have fewer."""
LONGEST_NS = (1 << 62) - 1
"""Greatest reading and longest time that is believed: 146 years, about 1970 for `time_ns`."""

Seconds: TypeAlias = int | float | Decimal | Fraction
"""What may be given as seconds. A float counts as the shortest decimal that names it."""


def exact(seconds: Seconds, what: str = "a time") -> Fraction:
    """Return seconds as the number that was typed. Raises LocalError for what is no number."""
    if type(seconds) is float and math.isfinite(seconds):
        found = _of_float(seconds)
    else:
        found = _fraction(_number(seconds, what), what)
    if abs(found.numerator) * NS > LONGEST_NS * found.denominator:
        raise LocalError(f"{what} is {_said(seconds)} s; 146 years are the most that is believed")
    return found


def _said(seconds: Seconds) -> str:
    """Return seconds as a text: as they print, but for numbers that are too long for it."""
    return shown(seconds) if isinstance(seconds, int) else str(seconds)


@lru_cache(maxsize=1024)
def _of_float(seconds: float) -> Fraction:
    """Bounds are few, and read again for each member that is made."""
    return Fraction(Decimal(repr(seconds)))


def _number(seconds: Any, what: str) -> Seconds:
    if isinstance(seconds, bool | str | bytes | bytearray):  # float() would take these
        raise LocalError(f"{what} is {shown(seconds)}; it is a number of seconds")
    if isinstance(seconds, int | float | Decimal | Fraction):
        return seconds
    try:
        return float(seconds)  # numpy's numbers, for instance
    except (TypeError, ValueError):
        raise LocalError(f"{what} is {shown(seconds)}; it is a number of seconds") from None


def _fraction(seconds: Seconds, what: str) -> Fraction:
    if isinstance(seconds, float):
        # repr of a subclass (numpy.float64) is not the number alone.
        seconds = Decimal(repr(float(seconds)))
    if isinstance(seconds, Decimal):
        _check_size(seconds, what)
    return Fraction(seconds)


def _check_size(seconds: Decimal, what: str) -> None:
    """Raise LocalError for a decimal that no fraction can hold: 1e999999999 has 10^9 digits."""
    if not seconds.is_finite():
        raise LocalError(f"{what} is {seconds} s; it is finite")
    if seconds and seconds.adjusted() > DIGITS:
        raise LocalError(f"{what} is {seconds} s; 146 years are the most that is believed")
    if seconds and seconds.adjusted() < -DIGITS:
        raise LocalError(f"{what} is {seconds} s; a nanosecond is the least that counts: write 0")


def down_ns(seconds: Seconds, what: str = "a time") -> int:
    """Return seconds as nanoseconds, rounded down; raises LocalError."""
    found = exact(seconds, what)
    return found.numerator * NS // found.denominator


def up_ns(seconds: Seconds, what: str = "a time") -> int:
    """Return seconds as nanoseconds, rounded up; raises LocalError."""
    found = exact(seconds, what)
    return -(-found.numerator * NS // found.denominator)


def span_ns(seconds: Seconds, what: str) -> int:
    """Return a time to wait, rounded down, 1 ns at least. Raises LocalError unless above 0."""
    if not exact(seconds, what) > 0:
        raise LocalError(f"{what} is {seconds}; it is greater than 0 seconds")
    return max(1, down_ns(seconds, what))


def seconds_text(ns: int) -> str:
    """Return nanoseconds as seconds, exactly, without unnecessary digits: 250000000 is "0.25"."""
    whole, part = divmod(abs(ns), NS)
    digits = f".{part:09}".rstrip("0") if part else ""
    return f"{'-' if ns < 0 else ''}{whole}{digits}"


def signed_text(ns: int) -> str:
    """Return nanoseconds as seconds with their sign: 250000000 is "+0.25"."""
    return f"{'' if ns < 0 else '+'}{seconds_text(ns)}"


def reading_of(now: int | None, whose: str) -> int:
    """Return the own clock's reading. Raises LocalError for none; `whose`: what needs it."""
    if now is None:
        raise LocalError(
            f"{whose} goes by the clock: give now, what the own clock shows, "
            "in whole nanoseconds (a Group takes now= in seconds, or now_ns=)"
        )
    if type(now) is not int:
        raise LocalError(f"now is {shown(now)}; a protocol takes whole nanoseconds (an int)")
    if not -LONGEST_NS <= now <= LONGEST_NS:
        raise LocalError(f"now is {shown(now)} ns; readings are within 146 years of 0")
    return now


def group_reading(now: Seconds | None, now_ns: int | None) -> int | None:
    """Return the reading given in seconds or ns; None: neither. Raises LocalError for both."""
    if now is not None and now_ns is not None:
        raise LocalError("give the clock's reading once: now= (seconds) or now_ns=")
    if now is None:
        return None if now_ns is None else reading_of(_index(now_ns), "the order")
    if _is_large(now):
        raise LocalError(
            f"now is {shown(now)} seconds, more than 146 years: if that is nanoseconds "
            "(time.time_ns()), give it as now_ns="
        )
    return down_ns(now, "now")


def _is_large(now: Seconds) -> bool:
    try:
        return LONGEST_NS // NS < abs(float(now)) < math.inf
    except (TypeError, ValueError):
        return False
    except OverflowError:  # a whole number that no float reaches
        return True


def _index(value: object) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise LocalError(
            f"now_ns is {shown(value)}; it is whole nanoseconds (an int, as from time.time_ns())"
        ) from None
