"""Messages of `ses` and their encoding.

    head        sender, number and destinations (`multicast.base.encode_head`)
    t           without the sender's own entry, which is the number
    V           varint count; for each: varint gap to the next destination, and the
                difference of the entry to t without this send

An entry of V is never above that, and in a busy group seldom far below. So the differences are
small numbers or 0 and take a byte or none. The entries themselves would take two or more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from antecede.core.clocks import LANE_BITS, MAX_MEMBER, get, guards, unit
from antecede.core.clocks.encoding import ByteReader, encode_compact, read_compact, varint
from antecede.core.protocols.multicast.base import encode_head, read_head
from antecede.errors import DecodeError, SequenceError, UnknownMemberError

MAX_LANES = 1 << 20
"""Limit of the lanes of all vectors of a message: 5 MB."""


class SesMessage(NamedTuple):
    """Message with its sender's number for it, from 1, and its destinations."""

    sender: int
    seq: int
    payload: Any
    to: tuple[int, ...]
    timestamp: int
    """t, packed: the sends known to the sender, this one included."""
    entries: tuple[tuple[int, int], ...]
    """V by destination, each vector packed."""


def encode_message(message: SesMessage) -> bytes:
    """Return the control information as bytes (see the module docstring)."""
    stamp = message.timestamp - unit(message.sender, message.seq)
    out = [encode_head(message), encode_compact(stamp), varint(len(message.entries))]
    past = message.timestamp - unit(message.sender)
    before = -1
    for member, vector in message.entries:
        out += varint(member - before - 1), encode_compact(past - vector)
        before = member
    return b"".join(out)


def decode_message(control: bytes, payload: Any) -> SesMessage:
    """Return the message that `encode_message` wrote. Raises a RemoteError."""
    reader = ByteReader(control)
    sender, seq, to = read_head(reader)
    stamp = read_compact(reader, MAX_MEMBER + 1)
    if get(stamp, sender):
        raise DecodeError(f"message {seq} from member {sender} contains its own number twice")
    past = stamp + unit(sender, seq - 1)
    entries = _read_entries(reader, past)
    reader.finish()
    return SesMessage(sender, seq, payload, to, past + unit(sender), entries)


def _read_entries(reader: ByteReader, past: int) -> tuple[tuple[int, int], ...]:
    lanes = -(-past.bit_length() // LANE_BITS)
    guard = guards(lanes)
    start, count = reader.offset, reader.varint()
    if 3 * count > len(reader.data) - reader.offset or count * lanes > MAX_LANES:
        raise DecodeError(f"{count} entries of {lanes} members at byte {start} exceed the message")
    member, found = -1, []
    for _ in range(count):
        member += reader.varint() + 1
        vector = (past | guard) - read_compact(reader, lanes)
        if vector & guard != guard:
            raise SequenceError(f"an entry before byte {reader.offset} is below 0")
        found.append((member, vector ^ guard))
    if member > MAX_MEMBER:
        raise UnknownMemberError(f"an entry for member {member}, above {MAX_MEMBER}")
    return tuple(found)
