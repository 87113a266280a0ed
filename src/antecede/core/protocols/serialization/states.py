"""Schema of the stored states and join states of each protocol, version 1.

Shapes are looked up by class name, also for subclasses. Custom protocols may store any value. A
change of `snapshot` or `frontier` needs a change of the shape here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from antecede.core.protocols.membership.newcomer_wait import JoinWait
from antecede.core.protocols.serialization import schema
from antecede.core.protocols.serialization.schema import (
    ANY,
    BIG,
    BOOL,
    BOUNDS,
    COUNT,
    COUNTS,
    ID,
    MAYBE_TIME,
    MEMBER,
    MEMBERS,
    NUMBER,
    PAIRS,
    SIGNED,
    TEXT,
    TIME,
    WINDOW,
    AttributesOf,
    ContainerOf,
    Many,
    MapOf,
    NamedTupleOf,
    OneOf,
    Scalar,
    Shape,
)
from antecede.core.protocols.serialization.state_tuples import DEQUE, LIST, TAG
from antecede.errors import DecodeError

_BOUNDS_LIST = Scalar(
    "a stored list of intervals",
    lambda v: type(v) is tuple and len(v) == 3 and v[:2] == (TAG, LIST) and BOUNDS.matches(v[2]),
)
_NUMBERS: Shape = Many((MEMBER, NUMBER))
_RANGES: Shape = Many((MEMBER, BOUNDS))
_ARRIVALS: Shape = Many(OneOf((MEMBER, BOUNDS), (MEMBER, BOUNDS, NUMBER)))
"""The third item, if present, is the number up to which gaps count as filled."""
_VECTORS: Shape = Many((MEMBER, WINDOW))
_NUMBERED = {"me": MEMBER, "members": MEMBERS, "sent": COUNT}
_ARRIVED = {"arrived": MapOf(MEMBER, _BOUNDS_LIST), "last": MapOf(MEMBER, NUMBER)}


def _make_counting_shape(message: str, extra: Shape) -> Shape:
    return MEMBER, MEMBERS, COUNT, COUNTS, COUNTS, Many(NamedTupleOf(message)), extra


def _make_addressed_shape(message: str) -> Shape:
    return MEMBER, MEMBERS, COUNT, Many((MEMBER, NUMBER)), Many(NamedTupleOf(message))


_FRONTIER: Shape = (COUNTS, COUNTS)
_KEPT: Shape = Many((MEMBER, COUNT, Many((NamedTupleOf("MatrixMessage"), NUMBER))))
_MATRIX: Shape = (Many(BIG), Many(BIG), NUMBER, _KEPT)
_CLOCK_OF_PEER: Shape = (COUNTS, _VECTORS, Many(NamedTupleOf("External")), COUNTS)
_TOPICS: Shape = Many((MEMBER, Many(TEXT)))
_TIMES: Shape = (Many((TEXT, NUMBER)), NUMBER, BIG)
_AHEAD = MapOf(MEMBER, MapOf(NUMBER, NamedTupleOf("StampedMessage")))

CLOCKS: dict[str, Shape] = {
    "members": MEMBERS,
    "sent": COUNT,
    "before": MapOf(MEMBER, NUMBER),
    "kept": ContainerOf(DEQUE, (MEMBERS, NamedTupleOf("StampedMessage"))),
    "dropped": NUMBER,
    "newest": MapOf(MEMBER, NUMBER),
    "ahead": _AHEAD,
    "high": MapOf(MEMBER, NUMBER),
    "last": MapOf(MEMBER, NUMBER),
    "abandoned": MapOf(MEMBER, NUMBER),
    "linear_time": NUMBER,
    "held": MapOf(ID, NamedTupleOf("AcceptedMessage")),
    "lower_bounds": MapOf(MEMBER, NamedTupleOf("LowerBound")),
    "null_messages": MapOf(MEMBER, NamedTupleOf("NullMessage")),
    "delivered": MapOf(MEMBER, NUMBER),
    "last_sent": MapOf(MEMBER, TIME),
    "last_request": MapOf(MEMBER, TIME),
    "arrived": MapOf(ID, TIME),
    "left": MapOf(MEMBER, MAYBE_TIME),
    "own_clock": NamedTupleOf("MonotonicClock"),
}
"""State attributes of an order by clocks, by name without the unit of time."""

STATES: dict[str, Shape] = {
    "Unordered": OneOf(
        AttributesOf(**_NUMBERED, **_ARRIVED),
        AttributesOf(**_NUMBERED, **_ARRIVED, closed=MapOf(MEMBER, NUMBER)),
    ),
    "Fifo": AttributesOf(**_NUMBERED, **_ARRIVED, held=MapOf(ID, NamedTupleOf("NumberedMessage"))),
    "Bss": _make_counting_shape("BssMessage", (BOOL, BOOL, BIG)),
    "Ds": _make_counting_shape("DsMessage", ()),
    "Idr": _make_counting_shape("IdrMessage", BIG),
    "Matrix": _make_counting_shape(
        "MatrixMessage",
        (
            _MATRIX,
            TIME,
            Many(NamedTupleOf("Heartbeat")),
            Many((MEMBER, (TIME, NUMBER))),
            NamedTupleOf("MonotonicClock"),
        ),
    ),
    "Ses": (
        _make_addressed_shape("SesMessage"),
        (BIG, Many((MEMBER, BIG)), ANY, Many((MEMBER, BOUNDS))),
    ),
    "Rst": (_make_addressed_shape("RstMessage"), Many(BIG)),
    "SbState": (
        MEMBER,
        NamedTupleOf("ReplyPolicy"),
        NUMBER,
        Many((MEMBER, BOUNDS, SIGNED)),
        _RANGES,
        Many((NamedTupleOf("SbMessage"), TIME, Many(ID))),
        Many((TEXT, NUMBER)),
        Many((MEMBER, PAIRS)),
        NamedTupleOf("MonotonicClock"),
    ),
    "TopicState": (
        MEMBER,
        MEMBERS,
        NUMBER,
        COUNTS,
        _TIMES,
        _ARRIVALS,
        Many((NamedTupleOf("TopicMessage"), TIME)),
        _TOPICS,
        NamedTupleOf("MonotonicClock"),
    ),
    "Sequencer": (
        MEMBER,
        NUMBER,
        NUMBER,
        _NUMBERS,
        Many(NamedTupleOf("SequencedMessage")),
        Many((NUMBER, (MEMBER, NUMBER, NUMBER))),
    ),
    "AgreedTimestamps": (
        MEMBER,
        MEMBERS,
        NUMBER,
        NUMBER,
        NUMBER,
        _NUMBERS,
        _NUMBERS,
        _NUMBERS,
        Many((MEMBER, Many((NUMBER, NamedTupleOf("TimedMessage"))))),
        Many((MEMBER, PAIRS)),
        Many(NamedTupleOf("TimedMessage")),
    ),
    "InternalPeer": (
        MEMBERS,
        NUMBER,
        NUMBER,
        BIG,
        WINDOW,
        Many(NamedTupleOf("Downward")),
        (NUMBER, NUMBER),
    ),
    "ExternalPeer": (MEMBERS, NUMBER, (COUNTS, _VECTORS), _CLOCK_OF_PEER),
    "SuperPeer": (
        MEMBERS,
        MEMBERS,
        Many((MEMBER, WINDOW)),
        COUNTS,
        NUMBER,
        WINDOW,
        Many(NamedTupleOf("Upward")),
        _CLOCK_OF_PEER,
        (COUNTS, Many((NUMBER, (MEMBER, NUMBER))), PAIRS, WINDOW),
    ),
}

FRONTIERS: dict[str, Shape] = {
    "Unordered": (_RANGES, COUNTS),
    "Fifo": _FRONTIER,
    "Bss": _FRONTIER,
    "Ds": _FRONTIER,
    "Idr": (_FRONTIER, MEMBERS),
    "Matrix": (_FRONTIER, Many((MEMBER, BIG)), _KEPT),
    "Ses": (MEMBERS, COUNTS, BIG, Many((MEMBER, BIG))),
    "Rst": (MEMBERS, COUNTS, Many(BIG)),
    "SbState": Many((MEMBER, BOUNDS, SIGNED)),
    "TopicState": (_RANGES, COUNTS, _TIMES, _TOPICS),
    "ClockOrdered": (NUMBER, MEMBERS, COUNTS),
    "InternalPeer": (MEMBERS, NUMBER, WINDOW),
    "ExternalPeer": (MEMBERS, COUNTS, _VECTORS, COUNTS, _VECTORS, COUNTS),
    "SuperPeer": (MEMBERS, NUMBER, WINDOW),
}


def check_state(protocol: Any, state: Any, members: Collection[int]) -> None:
    """Raise DecodeError unless a state has the protocol's shape; `members`: known numbers."""
    shape = _find_shape(protocol, STATES)
    attributes = getattr(protocol, "state", ())
    if attributes and type(protocol).__module__.startswith("antecede.core.protocols."):
        names = (name.removesuffix("_ns").removesuffix("_s") for name in attributes)
        shape = (MEMBER, *(CLOCKS.get(name, ANY) for name in names))
    if isinstance(protocol, JoinWait) and isinstance(shape, tuple):
        shape = OneOf(shape, (*shape, MAYBE_TIME))
    _check(protocol, state, shape, members, "state")


def check_frontier(protocol: Any, frontier: Any, members: Collection[int]) -> None:
    """Raise DecodeError unless a join state has the protocol's shape."""
    _check(protocol, frontier, _find_shape(protocol, FRONTIERS), members, "join state")


def _find_shape(protocol: Any, table: dict[str, Shape]) -> Shape:
    """Return the shape of the nearest class of this package; `ANY` for custom classes."""
    cls = type(protocol)
    if not cls.__module__.startswith("antecede.core.protocols."):
        return ANY
    return next((table[one.__name__] for one in cls.__mro__ if one.__name__ in table), ANY)


def _check(protocol: Any, value: Any, shape: Shape, members: Collection[int], what: str) -> None:
    if where := schema.misfit(value, shape, members):
        name = type(protocol).__name__
        raise DecodeError(f"stored {what} does not match {name}: {where}")
