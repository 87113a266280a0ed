"""The bytes of one message of a `Group`: a small header, control information, payload.

    byte 0      0xA7
    byte 1      protocol: low byte of the CRC-32 of its name
    byte 2      flags: bit 0 set when a table of names follows
    [table]     varint count, then for each member: varint number, block(name in UTF-8)
    control     block(what the protocol's `encode` wrote)
    payload     the rest

In an open group each sender numbers the members in its own way, and the table says which
number stands for whom. In a closed group all members agree on the numbers, and no name travels.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import NamedTuple

from antecede.clocks.wire import Reader, block, varint
from antecede.errors import DecodeError

MAGIC = 0xA7
WITH_NAMES = 1
MAX_NAME_BYTES = 255


class Frame(NamedTuple):
    """One decoded frame; `names` maps the sender's numbers to names, empty in closed groups."""

    names: dict[int, str]
    control: bytes
    payload: bytes


def protocol_code(protocol: str) -> int:
    """Return the byte that stands for a protocol's name."""
    return zlib.crc32(protocol.encode()) & 0xFF


def pack(protocol: str, names: Mapping[int, str], control: bytes, payload: bytes) -> bytes:
    """Return the frame as bytes."""
    parts = [bytes((MAGIC, protocol_code(protocol), WITH_NAMES if names else 0))]
    if names:
        parts.append(varint(len(names)))
        for number, name in names.items():
            parts += varint(number), block(name.encode())
    parts += block(control), payload
    return b"".join(parts)


def unpack(protocol: str, wire: bytes) -> Frame:
    """Return the frame; raises DecodeError when the bytes are not one of this protocol's."""
    if len(wire) < 3 or wire[0] != MAGIC:
        raise DecodeError(f"{len(wire)} bytes that are not a message of an antecede group")
    if wire[1] != protocol_code(protocol):
        raise DecodeError(f"a message of another protocol; this group runs {protocol}")
    if wire[2] & ~WITH_NAMES:
        raise DecodeError(f"unknown flags {wire[2]:#04x}: the sender may run a newer version")
    reader = Reader(wire, 3)
    names = _read_names(reader) if wire[2] & WITH_NAMES else {}
    return Frame(names, reader.block(), reader.rest())


def _read_names(reader: Reader) -> dict[int, str]:
    names: dict[int, str] = {}
    taken: set[str] = set()
    for _ in range(reader.varint()):
        number, raw = reader.varint(), reader.block()
        if not 0 < len(raw) <= MAX_NAME_BYTES:
            raise DecodeError(f"a member's name of {len(raw)} bytes; 1 to {MAX_NAME_BYTES} can be")
        try:
            name = raw.decode()
        except UnicodeDecodeError as error:
            raise DecodeError("a member's name is not UTF-8") from error
        if number in names or name in taken:
            raise DecodeError(f"member {name!r} stands twice in the table of names")
        names[number] = name
        taken.add(name)
    return names
