"""Frames of a link between two peers: varint length, a byte for the kind, the body.

    HELLO    version; fingerprints of room, order and options, of the group and the list of members;
             who speaks, where it is reached, whether it wants to be let in, its frontier
    WELCOME  to a newcomer: the group, its invitation, who is in it, what was said lately
    LANES    names of lanes; from here on each is spoken of by its place among all that were named
    OWNER    a lane, and what shows whose it is (`antecede.live.seals`)
    BATCH    lane, number, block(seal), and the bytes of the ordering group
    HAVE     how far the sender has come in some lanes
    WANT     lanes whose batches behind a number the sender asks for, though they are not the
             other end's own; number 2**63: no more of them
    GONE     lanes, and the oldest number that the sender still has
    BUDGET   how many bytes the sender keeps for others (`antecede.live.flow`)
    PING     the sender's clock, and members it does not hear; PONG: the same clock back, and in
             orders by clocks what the system's clock of the sender shows
    BYE      why the link ends

What a link carries is in order and whole, or the link ends: TCP's promise, or the driver's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.errors import DecodeError, LimitError, MismatchError
from antecede.live.events import is_lane

VERSION = 1
HELLO, WELCOME, LANES, OWNER, BATCH, HAVE, WANT, GONE, PING, PONG, BYE, BUDGET = range(12)
MAX_FRAME = 1 << 26
MAX_FIRST = 1 << 20
"""Bytes of a frame from somebody who has not been greeted yet."""
MAX_CONTROL = 1 << 20
"""Bytes of a frame that is no batch, no welcome and no list of names."""
MAX_TEXT = 1000
MAX_LANES = 1 << 16
NO_MORE = 1 << 63
TAG = 8
"""Bytes of a fingerprint."""


class Hello(NamedTuple):
    """What each end says first."""

    room: bytes
    order: str
    options: bytes
    """Fingerprints: of the room's name, and of the order's options, with what these are
    (`antecede.live.differing`)."""
    group: bytes
    """Drawn when the group was founded; empty: the speaker wants to be let in."""
    view: bytes
    """Fingerprint of the list of members as the speaker knows it."""
    lane: str
    address: str
    owner: bytes
    """What shows that the lane is the speaker's."""
    frontier: Mapping[str, int]


class Welcome(NamedTuple):
    """What a newcomer starts from."""

    group: bytes
    invitation: bytes
    frontier: Mapping[str, int]
    members: Mapping[str, str]
    """Lane -> address."""
    gone: Iterable[str]
    """Lanes of those who left or were put out."""
    owners: Mapping[str, bytes]
    history: bytes


def framed(kind: int, *parts: bytes) -> bytes:
    """Return a frame."""
    return b"".join((varint(1 + sum(map(len, parts))), bytes((kind,)), *parts))


def frames(
    data: bytes, at_most: int = MAX_FRAME, offset: int = 0, count: int | None = None
) -> tuple[list[tuple[int, int, int]], int, int]:
    """Return (kind, start, end) of the bodies of all whole frames from an offset on, `count` of
    them at most; the offset behind them; and the size of the data at which one more can be whole.

    Raises LimitError for a frame that is too long, DecodeError for one without a kind.
    """
    found: list[tuple[int, int, int]] = []
    end = len(data)
    while offset < end and len(found) != count:
        length = shift = 0
        at = offset
        while True:
            if at >= end:
                return found, offset, end + 1
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 28:
                raise LimitError("a frame whose length needs more than 35 bits")
        if length > at_most:
            raise LimitError(f"a frame of {length} bytes; {at_most} are the most here")
        if not length:
            raise DecodeError("a frame without a kind")
        if at + length > end:
            return found, offset, at + length
        found.append((data[at], at + 1, at + length))
        offset = at + length
    return found, offset, offset + 1


def pack_hello(hello: Hello) -> bytes:
    """Return the first frame of a link."""
    tags = hello.room, hello.order.encode(), hello.options, hello.group, hello.view
    texts = hello.lane.encode(), hello.address.encode(), hello.owner
    return framed(HELLO, varint(VERSION), *map(block, (*tags, *texts)), table(hello.frontier))


def unpack_hello(body: bytes) -> Hello:
    """Return what the other end says first. Raises DecodeError."""
    reader = ByteReader(body)
    version = reader.varint()
    if version != VERSION:
        raise MismatchError(
            "kind", f"the other end speaks version {version} of the link; this is {VERSION}"
        )
    room, order, options = reader.block(), text(reader), reader.block()
    group, view, owned = reader.block(), reader.block(), lane(reader)
    address, owner = text(reader), reader.block()
    frontier = read_table(reader)
    reader.finish()
    return Hello(room, order, options, group, view, owned, address, owner, frontier)


