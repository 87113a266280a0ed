"""Edges that cross a cut, and the recovery line."""

from __future__ import annotations

import numpy as np

from antecede.tables.causality.kernels.chain_decomposition import Labels
from antecede.tables.kernels import MISSING, Bools, Bytes, Ints, inline, njit

NO, YES, UNKNOWN = 0, 1, 2  # whether a row is inside a cut
CROSSED, TRANSIT, UNCLEAR = 1, 2, 3  # classes of an edge; 0: none


@njit
def find_immediate(offsets: Ints, causes: Ints, alive: Bools, labels: Labels) -> Bools:
    """Return the mask of edges whose cause no other cause of the row has in its past."""
    chain, position, start, size = labels.chain, labels.position, labels.start, labels.size
    chains, positions = labels.chains, labels.positions
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
def classify_edges(
    offsets: Ints,
    causes: Ints,
    kinds: Bytes,
    alive: Bools,
    inside: Bytes,
    process: Ints,
    message: Bools,
) -> Bytes:
    """Classify each edge: contradicted by the cut (CROSSED), or in transit (TRANSIT).

    UNCLEAR: the row is inside, and its cause is unknown. `message`: edges that can be in transit,
    from a process inside to another one outside.
    """
    classes = np.zeros(len(causes), np.int8)
    for row in range(len(alive)):
        if not alive[row]:
            continue
        for edge in range(offsets[row], offsets[row + 1]):
            cause = causes[edge]
            there = cause >= 0 and alive[cause]
            if inside[row] == YES:
                if there and inside[cause] == NO:
                    classes[edge] = CROSSED
                elif kinds[edge] == MISSING or (there and inside[cause] == UNKNOWN):
                    classes[edge] = UNCLEAR
            elif there and inside[row] == NO and inside[cause] == YES:
                under_way = message[edge] and process[cause] != process[row]
                classes[edge] = TRANSIT if under_way else 0
    return classes


def find_recovery_line(
    offsets: Ints, causes: Ints, alive: Bools, process: Ints, level: Ints, checkpoints: Ints
) -> Ints:
    """Return the number of checkpoints of each process in the recovery line.

    `level` of a row: the number of its process's checkpoints before it. Checkpoint k, from 1,
    contains the rows of levels below k. Consistent lines are closed under union, so there is a
    latest one. A process rolls back only as far as a lost row requires (rollback propagation:
    Randell 1975). O(rows log rows + edges).
    """
    row = np.repeat(np.arange(len(alive)), np.diff(offsets))
    used = (causes >= 0) & alive[row] & alive[np.maximum(causes, 0)]
    order = np.argsort(causes[used], kind="stable")
    start = np.searchsorted(causes[used][order], np.arange(len(alive) + 1))
    rows = np.flatnonzero(alive)
    rows = rows[np.lexsort((level[rows], process[rows]))]
    first = np.searchsorted(process[rows], np.arange(len(checkpoints) + 1))
    return _roll_back(row[used][order], start, rows, first, process, level, checkpoints)


@njit
def _roll_back(
    effects: Ints,
    start: Ints,
    rows: Ints,
    first: Ints,
    process: Ints,
    level: Ints,
    checkpoints: Ints,
) -> Ints:
    """Lower the line until no row in it has a lost cause."""
    line, end = checkpoints.copy(), first[1:].copy()
    lost = np.empty(len(rows), np.int64)
    found = 0
    for p in range(len(line)):
        found = _mark_lost(p, line, end, rows, first, level, lost, found)
    done = 0
    while done < found:
        row = lost[done]
        done += 1
        for effect in effects[start[row] : start[row + 1]]:
            p = process[effect]
            if level[effect] < line[p]:
                line[p] = level[effect]
                found = _mark_lost(p, line, end, rows, first, level, lost, found)
    return line


@inline
def _mark_lost(p, line, end, rows, first, level, lost, found):  # type: ignore[no-untyped-def]
    while end[p] > first[p] and level[rows[end[p] - 1]] >= line[p]:
        end[p] -= 1
        lost[found] = rows[end[p]]
        found += 1
    return found
