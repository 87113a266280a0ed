"""Numbers and texts of other libraries as Python's own: what is harmless to take, is taken.

A number of numpy's counts modulo a power of two and has 64 bits; whatever is kept of it, written
or reckoned with must be an integer that does not. numpy itself is not needed for that.
"""

from __future__ import annotations

import operator
from numbers import Integral, Rational, Real
from typing import Any

_OWN = (int, float, str, bool, type(None))


def plain(value: Any) -> Any:
    """Return a number or text as Python's own type; anything else, truth values too, as it is."""
    if type(value) in _OWN:
        return value
    if isinstance(value, str):
        return str.__str__(value)  # str() of a member of an Enum is the member's name
    if isinstance(value, Integral):
        return operator.index(value)
    if isinstance(value, Real) and not isinstance(value, Rational):
        return float(value)
    return value
