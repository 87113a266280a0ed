"""Matrix clocks of Sahai et al. 2020 ("Matrix Time") as immutable values, to read and to try.

Rules R1 and R2, with R2 repaired: the maximum is taken with the OWN entry, `mt_i[i,k] :=
max(mt_i[i,k], mt[j,k])` and `mt_i[k,l] := max(mt_i[k,l], mt[k,l])`. Entry [i, k] of member o's
matrix is what o knows of what i knows of k's clock; o's own clock is [o, o]. The protocol `matrix`
keeps the same numbers packed (`antecede.core.clocks.matrix`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from antecede.core.clocks import (
    INTEGER_BYTES,
    LANE_BITS,
    MAX_SIDE,
    MAX_VALUE,
    encode_behind,
    fold,
    lanes,
    read_behind,
    read_side,
    read_top,
    repeat_row,
)
from antecede.core.clocks.encoding import LANE_BYTES, ByteReader, encode_dense, varint, varint_size
from antecede.errors import DecodeError, LocalError


def row_of(matrix: int, row: int, side: int) -> int:
    """Return one row as a packed vector."""
    return (matrix >> (row * side * LANE_BITS)) & ((1 << (side * LANE_BITS)) - 1)


def with_row(matrix: int, row: int, vector: int, side: int) -> int:
    """Return the matrix with one row replaced by a packed vector."""
    return matrix ^ ((row_of(matrix, row, side) ^ vector) << (row * side * LANE_BITS))


def widen(matrix: int, side: int, new: int) -> int:
    """Return the matrix laid out for another side; what has no place in a smaller one goes."""
    if side == new:
        return matrix
    wide, kept = side * LANE_BYTES, min(side, new)
    raw = matrix.to_bytes(side * wide, "little")
    gap = bytes((new - kept) * LANE_BYTES)
    rows = [raw[k * wide : k * wide + kept * LANE_BYTES] + gap for k in range(kept)]
    return int.from_bytes(b"".join(rows), "little")


@dataclass(frozen=True, slots=True)
class MatrixClock:
    """A square of counters, as packed rows. Make one with `of` or `zero`."""

    lanes: int = 0
    side: int = 0

    @classmethod
    def zero(cls, side: int) -> MatrixClock:
        """Return the clock of members 0 .. side - 1 at the start. Raises LocalError."""
        if not 0 <= side <= MAX_SIDE:
            raise LocalError(f"a matrix clock has 0 to {MAX_SIDE} rows, not {side}")
        return cls(0, side)

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> MatrixClock:
        """Return the clock with these rows. Raises LocalError unless they are a square."""
        side = len(cls.zero(len(rows)).rows)
        if any(len(row) != side for row in rows):
            raise LocalError(f"a matrix of {side} rows has {side} entries in each")
        entries = [entry for row in rows for entry in row]
        if any(not 0 <= entry <= MAX_VALUE for entry in entries):
            raise LocalError(f"entries of a matrix clock are 0 to {MAX_VALUE}")
        return cls(lanes.pack(enumerate(entries)), side)

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """All rows, by member number."""
        return tuple(self.row(member) for member in range(self.side))

    def row(self, member: int) -> tuple[int, ...]:
        """Return what a member is known to know; the own row is the principal vector."""
        return lanes.unpack(row_of(self.lanes, self._own(member), self.side), self.side)

    def knows(self, member: int, of: int) -> int:
        """Return how far `member` is known to know the clock of `of`: entry [member, of]."""
        return lanes.get(self.lanes, self._own(member) * self.side + self._own(of))

    def stable(self, of: int, among: Iterable[int] | None = None) -> int:
        """Return how far ALL members (or those `among`) are known to know the clock of `of`."""
        readers = range(self.side) if among is None else among
        return min((self.knows(member, of) for member in readers), default=0)

    def stable_vector(self) -> tuple[int, ...]:
        """Return `stable` of every member: the least of every column."""
        return lanes.unpack(fold(self.lanes, self.side, self.side), self.side)

    def event(self, me: int, by: int = 1) -> MatrixClock:
        """Return the clock of the next event of `me` (R1). Raises LocalError unless by > 0."""
        if not 0 < by <= MAX_VALUE - self.knows(me, me):
            raise LocalError(f"clock {self.knows(me, me)} can not advance by {by}")
        unit = lanes.unit(me * self.side + me, by)
        return MatrixClock(self.lanes + unit, self.side)

    def receive(self, me: int, sender: int, other: MatrixClock, by: int = 1) -> MatrixClock:
        """Return the clock of the receipt of a message stamped `other` (R2, then R1)."""
        merged = self.merge(other)
        theirs = row_of(other.lanes, other._own(sender), other.side)
        mine = row_of(merged.lanes, self._own(me), self.side)
        mine = lanes.merge(mine, theirs, lanes.guards(self.side))
        return MatrixClock(with_row(merged.lanes, me, mine, self.side), self.side).event(me, by)

    def merge(self, other: MatrixClock) -> MatrixClock:
        """Return the least clock that covers both: the second line of R2."""
        self._same(other)
        guard = lanes.guards(self.side * self.side)
        return MatrixClock(lanes.merge(self.lanes, other.lanes, guard), self.side)

    def __le__(self, other: MatrixClock) -> bool:
        """Return whether every entry is at or below that of `other`."""
        self._same(other)
        return lanes.dominates(other.lanes, self.lanes, lanes.guards(self.side * self.side))

    def __lt__(self, other: MatrixClock) -> bool:
        """Return whether this is at or below `other` and differs."""
        return self.lanes != other.lanes and self <= other

    def concurrent(self, other: MatrixClock) -> bool:
        """Return whether neither is at or below the other."""
        return not self <= other and not other <= self

    def widen(self, side: int) -> MatrixClock:
        """Return the clock with room for more members. Raises LocalError for fewer."""
        if side < self.side:
            raise LocalError(f"a matrix of {self.side} rows can not shrink to {side}")
        return MatrixClock(widen(self.lanes, self.side, MatrixClock.zero(side).side), side)

    def _same(self, other: MatrixClock) -> None:
        if self.side != other.side:
            raise LocalError(f"matrices of {self.side} and {other.side} rows: widen one first")

    def _own(self, member: int) -> int:
        if not 0 <= member < self.side:
            raise LocalError(f"member {member} is not in 0 to {self.side - 1}")
        return member

    @property
    def storage_bytes(self) -> int:
        """The size by the accounting of the sources: side * side integers of 4 bytes."""
        return INTEGER_BYTES * self.side * self.side

    def encode(self) -> bytes:
        """Encode the side, the greatest of every column, and how much the rows are behind it."""
        if not self.side:
            return varint(0)
        top = fold(self.lanes, self.side, self.side, greatest=True)
        rows = encode_behind(self.lanes, top, self.side, self.side)
        return varint(self.side) + encode_dense(top) + rows

    @property
    def encoded_size(self) -> int:
        """The length of `encode()`, found from the largest entry behind its column."""
        if not self.side:
            return 1
        top = fold(self.lanes, self.side, self.side, greatest=True)
        behind = repeat_row(top, self.side, self.side) - self.lanes
        most = fold(behind, self.side, self.side, greatest=True)
        planes = max(-(-entry.bit_length() // 8) for entry in lanes.unpack(most, self.side))
        dense = -(-top.bit_length() // LANE_BITS)
        size = varint_size(self.side) + varint_size(dense)
        size += sum(varint_size(entry) for entry in lanes.unpack(top, dense))
        return size + 1 + max(planes, 1) * self.side * self.side

    @classmethod
    def decode(cls, data: bytes) -> MatrixClock:
        """Return what `encode` wrote.

        Raises DecodeError, UnknownMemberError for more than MAX_SIDE rows and SequenceError
        for a counter that no lane holds or that is below 0.
        """
        reader = ByteReader(data)
        side = read_side(reader)
        if not side:
            reader.finish()
            return cls()
        top = read_top(reader, side)
        matrix = read_behind(reader, top, side, side)
        reader.finish()
        if fold(matrix, side, side, greatest=True) != top:
            raise DecodeError("a matrix whose columns do not reach their greatest entries")
        return cls(matrix, side)
