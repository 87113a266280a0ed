"""The messages of `sent`: their matrices as bytes, and their members renumbered.

    head        sender, number and destinations (`addressed.encode_head`)
    byte 0      0: the entries that are not 0;  1 to 5: all entries, so many bytes each
    0           varint count, then varint gap and varint entry of each, by `lane`
    1 to 5      varint side, then row after row, each without its own column, which is always 0

The form is the one that `clocks.compact` would take. A side, or a width, is as small as can be. So
a matrix has one spelling, and any other is refused.

A row changes only when its member sends. So of one message and the next most rows are the same
bytes: `MatrixBytes` keeps the rows of the last matrix, written or read, as bytes and as integers,
and takes the integer it has where the bytes are the same. The receiver in turn finds most rows
to be the very object that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isqrt
from typing import Any, NamedTuple, TypeAlias

from antecede.clocks.compact import (
    LANE_BYTES,
    byte_width,
    encode_sparse,
    is_sparse,
    nonzero,
    occupied,
    planes,
    read_sparse,
    woven,
)
from antecede.clocks.lanes import LANE_BITS, MAX_VALUE, pack
from antecede.clocks.wire import Reader, varint
from antecede.errors import DecodeError, SequenceError, UnknownMemberError

MAX_SIDE = 1 << 10
"""Most rows of a matrix: 1,048,576 lanes, 5 MB."""
Rows: TypeAlias = tuple[int, ...]


class SentMessage(NamedTuple):
    """A message, its sender's number for it from 1, for whom it is, and SENT."""

    sender: int
    seq: int
    payload: Any
    to: tuple[int, ...]
    matrix: Rows
    """Row k: how many messages of k to each, packed by destination. The last row is not 0."""


def lane(sender: int, target: int) -> int:
    """Return the place of entry [sender, target]: shell by shell around entry [0, 0].

    Shell m has the 2m + 1 entries whose larger index is m: its column first, then its row. So
    few members with low numbers have low places, however large the group.
    """
    if sender <= target:
        return target * target + sender
    return sender * sender + sender + 1 + target


def entry(number: int) -> tuple[int, int]:
    """Return (sender, target) of a place."""
    shell = isqrt(number)
    place = number - shell * shell
    return (place, shell) if place <= shell else (shell, place - shell - 1)


def rows_of(entries: Iterable[tuple[int, int, int]]) -> Rows:
    """Return the rows of (sender, target, count), none of which is 0."""
    found: dict[int, list[tuple[int, int]]] = {}
    for sender, target, count in entries:
        found.setdefault(sender, []).append((target, count))
    return tuple(pack(found.get(k, ())) for k in range(max(found, default=-1) + 1))


