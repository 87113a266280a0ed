"""Messages of `sent`, and the encoding of their matrices.

    head        sender, number and destinations (`multicast.base.encode_head`)
    byte 0      0: the entries that are not 0;  1 to 5: all entries, so many bytes each
    0           varint count, then varint gap and varint entry of each, by `cell_index`
    1 to 5      varint side, then row after row, each without its own column, which is always 0

The form is the one that `core.clocks.encoding.compact` would choose. Side and width are minimal. So
a matrix has one encoding, and any other is rejected. A row changes only when its member sends. So
`MatrixBytes` keeps the rows of the last matrix and reuses the integers of equal rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress, count
from math import isqrt
from operator import is_not, ne
from typing import Any, NamedTuple, TypeAlias

from antecede.core.clocks import LANE_BITS, MAX_VALUE, pack
from antecede.core.clocks.encoding import (
    LANE_BYTES,
    ByteReader,
    byte_width,
    encode_sparse,
    is_sparse,
    mark_nonzero,
    nonzero,
    planes,
    read_sparse,
    varint,
    woven,
)
from antecede.errors import DecodeError, SequenceError, UnknownMemberError

MAX_SIDE = 1 << 10
"""Size limit of a matrix, rows: 1,048,576 lanes, 5 MB."""
Rows: TypeAlias = tuple[int, ...]


class RstMessage(NamedTuple):
    """Message with its sender's number for it, from 1, its destinations, and SENT."""

    sender: int
    seq: int
    payload: Any
    to: tuple[int, ...]
    matrix: Rows
    """Row k: messages of k to each member, packed by destination. The last row is not 0."""


def cell_index(sender: int, target: int) -> int:
    """Return the index of entry [sender, target]: shell by shell around entry [0, 0].

    Shell m has the 2m + 1 entries whose larger index is m: its column, then its row.
    """
    if sender <= target:
        return target * target + sender
    return sender * sender + sender + 1 + target


def index_to_cell(number: int) -> tuple[int, int]:
    """Return (sender, target) of an index."""
    shell = isqrt(number)
    place = number - shell * shell
    return (place, shell) if place <= shell else (shell, place - shell - 1)


def entries_to_rows(entries: Iterable[tuple[int, int, int]]) -> Rows:
    """Return the rows of (sender, target, count) with counts above 0."""
    found: dict[int, list[tuple[int, int]]] = {}
    for sender, target, number in entries:
        found.setdefault(sender, []).append((target, number))
    return tuple(pack(found.get(k, ())) for k in range(max(found, default=-1) + 1))


