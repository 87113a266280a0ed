"""Conversion of foreign numbers (numpy wraps around at 64 bits) and texts to built-in types."""

from __future__ import annotations

import operator
from numbers import Integral, Rational, Real
from typing import Any

_BUILTINS = (int, float, str, bool, type(None))


def plain(value: Any) -> Any:
    """Return a number or text as a built-in type, and any other value (bool too) unchanged."""
    if type(value) in _BUILTINS:
        return value
    if isinstance(value, str):
        return str.__str__(value)  # str() of a member of an Enum is the member's name
    if isinstance(value, Integral):
        return operator.index(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        return float(value)
    return value
