"""Which edges a cut crosses, and the latest consistent line of checkpoints.

Rows, edges and `alive` as in `antecede.tables.kernels.topological`.
"""

from __future__ import annotations

import numpy as np

from antecede.tables.causality.kernels.chain_decomposition import Smalls
from antecede.tables.kernels import Bools, Bytes, Ints, njit

NO, YES, UNKNOWN = 0, 1, 2
"""Whether a row is inside a cut."""
CROSSED, TRANSIT, UNCLEAR = 1, 2, 3
"""What `crossing` says of an edge; 0: nothing to say."""


@njit
def immediate(
    offsets: Ints,
    causes: Ints,
    alive: Bools,
    chain: Smalls,
    position: Smalls,
    start: Ints,
    size: Smalls,
    chains: Smalls,
    positions: Smalls,
) -> Bools:
    """Return the mask of edges whose cause no other cause of the row has in its past.

    All but the first four arguments are stamps (`chains.Stamps`) of rows of ONE group.
    """
    found = np.zeros(len(causes), np.bool_)
    width = 1
    for row in range(len(alive)):
        width = max(width, chain[row] + 1)
    top = np.zeros(width, np.int64)
    seen = np.full(width, -1, np.int64)
    for row in range(len(alive)):
        if not alive[row]:
            continue
        for edge in range(offsets[row], offsets[row + 1]):
            cause = causes[edge]
            if cause < 0 or not alive[cause]:
                continue
            for k in range(start[cause] - 1, start[cause] + size[cause]):
                c, p = chain[cause], position[cause] - 1
                if k >= start[cause]:
                    c, p = chains[k], positions[k]
                if seen[c] != row:
                    seen[c], top[c] = row, p
                elif p > top[c]:
                    top[c] = p
        for edge in range(offsets[row], offsets[row + 1]):
            cause = causes[edge]
            if cause >= 0 and alive[cause]:
                found[edge] = top[chain[cause]] < position[cause]
    return found


@njit
def crossing(
    offsets: Ints,
    causes: Ints,
    kinds: Bytes,
    missing: int,
    alive: Bools,
    inside: Bytes,
    process: Ints,
    message: Bools,
) -> Bytes:
    """Tell of each edge whether the cut contradicts it (CROSSED) or it is under way (TRANSIT).

    UNCLEAR: the row is inside, and of its cause nothing is known. `message`: edges that can be
    under way; they are if cause and row are of two processes, the one inside, the other not.
    """
    told = np.zeros(len(causes), np.int8)
    for row in range(len(alive)):
        if not alive[row]:
            continue
        for edge in range(offsets[row], offsets[row + 1]):
            cause = causes[edge]
            there = cause >= 0 and alive[cause]
            if inside[row] == YES:
                if there and inside[cause] == NO:
                    told[edge] = CROSSED
                elif kinds[edge] == missing or (there and inside[cause] == UNKNOWN):
                    told[edge] = UNCLEAR
            elif there and inside[row] == NO and inside[cause] == YES:
                under_way = message[edge] and process[cause] != process[row]
                told[edge] = TRANSIT if under_way else 0
    return told


@njit
def recovery(
    offsets: Ints, causes: Ints, alive: Bools, process: Ints, level: Ints, checkpoints: Ints
) -> Ints:
    """Return how many checkpoints of each process stand in the latest consistent line.

    `level` of a row: how many checkpoints of its process are before it; so checkpoint k, from 1,
    holds the rows of levels below k. Consistent: no row that is held has a cause that is not. The
    lines are closed under union, so one is the latest; a process falls back only as far as a row
    that is lost forces it to (rollback propagation: Randell 1975). O(rows log rows + edges).
    """
    n, processes = len(alive), len(checkpoints)
    line = checkpoints.copy()
    first = np.zeros(processes + 1, np.int64)
    for row in range(n):
        if alive[row]:
            first[process[row] + 1] += 1
    first = np.cumsum(first)
    by_level = np.argsort(level, kind="mergesort")
    rows = np.empty(first[-1], np.int64)
    end = first[:-1].copy()
    for row in by_level:
        if alive[row]:
            rows[end[process[row]]] = row
            end[process[row]] += 1
    count = np.zeros(n + 1, np.int64)
    for row in range(n):
        if alive[row]:
            for edge in range(offsets[row], offsets[row + 1]):
                if causes[edge] >= 0 and alive[causes[edge]]:
                    count[causes[edge] + 1] += 1
    start = np.cumsum(count)
    fill = start[:-1].copy()
    effects = np.empty(start[n], np.int64)
    for row in range(n):
        if alive[row]:
            for edge in range(offsets[row], offsets[row + 1]):
                cause = causes[edge]
                if cause >= 0 and alive[cause]:
                    effects[fill[cause]] = row
                    fill[cause] += 1
    lost = np.empty(first[-1], np.int64)
    found = 0
    for p in range(processes):
        while end[p] > first[p] and level[rows[end[p] - 1]] >= line[p]:
            end[p] -= 1
            lost[found] = rows[end[p]]
            found += 1
    done = 0
    while done < found:
        row = lost[done]
        done += 1
        for k in range(start[row], start[row + 1]):
            effect = effects[k]
            p = process[effect]
            if level[effect] < line[p]:
                line[p] = level[effect]
                while end[p] > first[p] and level[rows[end[p] - 1]] >= line[p]:
                    end[p] -= 1
                    lost[found] = rows[end[p]]
                    found += 1
    return line
