"""Frames of a connection between two peers: varint length, one byte for the kind, body.

    HELLO       version; hashes of group name, order and options, group and member list;
                sender id, address, join request or not, frontier
    JOIN_REPLY  to a joining member: group, invitation, members, history
    SENDER_IDS  sender ids; later frames use their indices on this connection
    SIGNER      sender id and proof of its owner (`antecede.live.seals`)
    BATCH       sender, number, block(signature), bytes of the ordering group
    ACK         newest number received of some senders
    NAK         request to relay the batches of some senders behind a number;
                number 2**63: cancel the request
    TRUNCATED   senders, and the oldest number that this member still has
    BUDGET      bytes that this member keeps for others (`antecede.live.flow`)
    PING        clock of this member, and members that it does not hear
    PONG        clock of the PING; in orders by clocks also the system clock
    BYE         reason of the close

A connection delivers all bytes in order, or ends: guaranteed by TCP or by the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.errors import DecodeError, LimitError, MismatchError
from antecede.live.events import is_lane

VERSION = 1
HELLO, JOIN_REPLY, SENDER_IDS, SIGNER, BATCH, ACK, NAK, TRUNCATED, PING, PONG, BYE, BUDGET = range(
    12
)
MAX_FRAME = 1 << 26
MAX_FIRST = 1 << 20
"""Largest frame before HELLO, bytes."""
MAX_CONTROL = 1 << 20
"""Largest frame except BATCH, JOIN_REPLY and SENDER_IDS, bytes."""
MAX_TEXT = 1000
MAX_LANES = 1 << 16
NO_MORE = 1 << 63
TAG = 8


class Hello(NamedTuple):
    """First frame of both ends."""

    room: bytes
    order: str
    options: bytes
    """Hash of the order's options, then these (`antecede.live.differing`)."""
    group: bytes
    """Random tag of the group. Empty: a join request."""
    view: bytes
    lane: str
    address: str
    owner: bytes
    """Proof that the sender id belongs to the sender."""
    frontier: Mapping[str, int]


class JoinReply(NamedTuple):
    """State for a joining member."""

    group: bytes
    invitation: bytes
    frontier: Mapping[str, int]
    members: Mapping[str, str]
    gone: Iterable[str]
    owners: Mapping[str, bytes]
    history: bytes


def pack_frame(kind: int, *parts: bytes) -> bytes:
    """Return a frame."""
    return b"".join((varint(1 + sum(map(len, parts))), bytes((kind,)), *parts))


