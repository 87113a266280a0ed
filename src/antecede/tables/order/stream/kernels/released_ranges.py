"""Released numbers of members, as ranges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import njit
from antecede.tables.order.stream.kernels.rows import DONE, FORGOTTEN, Bits, Ints, Longs


class ReleasedRanges(NamedTuple):
    """Sorted ranges of released numbers low..high, with release and digest of the last one."""

    member: Ints
    low: Longs
    high: Longs
    released: Longs
    digest: Longs

    def extend(
        self, member: Ints, count: Longs, flag: Bits, released: Longs, digest: Longs
    ) -> ReleasedRanges:
        """Return the ranges with the numbers that are released by `flag`."""
        pick = np.flatnonzero((flag & DONE != 0) & (flag & FORGOTTEN == 0))
        more: Any = (member, count, count, released, digest)
        ranges = ReleasedRanges(
            *(np.concatenate([a, b[pick]]) for a, b in zip(self, more, strict=True))
        )
        return ReleasedRanges(*_merge(ranges, np.lexsort((ranges.low, ranges.member))))


@njit
def _merge(ranges: ReleasedRanges, by: NDArray[np.intp]) -> ReleasedRanges:
    out = ReleasedRanges(
        np.empty_like(ranges.member),
        np.empty_like(ranges.low),
        np.empty_like(ranges.low),
        np.empty_like(ranges.low),
        np.empty_like(ranges.low),
    )
    size = 0
    for index in by:
        last = size - 1
        low, high = ranges.low[index], ranges.high[index]
        # high + 1 overflows at the greatest number; low - 1 does not, as high >= low > min.
        if (
            size
            and out.member[last] == ranges.member[index]
            and (low <= out.high[last] or low - 1 == out.high[last])
        ):
            if high <= out.high[last]:
                continue
        else:
            last = size
            size += 1
            out.member[last], out.low[last] = ranges.member[index], low
        out.high[last] = high
        out.released[last], out.digest[last] = ranges.released[index], ranges.digest[index]
    return ReleasedRanges(
        out.member[:size].copy(),
        out.low[:size].copy(),
        out.high[:size].copy(),
        out.released[:size].copy(),
        out.digest[:size].copy(),
    )


@njit
def _find_range(ranges: ReleasedRanges, member: int, count: int) -> int:
    low, high = 0, len(ranges.member)
    while low < high:
        middle = (low + high) >> 1
        if ranges.member[middle] < member or (
            ranges.member[middle] == member and ranges.low[middle] <= count
        ):
            low = middle + 1
        else:
            high = middle
    if low > 0 and ranges.member[low - 1] == member and count <= ranges.high[low - 1]:
        return low - 1
    return -1


@njit
def mark_released(
    ranges: ReleasedRanges,
    member: Ints,
    number: Longs,
    begin: int,
    flag: Bits,
    released: Longs,
    digest: Longs,
) -> None:
    """Mark the ids from `begin` on that lie in a range as released.

    The release and content are known of the last number of a range only.
    """
    for id_index in range(begin, len(flag)):
        at = _find_range(ranges, member[id_index], number[id_index])
        if at < 0:
            continue
        flag[id_index] |= DONE
        if ranges.high[at] == number[id_index]:
            released[id_index], digest[id_index] = ranges.released[at], ranges.digest[at]
        else:
            flag[id_index] |= FORGOTTEN
