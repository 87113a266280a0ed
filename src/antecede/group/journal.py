"""The log of a group's inputs: what has come in since a snapshot, as small records.

A protocol is deterministic, so a snapshot and the inputs since then are the state. A record is
written for each call that changed something, and holds what the call was given: its cost does not
grow with the state, where a snapshot with a thousand held messages does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from antecede.errors import DecodeError
from antecede.protocols.stored.codec import pack_state, unpack_state
from antecede.protocols.stored.shapes import (
    BOOL,
    BYTES,
    NUMBER,
    SIGNED,
    TEXT,
    Many,
    OneOf,
    Shape,
    misfit,
)

READING: Shape = OneOf(None, SIGNED)
IDS: Shape = Many((TEXT, NUMBER))
NAMES: Shape = Many(TEXT)

KINDS: dict[str, Shape] = {
    "receive": (BYTES, READING),
    "post": (BYTES, OneOf(None, NAMES), NAMES, IDS, READING),
    "tick": (SIGNED,),
    "correct_clock": (SIGNED,),
    "join": (TEXT,),
    "leave": OneOf((TEXT, NUMBER), (TEXT, NUMBER, BOOL)),
    "forget": (TEXT,),
    "begin_at": (OneOf(None, IDS),),
    "subscribe": (TEXT, NAMES),
    "release": (IDS,),
    "outgoing": (),
    "delivered": (),
}
"""What a record of each kind holds, version 1."""


def record(kind: str, *values: Any) -> bytes:
    """Return one input as bytes."""
    return pack_state((kind, values))


def replay(data: bytes, doors: Mapping[str, Callable[..., Any]]) -> None:
    """Do again what a record says, through the door of its kind. Raises DecodeError."""
    kind, values = unpack_state(data, 2)
    if misfit(kind, TEXT) or kind not in KINDS:
        raise DecodeError(f"a record of an unknown kind: {kind!r:.40}")
    if where := misfit(values, KINDS[kind]):
        raise DecodeError(f"a record of {kind!r} that cannot be: {where}")
    doors[kind](*values)
