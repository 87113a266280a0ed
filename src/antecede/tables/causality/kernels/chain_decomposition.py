"""Causal labels by chain decomposition.

Theory of operation
-------------------
The rows of a group are split into chains, each totally ordered by causality. A row's label is its
chain, its position there (from 1), and for every other chain in its past the last position in it.

a happened before b exactly when b's entry of a's chain is at least a's position. This is the vector
clock of Fidge 1988 and Mattern 1989 with chains instead of processes, exact for every graph. Chain
clocks: Agarwal and Garg 2005. The same compression of a transitive closure: Jagadish 1990.

A row prefers one of its causes: the preceding row of its own actor, else the one released last. Of
the rows that prefer the same cause, the one with the most rows after it continues its chain. On a
tree of one cause each, no past then has more than log2(rows) chains (heavy paths: Sleator and
Tarjan 1983). Any other row takes a chain whose last row is in its past and has no successor, else a
new chain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import Bools, Hashes, Ints, njit

Smalls = NDArray[np.int32]


class Labels(NamedTuple):
    """Labels of numbered rows; chains count from 0 within a group.

    The entries of row r are `chains[start[r]:start[r] + size[r]]`, ascending, and `positions` at
    the same indexes, without its own chain. Rows share common entries.
    """

    chain: Smalls
    position: Smalls  # 0: a row without a label
    start: Ints
    size: Smalls
    chains: Smalls
    positions: Smalls
    is_complete: Bools  # no cause is missing in the row's past
    version: Hashes  # [groups] digest of all labels and identities of a group
    stopped_at: int  # row whose past has too many chains; -1: none; -2: too many entries in all


@njit
def choose_preferred_causes(
    order: Ints, offsets: Ints, causes: Ints, alive: Bools, actor: Ints
) -> Ints:
    """Return for each row the cause whose chain it prefers, or -1.

    It is the cause of the same actor, else the last in `order`, which has causes first.
    """
    place = np.empty(len(alive), np.int64)
    for k in range(len(order)):
        place[order[k]] = k
    found = np.full(len(alive), -1, np.int64)
    for row in order:
        best = -1
        for edge in range(offsets[row], offsets[row + 1]):
            cause = causes[edge]
            if cause < 0 or not alive[cause]:
                continue
            if best < 0:
                best = cause
            elif (actor[cause] == actor[row]) != (actor[best] == actor[row]):
                best = cause if actor[cause] == actor[row] else best
            elif place[cause] > place[best]:
                best = cause
        found[row] = best
    return found


@njit
def choose_successors(order: Ints, favourite: Ints, actor: Ints) -> Ints:
    """Return for each row the one, of those that prefer it, that continues its chain, or -1."""
    n = len(favourite)
    behind = np.ones(n, np.int64)
    heir = np.full(n, -1, np.int64)
    for k in range(len(order) - 1, -1, -1):
        row = order[k]
        cause = favourite[row]
        if cause < 0:
            continue
        behind[cause] += behind[row]
        rival = heir[cause]
        if rival < 0:
            heir[cause] = row
        elif (actor[row] == actor[cause]) != (actor[rival] == actor[cause]):
            if actor[row] == actor[cause]:
                heir[cause] = row
        elif behind[row] >= behind[rival]:  # from last to first: of equal ones the first is kept
            heir[cause] = row
    return heir


@njit
def _mix(h: np.uint64, value: np.uint64) -> np.uint64:
    h = (h ^ value) + np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit
def build_labels(
    order: Ints,
    offsets: Ints,
    causes: Ints,
    alive: Bools,
    has_missing: Bools,
    group: Ints,
    groups: int,
    favourite: Ints,
    heir: Ints,
    identity: Hashes,
    max_entries: int,
    max_total: int,
) -> Labels:
    """Label the rows of `order`, which has causes first and each group contiguous.

    `identity` is a digest. Labels stop at the limits. O(entries of all causes) time.
    """
    n = len(alive)
    chain, position = np.zeros(n, np.int32), np.zeros(n, np.int32)
    start, size = np.zeros(n, np.int64), np.zeros(n, np.int32)
    whole = np.zeros(n, np.bool_)
    version = np.zeros(groups, np.uint64)
    chains, positions = np.empty(1024, np.int32), np.empty(1024, np.int32)
    last = np.empty(len(order) + 1, np.int64)  # last row of each chain of this group
    top = np.zeros(len(order) + 1, np.int32)  # highest position seen of a chain
    seen = np.full(len(order) + 1, -1, np.int64)  # the row for which `top` was written
    met = np.empty(len(order) + 1, np.int32)
    filled, used, current = 0, 0, -1
    stopped = -1
    for row in order:
        if group[row] != current:
            current, used = group[row], 0
        complete = not has_missing[row]
        count, count_of_causes, only = 0, 0, -1
        for edge in range(offsets[row], offsets[row + 1]):
            cause = causes[edge]
            if cause < 0 or not alive[cause]:
                continue
            complete &= whole[cause]
            count_of_causes += 1
            only = cause
        whole[row] = complete
        if (
            count_of_causes == 1 and heir[only] == row
        ):  # the row continues the chain, with the same entries
            chain[row], position[row] = chain[only], position[only] + 1
            start[row], size[row] = start[only], size[only]
        else:
            for edge in range(offsets[row], offsets[row + 1]):
                cause = causes[edge]
                if cause < 0 or not alive[cause]:
                    continue
                for k in range(start[cause] - 1, start[cause] + size[cause]):
                    if k < start[cause]:
                        c, p = chain[cause], position[cause]
                    else:
                        c, p = chains[k], positions[k]
                    if seen[c] != row:
                        seen[c], top[c] = row, p
                        met[count] = c
                        count += 1
                    elif p > top[c]:
                        top[c] = p
            if count > 1:
                met[:count] = np.sort(met[:count])
            own_chain = -1
            if favourite[row] >= 0 and heir[favourite[row]] == row:
                own_chain = chain[favourite[row]]
            else:
                for k in range(count):
                    c = met[k]
                    tail = last[c]
                    if top[c] == position[tail] and heir[tail] < 0:
                        own_chain = c
                        break
            if own_chain < 0:
                own_chain = used
                used += 1
                position[row] = 1
            else:
                position[row] = position[last[own_chain]] + 1
            chain[row] = own_chain
            kept = count - 1 if position[row] > 1 else count
            if kept > max_entries:
                stopped = row
                break
            if filled + kept > max_total:
                stopped = -2
                break
            while filled + kept > len(chains):
                chains = np.concatenate((chains, np.empty(len(chains), np.int32)))
                positions = np.concatenate((positions, np.empty(len(positions), np.int32)))
            start[row], size[row] = filled, kept
            for k in range(count):
                c = met[k]
                if c != own_chain:
                    chains[filled], positions[filled] = c, top[c]
                    filled += 1
        last[chain[row]] = row
        h = _mix(identity[row], np.uint64(chain[row]))
        h = _mix(h, np.uint64(position[row]))
        if not (count_of_causes == 1 and heir[only] == row):
            for k in range(start[row], start[row] + size[row]):
                h = _mix(h, np.uint64(chains[k]))
                h = _mix(h, np.uint64(positions[k]))
        version[current] += h
    return Labels(
        chain, position, start, size, chains[:filled], positions[:filled], whole, version, stopped
    )


@njit
def gather_entries(labels: Labels, first: int, end: int) -> tuple[Smalls, Smalls, Smalls]:
    """Return offsets, chains and positions of the entries of rows `first` to `end`, row by row."""
    start, size = labels.start, labels.size
    offsets = np.zeros(end - first + 1, np.int32)
    for row in range(first, end):
        offsets[row - first + 1] = offsets[row - first] + size[row]
    made = np.empty(offsets[-1], np.int32)
    places = np.empty(offsets[-1], np.int32)
    at = 0
    for row in range(first, end):
        for k in range(start[row], start[row] + size[row]):
            made[at], places[at] = labels.chains[k], labels.positions[k]
            at += 1
    return offsets, made, places


@njit
def find_known(
    offsets: Ints, chains: Smalls, positions: Smalls, chain: Smalls, position: Smalls
) -> Bools:
    """Return of each row whether its entries contain the given chain up to the given position."""
    found = np.zeros(len(chain), np.bool_)
    for row in range(len(chain)):
        low, high = offsets[row], offsets[row + 1]
        while low < high:
            middle = (low + high) // 2
            if chains[middle] < chain[row]:
                low = middle + 1
            else:
                high = middle
        if low < offsets[row + 1] and chains[low] == chain[row]:
            found[row] = positions[low] >= position[row]
    return found
