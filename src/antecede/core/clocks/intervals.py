"""Sets of sequence numbers as intervals, for ordering lists and duplicate filters.

Source: Bhavanasi and Iyer, section VI.B (IsPresentInOL, InsertInOL), with misprints repaired. A
number is present if it is at or BELOW the high end of its node. A merge takes the SECOND node's
high end. An extension writes `H[k-1]`. Absent neighbours and duplicates are handled.

The nodes [L, H] of one member are one sorted list of bounds `[L0, H0 + 1, L1, H1 + 1, ...]`. A
number is present if an odd number of bounds is at or below it. So lookup and insertion are one
binary search. Numbers that arrive nearly in order need only a few nodes. Protocols use the
functions on lists; `Intervals` is the immutable value.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from antecede.core.clocks.coercion import plain
from antecede.core.clocks.encoding.wire import ByteReader, varint
from antecede.errors import DecodeError, LocalError, SequenceError

NODE_BYTES = 8
"""Size of a node as the sources count it: two 4-byte integers."""
MAX_NUMBER = (1 << 63) - 1
MAX_GAPS = 1 << 14
"""Default limit of gaps per member, 128 KiB."""


# -- plain functions on a list of bounds -----------------------------------------------------


def contains(bounds: list[int] | tuple[int, ...], number: int) -> bool:
    """Return whether a number is in the set (Algorithm 1)."""
    return bool(bisect_right(bounds, number) & 1)


def insert(bounds: list[int], number: int) -> bool:
    """Insert a number in place (Algorithm 2), and return whether it is new."""
    at = bisect_right(bounds, number)
    if at & 1:
        return False
    follows = at > 0 and bounds[at - 1] == number
    if at < len(bounds) and bounds[at] == number + 1:
        if follows:
            del bounds[at - 1 : at + 1]
        else:
            bounds[at] = number
    elif follows:
        bounds[at - 1] = number + 1
    else:
        bounds[at:at] = (number, number + 1)
    return True


def with_all_up_to(bounds: list[int] | tuple[int, ...], last: int) -> list[int]:
    """Return the bounds of the union with 1 to `last`."""
    at = bisect_right(bounds, last)
    if at & 1:  # `last` is inside a node, whose end stays
        return [1, *bounds[at:]]
    if at < len(bounds) and bounds[at] == last + 1:
        return [1, *bounds[at + 1 :]]
    return [1, last + 1, *bounds[at:]] if last > 0 else list(bounds)


def nodes(bounds: list[int] | tuple[int, ...]) -> int:
    """Return the number of nodes [L, H]."""
    return len(bounds) // 2


def nearest_gap(bounds: list[int] | tuple[int, ...], number: int) -> int:
    """Return the highest absent number below `number`; 0 if there is none."""
    at = bisect_right(bounds, number - 1)
    return bounds[at - 1] - 1 if at & 1 else number - 1


def gap_limit(max_gaps: int | None) -> int | None:
    """Return a valid `max_gaps`. Raise LocalError otherwise."""
    most: int | None = plain(max_gaps)
    if most is not None and (type(most) is not int or most < 1):
        raise LocalError(f"max_gaps={most!r}: expected 1 or more, or None for no limit")
    return most


def limit_gaps(
    bounds: list[int], max_gaps: int | None, closed: dict[int, int], member: int
) -> None:
    """Fill the oldest sixteenth of more than `max_gaps` gaps; `closed` has up to which number."""
    if max_gaps is None or nodes(bounds) - (bounds[0] == 1) <= max_gaps:
        return
    at = 2 * (max(1, max_gaps // 16) - (bounds[0] > 1))
    closed[member] = bounds[at] - 1
    bounds[: at + 1] = [1]


def is_closed(closed: Mapping[int, int], member: int, number: int) -> bool:
    """Return whether a number is in the range in which `limit_gaps` filled gaps."""
    return number <= closed.get(member, 0)


def run_end(bounds: list[int] | tuple[int, ...], number: int) -> int:
    """Return the first absent number above `number`, which is present."""
    return bounds[bisect_right(bounds, number)]


def encode_bounds(bounds: list[int] | tuple[int, ...]) -> bytes:
    """Encode the number of nodes, then gaps and lengths."""
    out = bytearray(varint(len(bounds) // 2))
    before = 0
    for bound in bounds:
        out += varint(bound - before - 1)
        before = bound
    return bytes(out)


def read_bounds(reader: ByteReader) -> list[int]:
    """Read bounds of `encode_bounds`. Raise DecodeError or SequenceError."""
    count = 2 * reader.varint()
    left = len(reader.data) - reader.offset
    if count > left:
        raise DecodeError(
            f"{count} bounds announced at byte {reader.offset}, but {left} bytes left"
        )
    bounds: list[int] = []
    before = 0
    for _ in range(count):
        before += reader.varint() + 1
        bounds.append(before)
    if before > MAX_NUMBER + 1:
        raise SequenceError(f"number {before - 1} is above {MAX_NUMBER}")
    return bounds


# -- the value -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Intervals:
    """Immutable set of numbers from 1, as bounds."""

    bounds: tuple[int, ...] = ()

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Intervals:
        """Return the set of `numbers`. Raise SequenceError for one outside 1 .. MAX_NUMBER."""
        bounds: list[int] = []
        for number in sorted(numbers):
            if not 1 <= number <= MAX_NUMBER:
                raise SequenceError(f"number {number} is outside 1 to {MAX_NUMBER}")
            insert(bounds, number)
        return cls(tuple(bounds))

    @classmethod
    def up_to(cls, last: int) -> Intervals:
        """Return the set 1 .. last; empty for 0."""
        return cls((1, last + 1) if last > 0 else ())

    @property
    def nodes(self) -> tuple[tuple[int, int], ...]:
        """Nodes (L, H), both ends included, in ascending order."""
        starts, stops = self.bounds[::2], self.bounds[1::2]
        return tuple((low, stop - 1) for low, stop in zip(starts, stops, strict=True))

    def __contains__(self, number: int) -> bool:
        return contains(self.bounds, number)

    def __iter__(self) -> Iterator[int]:
        for low, high in self.nodes:
            yield from range(low, high + 1)

    def __len__(self) -> int:
        return sum(self.bounds[1::2]) - sum(self.bounds[::2])