def entries_of(rows: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return (sender, target, count) of every entry that is not 0."""
    return [(k, d, count) for k, row in enumerate(rows) if row for d, count in nonzero(row)]


def trimmed(rows: Sequence[int]) -> Rows:
    """Return the rows without those of 0 at the end."""
    end = len(rows)
    while end and not rows[end - 1]:
        end -= 1
    return tuple(rows[:end])


def mentioned(message: SentMessage) -> tuple[int, ...]:
    """Return the sender, the destinations, and all who have an entry in the matrix."""
    named = {member for k, d, _ in entries_of(message.matrix) for member in (k, d)}
    return tuple(sorted(named.union(message.to, (message.sender,))))


def renumbered(message: SentMessage, numbers: Mapping[int, int]) -> SentMessage:
    """Return the message with every member's number replaced."""
    return message._replace(
        sender=numbers[message.sender],
        to=tuple(sorted(numbers[member] for member in message.to)),
        matrix=rows_of((numbers[k], numbers[d], n) for k, d, n in entries_of(message.matrix)),
    )


class _Row(NamedTuple):
    row: int
    piece: bytes
    """The entries without the own column, `width` bytes each."""
    found: int
    """How many of them are not 0."""
    is_wide: bool
    """One of them needs all of the width."""


class MatrixBytes:
    """Writes and reads matrices; see the module for what it remembers."""

    def __init__(self) -> None:
        self.side, self.width = 0, 1
        self.rows: list[_Row] = []
        """Of the last matrix of `side` rows and `width` bytes an entry."""

    def encode(self, rows: Sequence[int]) -> bytes:
        """Encode rows that have no entries in their own columns."""
        together = 0
        for row in rows:
            together |= row
        side = max(len(rows), -(-together.bit_length() // LANE_BITS))
        self._expect(side, len(planes(together.to_bytes(side * LANE_BYTES, "little"))))
        for k, row in enumerate(rows):
            if row is not self.rows[k].row:
                self.rows[k] = self._written(row, k)
        for k in range(len(rows), side):
            self.rows[k] = self._written(0, k)
        if not self._is_sparse():
            return bytes((self.width,)) + varint(side) + b"".join([one.piece for one in self.rows])
        places = sorted((lane(k, d), count) for k, d, count in entries_of(rows))
        return b"\0" + encode_sparse(len(places), places)

    def read(self, reader: Reader) -> Rows:
        """Read what `encode` wrote. Raises DecodeError, UnknownMemberError and SequenceError."""
        start = reader.offset
        width = reader.take(1)[0]
        if not width:
            return _read_pairs(reader)
        if width > LANE_BYTES:
            raise DecodeError(f"entries of {width} bytes at byte {start}")
        side = reader.varint()
        if side > MAX_SIDE:
            raise UnknownMemberError(f"a matrix of {side} members, at most {MAX_SIDE} can be")
        size = max(side - 1, 0) * width
        body = reader.take(side * size)
        self._expect(side, width)
        for k, one in enumerate(self.rows):
            piece = body[k * size : (k + 1) * size]
            if piece != one.piece:
                self.rows[k] = self._read(piece, k)
        rows = [one.row for one in self.rows]
        if side and not (rows[-1] or any(row >> (side - 1) * LANE_BITS for row in rows)):
            raise DecodeError(f"a matrix at byte {start}, larger than its members need")
        if width > 1 and not any(one.is_wide for one in self.rows):
            raise DecodeError(f"a matrix at byte {start}, wider than its largest entry needs")
        if self._is_sparse():
            raise DecodeError(f"a matrix at byte {start}, most of it 0, that should be pairs")
        return trimmed(rows)

    def _expect(self, side: int, width: int) -> None:
        """Forget the rows unless they were of this side and width."""
        if (side, width) != (self.side, self.width):
            self.side, self.width = side, width
            self.rows = [_Row(0, bytes(max(side - 1, 0) * width), 0, False)] * side

    def _is_sparse(self) -> bool:
        found = sum([one.found for one in self.rows])
        return is_sparse(found, self.side * (self.side - 1), self.width)

    def _written(self, row: int, member: int) -> _Row:
        raw, at = row.to_bytes(self.side * LANE_BYTES, "little"), member * self.width
        split = [raw[byte::LANE_BYTES] for byte in range(self.width)]
        whole = bytes(woven(split, self.width))
        return _row(row, whole[:at] + whole[at + self.width :], split)

    def _read(self, piece: bytes, member: int) -> _Row:
        width, at = self.width, member * self.width
        whole = piece[:at] + bytes(width) + piece[at:]
        split = [whole[byte::width] for byte in range(width)]
        if width == LANE_BYTES and max(split[-1]) > MAX_VALUE >> (8 * (LANE_BYTES - 1)):
            raise SequenceError(f"a row of member {member} with an entry above {MAX_VALUE}")
        return _row(int.from_bytes(woven(split, LANE_BYTES), "little"), piece, split)


def _row(row: int, piece: bytes, split: Sequence[bytes]) -> _Row:
    zeros, of_top = occupied(split).count(0), split[-1].count(0)
    return _Row(row, piece, len(split[0]) - zeros, of_top < len(split[0]))


def _read_pairs(reader: Reader) -> Rows:
    start = reader.offset
    places = [(*entry(number), count) for number, count in read_sparse(reader, MAX_SIDE * MAX_SIDE)]
    if any(k == d for k, d, _ in places):
        raise UnknownMemberError(f"a matrix at byte {start} with messages of members to themselves")
    side = max((max(k, d) for k, d, _ in places), default=-1) + 1
    width = byte_width(max((count for *_, count in places), default=0))
    if not is_sparse(len(places), side * (side - 1), width):
        raise DecodeError(f"a matrix at byte {start} as pairs, few of it 0")
    return rows_of(places)
