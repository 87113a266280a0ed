"""Byte encoding of packed vectors and matrices, sparse or dense, without a loop per lane.

    byte 0      0: sparse;  1 to 5: dense, the number of bytes per counter
    sparse      varint count, then varint gap and varint counter of each nonzero counter
    dense       varint lanes, then the low bytes of all lanes, in the smallest width

With a largest counter of w bytes, sparse takes about 1 + w bytes per nonzero counter and dense w
bytes per lane. The shorter form is used, and the last lane is never 0. So a vector has exactly one
encoding. `pairs` has encodings with a varint per counter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from antecede.core.clocks.encoding.wire import ByteReader, varint
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
    used = mark_nonzero(split)
    nonzero_count = count - used.count(0)
    if is_sparse(nonzero_count, count, width):
        return b"\0" + encode_sparse(nonzero_count, _iter_marked(raw, used))
    return bytes((width,)) + varint(count) + woven(split, width)


def planes(raw: bytes) -> list[bytes]:
    """Return the lowest bytes of all lanes, the second bytes, ..., up to the last nonzero plane."""
    split = [raw[byte::LANE_BYTES] for byte in range(LANE_BYTES)]
    while len(split) > 1 and not split[-1].strip(b"\0"):
        split.pop()
    return split


def woven(split: Sequence[bytes], width: int) -> bytearray:
    """Return lanes of `width` bytes from planes. Missing high planes are 0."""
    raw = bytearray(len(split[0]) * width)
    for byte, plane in enumerate(split):
        raw[byte::width] = plane
    return raw


def mark_nonzero(split: Sequence[bytes]) -> bytes:
    """Return one byte per lane, 0 where the counter is 0."""
    if len(split) == 1:
        return split[0]
    together = 0
    for plane in split:
        together |= int.from_bytes(plane, "little")
    return together.to_bytes(len(split[0]), "little")


def is_sparse(nonzero_count: int, count: int, width: int) -> bool:
    """Return whether `count` counters of a width in bytes are encoded sparse."""
    return nonzero_count * (1 + width) < count * width


def encode_sparse(nonzero_count: int, counters: Iterable[tuple[int, int]]) -> bytes:
    """Encode `nonzero_count` pairs of lane and counter, ascending: gap and counter as varints."""
    out = bytearray(varint(nonzero_count))
    before = -1
    for lane, counter in counters:
        out += varint(lane - before - 1) + varint(counter)
        before = lane
    return bytes(out)


def nonzero(vector: int) -> Iterator[tuple[int, int]]:
    """Yield (lane, counter) of nonzero counters. Faster than `lanes.items` for long vectors."""
    raw = vector.to_bytes(-(-vector.bit_length() // LANE_BITS) * LANE_BYTES, "little")
    return _iter_marked(raw, mark_nonzero(planes(raw)))


def _iter_marked(raw: bytes, used: bytes) -> Iterator[tuple[int, int]]:
    for match in _OCCUPIED.finditer(used):
        lane = match.start()
        yield lane, int.from_bytes(raw[lane * LANE_BYTES : (lane + 1) * LANE_BYTES], "little")


def read_compact(reader: ByteReader, max_lanes: int) -> int:
    """Read a vector of `encode_compact` with at most `max_lanes` lanes. Raise RemoteError."""
    start = reader.offset
    width = reader.take(1)[0]
    if width > LANE_BYTES:
        raise DecodeError(
            f"counters of {width} bytes at byte {start}; expected at most {LANE_BYTES}"
        )
    if width:
        return _read_dense(reader, width, max_lanes)
    start, counters = reader.offset, read_sparse(reader, max_lanes)
    lane, largest = counters[-1][0] if counters else -1, max((n for _, n in counters), default=0)
    if not is_sparse(len(counters), lane + 1, byte_width(largest)):
        raise DecodeError(f"counters at byte {start} are sparse; expected the dense encoding")
    return pack(counters)


def byte_width(counter: int) -> int:
    """Return the bytes of a counter, at least 1."""
    return max(1, (counter.bit_length() + 7) // 8)


def _read_dense(reader: ByteReader, width: int, max_lanes: int) -> int:
    start, count = reader.offset, reader.varint()
    _check_lanes(count, max_lanes)
    body = reader.take(count * width)
    split = [body[byte::width] for byte in range(width)]
    if count and not any(plane[-1] for plane in split):
        raise DecodeError(f"counters at byte {start} end with a counter of 0")
    if width > 1 and not split[-1].strip(b"\0"):
        raise DecodeError(f"counters at byte {start} are wider than the largest of them")
    if is_sparse(count - mark_nonzero(split).count(0), count, width):
        raise DecodeError(f"counters at byte {start} are dense; expected the sparse encoding")
    if width == LANE_BYTES and max(split[-1]) > MAX_VALUE >> (8 * (LANE_BYTES - 1)):
        raise SequenceError(f"control information has a counter above {MAX_VALUE}")
    return int.from_bytes(woven(split, LANE_BYTES), "little")


def read_sparse(reader: ByteReader, max_lanes: int) -> list[tuple[int, int]]:
    """Read counters of `encode_sparse`, at most `max_lanes` lanes. Raise as `read_compact` does."""
    start, count = reader.offset, reader.varint()
    left = len(reader.data) - reader.offset
    if 2 * count > left:
        raise DecodeError(f"{count} counters announced at byte {start}, but {left} bytes left")
    data, end = reader.data, len(reader.data)
    lane, counters = -1, []
    for _ in range(count):
        at = reader.offset
        # Reader.varint, inlined for a gap and counter of one byte each.
        if at + 1 < end and data[at] < 0x80 and data[at + 1] < 0x80:
            lane += data[at] + 1
            counter = data[at + 1]
            reader.offset = at + 2
        else:
            lane += reader.varint() + 1
            counter = reader.varint()
        if not counter:
            raise DecodeError(f"counter of 0 before byte {reader.offset}")
        if counter > MAX_VALUE:
            raise SequenceError(f"control information has counter {counter}, above {MAX_VALUE}")
        counters.append((lane, counter))
    _check_lanes(lane + 1, max_lanes)
    return counters


def _check_lanes(count: int, max_lanes: int) -> None:
    if count > max_lanes:
        raise UnknownMemberError(
            f"control information has {count} counters; the limit is {max_lanes}"
        )
