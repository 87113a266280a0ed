"""Vector clocks packed into one Python integer.

Comparing 300 counters costs 3 to 13 us as a list, and a few subtractions on 1.5 kB as one integer.
Member k has the lane `[k * LANE_BITS, (k + 1) * LANE_BITS)`. The top bit of a lane is a guard bit
that is 0 in every vector, so that subtraction never borrows from the next lane. An absent member
reads as 0.

`guards(n)` is the mask of the guard bits of n lanes. Callers compute it once and pass it on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

LANE_BITS = 40
VALUE_BITS = LANE_BITS - 1
MAX_VALUE = (1 << VALUE_BITS) - 1
"""Largest counter of a lane: 5.5e11, 17 years at a thousand messages a second."""
MAX_MEMBER = (1 << 16) - 1
"""Highest member number that decoders accept, for vectors of at most 328 kB."""

_CHUNK_LANES = 128
_SPARSE = 8


def guards(lanes: int) -> int:
    """Return the mask of guard bits of members 0 .. lanes - 1."""
    if lanes <= 0:
        return 0
    return (((1 << (lanes * LANE_BITS)) - 1) // ((1 << LANE_BITS) - 1)) << VALUE_BITS


def get(vector: int, member: int) -> int:
    """Return the counter of a member."""
    return (vector >> (member * LANE_BITS)) & MAX_VALUE


def put(vector: int, member: int, value: int) -> int:
    """Return the vector with the counter of one member replaced."""
    shift = member * LANE_BITS
    return vector + ((value - ((vector >> shift) & MAX_VALUE)) << shift)


def unit(member: int, value: int = 1) -> int:
    """Return the vector with `value` for one member and 0 for all others."""
    return value << (member * LANE_BITS)


def dominates(a: int, b: int, guard: int) -> bool:
    """Return whether a[k] >= b[k] for every member k that the guard covers."""
    return ((a | guard) - b) & guard == guard


def merge(a: int, b: int, guard: int) -> int:
    """Return the component-wise maximum."""
    kept = ((a | guard) - b) & guard
    mask = kept - (kept >> VALUE_BITS)
    return b ^ ((a ^ b) & mask)


def items(vector: int) -> Iterator[tuple[int, int]]:
    """Yield (member, counter) of all counters above 0, by member."""
    width = _CHUNK_LANES * LANE_BITS // 8
    if vector.bit_length() <= _CHUNK_LANES * LANE_BITS:
        yield from _items(vector, 0)
        return
    # A shift copies the whole remaining integer: 4 s for 65,536 lanes without chunks.
    raw = vector.to_bytes((vector.bit_length() + 7) // 8, "little")
    for part, start in enumerate(range(0, len(raw), width)):
        yield from _items(int.from_bytes(raw[start : start + width], "little"), part * _CHUNK_LANES)


def _items(vector: int, member: int) -> Iterator[tuple[int, int]]:
    while vector:
        value = vector & MAX_VALUE
        if value:
            yield member, value
        vector >>= LANE_BITS
        member += 1


def pack(pairs: Iterable[tuple[int, int]]) -> int:
    """Return the vector of (member, counter) pairs with distinct members."""
    width = LANE_BITS // 8
    pairs = list(pairs)
    if not pairs:
        return 0
    buffer = bytearray(width * (max(member for member, _ in pairs) + 1))
    for member, value in pairs:
        buffer[member * width : (member + 1) * width] = value.to_bytes(width, "little")
    return int.from_bytes(buffer, "little")


def unpack(vector: int, lanes: int) -> tuple[int, ...]:
    """Return the counters of members 0 .. lanes - 1, a tuple of length `lanes`."""
    width = LANE_BITS // 8
    raw = vector.to_bytes(max(lanes * width, (vector.bit_length() + 7) // 8), "little")
    return tuple(int.from_bytes(raw[k * width : (k + 1) * width], "little") for k in range(lanes))


def columns(vector: int) -> tuple[list[int], list[int]]:
    """Return members and counters of all counters above 0. Faster than `items`."""
    width = LANE_BITS // 8
    count = -(-vector.bit_length() // LANE_BITS)
    raw = vector.to_bytes(count * width, "little")
    wide = bytearray(8 * count)
    for byte in range(width):
        wide[byte::8] = raw[byte::width]
    values = struct.unpack(f"<{count}Q", wide)
    return list(compress(range(count), values)), list(filter(None, values))


def pack_columns(members: Sequence[int], values: Sequence[int]) -> int:
    """Return the vector of these counters, members ascending. Faster than `pack`."""
    if not members:
        return 0
    count = members[-1] + 1
    if count > _SPARSE * len(members):
        return pack(zip(members, values, strict=True))
    dense = [0] * count
    for member, value in zip(members, values, strict=True):
        dense[member] = value
    width = LANE_BITS // 8
    wide = struct.pack(f"<{count}Q", *dense)
    raw = bytearray(width * count)
    for byte in range(width):
        raw[byte::width] = wide[byte::8]
    return int.from_bytes(raw, "little")
