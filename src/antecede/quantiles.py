"""Quantiles of values by nearest rank, and of Student's t distribution.

The quantile p of n values is the ceil(p * n)-th smallest, and the smallest at p = 0 (Hyndman and
Fan 1996, definition 1).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Protocol, TypeVar

Value = TypeVar("Value", covariant=True)


class SortedValues(Protocol[Value]):
    """Values in ascending order: a sequence or a one-dimensional array."""

    def __len__(self) -> int: ...

    def __getitem__(self, at: int, /) -> Value: ...


def nearest_rank(fraction: float, count: int) -> int:
    """Return the rank of a quantile of `count` values; `fraction` 0.07 of 100 values is 7."""
    return max(1, ceil(Fraction(str(fraction)) * count))


def quantile(values: SortedValues[Value], fraction: float) -> Value:
    """Return the quantile of one or more values in ascending order; see the module."""
    return values[nearest_rank(fraction, len(values)) - 1]


_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def student_t(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t; above 30 degrees that of 30."""
    return _T95[min(degrees, len(_T95)) - 1]
