"""Data of the release kernel: candidates with edges, id states, outcomes, as flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import njit

Bits = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

PENDING, ORDERED, MISSING, DUPLICATE, CONFLICT, SELF, CYCLE, NULL, BAD, LATE, DROPPED = range(11)
"""Outcomes of a row. PENDING: still held. NULL and BAD come from the reader of the row."""
RESTARTED = 11
DONE, EXCLUDED, ABANDONED, FORGOTTEN = 1, 2, 4, 8
WAITED, ABANDONED_CAUSE, SETTLED = 1, 2, 4
"""Bits of an edge: waited for; released without it; released before this step."""
ABSENT, ELSEWHERE = -1, -2
"""Replacements of a row: no row has that id; a held row that this step cannot affect has it."""
HOLD, RELEASE, DROP = range(3)
NO_TIME = -(2**63)


class Candidates(NamedTuple):
    """Candidates: held rows first, then the new ones; edges of row r: first[r]:first[r+1]."""

    id_index: Ints
    group: Ints
    time: Longs
    arrived: Longs
    digest: Longs
    name: Ints
    number: Longs
    first: Longs
    cause: Ints
    edge_flag: Bits
    status: Bits
    cause_release: Longs


class IdStates(NamedTuple):
    """State of each id; `row` is the candidate that has it, ABSENT or ELSEWHERE.

    `lowest`, by member: the least number of a held row that is no candidate.
    """

    flag: Bits
    released: Longs
    digest: Longs
    row: Ints
    member: Ints
    number: Longs
    lowest: Longs


class ReleaseOrder(NamedTuple):
    """Order of release: rows, and by row its position and time of release."""

    row: Ints
    position: Longs
    released: Longs
    next: Longs
    depth: Ints
    """Depth of the row of each id among those of one time of release; -1: not of this step."""


class TieNames(NamedTuple):
    """Names that break ties, as bytes; with `numbers` compared by value, else by bytes."""

    pool: Bits
    ends: Longs
    numbers: bool = False


class ReleaseRule(NamedTuple):
    """Policy, patience and current clock, in units of the clock; `timed`: rows have times.

    Patience is over for rows that arrived at or before `cutoff`.
    """

    policy: int
    patience: int
    now: int
    timed: bool
    cutoff: int


@njit
def exclude_row(rows: Candidates, states: IdStates, row: int, status: int) -> None:
    """Give a row a status without position; its dependents wait or are dropped."""
    rows.status[row] = status
    id_index = rows.id_index[row]
    states.flag[id_index] |= EXCLUDED
    states.row[id_index] = ABSENT


@njit
def mark_waiting(rows: Candidates, states: IdStates, held: int) -> None:
    """Mark the open edges of new rows that stay, where rows have no times."""
    for row in range(held, len(rows.id_index)):
        if rows.status[row] == PENDING:
            for edge in range(rows.first[row], rows.first[row + 1]):
                if not states.flag[rows.cause[edge]] & DONE:
                    rows.edge_flag[edge] |= WAITED


@njit
def list_causes(rows: Candidates, pick: Ints, abandoned: bool) -> tuple[Longs, Ints]:
    """Return the abandoned or the awaited causes of the picked rows, as id indexes."""
    first = np.zeros(len(pick) + 1, np.int64)
    cause = np.empty(len(rows.cause), np.int32)
    size = 0
    for index in range(len(pick)):
        row = pick[index]
        for edge in range(rows.first[row], rows.first[row + 1]):
            without = rows.edge_flag[edge] & ABANDONED_CAUSE != 0
            waited = rows.edge_flag[edge] & WAITED != 0
            if without if abandoned else waited and not without:
                cause[size] = rows.cause[edge]
                size += 1
        first[index + 1] = size
    return first, cause[:size].copy()
