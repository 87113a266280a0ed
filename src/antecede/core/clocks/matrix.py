"""Packed matrices, the content of matrix clocks.

Source: Sahai et al. 2020, "Matrix Time", rules R1 and R2 with R2 repaired: the maximum is taken
with the OWN entry, `mt_i[i,k] := max(mt_i[i,k], mt[j,k])` and `mt_i[k,l] := max(mt_i[k,l],
mt[k,l])`. Entry [i, k] of member o's matrix is what o knows of what i knows of k's clock. Row
[o, .] is o's vector clock, its principal vector; o's own clock is [o, o].

Theory of operation
-------------------
A matrix of `side` rows and columns is ONE Python integer of side * side lanes, row after row
(`core.clocks.lanes`). The least of every column is found by halves: the minimum of the upper and
the lower half of the rows, again and again, which costs as much as two maxima.

On the wire a matrix is a row `top` of which every entry is the greatest of its column, then how
much each entry is behind it. These small numbers are written as planes (the low bytes of all
entries, then the next bytes of all), because Python moves a plane in one call.
"""

from __future__ import annotations

from collections.abc import Iterable

from antecede.core.clocks import lanes
from antecede.core.clocks.encoding.compact import LANE_BYTES, planes, woven
from antecede.core.clocks.encoding.pairs import read_dense
from antecede.core.clocks.encoding.wire import Reader, varint
from antecede.core.clocks.lanes import LANE_BITS, VALUE_BITS
from antecede.errors import DecodeError, SequenceError, UnknownMemberError

INTEGER_BYTES = 4
MAX_SIDE = 1024
"""Most rows that a decoder accepts: 5 MB of lanes. A message of that size has 1 MB and more."""


# -- packed matrices -------------------------------------------------------------------------


def joined(rows: Iterable[int], side: int) -> int:
    """Return rows that are packed vectors, one after another."""
    return int.from_bytes(
        b"".join(row.to_bytes(side * LANE_BYTES, "little") for row in rows), "little"
    )


def parted(matrix: int, rows: int, side: int) -> list[int]:
    """Return `rows` rows as packed vectors: what `joined` joined."""
    width = side * LANE_BYTES
    raw = matrix.to_bytes(rows * width, "little")
    return [int.from_bytes(raw[k * width : (k + 1) * width], "little") for k in range(rows)]


def repeated(vector: int, rows: int, side: int) -> int:
    """Return `rows` rows that are all this vector."""
    return int.from_bytes(vector.to_bytes(side * LANE_BYTES, "little") * rows, "little")


def fold(matrix: int, side: int, rows: int, *, greatest: bool = False) -> int:
    """Return the least (or greatest) of every column over the first `rows` rows; 0 for none."""
    width = side * LANE_BITS
    guard = lanes.guards(side * (rows - rows // 2))
    while rows > 1:
        half = rows - rows // 2
        low = matrix & ((1 << (half * width)) - 1)
        # Of an odd number the middle row is in both halves.
        high = matrix >> ((rows - half) * width)
        guard &= (1 << (half * width)) - 1
        kept = ((low | guard) - high) & guard
        mask = kept - (kept >> VALUE_BITS)
        matrix = (high ^ ((low ^ high) & mask)) if greatest else (low ^ ((low ^ high) & mask))
        rows = half
    return matrix if rows else 0


def encode_behind(vectors: int, top: int, rows: int, side: int) -> bytes:
    """Encode `rows` rows, none above `top`, as the planes of how much they are behind it."""
    count = rows * side
    behind = (repeated(top, rows, side) - vectors).to_bytes(count * LANE_BYTES, "little")
    split = planes(behind)
    return varint(len(split)) + b"".join(split)


def read_behind(reader: Reader, top: int, rows: int, side: int) -> int:
    """Read what `encode_behind` wrote. Raises DecodeError, SequenceError for entries below 0."""
    count, at = rows * side, reader.offset
    width = reader.varint()
    if not 1 <= width <= LANE_BYTES:
        raise DecodeError(f"{width} bytes an entry announced at byte {at}; 1 to {LANE_BYTES}")
    if width * count > len(reader.data) - reader.offset:
        raise DecodeError(f"a matrix of {rows} rows announced at byte {at} is cut short")
    split = [reader.take(count) for _ in range(width)]
    if width > 1 and not split[-1].strip(b"\0"):
        raise DecodeError(f"the matrix at byte {at} has a plane of zeros")
    behind, guard = int.from_bytes(woven(split, LANE_BYTES), "little"), lanes.guards(count)
    whole = repeated(top, rows, side)
    if behind & guard or ((whole | guard) - behind) & guard != guard:
        raise SequenceError(f"the matrix at byte {at} has an entry below 0")
    return whole - behind


def read_side(reader: Reader) -> int:
    """Read the number of rows; raise DecodeError or UnknownMemberError."""
    side = reader.varint()
    if side > MAX_SIDE:
        raise UnknownMemberError(f"a matrix of {side} members; at most {MAX_SIDE} are accepted")
    return side


def read_top(reader: Reader, side: int) -> int:
    """Read a dense vector of at most `side` entries; raise DecodeError and SequenceError."""
    top = read_dense(reader)
    if top.bit_length() > side * LANE_BITS:
        raise DecodeError(f"a vector with more than the {side} entries of its matrix")
    return top
