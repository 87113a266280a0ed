"""Byte format of a `Group` message: identity, control information, payload.

    byte 0      0xA8
    byte 1      protocol: low byte of the CRC-32 of its name
    byte 2      flags: 1 names, 2 incarnations, 4 a restarted sender
    room        4 bytes: fingerprint of `room=`
    options     2 bytes: fingerprint of the order and its shared options
    view        closed groups (no flag 1): varint joins since the first list, 4 bytes: its hash
    sender      4 bytes: nonce of its incarnation [flag 4: varint generation, varint first number]
    [table]     flag 1: varint count, then for each member: varint number, block(name in UTF-8)
    [known]     flag 2: varint count, then block(name), varint generation, 4 bytes, varint first
    control     block(output of the protocol's `encode`)
    payload     the rest

In an open group each sender has its own member numbers, and the table maps them to names. Members
of a closed group share the numbers, so frames contain no names. The fields before `control` are
identity (see `antecede.core.group.incarnations`), which no metric of a paper counts.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from antecede.core.clocks.encoding import ByteReader, block, varint
from antecede.errors import DecodeError, MismatchError

MAGIC = 0xA8
WITH_NAMES, WITH_KNOWN, RESTARTED = 1, 2, 4
MAX_NAME_BYTES = 255


class Incarnation(NamedTuple):
    """Incarnation of a member: number of restores before, nonce, first sequence number."""

    generation: int
    nonce: int
    first: int = 1


class View(NamedTuple):
    """Sender's view of a closed group's member table."""

    joins: int
    digest: int


class Frame(NamedTuple):
    """Parsed frame. `names` maps the sender's numbers to names; empty in closed groups."""

    order: str
    room: int
    options: int
    view: View | None
    by: Incarnation
    names: Mapping[int, str]
    known: tuple[tuple[str, Incarnation], ...]
    control: bytes
    payload: bytes


class FrameSizes(NamedTuple):
    """Bytes of the parts of a frame. Sources count `control` only."""

    identity: int
    """Protocol, room, options, view, incarnations."""
    names: int
    control: int
    payload: int


def protocol_code(protocol: str) -> int:
    """Return the byte of a protocol's name."""
    return zlib.crc32(protocol.encode()) & 0xFF


def pack(frame: Frame) -> bytes:
    """Return a frame as bytes."""
    return b"".join(_pack_parts(frame))


def measure_parts(wire: bytes) -> FrameSizes:
    """Return the sizes of the parts of a frame. Raise DecodeError."""
    frame = _unpack("", wire)
    names = len(_pack_names(frame.names)) if frame.names else 0
    control = len(frame.control)
    return FrameSizes(
        len(wire) - names - control - len(frame.payload), names, control, len(frame.payload)
    )


def measure_limited(frame: Frame) -> int:
    """Return the bytes limited by `max_packet`: without what grows when encoded again."""
    view = None if frame.view is None else View(0, 0)
    plain = pack_head(frame._replace(by=Incarnation(0, 0), known=(), view=view))
    table_size = len(_pack_names(frame.names)) if frame.view is None else 0
    return len(plain) + table_size + len(block(frame.control)) + len(frame.payload)


def pack_head(frame: Frame) -> bytes:
    """Return the bytes before the name table: protocol, group, sender."""
    by, view = frame.by, frame.view
    restarted = by.generation > 0 or by.first > 1
    flags = WITH_NAMES * (view is None) | WITH_KNOWN * bool(frame.known) | RESTARTED * restarted
    parts = [
        bytes((MAGIC, protocol_code(frame.order), flags)),
        frame.room.to_bytes(4, "little"),
        frame.options.to_bytes(2, "little"),
    ]
    if view is not None:
        parts += varint(view.joins), view.digest.to_bytes(4, "little")
    parts.append(by.nonce.to_bytes(4, "little"))
    if restarted:
        parts += varint(by.generation), varint(by.first)
    return b"".join(parts)


