"""Matrix clocks packed into one Python integer.

Source: Sahai et al. 2020, "Matrix Time", rules R1 and R2. R2 is repaired: the maximum is taken with
the OWN entry, `mt_i[i,k] := max(mt_i[i,k], mt[j,k])` and `mt_i[k,l] := max(mt_i[k,l], mt[k,l])`.
Entry [i, k] of member o's matrix is what o knows of i's knowledge of k's clock. Row [o, .] is o's
vector clock.

A matrix of `side` rows and columns has side * side lanes, row after row (`core.clocks.lanes`). The
minimum of every column is found by halving the rows, at the cost of two maxima. The wire format is
a row `top` with the maximum of every column, then the differences of all entries to it. These are
small, so they are planes: the low bytes of all entries, then the next bytes. Python copies a plane
in one call.
"""

from __future__ import annotations

from collections.abc import Iterable

from antecede.core.clocks import lanes
from antecede.core.clocks.encoding.compact import LANE_BYTES, planes, woven
from antecede.core.clocks.encoding.pairs import read_dense
from antecede.core.clocks.encoding.wire import ByteReader, varint
from antecede.core.clocks.lanes import LANE_BITS, VALUE_BITS
from antecede.errors import DecodeError, SequenceError, UnknownMemberError

INTEGER_BYTES = 4
MAX_SIDE = 1024
"""Maximum number of rows in a decoder: 5 MB of lanes, 1 MB or more on the wire."""


# -- packed matrices -------------------------------------------------------------------------


def join_rows(rows: Iterable[int], side: int) -> int:
    """Return the matrix of rows that are packed vectors."""
    return int.from_bytes(
        b"".join(row.to_bytes(side * LANE_BYTES, "little") for row in rows), "little"
    )


def split_rows(matrix: int, rows: int, side: int) -> list[int]:
    """Return the `rows` rows of a matrix as packed vectors."""
    width = side * LANE_BYTES
    raw = matrix.to_bytes(rows * width, "little")
    return [int.from_bytes(raw[k * width : (k + 1) * width], "little") for k in range(rows)]


def repeat_row(vector: int, rows: int, side: int) -> int:
    """Return a matrix of `rows` equal rows."""
    return int.from_bytes(vector.to_bytes(side * LANE_BYTES, "little") * rows, "little")


def fold(matrix: int, side: int, rows: int, *, greatest: bool = False) -> int:
    """Return the minimum (or maximum) of every column over the first `rows` rows; 0 for no rows."""
    width = side * LANE_BITS
    guard = lanes.guards(side * (rows - rows // 2))
    while rows > 1:
        half = rows - rows // 2
        low = matrix & ((1 << (half * width)) - 1)
        # With an odd number of rows the middle one is in both halves.
        high = matrix >> ((rows - half) * width)
        guard &= (1 << (half * width)) - 1
        kept = ((low | guard) - high) & guard
        mask = kept - (kept >> VALUE_BITS)
        matrix = (high ^ ((low ^ high) & mask)) if greatest else (low ^ ((low ^ high) & mask))
        rows = half
    return matrix if rows else 0


def encode_behind(vectors: int, top: int, rows: int, side: int) -> bytes:
    """Encode `rows` rows, none above `top`, as planes of their differences to it."""
    count = rows * side
    behind = (repeat_row(top, rows, side) - vectors).to_bytes(count * LANE_BYTES, "little")
    split = planes(behind)
    return varint(len(split)) + b"".join(split)


def read_behind(reader: ByteReader, top: int, rows: int, side: int) -> int:
    """Read rows of `encode_behind`. Raise DecodeError, or SequenceError for entries below 0."""
    count, at = rows * side, reader.offset
    width = reader.varint()
    if not 1 <= width <= LANE_BYTES:
        raise DecodeError(
            f"matrix entries of {width} bytes announced at byte {at}; expected 1 to {LANE_BYTES}"
        )
    if width * count > len(reader.data) - reader.offset:
        raise DecodeError(f"matrix of {rows} rows announced at byte {at} is truncated")
    split = [reader.take(count) for _ in range(width)]
    if width > 1 and not split[-1].strip(b"\0"):
        raise DecodeError(f"matrix at byte {at} has a plane of zeros")
    behind, guard = int.from_bytes(woven(split, LANE_BYTES), "little"), lanes.guards(count)
    whole = repeat_row(top, rows, side)
    if behind & guard or ((whole | guard) - behind) & guard != guard:
        raise SequenceError(f"matrix at byte {at} has an entry below 0")
    return whole - behind


def read_side(reader: ByteReader) -> int:
    """Read the number of rows. Raise DecodeError or UnknownMemberError."""
    side = reader.varint()
    if side > MAX_SIDE:
        raise UnknownMemberError(f"matrix of {side} members exceeds the limit of {MAX_SIDE}")
    return side


def read_top(reader: ByteReader, side: int) -> int:
    """Read a dense vector of at most `side` entries. Raise DecodeError or SequenceError."""
    top = read_dense(reader)
    if top.bit_length() > side * LANE_BITS:
        raise DecodeError(f"vector has more entries than the {side} rows of its matrix")
    return top
