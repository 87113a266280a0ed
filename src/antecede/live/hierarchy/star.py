"""Frames between a super peer and the peers inside, beside those of every link.

HELLO    who wants to be inside; who its super peer was, and what it has of the mesh
WAIT     the super peer's lane: the peer is known, and may have to wait for what it has itself
WELCOME  its number, where the group is, and where its messages begin
UP       what it sends: block(control information), payload
DOWN     what the super peer numbered: its place in the mesh, block(control information), payload
HAD      so many of those have come
SUPERS   where else it may go
LEAVE    it leaves
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
OUT: Final = "put out by its super peer"
"""How the last word to a peer inside begins for whom there is no way back in that life."""
ANEW: Final = "join anew"
"""How the word begins that this super peer cannot go on with that life."""
MAX_SUPERS: Final = 1000


class Hello(NamedTuple):
    """What a peer says that wants to be inside."""

    room: bytes
    options: bytes
    """What all give alike beside the room, as `antecede.live.differing` tells it."""
    group: bytes
    """Of the mesh it was in; empty: it comes for the first time."""
    lane: str
    owner: bytes
    before: str
    """Lane of the super peer it had; empty: none."""
    address: int
    """Number that one gave it."""
    had: int
    """How many messages it had of that one."""
    times: int
    """How often it has said hello, with this time."""
    places: Places
    """What it has of the mesh."""


class Welcome(NamedTuple):
    """What a peer inside begins from."""

    group: bytes
    lane: str
    """The super peer's."""
    address: int
    resumed: bool
    """Whether it goes on where it was: then `taken` counts, and nothing below does."""
    taken: int
    """So many of its messages were taken."""
    number: int
    heads: tuple[int, int]
    """Where the group is by now: the protocol's frontier."""
    start: int
    """Its first message is the next after so many."""
    until: int
    """Up to here they are from before that frontier: they come in order by themselves."""
    places: Places
    """What counts as had: all up to `start`; for who had another super peer, what else does."""


def pack_hello(hello: Hello) -> bytes:
    """Return the first frame of a link to a super peer."""
    texts = (
        *(hello.room, hello.options, hello.group),
        *(hello.lane.encode(), hello.owner, hello.before.encode()),
    )
    numbers = hello.address, hello.had, hello.times
    parts = *map(block, texts), *map(varint, numbers), hello.places.pack()
    return wire.framed(HELLO, varint(VERSION), *parts)


def unpack_hello(body: bytes) -> Hello:
    """Return what a peer says that wants to be inside. Raises DecodeError, MismatchError."""
    reader = ByteReader(body)
    version = reader.varint()
    if version != VERSION:
        raise MismatchError("kind", f"a peer inside speaks version {version}; this is {VERSION}")
    room, options, group = reader.block(), reader.block(), reader.block()
    lane, owner, before = wire.lane(reader), reader.block(), wire.text(reader)
    numbers = reader.varint(), reader.varint(), reader.varint()
    places = Places.read(reader)
    reader.finish()
    return Hello(room, options, group, lane, owner, before, *numbers, places)


def pack_welcome(welcome: Welcome) -> bytes:
    """Return the frame that lets a peer inside."""
    base, bits = welcome.heads
    numbers = (
        *(welcome.address, welcome.resumed, welcome.taken),
        *(welcome.number, welcome.start, welcome.until),
    )
    return wire.framed(
        WELCOME,
        block(welcome.group),
        block(welcome.lane.encode()),
        *map(varint, numbers),
        block(windows.encode(base, bits)),
        welcome.places.pack(),
    )


def unpack_welcome(body: bytes) -> Welcome:
    """Return what `pack_welcome` wrote. Raises DecodeError."""
    reader = ByteReader(body)
    group, lane = reader.block(), wire.lane(reader)
    address, resumed, taken = reader.varint(), bool(reader.varint()), reader.varint()
    number, start, until = reader.varint(), reader.varint(), reader.varint()
    heads, places = windows.decode(reader.block()), Places.read(reader)
    reader.finish()
    if len(group) != wire.TAG or not address or start > until:
        raise DecodeError("a welcome to no group")
    return Welcome(
        *(group, lane, address, resumed, taken, number, heads, start, until, places),
    )


def pack_down(place: int, number: int, notes: int, control: bytes, payload: bytes) -> bytes:
    """Return the frame of a message for the group; `place`: of its lane in the mesh."""
    more = varint(notes) if notes else b""
    head = varint(place << 1 | bool(notes)), more, varint(number), block(control)
    return wire.framed(DOWN, *head, payload)


def unpack_down(body: bytes, names: list[str]) -> tuple[Place, bytes, bytes]:
    """Return place, control information, payload. Raises DecodeError."""
    reader = ByteReader(body)
    head = reader.varint()
    notes = reader.varint() if head & 1 else 0
    number = reader.varint()
    if number < 1 or notes >= number:
        raise DecodeError(f"a message at place {number}, {notes} notes before it")
    place = Place(wire.named(head >> 1, names), number, notes)
    return place, reader.block(), reader.rest()


def pack_up(control: bytes, payload: bytes) -> bytes:
    """Return the frame of what a peer inside sends."""
    return wire.framed(UP, block(control), payload)


def pack_supers(supers: Iterable[tuple[str, str]]) -> bytes:
    """Return the frame that names super peers: (lane, address)."""
    rows = [block(lane.encode()) + block(address.encode()) for lane, address in supers]
    return wire.framed(SUPERS, varint(len(rows)), *rows)


def unpack_supers(body: bytes) -> dict[str, str]:
    """Return what `pack_supers` wrote. Raises DecodeError."""
    reader = ByteReader(body)
    count = reader.varint()
    if count > MAX_SUPERS:
        raise DecodeError(f"{count} super peers; {MAX_SUPERS} are the most")
    return {wire.lane(reader): wire.text(reader) for _ in range(count)}


def kind_of(data: bytes) -> int | None:
    """Return the kind of the first frame of a link; None: that has not come yet."""
    for at, byte in enumerate(data[:5]):
        if byte < 0x80:
            return data[at + 1] if len(data) > at + 1 else None
    return None if len(data) < 5 else -1
