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


class Scalar(NamedTuple):
    """Plain value: its name for errors, and a predicate."""

    name: str
    matches: Callable[[Any], bool]


class Many(NamedTuple):
    """Plain tuple of any length."""

    item: Any


class NamedTupleOf(NamedTuple):
    """Named tuple, by the name of its class."""

    class_name: str


class OneOf:
    """Any of several shapes."""

    def __init__(self, *shapes: Any) -> None:
        self.shapes = shapes


class MapOf(NamedTuple):
    """Dictionary in the form of `freeze`."""

    key: Any
    value: Any


class AttributesOf:
    """Attributes of an object in the form of `freeze`."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields


class ContainerOf(NamedTuple):
    """List, set or deque in the form of `freeze`."""

    kind: str
    item: Any


Shape: TypeAlias = (
    Scalar
    | Many
    | NamedTupleOf
    | OneOf
    | MapOf
    | AttributesOf
    | ContainerOf
    | tuple[Any, ...]
    | None
)


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_NUMBER


def _is_time(value: Any) -> bool:
    return type(value) is int and -MAX_NUMBER <= value <= MAX_NUMBER


def _is_time_or_none(value: Any) -> bool:
    return value is None or _is_time(value)


def _is_option_s(value: Any) -> bool:
    if type(value) is float:
        return math.isfinite(value)
    return _is_time_or_none(value)


def _is_ascending(value: Any) -> bool:
    if type(value) is not tuple or len(value) % 2 or not all(map(_is_whole, value)):
        return False
    return all(low < high for low, high in pairwise((0, *value)))


NUMBER = Scalar("a whole number from 0", _is_whole)
MEMBER = Scalar("a member's number", _is_whole)
SIGNED = Scalar("a whole number", lambda v: type(v) is int and abs(v) <= MAX_NUMBER)
BIG = Scalar("a packed vector", lambda v: type(v) is int and v >= 0 and v.bit_length() <= MAX_BITS)
TIME = Scalar("a time in nanoseconds", _is_time)
MAYBE_TIME = Scalar("a time in nanoseconds or none", _is_time_or_none)
MAYBE_SECONDS = Scalar("an option in seconds or none", _is_option_s)
BOOL = Scalar("True or False", lambda v: type(v) is bool)
TEXT = Scalar("text", lambda v: type(v) is str)
BYTES = Scalar("bytes", lambda v: type(v) is bytes)
BOUNDS = Scalar("the bounds of ascending intervals", _is_ascending)
COUNT = Scalar("a message's number", lambda v: type(v) is int and 0 <= v <= MAX_VALUE)
ANY = Scalar("anything", lambda v: True)
ID: Shape = NamedTupleOf("MessageId")
PAIRS: Shape = Many((NUMBER, NUMBER))
WINDOW: Shape = (NUMBER, BIG)
MEMBERS: Shape = Many(MEMBER)
COUNTS: Shape = Many((MEMBER, COUNT))
"""(member, number) for some members."""


def misfit(value: Any, shape: Shape, members: Collection[int] | None = None) -> str:
    """Return where and how a value differs from the shape, or "". Each `MEMBER` is in `members`."""
    if isinstance(shape, Scalar):
        if not shape.matches(value):
            return f"{value!r:.40} is not {shape.name}"
        if shape is MEMBER and members is not None and value not in members:
            return f"member {value} has no name"
        return ""
    if shape is None:
        return "" if value is None else f"{value!r:.40} is not None"
    if isinstance(shape, OneOf):
        tried = [misfit(value, one, members) for one in shape.shapes]
        return "" if "" in tried else tried[0]
    if isinstance(shape, NamedTupleOf):
        named = isinstance(value, tuple) and type(value).__name__ == shape.class_name
        return "" if named else f"{value!r:.40} is no {shape.class_name}"
    if isinstance(shape, MapOf | AttributesOf | ContainerOf):
        return _find_frozen_mismatch(value, shape, members)
    if type(value) is not tuple:
        return f"{value!r:.40} is not a tuple"
    shapes = [shape.item] * len(value) if isinstance(shape, Many) else list(shape)
    if len(shapes) != len(value):
        return f"{len(value)} values instead of {len(shapes)}"
    for place, (item, of) in enumerate(zip(value, shapes, strict=True)):
        if where := misfit(item, of, members):
            return f"[{place}] {where}"
    return ""


def _find_frozen_mismatch(
    value: Any, shape: MapOf | AttributesOf | ContainerOf, members: Collection[int] | None
) -> str:
    kind = shape.kind if isinstance(shape, ContainerOf) else state_tuples.DICT
    if type(value) is not tuple or len(value) != 3 or value[:2] != (state_tuples.TAG, kind):
        return f"{value!r:.40} is not a stored {kind}"
    if isinstance(shape, MapOf):
        return misfit(value[2], Many((shape.key, shape.value)), members)
    if isinstance(shape, ContainerOf):
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