def pack_welcome(welcome: Welcome) -> bytes:
    """Return the frame by which a newcomer is let in."""
    return framed(
        WELCOME,
        block(welcome.group),
        block(welcome.invitation),
        table(welcome.frontier),
        _texts({name: address.encode() for name, address in welcome.members.items()}),
        _texts(dict.fromkeys(welcome.gone, b"")),
        _texts(welcome.owners),
        welcome.history,
    )


def unpack_welcome(body: bytes) -> Welcome:
    """Return what a newcomer starts from. Raises DecodeError."""
    reader = ByteReader(body)
    group, invitation, frontier = reader.block(), reader.block(), read_table(reader)
    members = {name: _text(data) for name, data in _read_texts(reader).items()}
    gone, owners = tuple(_read_texts(reader)), _read_texts(reader)
    return Welcome(group, invitation, frontier, members, gone, owners, reader.rest())


def table(frontier: Mapping[str, int]) -> bytes:
    """Return a frontier as bytes, lanes named in full."""
    rows = (block(name.encode()) + varint(number) for name, number in frontier.items())
    return varint(len(frontier)) + b"".join(rows)


def read_table(reader: ByteReader) -> dict[str, int]:
    """Read what `table` wrote. Raises DecodeError."""
    return {lane(reader): reader.varint() for _ in range(_count(reader))}


def pack_rows(kind: int, rows: Iterable[tuple[int, int]]) -> bytes:
    """Return a frame of (place of a lane, number): HAVE, WANT or GONE."""
    return framed(kind, *(varint(place) + varint(number) for place, number in rows))


def read_rows(body: bytes, names: list[str]) -> dict[str, int]:
    """Read what `pack_rows` wrote, by lane. Raises DecodeError."""
    reader, end = ByteReader(body), len(body)
    rows: dict[str, int] = {}
    while reader.offset < end:
        name = named(reader.varint(), names)
        if name in rows:
            raise DecodeError(f"{name} stands twice in a frame")
        rows[name] = reader.varint()
    return rows


def named(place: int, names: list[str]) -> str:
    """Return the lane at a place. Raises DecodeError for one that was not named."""
    if place >= len(names):
        raise DecodeError(f"lane {place} is spoken of, and {len(names)} were named")
    return names[place]


def read_places(reader: ByteReader, names: list[str]) -> Iterator[str]:
    """Read the lanes at the places that fill the rest of a frame. Raises DecodeError."""
    while reader.offset < len(reader.data):
        yield named(reader.varint(), names)


def pack_names(names: Iterable[str]) -> bytes:
    """Return the frame that names more lanes."""
    return framed(LANES, *(block(name.encode()) for name in names))


def read_names(body: bytes, at_most: int = MAX_LANES) -> list[str]:
    """Read what `pack_names` wrote. Raises DecodeError, also for more names than `at_most`."""
    reader, names = ByteReader(body), list[str]()
    while reader.offset < len(body):
        if len(names) == at_most:
            raise DecodeError(f"more than {MAX_LANES} lanes on a link")
        names.append(lane(reader))
    return names


def lane(reader: ByteReader) -> str:
    """Read a lane's name. Raises DecodeError."""
    name = text(reader)
    if not is_lane(name):
        raise DecodeError(f"{name!r:.60} is no lane")
    return name


def text(reader: ByteReader) -> str:
    """Read a short text. Raises DecodeError."""
    return _text(reader.block())


def _text(raw: bytes) -> str:
    if len(raw) > MAX_TEXT:
        raise DecodeError(f"a text of {len(raw)} bytes; {MAX_TEXT} are the most")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise DecodeError("a text that is not UTF-8") from error


def _count(reader: ByteReader) -> int:
    count = reader.varint()
    if count > MAX_LANES:
        raise DecodeError(f"{count} lanes announced; {MAX_LANES} are the most")
    return count


def _texts(texts: Mapping[str, bytes]) -> bytes:
    rows = (block(name.encode()) + block(data) for name, data in texts.items())
    return varint(len(texts)) + b"".join(rows)


def _read_texts(reader: ByteReader) -> dict[str, bytes]:
    return {lane(reader): reader.block() for _ in range(_count(reader))}
