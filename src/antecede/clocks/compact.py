"""Packed vectors and matrices on the wire in the shorter of two forms, without a loop per lane.

    byte 0      0: the counters that are not 0;  1 to 5: all counters, so many bytes each
    0           varint count, then varint gap and varint counter of each
    1 to 5      varint lanes, then the low bytes of all lanes, the width as small as it can be

With a largest counter of w bytes, a counter that is not 0 costs about 1 + w bytes in the first
form, and every lane w in the second; the first is taken where this makes it shorter. The last
lane is never 0. So a vector has one spelling, and any other is refused. Python copies every
fifth byte as fast as it copies bytes, which is why the second form has no varints. `pairs` has
the forms with a varint for each counter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from antecede.clocks.lanes import LANE_BITS, MAX_VALUE, pack
from antecede.clocks.wire import Reader, varint
from antecede.errors import DecodeError, SequenceError, UnknownMemberError

LANE_BYTES = LANE_BITS // 8
_OCCUPIED = re.compile(rb"[^\0]", re.DOTALL)


def encode_compact(vector: int) -> bytes:
    """Encode a packed vector without guard bits."""
    count = -(-vector.bit_length() // LANE_BITS)
    raw = vector.to_bytes(count * LANE_BYTES, "little")
    planes = _planes(raw)
    width = len(planes)
    occupied = _occupied(planes)
    if _is_sparse(count - occupied.count(0), count, width):
        return b"\0" + _sparse(raw, occupied)
    body = bytearray(count * width)
    for byte, plane in enumerate(planes):
        body[byte::width] = plane
    return bytes((width,)) + varint(count) + body


def _planes(raw: bytes) -> list[bytes]:
    """Return the lowest bytes of all lanes, the second bytes, up to the last that is not 0."""
    planes = [raw[byte::LANE_BYTES] for byte in range(LANE_BYTES)]
    while len(planes) > 1 and not planes[-1].strip(b"\0"):
        planes.pop()
    return planes


def _occupied(planes: list[bytes]) -> bytes:
    """Return one byte a lane, which is 0 where the counter is."""
    if len(planes) == 1:
        return planes[0]
    together = 0
    for plane in planes:
        together |= int.from_bytes(plane, "little")
    return together.to_bytes(len(planes[0]), "little")


def _is_sparse(found: int, count: int, width: int) -> bool:
    """Tell which form is for `found` counters above 0 among `count` of a width in bytes."""
    return found * (1 + width) < count * width


def _sparse(raw: bytes, occupied: bytes) -> bytes:
    out = bytearray(varint(len(occupied) - occupied.count(0)))
    before = -1
    for lane, counter in _pick(raw, occupied):
        out += varint(lane - before - 1) + varint(counter)
        before = lane
    return bytes(out)


def nonzero(vector: int) -> Iterator[tuple[int, int]]:
    """Yield (lane, content) for every lane that is not 0, ascending; guard bits count.

    What `lanes.items` does, in time that follows the number of such lanes: for long vectors.
    """
    raw = vector.to_bytes(-(-vector.bit_length() // LANE_BITS) * LANE_BYTES, "little")
    return _pick(raw, _occupied(_planes(raw)))


def _pick(raw: bytes, occupied: bytes) -> Iterator[tuple[int, int]]:
    for match in _OCCUPIED.finditer(occupied):
        lane = match.start()
        yield lane, int.from_bytes(raw[lane * LANE_BYTES : (lane + 1) * LANE_BYTES], "little")


def read_compact(reader: Reader, most: int) -> int:
    """Read what `encode_compact` wrote, of at most so many lanes.

    Raises DecodeError, UnknownMemberError for a lane beyond `most`, and SequenceError for a
    counter that no lane holds.
    """
    start = reader.offset
    width = reader.take(1)[0]
    if width > LANE_BYTES:
        raise DecodeError(f"counters of {width} bytes at byte {start}")
    if width:
        return _read_dense(reader, width, most)
    return _read_sparse(reader, most)


def _read_dense(reader: Reader, width: int, most: int) -> int:
    start, count = reader.offset, reader.varint()
    _check_lanes(count, most)
    body = reader.take(count * width)
    planes = [body[byte::width] for byte in range(width)]
    if count and not any(plane[-1] for plane in planes):
        raise DecodeError(f"counters at byte {start} that end with a counter of 0")
    if width > 1 and not planes[-1].strip(b"\0"):
        raise DecodeError(f"counters at byte {start}, wider than the largest needs")
    occupied = _occupied(planes)
    if _is_sparse(count - occupied.count(0), count, width):
        raise DecodeError(f"counters at byte {start}, most of them 0, that should be pairs")
    if width == LANE_BYTES and max(planes[-1]) > MAX_VALUE >> (8 * (LANE_BYTES - 1)):
        raise SequenceError(f"control information with a counter above {MAX_VALUE}")
    raw = bytearray(count * LANE_BYTES)
    for byte, plane in enumerate(planes):
        raw[byte::LANE_BYTES] = plane
    return int.from_bytes(raw, "little")


def _read_sparse(reader: Reader, most: int) -> int:
    start, count = reader.offset, reader.varint()
    left = len(reader.data) - reader.offset
    if 2 * count > left:
        raise DecodeError(f"{count} counters announced at byte {start}, {left} bytes left")
    data, end = reader.data, len(reader.data)
    lane, largest, found = -1, 0, []
    for _ in range(count):
        at = reader.offset
        # Inlined from Reader.varint for gap and counter of one byte, as in `pairs`.
        if at + 1 < end and data[at] < 0x80 and data[at + 1] < 0x80:
            lane += data[at] + 1
            counter = data[at + 1]
            reader.offset = at + 2
        else:
            lane += reader.varint() + 1
            counter = reader.varint()
        if not counter:
            raise DecodeError(f"a counter of 0 before byte {reader.offset}")
        if counter > MAX_VALUE:
            raise SequenceError(f"control information with the counter {counter}")
        largest = max(largest, counter)
        found.append((lane, counter))
    _check_lanes(lane + 1, most)
    if not _is_sparse(count, lane + 1, max(1, (largest.bit_length() + 7) // 8)):
        raise DecodeError(f"counters at byte {start} as pairs, few of them 0")
    return pack(found)


def _check_lanes(count: int, most: int) -> None:
    if count > most:
        raise UnknownMemberError(f"control information of {count} counters, at most {most} can be")