def _pack_parts(frame: Frame) -> list[bytes]:
    parts = [pack_head(frame)]
    if frame.view is None:
        parts.append(_pack_names(frame.names))
    if frame.known:
        parts.append(varint(len(frame.known)))
        for name, incarnation in frame.known:
            parts += block(name.encode()), varint(incarnation.generation)
            parts += incarnation.nonce.to_bytes(4, "little"), varint(incarnation.first)
    return [*parts, block(frame.control), frame.payload]


def _pack_names(names: Mapping[int, str]) -> bytes:
    return pack_table([pack_row(number, name) for number, name in names.items()])


def pack_row(number: int, name: str) -> bytes:
    """Return a row of a name table."""
    return varint(number) + block(name.encode())


def pack_table(rows: Sequence[bytes]) -> bytes:
    """Return a name table."""
    return varint(len(rows)) + b"".join(rows)


def unpack(protocol: str, wire: bytes) -> Frame:
    """Return the frame of bytes. Raise DecodeError, or MismatchError for another protocol."""
    return _unpack(protocol, to_bytes(wire))


def to_bytes(wire: object) -> bytes:
    """Return received data as bytes. Raise DecodeError for other types."""
    if not isinstance(wire, bytes | bytearray | memoryview):
        raise DecodeError(f"message is {type(wire).__name__}; expected bytes")
    return bytes(wire)


def _unpack(protocol: str, wire: bytes) -> Frame:
    if len(wire) < 3 or wire[0] != MAGIC:
        raise DecodeError(f"{len(wire)} bytes are not a message of an antecede group")
    if protocol and wire[1] != protocol_code(protocol):
        raise MismatchError("order", f"message of another protocol; this group runs {protocol}")
    flags = wire[2]
    if flags & ~(WITH_NAMES | WITH_KNOWN | RESTARTED):
        raise DecodeError(f"unknown flags {flags:#04x}: the sender may run a newer version")
    reader = ByteReader(wire, 3)
    room, options = _read_fixed(reader, 4), _read_fixed(reader, 2)
    view = None if flags & WITH_NAMES else View(reader.varint(), _read_fixed(reader, 4))
    nonce = _read_fixed(reader, 4)
    by = Incarnation(0, nonce)
    if flags & RESTARTED:
        by = Incarnation(reader.varint(), nonce, reader.varint())
    names = _read_names(reader) if flags & WITH_NAMES else {}
    known = _read_known(reader) if flags & WITH_KNOWN else ()
    return Frame(protocol, room, options, view, by, names, known, reader.block(), reader.rest())


def _read_fixed(reader: ByteReader, count: int) -> int:
    return int.from_bytes(reader.take(count), "little")


def _read_names(reader: ByteReader) -> dict[int, str]:
    names: dict[int, str] = {}
    seen: set[str] = set()
    for _ in range(reader.varint()):
        number, name = reader.varint(), _read_name(reader)
        if number in names or name in seen:
            raise DecodeError(f"duplicate member {name!r} in the name table")
        names[number] = name
        seen.add(name)
    return names


def _read_known(reader: ByteReader) -> tuple[tuple[str, Incarnation], ...]:
    known: list[tuple[str, Incarnation]] = []
    for _ in range(reader.varint()):
        name, generation = _read_name(reader), reader.varint()
        incarnation = Incarnation(generation, _read_fixed(reader, 4), reader.varint())
        before = (known[-1][0], known[-1][1].generation) if known else ("", 0)
        if not generation or (name, generation) <= before:
            raise DecodeError(f"incarnations of {name!r} are unordered or duplicate")
        known.append((name, incarnation))
    return tuple(known)


def _read_name(reader: ByteReader) -> str:
    raw = reader.block()
    if not 0 < len(raw) <= MAX_NAME_BYTES:
        raise DecodeError(f"member name of {len(raw)} bytes; expected 1 to {MAX_NAME_BYTES}")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise DecodeError("member name is not UTF-8") from error
