"""Schema of the stored states and join states of each protocol, version 1.

Shapes are looked up by class name, also for subclasses. Custom protocols may store any value. A
change of `snapshot` or `join_state` needs a change of the shape here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from antecede.core.protocols.membership.newcomer_wait import NewcomerWait
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
    Leaf,
    Many,
    Named,
    OneOf,
    Record,
    Sequence,
    Shape,
    Table,
)
from antecede.core.protocols.serialization.state_tuples import DEQUE, LIST, TAG
from antecede.errors import DecodeError

_BOUNDS_LIST = Leaf(
    "a stored list of intervals",
    lambda v: type(v) is tuple and len(v) == 3 and v[:2] == (TAG, LIST) and BOUNDS.holds(v[2]),
)
_NUMBERS: Shape = Many((MEMBER, NUMBER))
_RANGES: Shape = Many((MEMBER, BOUNDS))
_ARRIVALS: Shape = Many(OneOf((MEMBER, BOUNDS), (MEMBER, BOUNDS, NUMBER)))
"""The third item, if present, is the number up to which gaps count as filled."""
_VECTORS: Shape = Many((MEMBER, WINDOW))
_NUMBERED = {"me": MEMBER, "members": MEMBERS, "sent": COUNT}
_ARRIVED = {"arrived": Table(MEMBER, _BOUNDS_LIST), "last": Table(MEMBER, NUMBER)}


def _counting(message: str, extra: Shape) -> Shape:
    return MEMBER, MEMBERS, COUNT, COUNTS, COUNTS, Many(Named(message)), extra


def _addressed(message: str) -> Shape:
    return MEMBER, MEMBERS, COUNT, Many((MEMBER, NUMBER)), Many(Named(message))


_FRONTIER: Shape = (COUNTS, COUNTS)
_KEPT: Shape = Many((MEMBER, COUNT, Many((Named("MatrixMessage"), NUMBER))))
_MATRIX: Shape = (Many(BIG), Many(BIG), NUMBER, _KEPT)
_CLOCK_OF_PEER: Shape = (COUNTS, _VECTORS, Many(Named("External")), COUNTS)
_TOPICS: Shape = Many((MEMBER, Many(TEXT)))
_TIMES: Shape = (Many((TEXT, NUMBER)), NUMBER, BIG)
_AHEAD = Table(MEMBER, Table(NUMBER, Named("StampedMessage")))

CLOCKS: dict[str, Shape] = {
    "members": MEMBERS,
    "sent": COUNT,
    "before": Table(MEMBER, NUMBER),
    "kept": Sequence(DEQUE, (MEMBERS, Named("StampedMessage"))),
    "dropped": NUMBER,
    "newest": Table(MEMBER, NUMBER),
    "ahead": _AHEAD,
    "high": Table(MEMBER, NUMBER),
    "last": Table(MEMBER, NUMBER),
    "given_up": Table(MEMBER, NUMBER),
    "linear_time": NUMBER,
    "held": Table(ID, Named("Taken")),
    "floors": Table(MEMBER, Named("Floor")),
    "heard": Table(MEMBER, Named("NullMessage")),
    "delivered": Table(MEMBER, NUMBER),
    "spoke": Table(MEMBER, TIME),
    "asked": Table(MEMBER, TIME),
    "arrived": Table(ID, TIME),
    "left": Table(MEMBER, MAYBE_TIME),
    "own_clock": Named("OwnClock"),
}
"""State attributes of an order by clocks, by name without the unit of time."""

STATES: dict[str, Shape] = {
    "Unordered": OneOf(
        Record(**_NUMBERED, **_ARRIVED),
        Record(**_NUMBERED, **_ARRIVED, closed=Table(MEMBER, NUMBER)),
    ),
    "Fifo": Record(**_NUMBERED, **_ARRIVED, held=Table(ID, Named("NumberedMessage"))),
    "Bss": _counting("BssMessage", (BOOL, BOOL, BIG)),
    "Ds": _counting("DsMessage", ()),
    "Idr": _counting("IdrMessage", BIG),
    "Matrix": _counting(
        "MatrixMessage",
        (
            _MATRIX,
            TIME,
            Many(Named("Heartbeat")),
            Many((MEMBER, (TIME, NUMBER))),
            Named("OwnClock"),
        ),
    ),
    "Ses": (_addressed("SesMessage"), (BIG, Many((MEMBER, BIG)), ANY, Many((MEMBER, BOUNDS)))),
    "Rst": (_addressed("RstMessage"), Many(BIG)),
    "SbState": (
        MEMBER,
        Named("Policy"),
        NUMBER,
        Many((MEMBER, BOUNDS, SIGNED)),
        _RANGES,
        Many((Named("SbMessage"), TIME, Many(ID))),
        Many((TEXT, NUMBER)),
        Many((MEMBER, PAIRS)),
        Named("OwnClock"),
    ),
    "TopicState": (
        MEMBER,
        MEMBERS,
        NUMBER,
        COUNTS,
        _TIMES,
        _ARRIVALS,
        Many((Named("TopicMessage"), TIME)),
        _TOPICS,
        Named("OwnClock"),
    ),
    "Sequencer": (
        MEMBER,
        NUMBER,
        NUMBER,
        _NUMBERS,
        Many(Named("SequencedMessage")),
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
        Many((MEMBER, Many((NUMBER, Named("TimedMessage"))))),
        Many((MEMBER, PAIRS)),
        Many(Named("TimedMessage")),
    ),
    "InternalPeer": (
        MEMBERS,
        NUMBER,
        NUMBER,
        BIG,
        WINDOW,
        Many(Named("Downward")),
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
        Many(Named("Upward")),
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
    shape = _shape_of(protocol, STATES)
    attributes = getattr(protocol, "state", ())
    if attributes and type(protocol).__module__.startswith("antecede.core.protocols."):
        names = (name.removesuffix("_ns").removesuffix("_s") for name in attributes)
        shape = (MEMBER, *(CLOCKS.get(name, ANY) for name in names))
    if isinstance(protocol, NewcomerWait) and isinstance(shape, tuple):
        shape = OneOf(shape, (*shape, MAYBE_TIME))
    _check(protocol, state, shape, members, "state")


def check_frontier(protocol: Any, frontier: Any, members: Collection[int]) -> None:
    """Raise DecodeError unless a join state has the protocol's shape."""
    _check(protocol, frontier, _shape_of(protocol, FRONTIERS), members, "frontier")


def _shape_of(protocol: Any, table: dict[str, Shape]) -> Shape:
    """Return the shape of the nearest class of this package; `ANY` for custom classes."""
    cls = type(protocol)
    if not cls.__module__.startswith("antecede.core.protocols."):
        return ANY
    return next((table[one.__name__] for one in cls.__mro__ if one.__name__ in table), ANY)


def _check(protocol: Any, value: Any, shape: Shape, members: Collection[int], what: str) -> None:
    if where := schema.misfit(value, shape, members):
        name = type(protocol).__name__
        raise DecodeError(f"stored {what} does not match {name}: {where}")