def rows_to_entries(rows: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (sender, target, count) of every entry that is not 0."""
    return [(k, d, count) for k, row in enumerate(rows) if row for d, count in nonzero(row)]


def trim_rows(rows: Sequence[int]) -> Rows:
    """Return the rows without trailing zeros."""
    end = len(rows)
    while end and not rows[end - 1]:
        end -= 1
    return tuple(rows[:end])


class MatrixBytes:
    """Encoder and decoder of matrices that reuses the rows of the previous one."""

    def __init__(self) -> None:
        self._reset(0, 1)

    def _reset(self, side: int, width: int) -> None:
        self.side, self.width = side, width
        self.rows = [0] * side
        self.pieces = [bytes(max(side - 1, 0) * width)] * side
        """Entries of each row without its own column, `width` bytes each."""
        self.nonzero_counts = [0] * side
        """Number of these entries that are not 0."""
        self.wide_counts = [0] * side
        """Number of these entries that need the full width."""

    def encode(self, rows: Sequence[int]) -> bytes:
        together = 0
        for row in rows:
            together |= row
        side = max(len(rows), -(-together.bit_length() // LANE_BITS))
        width = len(planes(together.to_bytes(side * LANE_BYTES, "little")))
        if (side, width) != (self.side, self.width):
            self._reset(side, width)
        rows = [*rows, *[0] * (side - len(rows))]
        changed = list(compress(count(), map(is_not, rows, self.rows)))
        if changed:
            self._encode_rows(changed, rows)
        if not self._is_sparse():
            return bytes((width,)) + varint(side) + b"".join(self.pieces)
        places = sorted((cell_index(k, d), number) for k, d, number in rows_to_entries(rows))
        return b"\0" + encode_sparse(len(places), places)

    def read(self, reader: ByteReader) -> Rows:
        start = reader.offset
        width = reader.take(1)[0]
        if not width:
            return _read_pairs(reader)
        if width > LANE_BYTES:
            raise DecodeError(f"matrix at byte {start}: entries of {width} bytes; expected 1 to 5")
        side = reader.varint()
        if side > MAX_SIDE:
            raise UnknownMemberError(f"matrix of {side} members; the limit is {MAX_SIDE}")
        if side < 2:
            if side or width > 1:
                raise DecodeError(
                    f"matrix at byte {start} of {side} members, which needs no entries"
                )
            return ()
        size = (side - 1) * width
        body = reader.take(side * size)
        if (side, width) != (self.side, self.width):
            self._reset(side, width)
        pieces = [body[at : at + size] for at in range(0, side * size, size)]
        changed = list(compress(count(), map(ne, pieces, self.pieces)))
        if changed:
            self._decode_rows(changed, pieces)
        rows = self.rows
        if not (rows[-1] or any(row >> (side - 1) * LANE_BITS for row in rows)):
            raise DecodeError(f"matrix at byte {start}: larger than its members need")
        if width > 1 and not any(self.wide_counts):
            raise DecodeError(f"matrix at byte {start}: wider than its largest entry needs")
        if self._is_sparse():
            raise DecodeError(f"matrix at byte {start}: mostly 0, must be encoded as pairs")
        return trim_rows(rows)

    def _is_sparse(self) -> bool:
        return is_sparse(sum(self.nonzero_counts), self.side * (self.side - 1), self.width)

    def _encode_rows(self, changed: Sequence[int], rows: Sequence[int]) -> None:
        size, width = self.side * LANE_BYTES, self.width
        raw = b"".join([rows[k].to_bytes(size, "little") for k in changed])
        split = [raw[byte::LANE_BYTES] for byte in range(width)]
        whole = split[0] if width == 1 else bytes(woven(split, width))
        for k, at in zip(changed, count(0, self.side * width), strict=False):
            own = at + k * width
            self.pieces[k] = whole[at:own] + whole[own + width : at + self.side * width]
            self.rows[k] = rows[k]
        self._count(changed, split)

    def _decode_rows(self, changed: Sequence[int], pieces: Sequence[bytes]) -> None:
        size, width = self.side * LANE_BYTES, self.width
        none = bytes(width)
        parts: list[bytes] = []
        for k in changed:
            own, piece = k * width, pieces[k]
            parts += (piece[:own], none, piece[own:])
        whole = b"".join(parts)
        split = [whole] if width == 1 else [whole[byte::width] for byte in range(width)]
        if width == LANE_BYTES and max(split[-1]) > MAX_VALUE >> (8 * (LANE_BYTES - 1)):
            raise SequenceError(f"matrix with an entry above {MAX_VALUE}")
        raw = woven(split, LANE_BYTES)
        for k, at in zip(changed, count(0, size), strict=False):
            self.rows[k] = int.from_bytes(raw[at : at + size], "little")
            self.pieces[k] = pieces[k]
        self._count(changed, split)

    def _count(self, changed: Sequence[int], split: Sequence[bytes]) -> None:
        used, top, side = mark_nonzero(split), split[-1], self.side
        for k, at in zip(changed, count(0, side), strict=False):
            self.nonzero_counts[k] = side - used.count(0, at, at + side)
            self.wide_counts[k] = side - top.count(0, at, at + side)


def _read_pairs(reader: ByteReader) -> Rows:
    start = reader.offset
    places = [
        (*index_to_cell(number), count)
        for number, count in read_sparse(reader, MAX_SIDE * MAX_SIDE)
    ]
    if any(k == d for k, d, _ in places):
        raise UnknownMemberError(f"matrix at byte {start}: messages of a member to itself")
    side = max((max(k, d) for k, d, _ in places), default=-1) + 1
    width = byte_width(max((count for *_, count in places), default=0))
    if not is_sparse(len(places), side * (side - 1), width):
        raise DecodeError(f"matrix at byte {start}: mostly above 0, must not be encoded as pairs")
    return entries_to_rows(places)
