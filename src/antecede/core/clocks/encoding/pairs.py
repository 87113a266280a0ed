"""Byte encoding of packed vectors: (member, counter) pairs, or a dense row of counters.

Pairs are for sparse vectors: a varint gap to the next member and a varint counter. Decoders reject
members above `lanes.MAX_MEMBER`, so that a received number does not determine memory use. The
receiver checks that a member is in the group.
"""

from __future__ import annotations

from antecede.core.clocks import lanes
from antecede.core.clocks.encoding.wire import ByteReader, varint
from antecede.core.clocks.lanes import LANE_BITS, MAX_MEMBER, MAX_VALUE
from antecede.errors import DecodeError, SequenceError, UnknownMemberError


def encode_pairs(vector: int) -> bytes:
    """Encode the count of nonzero counters, then gap and counter of each."""
    out = bytearray()
    before, count = -1, 0
    for member, value in lanes.items(vector):
        out += varint(member - before - 1) + varint(value)
        before = member
        count += 1
    return varint(count) + bytes(out)


def read_pairs(reader: ByteReader) -> int:
    """Read a packed vector of `encode_pairs`. Raise RemoteError."""
    data, at, end = reader.data, reader.offset, len(reader.data)
    count = reader.varint()
    if 2 * count > end - reader.offset:
        raise DecodeError(
            f"{count} pairs announced at byte {at}, but {end - reader.offset} bytes left"
        )
    member = -1
    pairs = []
    for _ in range(count):
        # Reader.varint, inlined for gaps of one byte and counters of one or two: calls for some
        # hundred numbers cost more than everything else here.
        at = reader.offset
        if at + 2 < end and data[at] < 0x80 and (data[at + 1] < 0x80 or 0 < data[at + 2] < 0x80):
            member += data[at] + 1
            value = data[at + 1]
            reader.offset = at + 2
            if value >= 0x80:
                value += (data[at + 2] - 1) << 7
                reader.offset = at + 3
        else:
            member += reader.varint() + 1
            value = reader.varint()
        if not value:
            raise DecodeError(f"counter of 0 for member {member} before byte {reader.offset}")
        if value > MAX_VALUE:
            raise SequenceError(f"control information names message {value} of member {member}")
        pairs.append((member, value))
    if member > MAX_MEMBER:
        raise UnknownMemberError(f"control information names member {member}, above {MAX_MEMBER}")
    return lanes.pack(pairs)


def encode_dense(vector: int) -> bytes:
    """Encode the number of lanes, then the counters up to the last nonzero one."""
    count = -(-vector.bit_length() // LANE_BITS)
    return varint(count) + b"".join(map(varint, lanes.unpack(vector, count)))


def read_dense(reader: ByteReader) -> int:
    """Read a packed vector of `encode_dense`. Raise as `read_pairs` does."""
    data, at, end = reader.data, reader.offset, len(reader.data)
    count = reader.varint()
    if count > end - reader.offset:
        raise DecodeError(
            f"{count} counters announced at byte {at}, but {end - reader.offset} bytes left"
        )
    if count > MAX_MEMBER + 1:
        raise UnknownMemberError(f"control information names member {count - 1}")
    width = LANE_BITS // 8
    buffer = bytearray(width * count)
    value = 1
    for start in range(0, width * count, width):
        at = reader.offset
        # Inlined as above.
        if at + 1 < end and (data[at] < 0x80 or 0 < data[at + 1] < 0x80):
            value = data[at]
            reader.offset = at + 1
            if value >= 0x80:
                value += (data[at + 1] - 1) << 7
                reader.offset = at + 2
        else:
            value = reader.varint()
        if value > MAX_VALUE:
            raise SequenceError(f"control information names message {value}, above {MAX_VALUE}")
        buffer[start : start + width] = value.to_bytes(width, "little")
    if not value:
        raise DecodeError(f"vector before byte {reader.offset} ends with a counter of 0")
    return int.from_bytes(buffer, "little")
