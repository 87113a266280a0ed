"""Exact conversion between seconds, nanoseconds and text.

Readings, delays and bounds are whole nanoseconds. Floats would violate exact bounds: `0.1 + 0.2`
exceeds `0.3`, and near 1.7e9 s a float is off by 200 ns. Seconds are read as the decimal that was
typed and rounded to the safe side. Rounding readings down keeps differences of whole nanoseconds.
"""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from antecede.errors import LocalError
from antecede.formatting import quote

NS = 10**9
MAX_DIGITS = 400
"""Maximum digits of a time before or after the decimal point."""
LONGEST_NS = (1 << 62) - 1
"""Maximum absolute reading or duration: 146 years, for `time_ns` about 1970."""

Seconds: TypeAlias = int | float | Decimal | Fraction
"""Accepted types of seconds. A float counts as its shortest decimal."""


def exact(seconds: Seconds, what: str = "a time") -> Fraction:
    """Return seconds as an exact fraction. Raise LocalError for other values."""
    if type(seconds) is float and math.isfinite(seconds):
        fraction = _float_to_fraction(seconds)
    else:
        fraction = _to_fraction(_check_number(seconds, what), what)
    if abs(fraction.numerator) * NS > LONGEST_NS * fraction.denominator:
        raise LocalError(f"{what} is {_format_given(seconds)} s; expected at most 146 years")
    return fraction


def _format_given(seconds: Seconds) -> str:
    return quote(seconds) if isinstance(seconds, int) else str(seconds)


@lru_cache(maxsize=1024)
def _float_to_fraction(seconds: float) -> Fraction:
    return Fraction(Decimal(repr(seconds)))


def _check_number(seconds: Any, what: str) -> Seconds:
    if isinstance(seconds, bool | str | bytes | bytearray):  # float() accepts these
        raise LocalError(f"{what} is {quote(seconds)}; expected a number of seconds")
    if isinstance(seconds, int | float | Decimal | Fraction):
        return seconds
    try:
        return float(seconds)  # such as numpy scalars
    except (TypeError, ValueError):
        raise LocalError(f"{what} is {quote(seconds)}; expected a number of seconds") from None


def _to_fraction(seconds: Seconds, what: str) -> Fraction:
    if isinstance(seconds, float):
        # The repr of a subclass (numpy.float64) contains its type.
        seconds = Decimal(repr(float(seconds)))
    if isinstance(seconds, Decimal):
        _check_size(seconds, what)
    return Fraction(seconds)


def _check_size(seconds: Decimal, what: str) -> None:
    """Raise LocalError for a decimal without a finite fraction; 1e999999999 has 10^9 digits."""
    if not seconds.is_finite():
        raise LocalError(f"{what} is {seconds} s; expected a finite number")
    if seconds and seconds.adjusted() > MAX_DIGITS:
        raise LocalError(f"{what} is {seconds} s; expected at most 146 years")
    if seconds and seconds.adjusted() < -MAX_DIGITS:
        raise LocalError(f"{what} is {seconds} s; the resolution is 1 ns: write 0")


def down_ns(seconds: Seconds, what: str = "a time") -> int:
    """Return seconds as nanoseconds, rounded down. Raise LocalError."""
    fraction = exact(seconds, what)
    return fraction.numerator * NS // fraction.denominator


def up_ns(seconds: Seconds, what: str = "a time") -> int:
    """Return seconds as nanoseconds, rounded up. Raise LocalError."""
    fraction = exact(seconds, what)
    return -(-fraction.numerator * NS // fraction.denominator)


def span_ns(seconds: Seconds, what: str) -> int:
    """Return a timeout above 0 as nanoseconds, rounded down, at least 1. Raise LocalError."""
    if not exact(seconds, what) > 0:
        raise LocalError(f"{what} is {seconds}; expected more than 0 seconds")
    return max(1, down_ns(seconds, what))


def seconds_text(ns: int) -> str:
    """Return nanoseconds as exact seconds without trailing zeros: 250000000 is "0.25"."""
    whole, part = divmod(abs(ns), NS)
    digits = f".{part:09}".rstrip("0") if part else ""
    return f"{'-' if ns < 0 else ''}{whole}{digits}"


def seconds_with_sign(ns: int) -> str:
    """Return nanoseconds as seconds with sign: 250000000 is "+0.25"."""
    return f"{'' if ns < 0 else '+'}{seconds_text(ns)}"


def check_reading(now: int | None, user: str) -> int:
    """Return the clock reading that `user` needs, ns. Raise LocalError if missing or invalid."""
    if now is None:
        raise LocalError(
            f"{user} needs the local clock reading: pass now in whole nanoseconds "
            "(with a Group: now= in seconds, or now_ns=)"
        )
    if type(now) is not int:
        raise LocalError(f"now is {quote(now)}; expected whole nanoseconds (int)")
    if not -LONGEST_NS <= now <= LONGEST_NS:
        raise LocalError(f"now is {quote(now)} ns; expected at most 146 years from 0")
    return now


def parse_reading(now: Seconds | None, now_ns: int | None) -> int | None:
    """Return the reading of `now` (seconds) or `now_ns`; None: neither. Raise LocalError."""
    if now is not None and now_ns is not None:
        raise LocalError("now= and now_ns= are both given; pass one of the two")
    if now is None:
        return None if now_ns is None else check_reading(_to_int(now_ns), "the order")
    if _is_large(now):
        raise LocalError(
            f"now is {quote(now)} seconds, more than 146 years; pass nanoseconds "
            "(time.time_ns()) as now_ns="
        )
    return down_ns(now, "now")


def _is_large(now: Seconds) -> bool:
    try:
        return LONGEST_NS // NS < abs(float(now)) < math.inf
    except (TypeError, ValueError):
        return False
    except OverflowError:  # an int above the largest float
        return True


def _to_int(value: object) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise LocalError(
            f"now_ns is {quote(value)}; expected whole nanoseconds (int, as from time.time_ns())"
        ) from None
