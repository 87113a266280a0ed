"""Numbers that are out, as runs; and links, each cause once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import njit
from antecede.tables.order.stream.kernels.rows import DONE, FORGOTTEN

Bits = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Runs(NamedTuple):
    """Sorted runs: numbers low..high of that member have all been released.

    `released` and `digest` are those of the last number.
    """

    member: Ints
    low: Longs
    high: Longs
    released: Longs
    digest: Longs

    def extended(
        self, member: Ints, count: Longs, flag: Bits, released: Longs, digest: Longs
    ) -> Runs:
        """Take in the numbers that are out by `flag`."""
        pick = np.flatnonzero((flag & DONE != 0) & (flag & FORGOTTEN == 0))
        owner = np.concatenate([self.member, member[pick]])
        low = np.concatenate([self.low, count[pick]])
        high = np.concatenate([self.high, count[pick]])
        when = np.concatenate([self.released, released[pick]])
        what = np.concatenate([self.digest, digest[pick]])
        return Runs(*_merge(owner, low, high, when, what, np.lexsort((low, owner))))


@njit
def _merge(
    owner: Ints, low: Longs, high: Longs, released: Longs, digest: Longs, by: NDArray[np.intp]
) -> tuple[Ints, Longs, Longs, Longs, Longs]:
    out_owner, out_low, out_high = np.empty_like(owner), np.empty_like(low), np.empty_like(high)
    out_released, out_digest = np.empty_like(low), np.empty_like(low)
    size = 0
    for index in by:
        last = size - 1
        # high + 1 would overflow at the greatest number; low - 1 can not, as high >= low > min.
        if (
            size
            and out_owner[last] == owner[index]
            and (low[index] <= out_high[last] or low[index] - 1 == out_high[last])
        ):
            if high[index] > out_high[last]:
                out_high[last] = high[index]
                out_released[last], out_digest[last] = released[index], digest[index]
        else:
            out_owner[size], out_low[size], out_high[size] = owner[index], low[index], high[index]
            out_released[size], out_digest[size] = released[index], digest[index]
            size += 1
    return (
        out_owner[:size].copy(),
        out_low[:size].copy(),
        out_high[:size].copy(),
        out_released[:size].copy(),
        out_digest[:size].copy(),
    )


@njit
def _run_of(runs: Runs, member: int, count: int) -> int:
    """Return the index of the run that holds this number, or -1."""
    low, high = 0, len(runs.member)
    while low < high:
        middle = (low + high) >> 1
        if runs.member[middle] < member or (
            runs.member[middle] == member and runs.low[middle] <= count
        ):
            low = middle + 1
        else:
            high = middle
    if low > 0 and runs.member[low - 1] == member and count <= runs.high[low - 1]:
        return low - 1
    return -1


@njit
def settled_by(
    runs: Runs, member: Ints, number: Longs, begin: int, flag: Bits, released: Longs, digest: Longs
) -> None:
    """Mark the identities from `begin` on that lie in a run as out.

    Of the last number of a run its release and content are known, of the others nothing.
    """
    for token in range(begin, len(flag)):
        run = _run_of(runs, member[token], number[token])
        if run < 0:
            continue
        flag[token] |= DONE
        if runs.high[run] == number[token]:
            released[token], digest[token] = runs.released[run], runs.digest[run]
        else:
            flag[token] |= FORGOTTEN


@njit
def unique_links(first: Longs, cause: Ints, tokens: int) -> tuple[Longs, Ints]:
    """Keep each cause of a row once, in the order given."""
    seen = np.full(tokens, -1, np.int64)
    new_first = np.zeros(len(first), np.int64)
    kept = np.empty_like(cause)
    size = 0
    for row in range(len(first) - 1):
        for link in range(first[row], first[row + 1]):
            if seen[cause[link]] != row:
                seen[cause[link]] = row
                kept[size] = cause[link]
                size += 1
        new_first[row + 1] = size
    return new_first, kept[:size].copy()
