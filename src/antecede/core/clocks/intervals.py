"""Sets of message numbers as intervals: the ordering list of S_b, and duplicate filters.

Source: Bhavanasi and Iyer, section VI.B (IsPresentInOL, InsertInOL), with its misprints repaired:
a number is present when it is at or BELOW the high end of its node; merging takes over the SECOND
node's high end; extending writes `H[k-1]`; absent neighbours and duplicates are handled.

Theory of operation
-------------------
The nodes [L, H] of one member are kept as one sorted list of bounds `[L0, H0 + 1, L1, H1 + 1,
...]`. A number is inside a node exactly when an odd number of bounds is at or below it, so
both operations are one binary search, and an insertion changes at most two bounds. Numbers
that arrive almost in order keep the list at one or a few nodes however many there are.

Protocols use the plain functions on a list; `insert` changes it in place. `Intervals` is the same
as an immutable value, with `in`, `len` and iteration.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from antecede.core.clocks.coercion import plain
from antecede.core.clocks.encoding.wire import Reader, varint
from antecede.errors import DecodeError, LocalError, SequenceError

NODE_BYTES = 8
"""Size of a node by the accounting of the sources: a pair of 4-byte integers."""
MAX_NUMBER = (1 << 63) - 1
MAX_GAPS = 1 << 14
"""Gaps that are remembered in the numbers of one member, where nothing else is said: 128 KiB."""


# -- plain functions on a list of bounds -----------------------------------------------------


def contains(bounds: list[int] | tuple[int, ...], number: int) -> bool:
    """Tell whether a number is in the set (Algorithm 1)."""
    return bool(bisect_right(bounds, number) & 1)


def insert(bounds: list[int], number: int) -> bool:
    """Put a number into the set in place (Algorithm 2); tell whether it is new."""
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
    """Return the bounds of a set with 1 to `last` in it too."""
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
    """Return the highest number below `number` that is not in the set; 0 when all from 1 are."""
    at = bisect_right(bounds, number - 1)
    return bounds[at - 1] - 1 if at & 1 else number - 1


def gap_limit(max_gaps: int | None) -> int | None:
    """Return how many gaps `bound_gaps` is to leave, as Python's own; raises LocalError."""
    most: int | None = plain(max_gaps)
    if most is not None and (type(most) is not int or most < 1):
        raise LocalError(f"max_gaps is {most!r}; it is 1 or more, or None for all")
    return most


def bound_gaps(bounds: list[int], most: int | None, closed: dict[int, int], member: int) -> None:
    """Beyond `most` gaps (None: any) fill the oldest sixteenth; `closed` has up to which number."""
    if most is None or nodes(bounds) - (bounds[0] == 1) <= most:
        return
    at = 2 * (max(1, most // 16) - (bounds[0] > 1))
    closed[member] = bounds[at] - 1
    bounds[: at + 1] = [1]


def is_closed(closed: Mapping[int, int], member: int, number: int) -> bool:
    """Tell whether a number is among those of which `bound_gaps` closed some."""
    return number <= closed.get(member, 0)


def run_end(bounds: list[int] | tuple[int, ...], number: int) -> int:
    """Return the first number above `number`, which is in the set, that is not."""
    return bounds[bisect_right(bounds, number)]


def encode_bounds(bounds: list[int] | tuple[int, ...]) -> bytes:
    """Encode as the number of nodes and the gaps and lengths between."""
    out = bytearray(varint(len(bounds) // 2))
    before = 0
    for bound in bounds:
        out += varint(bound - before - 1)
        before = bound
    return bytes(out)


def read_bounds(reader: Reader) -> list[int]:
    """Read what `encode_bounds` wrote. Raises DecodeError and SequenceError."""
    count = 2 * reader.varint()
    left = len(reader.data) - reader.offset
    if count > left:
        raise DecodeError(f"{count} bounds announced at byte {reader.offset}, {left} bytes left")
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
    """An immutable set of numbers from 1, as bounds (see the module). Make one with `of`."""

    bounds: tuple[int, ...] = ()

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Intervals:
        """Return the set of `numbers`. Raises SequenceError for one outside 1 .. MAX_NUMBER."""
        bounds: list[int] = []
        for number in sorted(numbers):
            if not 1 <= number <= MAX_NUMBER:
                raise SequenceError(f"number {number} is not in 1 to {MAX_NUMBER}")
            insert(bounds, number)
        return cls(tuple(bounds))

    @classmethod
    def up_to(cls, last: int) -> Intervals:
        """Return the set 1 .. last; empty for 0."""
        return cls((1, last + 1) if last > 0 else ())

    @property
    def nodes(self) -> tuple[tuple[int, int], ...]:
        """The nodes (L, H), both ends included, in ascending order."""
        starts, stops = self.bounds[::2], self.bounds[1::2]
        return tuple((low, stop - 1) for low, stop in zip(starts, stops, strict=True))

    def __contains__(self, number: int) -> bool:
        return contains(self.bounds, number)

    def __iter__(self) -> Iterator[int]:
        """Yield the numbers, ascending."""
        for low, high in self.nodes:
            yield from range(low, high + 1)

    def __len__(self) -> int:
        return sum(self.bounds[1::2]) - sum(self.bounds[::2])
