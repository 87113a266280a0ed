"""What a datagram carries: packets, each with its length in front, a byte for the kind, the body.

    FRAME    number (0: a note), and the bytes of the ordering group; of the sender's own
    HANDED   lane, number, bytes: of somebody else, handed on
    PART     parcel, index, count, and a part of a packet that fits no datagram
    PARTS    parcel, and which of its parts have come, a bit each
    HAVE     how many changes of the members the sender knows; its clock; the other end's clock as
             it last came, and how long ago that was; how far the sender has come of each member
    AGREE    about the next change of the members (`agreement`)
    WANT     lane, first and last number: of a member that is gone, please hand on
    HOLDS    lane, first number, and which numbers from there on one has: the answer to a WANT
    JOIN     address: please let me in
    WELCOME  to a newcomer: what it starts from
    REFUSED  to a newcomer: why not; after a "!" only this life of it is refused

Nothing here is trusted: a packet that does not decode raises DecodeError.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from antecede.clocks.wire import Reader, block, varint
from antecede.errors import DecodeError
from antecede.live import wire

FRAME, HANDED, PART, PARTS, HAVE, AGREE, WANT, JOIN, WELCOME, REFUSED, HOLDS = range(11)
MAX_MEMBERS = 1024
"""Numbers of members that there can be, those that are gone included."""
MAX_RANGE = 1 << 16


class Have(NamedTuple):
    """How far a member has come."""

    changes: int
    clock: int
    echo: int
    """The other end's clock as it last came; 0: it has not."""
    echo_age: int
    rows: Mapping[int, int]
    """Number of a member -> how far its messages are delivered."""


class Welcome(NamedTuple):
    """What a newcomer starts from."""

    group: bytes
    invitation: bytes
    changes: int
    """How many changes of the members there were, its own coming included."""
    members: Mapping[int, tuple[str, str]]
    """Number -> (lane, address), the newcomer among them."""
    next_number: int


def packets(data: bytes) -> Iterator[bytes]:
    """Yield the packets of a datagram. Raises DecodeError where it is none."""
    reader, end = Reader(data), len(data)
    while reader.offset < end:
        packet = reader.block()
        if not packet:
            raise DecodeError("a packet without a kind")
        yield packet


def packet(kind: int, *parts: bytes) -> bytes:
    """Return a packet."""
    return b"".join((bytes((kind,)), *parts))


def pack_have(have: Have) -> bytes:
    """Return a HAVE."""
    rows = [varint(number) + varint(count) for number, count in have.rows.items()]
    head = map(varint, (have.changes, have.clock, have.echo, have.echo_age, len(rows)))
    return packet(HAVE, *head, *rows)


def read_have(reader: Reader) -> Have:
    """Read what `pack_have` wrote. Raises DecodeError."""
    changes, clock, echo, age = (reader.varint() for _ in range(4))
    rows = {reader.varint(): reader.varint() for _ in range(_count(reader))}
    reader.finish()
    return Have(changes, clock, echo, age, rows)


def pack_welcome(welcome: Welcome) -> bytes:
    """Return a WELCOME."""
    rows = [
        varint(number) + block(lane.encode()) + block(address.encode())
        for number, (lane, address) in welcome.members.items()
    ]
    return packet(
        *(WELCOME, block(welcome.group), block(welcome.invitation), varint(welcome.changes)),
        *(varint(welcome.next_number), varint(len(rows)), *rows),
    )


def read_welcome(reader: Reader) -> Welcome:
    """Read what `pack_welcome` wrote. Raises DecodeError."""
    group, invitation, changes = reader.block(), reader.block(), reader.varint()
    following = reader.varint()
    members = {
        reader.varint(): (wire.lane(reader), wire.text(reader)) for _ in range(_count(reader))
    }
    reader.finish()
    if any(number >= following for number in members) or following > MAX_MEMBERS:
        raise DecodeError("a welcome with members that have no numbers")
    return Welcome(group, invitation, changes, members, following)


def _count(reader: Reader) -> int:
    count = reader.varint()
    if count > MAX_MEMBERS:
        raise DecodeError(f"{count} members announced; {MAX_MEMBERS} are the most")
    return count
