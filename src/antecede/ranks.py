"""Quantiles by one rule: the nearest rank, a value that is there and none between two.

The quantile p of n values is the ceil(p * n)-th smallest, and the smallest at p = 0: the least
value that a part p of them does not exceed (Hyndman and Fan 1996, their definition 1).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Protocol, TypeVar

Value = TypeVar("Value", covariant=True)


class Ascending(Protocol[Value]):
    """Values in ascending order: a sequence or an array of one dimension."""

    def __len__(self) -> int: ...

    def __getitem__(self, at: int, /) -> Value: ...


def nearest_rank(part: float, count: int) -> int:
    """Return which of `count` values in ascending order is the quantile, from 1 to `count`.

    `part` is from 0 to 1, taken as the decimal it is written as: 0.07 of 100 is the 7th.
    """
    return max(1, ceil(Fraction(str(part)) * count))


def quantile(ascending: Ascending[Value], part: float) -> Value:
    """Return the quantile of one value or more, in ascending order; see the module."""
    return ascending[nearest_rank(part, len(ascending)) - 1]
