"""Frames between a super peer and its internal peers, beside those of every connection.

- `HELLO`: internal peer that joins; its former super peer; its external positions
- `WAIT`: sender id of the super peer; the peer waits for messages that it has itself
- `JOIN_REPLY`: its number, the group's frontier, and the start of its messages
- `UP`: its message: block(control information), payload
- `DOWN`: numbered message: position, block(control information), payload
- `HAD`: number of those received
- `SUPERS`: addresses of other super peers
- `LEAVE`: leave of the peer
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from antecede.core.clocks.encoding import ByteReader, block, varint, windows
from antecede.errors import DecodeError, MismatchError
from antecede.live import wire
from antecede.live.hierarchy.origin import Place, Places

VERSION: Final = 2
HELLO, WAIT, WELCOME, UP, DOWN, HAD, SUPERS, LEAVE = range(32, 40)
OUT: Final = "evicted by its super peer"
"""Prefix of the BYE to an evicted internal peer."""
ANEW: Final = "join again"
"""Prefix of the BYE to a peer that this super peer cannot resume."""
MAX_SUPERS: Final = 1000


class InternalHello(NamedTuple):
    """HELLO of an internal peer."""

    room: bytes
    options: bytes
    """Shared settings (`antecede.live.differing`)."""
    group: bytes
    """Tag of its group. Empty: it joins for the first time."""
    lane: str
    owner: bytes
    before: str
    """Sender id of its former super peer. Empty: none."""
    address: int
    """Number from that super peer."""
    had: int
    times: int
    """Number of its HELLOs, this one included."""
    places: Places


class InternalJoinReply(NamedTuple):
    """State for an internal peer."""

    group: bytes
    lane: str
    """Sender id of the super peer."""
    address: int
    resumed: bool
    """True if it resumes: then only `taken` of the fields below counts."""
    taken: int
    """Number of its messages that were accepted."""
    number: int
    heads: tuple[int, int]
    """Frontier of the protocol."""
    start: int
    """Number before its first message."""
    until: int
    """Messages up to here are from before that frontier, in order."""
    places: Places


def pack_hello(hello: InternalHello) -> bytes:
    """Return the first frame of a connection to a super peer."""
    texts = (
        *(hello.room, hello.options, hello.group),
        *(hello.lane.encode(), hello.owner, hello.before.encode()),
    )
    numbers = hello.address, hello.had, hello.times
    parts = *map(block, texts), *map(varint, numbers), hello.places.pack()
    return wire.pack_frame(HELLO, varint(VERSION), *parts)


def unpack_hello(body: bytes) -> InternalHello:
    """Return the HELLO of an internal peer. Raises DecodeError, MismatchError."""
    reader = ByteReader(body)
    version = reader.varint()
    if version != VERSION:
        raise MismatchError(
            "kind", f"protocol version {version} of an internal peer differs from {VERSION}"
        )
    room, options, group = reader.block(), reader.block(), reader.block()
    lane, owner, before = wire.lane(reader), reader.block(), wire.text(reader)
    numbers = reader.varint(), reader.varint(), reader.varint()
    places = Places.read(reader)
    reader.finish()
    return InternalHello(room, options, group, lane, owner, before, *numbers, places)


def pack_join_reply(welcome: InternalJoinReply) -> bytes:
    """Return the frame that admits an internal peer."""
    base, bits = welcome.heads
    numbers = (
        *(welcome.address, welcome.resumed, welcome.taken),
        *(welcome.number, welcome.start, welcome.until),
    )
    return wire.pack_frame(
        WELCOME,
        block(welcome.group),
        block(welcome.lane.encode()),
        *map(varint, numbers),
        block(windows.encode(base, bits)),
        welcome.places.pack(),
    )


def unpack_join_reply(body: bytes) -> InternalJoinReply:
    """Return a join reply. Raises DecodeError."""
    reader = ByteReader(body)
    group, lane = reader.block(), wire.lane(reader)
    address, resumed, taken = reader.varint(), bool(reader.varint()), reader.varint()
    number, start, until = reader.varint(), reader.varint(), reader.varint()
    heads, places = windows.decode(reader.block()), Places.read(reader)
    reader.finish()
    if len(group) != wire.TAG or not address or start > until:
        raise DecodeError("join reply without a group")
    return InternalJoinReply(
        *(group, lane, address, resumed, taken, number, heads, start, until, places),
    )


def pack_down(place: int, number: int, notes: int, control: bytes, payload: bytes) -> bytes:
    """Return the frame of a numbered message; `place`: index of its external sender."""
    more = varint(notes) if notes else b""
    head = varint(place << 1 | bool(notes)), more, varint(number), block(control)
    return wire.pack_frame(DOWN, *head, payload)


def unpack_down(body: bytes, names: list[str]) -> tuple[Place, bytes, bytes]:
    """Return position, control information, payload. Raises DecodeError."""
    reader = ByteReader(body)
    head = reader.varint()
    notes = reader.varint() if head & 1 else 0
    number = reader.varint()
    if number < 1 or notes >= number:
        raise DecodeError(f"invalid position {number} with {notes} entries before it")
    place = Place(wire.lookup_sender_id(head >> 1, names), number, notes)
    return place, reader.block(), reader.rest()


def pack_up(control: bytes, payload: bytes) -> bytes:
    """Return the frame of an internal peer's message."""
    return wire.pack_frame(UP, block(control), payload)


def pack_supers(supers: Iterable[tuple[str, str]]) -> bytes:
    """Return the frame of super peers: (sender id, address)."""
    rows = [block(lane.encode()) + block(address.encode()) for lane, address in supers]
    return wire.pack_frame(SUPERS, varint(len(rows)), *rows)


def unpack_supers(body: bytes) -> dict[str, str]:
    """Return the super peers of a frame. Raises DecodeError."""
    reader = ByteReader(body)
    count = reader.varint()
    if count > MAX_SUPERS:
        raise DecodeError(f"{count} super peers; the limit is {MAX_SUPERS}")
    return {wire.lane(reader): wire.text(reader) for _ in range(count)}


def kind_of(data: bytes) -> int | None:
    """Return the kind of the first frame of a connection. None: incomplete."""
    for at, byte in enumerate(data[:5]):
        if byte < 0x80:
            return data[at + 1] if len(data) > at + 1 else None
    return None if len(data) < 5 else -1
