"""What a shard remembers and forgets: runs of numbers, tokens still needed, links once each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.kernels.jit import njit
from antecede.kernels.release_rows import DONE, FORGOTTEN

Bits = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Runs(NamedTuple):
    """Sorted runs: numbers low..high of that member have all been released."""

    member: Ints
    low: Longs
    high: Longs

    def extended(self, member: Ints, count: Longs, flag: Bits) -> tuple[Runs, NDArray[np.bool_]]:
        """Take released numbers in; return the new runs and which tokens may be forgotten.

        The last number of each run keeps its token, for the time of its release.
        """
        done = (flag & DONE).astype(np.bool_)
        pick = np.flatnonzero(done)
        owner = np.concatenate([self.member, member[pick]])
        low = np.concatenate([self.low, count[pick]])
        high = np.concatenate([self.high, count[pick]])
        runs = Runs(*_merge(owner, low, high, np.lexsort((low, owner))))
        done[pick] = ~_tops(runs, member[pick], count[pick])
        done[(flag & FORGOTTEN).astype(np.bool_)] = True
        return runs, done


@njit
def _merge(owner: Ints, low: Longs, high: Longs, by: NDArray[np.intp]) -> tuple[Ints, Longs, Longs]:
    out_owner, out_low, out_high = np.empty_like(owner), np.empty_like(low), np.empty_like(high)
    size = 0
    for index in by:
        last = size - 1
        # high + 1 would overflow at the greatest number; low - 1 can not, as high >= low > min.
        if (
            size
            and out_owner[last] == owner[index]
            and (low[index] <= out_high[last] or low[index] - 1 == out_high[last])
        ):
            out_high[last] = max(out_high[last], high[index])
        else:
            out_owner[size], out_low[size], out_high[size] = owner[index], low[index], high[index]
            size += 1
    return out_owner[:size].copy(), out_low[:size].copy(), out_high[:size].copy()


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
def _tops(runs: Runs, member: Ints, count: Longs) -> NDArray[np.bool_]:
    """Which of these numbers are the last of their run."""
    top = np.zeros(len(member), np.bool_)
    for index in range(len(member)):
        top[index] = runs.high[_run_of(runs, member[index], count[index])] == count[index]
    return top


@njit
def covered(runs: Runs, member: Ints, count: Longs, flag: Bits, row: Ints) -> NDArray[np.bool_]:
    """Which tokens, of which nothing else is known, lie in a run."""
    inside = np.zeros(len(flag), np.bool_)
    for token in range(len(flag)):
        if not flag[token] and row[token] < 0:
            inside[token] = _run_of(runs, member[token], count[token]) >= 0
    return inside


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


def keep_tokens(
    flag: Bits, forget: NDArray[np.bool_], token: Ints, cause: Ints
) -> tuple[Ints, NDArray[Any]]:
    """Return the tokens to keep, and the new number of each old one."""
    keep = (flag != 0) & ~forget
    keep[token] = True
    keep[cause] = True
    renumber = np.cumsum(keep, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(keep).astype(np.int32), renumber.astype(np.int32)
