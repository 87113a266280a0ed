"""Released numbers of members, as runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import njit
from antecede.tables.order.stream.kernels.rows import DONE, FORGOTTEN, Bits, Ints, Longs


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
        more: Any = (member, count, count, released, digest)
        runs = Runs(*(np.concatenate([a, b[pick]]) for a, b in zip(self, more, strict=True)))
        return Runs(*_merged(runs, np.lexsort((runs.low, runs.member))))


@njit
def _merged(runs: Runs, by: NDArray[np.intp]) -> Runs:
    out = Runs(
        np.empty_like(runs.member),
        np.empty_like(runs.low),
        np.empty_like(runs.low),
        np.empty_like(runs.low),
        np.empty_like(runs.low),
    )
    size = 0
    for index in by:
        last = size - 1
        low, high = runs.low[index], runs.high[index]
        # high + 1 would overflow at the greatest number; low - 1 can not, as high >= low > min.
        if (
            size
            and out.member[last] == runs.member[index]
            and (low <= out.high[last] or low - 1 == out.high[last])
        ):
            if high <= out.high[last]:
                continue
        else:
            last = size
            size += 1
            out.member[last], out.low[last] = runs.member[index], low
        out.high[last] = high
        out.released[last], out.digest[last] = runs.released[index], runs.digest[index]
    return Runs(
        out.member[:size].copy(),
        out.low[:size].copy(),
        out.high[:size].copy(),
        out.released[:size].copy(),
        out.digest[:size].copy(),
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
