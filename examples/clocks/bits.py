"""Bit vectors of Evropeytsev et al. 2016 (sections 3.1.1 and 3.1.2) as immutable values.

`|`, `&`, `-` (AND-NOT) and `<=`, in canonical form: the leading ones as a count, then one window
without leading or trailing zeros. The protocol uses the plain functions of
`antecede.core.clocks.bits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from antecede.core.clocks import (
    MAX_POSITION,
    MAX_SPAN,
    absorb,
    encode_window,
    positions,
    read_window,
    span_bytes,
    trim,
)
from antecede.core.clocks.encoding import ByteReader, varint
from antecede.errors import DecodeError, SequenceError


def rebase(base: int, bits: int, to: int) -> int:
    """Return the bits relative to another base; positions at or below `to` fall away.

    Raises SequenceError when `base` is more than MAX_SPAN above `to`.
    """
    distance = base - to
    if distance <= 0:
        return bits >> -distance
    if distance > MAX_SPAN and bits:
        raise SequenceError(f"position {base + 1} is more than {MAX_SPAN} above {to}")
    return bits << distance


def place(position: int, base: int) -> int:
    """Return bits with one position set, relative to `base`; 0 when at or below the base.

    Raises SequenceError when the position is more than MAX_SPAN above the base.
    """
    distance = position - base
    if distance > MAX_SPAN:
        raise SequenceError(f"position {position} is more than {MAX_SPAN} above {base}")
    return 1 << (distance - 1) if distance > 0 else 0


@dataclass(frozen=True, slots=True)
class BitVector:
    """An immutable set of positions from 1: `prefix` leading ones, then a window `(base, bits)`.

    Make one with `BitVector.of`, and by the operators; the fields are kept canonical, so that
    equal sets are equal values.
    """

    prefix: int = 0
    base: int = 0
    bits: int = 0

    @classmethod
    def of(cls, members: Iterable[int] = (), *, prefix: int = 0) -> BitVector:
        """Return the vector with positions 1 .. prefix and `members` set.

        Raises SequenceError for a position below 0 or above MAX_POSITION, or when those
        above the prefix span more than MAX_SPAN.
        """
        above = sorted(position for position in set(members) if position > prefix or position < 0)
        if prefix < 0 or (above and (above[0] < 0 or above[-1] > MAX_POSITION)):
            raise SequenceError(f"positions are 0 to {MAX_POSITION}: prefix {prefix}, {above[:3]}")
        base = above[0] - 1 if above else 0
        bits = 0
        for position in above:
            bits |= place(position, base)
        return _canonical(prefix, base, bits)

    def __contains__(self, position: int) -> bool:
        """Return whether a position is set; position 0 always is."""
        if position <= self.prefix:
            return position >= 0
        at = position - self.base - 1
        return 0 <= at < self.bits.bit_length() and bool(self.bits >> at & 1)

    def __iter__(self) -> Iterator[int]:
        """Yield the set positions from 1 on, ascending."""
        yield from range(1, self.prefix + 1)
        yield from positions(self.base, self.bits)

    def __len__(self) -> int:
        """Return the number of set positions, position 0 not counted."""
        return self.prefix + self.bits.bit_count()

    @property
    def last(self) -> int:
        """The highest set position; 0 when none is set."""
        return self.base + self.bits.bit_length() if self.bits else self.prefix

    def set(self, position: int) -> BitVector:
        """Return the vector with one more position. Raises SequenceError when too far."""
        return self | BitVector.of((position,))

    def __or__(self, other: BitVector) -> BitVector:
        """Return the union. Raises SequenceError when it would span more than MAX_SPAN."""
        prefix = max(self.prefix, other.prefix)
        windows = [v for v in (self, other) if v.bits]
        base = max(prefix, min((v.base for v in windows), default=prefix))
        bits = 0
        for v in windows:
            bits |= rebase(v.base, v.bits, base)
        return _canonical(prefix, base, bits)

    def __and__(self, other: BitVector) -> BitVector:
        """Return the intersection; it never spans more than its operands."""
        low, high = (self, other) if self.prefix <= other.prefix else (other, self)
        # Above the shorter prefix, only positions in the window of `low` can be in both.
        below = min(max(high.prefix - low.base, 0), low.bits.bit_length())
        there = (1 << below) - 1
        if high.base < low.base + low.bits.bit_length():
            there |= rebase(high.base, high.bits, low.base)
        return _canonical(low.prefix, low.base, low.bits & there)

    def __sub__(self, other: BitVector) -> BitVector:
        """Return AND-NOT. Raises SequenceError when the rest spans more than MAX_SPAN."""
        cut = other.prefix or min(self.prefix, other.base if other.bits else self.prefix)
        ones = max(self.prefix - cut, 0)
        if ones > MAX_SPAN:
            raise SequenceError(f"positions {cut + 1} to {self.prefix} span over {MAX_SPAN}")
        base = cut if ones else max(cut, self.base)
        bits = (1 << ones) - 1 | rebase(self.base, self.bits, base)
        if other.base < base + bits.bit_length():
            bits &= ~rebase(other.base, other.bits, base)
        return _canonical(0 if other.prefix else cut, base, bits)

    def __le__(self, other: BitVector) -> bool:
        """Return whether every position set here is set in `other`."""
        return self & other == self

    def __lt__(self, other: BitVector) -> bool:
        """Return whether this is a proper subset."""
        return self != other and self <= other

    @property
    def span_bytes(self) -> int:
        """Evropeytsev et al.'s size of a dependency vector: ceil((last set - first set + 1) /
        8).
        """
        if self.prefix:
            return (self.last + 7) // 8
        return span_bytes(self.bits)

    @property
    def window_bytes(self) -> int:
        """Evropeytsev et al.'s size of a receive vector: ceil((last set - first clear + 1) / 8)."""
        return (self.last - self.prefix + 7) // 8

    def encode(self) -> bytes:
        """Encode as the prefix and the window."""
        return varint(self.prefix) + encode_window(self.base, self.bits)

    @property
    def encoded_size(self) -> int:
        """The length of `encode()`."""
        return len(self.encode())

    @classmethod
    def decode(cls, data: bytes) -> BitVector:
        """Return what `encode` wrote. Raises DecodeError and SequenceError."""
        reader = ByteReader(data)
        vector = cls.read(reader)
        reader.finish()
        return vector

    @classmethod
    def read(cls, reader: ByteReader) -> BitVector:
        """Read a vector from the middle of a message. Raises DecodeError and SequenceError."""
        prefix = reader.varint()
        base, bits = read_window(reader)
        if prefix > MAX_POSITION:
            raise SequenceError(f"position {prefix} is above {MAX_POSITION}")
        if bits and base <= prefix:
            raise DecodeError(f"a bit vector's window begins at {base + 1}, prefix {prefix}")
        return cls(prefix, base, bits)


def _canonical(prefix: int, base: int, bits: int) -> BitVector:
    """Normalise; the window's base must not be below the prefix unless prefix is 0."""
    if not bits:
        return BitVector(prefix)
    base, bits = trim(base, bits)
    if base == prefix:
        prefix, bits = absorb(prefix, bits)
        base, bits = trim(prefix, bits)
    if bits.bit_length() > MAX_SPAN:
        raise SequenceError(
            f"positions {base + 1} to {base + bits.bit_length()} span over {MAX_SPAN}"
        )
    return BitVector(prefix, base, bits)
