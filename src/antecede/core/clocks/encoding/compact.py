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
from collections.abc import Iterable, Iterator, Sequence

from antecede.core.clocks.encoding.wire import Reader, varint
from antecede.core.clocks.lanes import LANE_BITS, MAX_VALUE, pack
from antecede.errors import DecodeError, SequenceError, UnknownMemberError

LANE_BYTES = LANE_BITS // 8
_OCCUPIED = re.compile(rb"[^\0]", re.DOTALL)


def encode_compact(vector: int) -> bytes:
    """Encode a packed vector without guard bits."""
    count = -(-vector.bit_length() // LANE_BITS)
    raw = vector.to_bytes(count * LANE_BYTES, "little")
    split = planes(raw)
    width = len(split)
    used = occupied(split)
    found = count - used.count(0)
    if is_sparse(found, count, width):
        return b"\0" + encode_sparse(found, _pick(raw, used))
    return bytes((width,)) + varint(count) + woven(split, width)


def planes(raw: bytes) -> list[bytes]:
    """Return the lowest bytes of all lanes, the second bytes, up to the last that is not 0."""
    split = [raw[byte::LANE_BYTES] for byte in range(LANE_BYTES)]
    while len(split) > 1 and not split[-1].strip(b"\0"):
        split.pop()
    return split


def woven(split: Sequence[bytes], width: int) -> bytearray:
    """Return lanes of `width` bytes, of planes for the lower of these bytes or all."""
    raw = bytearray(len(split[0]) * width)
    for byte, plane in enumerate(split):
        raw[byte::width] = plane
    return raw


def occupied(split: Sequence[bytes]) -> bytes:
    """Return one byte a lane, which is 0 where the counter is."""
    if len(split) == 1:
        return split[0]
    together = 0
    for plane in split:
        together |= int.from_bytes(plane, "little")
    return together.to_bytes(len(split[0]), "little")


def is_sparse(found: int, count: int, width: int) -> bool:
    """Tell which form is for `found` counters above 0 among `count` of a width in bytes."""
    return found * (1 + width) < count * width


def encode_sparse(found: int, counters: Iterable[tuple[int, int]]) -> bytes:
    """Encode `found` pairs of lane and counter, by lane: gap and counter as varints."""
    out = bytearray(varint(found))
    before = -1
    for lane, counter in counters:
        out += varint(lane - before - 1) + varint(counter)
        before = lane
    return bytes(out)


def nonzero(vector: int) -> Iterator[tuple[int, int]]:
    """Yield (lane, content) for every lane that is not 0: `lanes.items` for long vectors."""
    raw = vector.to_bytes(-(-vector.bit_length() // LANE_BITS) * LANE_BYTES, "little")
    return _pick(raw, occupied(planes(raw)))


def _pick(raw: bytes, used: bytes) -> Iterator[tuple[int, int]]:
    for match in _OCCUPIED.finditer(used):
        lane = match.start()
        yield lane, int.from_bytes(raw[lane * LANE_BYTES : (lane + 1) * LANE_BYTES], "little")


def read_compact(reader: Reader, most: int) -> int:
    """Read what `encode_compact` wrote, of at most so many lanes. Raises a RemoteError."""
    start = reader.offset
    width = reader.take(1)[0]
    if width > LANE_BYTES:
        raise DecodeError(f"counters of {width} bytes at byte {start}")
    if width:
        return _read_dense(reader, width, most)
    start, found = reader.offset, read_sparse(reader, most)
    lane, largest = found[-1][0] if found else -1, max((n for _, n in found), default=0)
    if not is_sparse(len(found), lane + 1, byte_width(largest)):
        raise DecodeError(f"counters at byte {start} as pairs, few of them 0")
    return pack(found)


def byte_width(counter: int) -> int:
    """Return how many bytes a counter takes, 1 at least."""
    return max(1, (counter.bit_length() + 7) // 8)


def _read_dense(reader: Reader, width: int, most: int) -> int:
    start, count = reader.offset, reader.varint()
    _check_lanes(count, most)
    body = reader.take(count * width)
    split = [body[byte::width] for byte in range(width)]
    if count and not any(plane[-1] for plane in split):
        raise DecodeError(f"counters at byte {start} that end with a counter of 0")
    if width > 1 and not split[-1].strip(b"\0"):
        raise DecodeError(f"counters at byte {start}, wider than the largest needs")
    if is_sparse(count - occupied(split).count(0), count, width):
        raise DecodeError(f"counters at byte {start}, most of them 0, that should be pairs")
    if width == LANE_BYTES and max(split[-1]) > MAX_VALUE >> (8 * (LANE_BYTES - 1)):
        raise SequenceError(f"control information with a counter above {MAX_VALUE}")
    return int.from_bytes(woven(split, LANE_BYTES), "little")


def read_sparse(reader: Reader, most: int) -> list[tuple[int, int]]:
    """Read what `encode_sparse` wrote, of at most `most` lanes; raises as `read_compact` does."""
    start, count = reader.offset, reader.varint()
    left = len(reader.data) - reader.offset
    if 2 * count > left:
        raise DecodeError(f"{count} counters announced at byte {start}, {left} bytes left")
    data, end = reader.data, len(reader.data)
    lane, found = -1, []
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
        found.append((lane, counter))
    _check_lanes(lane + 1, most)
    return found


def _check_lanes(count: int, most: int) -> None:
    if count > most:
        raise UnknownMemberError(f"control information of {count} counters, at most {most} can be")
