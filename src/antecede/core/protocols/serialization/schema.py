"""Schema of stored values: shapes, and the check of a value against a shape.

A shape is a scalar of this module (`NUMBER`, `TEXT`, ...), None, a tuple of shapes, or one of the
classes below. `MEMBER` is the number of a known group member. So arrays that are indexed by member
number are bounded by the group, whatever a forged state contains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from antecede.core.clocks import MAX_VALUE
from antecede.core.protocols.serialization import state_tuples

MAX_NUMBER = (1 << 64) - 1
MAX_BITS = 1 << 25
"""Size limit of a packed vector or bit vector; windows and lanes have lower limits of their own."""


class Leaf(NamedTuple):
    """Plain value: its name for errors, and a predicate."""

    word: str
    holds: Callable[[Any], bool]


class Many(NamedTuple):
    """Plain tuple of any length."""

    item: Any


class Named(NamedTuple):
    """Named tuple, by the name of its class."""

    cls: str


class OneOf:
    """Any of several shapes."""

    def __init__(self, *shapes: Any) -> None:
        self.shapes = shapes


class Table(NamedTuple):
    """Dictionary in the form of `freeze`."""

    key: Any
    value: Any


class Record:
    """Attributes of an object in the form of `freeze`."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields


class Sequence(NamedTuple):
    """List, set or deque in the form of `freeze`."""

    kind: str
    item: Any


Shape: TypeAlias = Leaf | Many | Named | OneOf | Table | Record | Sequence | tuple[Any, ...] | None


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_NUMBER


def _time(value: Any) -> bool:
    return type(value) is int and -MAX_NUMBER <= value <= MAX_NUMBER


def _time_or_none(value: Any) -> bool:
    return value is None or _time(value)


def _option_s(value: Any) -> bool:
    if type(value) is float:
        return math.isfinite(value)
    return _time_or_none(value)


def _ascending(value: Any) -> bool:
    if type(value) is not tuple or len(value) % 2 or not all(map(_whole, value)):
        return False
    return all(low < high for low, high in pairwise((0, *value)))


NUMBER = Leaf("a whole number from 0", _whole)
MEMBER = Leaf("a member's number", _whole)
SIGNED = Leaf("a whole number", lambda v: type(v) is int and abs(v) <= MAX_NUMBER)
BIG = Leaf("a packed vector", lambda v: type(v) is int and v >= 0 and v.bit_length() <= MAX_BITS)
TIME = Leaf("a time in nanoseconds", _time)
MAYBE_TIME = Leaf("a time in nanoseconds or none", _time_or_none)
MAYBE_SECONDS = Leaf("an option in seconds or none", _option_s)
BOOL = Leaf("True or False", lambda v: type(v) is bool)
TEXT = Leaf("text", lambda v: type(v) is str)
BYTES = Leaf("bytes", lambda v: type(v) is bytes)
BOUNDS = Leaf("the bounds of ascending intervals", _ascending)
COUNT = Leaf("a message's number", lambda v: type(v) is int and 0 <= v <= MAX_VALUE)
ANY = Leaf("anything", lambda v: True)
ID: Shape = Named("MessageId")
PAIRS: Shape = Many((NUMBER, NUMBER))
WINDOW: Shape = (NUMBER, BIG)
MEMBERS: Shape = Many(MEMBER)
COUNTS: Shape = Many((MEMBER, COUNT))
"""(member, number) for some members."""


def misfit(value: Any, shape: Shape, members: Collection[int] | None = None) -> str:
    """Return where and how a value differs from the shape, or "". Each `MEMBER` is in `members`."""
    if isinstance(shape, Leaf):
        if not shape.holds(value):
            return f"{value!r:.40} is not {shape.word}"
        if shape is MEMBER and members is not None and value not in members:
            return f"member {value} has no name"
        return ""
    if shape is None:
        return "" if value is None else f"{value!r:.40} is not None"
    if isinstance(shape, OneOf):
        tried = [misfit(value, one, members) for one in shape.shapes]
        return "" if "" in tried else tried[0]
    if isinstance(shape, Named):
        named = isinstance(value, tuple) and type(value).__name__ == shape.cls
        return "" if named else f"{value!r:.40} is no {shape.cls}"
    if isinstance(shape, Table | Record | Sequence):
        return _frozen_misfit(value, shape, members)
    if type(value) is not tuple:
        return f"{value!r:.40} is not a tuple"
    shapes = [shape.item] * len(value) if isinstance(shape, Many) else list(shape)
    if len(shapes) != len(value):
        return f"{len(value)} values instead of {len(shapes)}"
    for place, (item, of) in enumerate(zip(value, shapes, strict=True)):
        if where := misfit(item, of, members):
            return f"[{place}] {where}"
    return ""


def _frozen_misfit(
    value: Any, shape: Table | Record | Sequence, members: Collection[int] | None
) -> str:
    kind = shape.kind if isinstance(shape, Sequence) else state_tuples.DICT
    if type(value) is not tuple or len(value) != 3 or value[:2] != (state_tuples.TAG, kind):
        return f"{value!r:.40} is not a stored {kind}"
    if isinstance(shape, Table):
        return misfit(value[2], Many((shape.key, shape.value)), members)
    if isinstance(shape, Sequence):
        return misfit(value[2], Many(shape.item), members)
    if where := misfit(value[2], Many((TEXT, ANY))):
        return where
    found = dict(value[2])
    if found.keys() != shape.fields.keys() or len(found) != len(value[2]):
        return f"attributes {sorted(found)} instead of {sorted(shape.fields)}"
    for name, of in shape.fields.items():
        if where := misfit(found[name], of, members):
            return f"{name}: {where}"
    return ""