def split_frames(
    data: bytes, at_most: int = MAX_FRAME, offset: int = 0, count: int | None = None
) -> tuple[list[tuple[int, int, int]], int, int]:
    """Return the complete frames from an offset on, at most `count`. Returns (kind, start, end) of
    their bodies, the offset behind them, and the size of the data at which one more can be
    complete. Raises LimitError for a frame that is too long, DecodeError for an empty one.
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
                raise LimitError("frame length has more than 35 bits")
        if length > at_most:
            raise LimitError(f"frame of {length} bytes; the limit here is {at_most}")
        if not length:
            raise DecodeError("empty frame; expected a kind")
        if at + length > end:
            return found, offset, at + length
        found.append((data[at], at + 1, at + length))
        offset = at + length
    return found, offset, offset + 1


def pack_hello(hello: Hello) -> bytes:
    """Return the first frame of a link."""
    tags = hello.room, hello.order.encode(), hello.options, hello.group, hello.view
    texts = hello.lane.encode(), hello.address.encode(), hello.owner
    return pack_frame(HELLO, varint(VERSION), *map(block, (*tags, *texts)), table(hello.frontier))


def unpack_hello(body: bytes) -> Hello:
    """Return a HELLO. Raises DecodeError."""
    reader = ByteReader(body)
    version = reader.varint()
    if version != VERSION:
        raise MismatchError(
            "kind", f"protocol version {version} differs from {VERSION} of this member"
        )
    room, order, options = reader.block(), text(reader), reader.block()
    group, view, owned = reader.block(), reader.block(), lane(reader)
    address, owner = text(reader), reader.block()
    frontier = read_table(reader)
    reader.finish()
    return Hello(room, order, options, group, view, owned, address, owner, frontier)


def pack_join_reply(welcome: JoinReply) -> bytes:
    """Return the frame that admits a joining member."""
    return pack_frame(
        JOIN_REPLY,
        block(welcome.group),
        block(welcome.invitation),
        table(welcome.frontier),
        _texts({name: address.encode() for name, address in welcome.members.items()}),
        _texts(dict.fromkeys(welcome.gone, b"")),
        _texts(welcome.owners),
        welcome.history,
    )


def unpack_join_reply(body: bytes) -> JoinReply:
    """Return a join reply. Raises DecodeError."""
    reader = ByteReader(body)
    group, invitation, frontier = reader.block(), reader.block(), read_table(reader)
    members = {name: _text(data) for name, data in _read_texts(reader).items()}
    gone, owners = tuple(_read_texts(reader)), _read_texts(reader)
    return JoinReply(group, invitation, frontier, members, gone, owners, reader.rest())


def table(frontier: Mapping[str, int]) -> bytes:
    """Return a frontier as bytes, with sender ids in full."""
    rows = (block(name.encode()) + varint(number) for name, number in frontier.items())
    return varint(len(frontier)) + b"".join(rows)


def read_table(reader: ByteReader) -> dict[str, int]:
    """Read what `table` wrote. Raises DecodeError."""
    return {lane(reader): reader.varint() for _ in range(_count(reader))}


def pack_rows(kind: int, rows: Iterable[tuple[int, int]]) -> bytes:
    """Return a frame of (index of a sender id, number): ACK, NAK or TRUNCATED."""
    return pack_frame(kind, *(varint(place) + varint(number) for place, number in rows))


def read_rows(body: bytes, names: list[str]) -> dict[str, int]:
    """Read the rows of `pack_rows` by sender id. Raises DecodeError."""
    reader, end = ByteReader(body), len(body)
    rows: dict[str, int] = {}
    while reader.offset < end:
        name = lookup_sender_id(reader.varint(), names)
        if name in rows:
            raise DecodeError(f"sender id {name} occurs twice in a frame")
        rows[name] = reader.varint()
    return rows


def lookup_sender_id(place: int, names: list[str]) -> str:
    """Return the sender id at an index. Raises DecodeError for an unknown index."""
    if place >= len(names):
        raise DecodeError(f"unknown sender index {place}; {len(names)} sender ids were announced")
    return names[place]


def read_places(reader: ByteReader, names: list[str]) -> Iterator[str]:
    """Read the sender ids at the indices in the rest of a frame. Raises DecodeError."""
    while reader.offset < len(reader.data):
        yield lookup_sender_id(reader.varint(), names)


def pack_names(names: Iterable[str]) -> bytes:
    """Return the frame with further sender ids."""
    return pack_frame(SENDER_IDS, *(block(name.encode()) for name in names))


def read_names(body: bytes, at_most: int = MAX_LANES) -> list[str]:
    """Read the sender ids of `pack_names`. Raises DecodeError, also beyond `at_most`."""
    reader, names = ByteReader(body), list[str]()
    while reader.offset < len(body):
        if len(names) == at_most:
            raise DecodeError(f"more than {MAX_LANES} sender ids on a connection")
        names.append(lane(reader))
    return names


def lane(reader: ByteReader) -> str:
    """Read a sender id. Raises DecodeError."""
    name = text(reader)
    if not is_lane(name):
        raise DecodeError(f"invalid sender id {name!r:.60}")
    return name


def text(reader: ByteReader) -> str:
    """Read a short text. Raises DecodeError."""
    return _text(reader.block())


def _text(raw: bytes) -> str:
    if len(raw) > MAX_TEXT:
        raise DecodeError(f"text of {len(raw)} bytes; the limit is {MAX_TEXT}")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise DecodeError("text is not UTF-8") from error


def _count(reader: ByteReader) -> int:
    count = reader.varint()
    if count > MAX_LANES:
        raise DecodeError(f"{count} sender ids announced; the limit is {MAX_LANES}")
    return count


def _texts(texts: Mapping[str, bytes]) -> bytes:
    rows = (block(name.encode()) + block(data) for name, data in texts.items())
    return varint(len(texts)) + b"".join(rows)


def _read_texts(reader: ByteReader) -> dict[str, bytes]:
    return {lane(reader): reader.block() for _ in range(_count(reader))}
