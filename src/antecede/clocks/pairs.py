"""Packed vectors on the wire: as (member, counter) pairs, or as a dense row of counters.

Pairs are for sparse vectors (differences, immediate dependencies): a varint for the gap to
the next member and one for its counter. A dense row is for whole vectors. Readers take the
number of lanes that the receiver knows, so that memory never follows a member's number.
"""

from __future__ import annotations

from antecede.clocks import lanes
from antecede.clocks.lanes import LANE_BITS, MAX_VALUE
from antecede.clocks.wire import Reader, varint
from antecede.errors import DecodeError, SequenceError, UnknownMemberError


def encode_pairs(vector: int) -> bytes:
    """Encode the counters that are not 0: their number, then gap and counter of each."""
    out = bytearray()
    before, count = -1, 0
    for member, value in lanes.items(vector):
        out += varint(member - before - 1) + varint(value)
        before = member
        count += 1
    return varint(count) + bytes(out)


def read_pairs(reader: Reader, known_lanes: int) -> int:
    """Read what `encode_pairs` wrote into a packed vector of at most `known_lanes` lanes.

    Raises DecodeError, UnknownMemberError for a member beyond the lanes, and SequenceError for
    a counter that no lane holds.
    """
    data = reader.data
    width = LANE_BITS // 8
    buffer = bytearray(width * known_lanes)
    member = -1
    for _ in range(reader.varint()):
        # Inlined from Reader.varint for the usual numbers of one byte and two bytes: a call
        # for each of some hundred numbers would cost more than all the rest.
        at = reader.offset
        if at + 1 < len(data) and data[at] < 0x80:
            member += data[at] + 1
            low, high = data[at + 1], data[at + 2] if at + 2 < len(data) else 0
            if low < 0x80:
                value = low
                reader.offset = at + 2
            elif 0 < high < 0x80:
                value = (low & 0x7F) | high << 7
                reader.offset = at + 3
            else:
                reader.offset = at + 1
                value = reader.varint()
        else:
            member += reader.varint() + 1
            value = reader.varint()
        if member >= known_lanes:
            raise UnknownMemberError(f"control information names member {member}")
        _check(member, value)
        if not value:
            raise DecodeError(f"a counter of 0 for member {member} before byte {reader.offset}")
        start = member * width
        buffer[start : start + width] = value.to_bytes(width, "little")
    return int.from_bytes(buffer, "little")


def encode_dense(vector: int) -> bytes:
    """Encode the counters of members 0 .. the last one that is not 0, after their number."""
    count = -(-vector.bit_length() // LANE_BITS)
    return varint(count) + b"".join(map(varint, lanes.unpack(vector, count)))


def read_dense(reader: Reader, known_lanes: int) -> int:
    """Read what `encode_dense` wrote. Raises as `read_pairs` does."""
    count = reader.varint()
    if count > known_lanes:
        raise UnknownMemberError(f"control information names member {count - 1}")
    width = LANE_BITS // 8
    buffer = bytearray(width * count)
    value = 1
    for member in range(count):
        value = reader.varint()
        _check(member, value)
        buffer[member * width : (member + 1) * width] = value.to_bytes(width, "little")
    if not value:
        raise DecodeError(f"a vector before byte {reader.offset} ends with a counter of 0")
    return int.from_bytes(buffer, "little")


def _check(member: int, value: int) -> None:
    if value > MAX_VALUE:
        raise SequenceError(f"control information names message {value} of member {member}")
