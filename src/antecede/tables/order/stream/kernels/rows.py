"""Data of the release kernel: candidates with links, states, outcomes, as flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import njit

Bits = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

PENDING, ORDERED, MISSING, DUPLICATE, CONFLICT, SELF, CYCLE, NULL, BAD, LATE, DROPPED = range(11)
"""Outcome of a row; PENDING: it stays held back. NULL and BAD come from whoever read the row."""
RESTARTED = 11
"""Outcome of the first row with a position of a group that was forgotten and begins anew."""
DONE, EXCLUDED, ABANDONED, FORGOTTEN = 1, 2, 4, 8
WAITED, ABANDONED_CAUSE, SETTLED = 1, 2, 4
"""Bits of a edge: the row waited for this cause; it goes without it; it was out before this step,
and `Rows.cause_release` holds when."""
ABSENT, ELSEWHERE = -1, -2
"""Instead of a row: nothing held or new has that identity; a held row has it that is no candidate,
as nothing in this step can touch it."""
HOLD, RELEASE, DROP = range(3)
NO_TIME = -(2**63)


class Candidates(NamedTuple):
    """Candidates: the held rows first, then the new ones; links of row r: first[r]:first[r+1]."""

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
    """The latest release of the causes whose links are SETTLED."""


class IdStates(NamedTuple):
    """Facts of each identity; `row` is the candidate that has it, ABSENT or ELSEWHERE.

    `member` and `number` make up the identity (clocks and FIFO), else empty. `lowest`, by member:
    the least number of a held row that is no candidate.
    """

    flag: Bits
    released: Longs
    digest: Longs
    row: Ints
    member: Ints
    number: Longs
    lowest: Longs


class ReleaseOrder(NamedTuple):
    """The result, in order of release: row, and by row its position and time of release."""

    row: Ints
    position: Longs
    released: Longs
    next: Longs
    """By group: the next free position."""
    depth: Ints
    """By id_index: the depth of its row among those of one time of release; -1: not of this step."""


class TieNames(NamedTuple):
    """Names that break ties: bytes of all, and where each ends.

    With `numbers` they are numbers in text and go by value; otherwise by bytes, the order of code
    points.
    """

    pool: Bits
    ends: Longs
    numbers: bool = False


class ReleaseRule(NamedTuple):
    """Policy, patience and the clock's present, in units of the clock; `timed`: rows have times.

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
    """Without times: a new row that stays waits for the causes it has not seen by now."""
    for row in range(held, len(rows.id_index)):
        if rows.status[row] == PENDING:
            for edge in range(rows.first[row], rows.first[row + 1]):
                if not states.flag[rows.cause[edge]] & DONE:
                    rows.edge_flag[edge] |= WAITED


@njit
def list_causes(rows: Candidates, pick: Ints, abandoned: bool) -> tuple[Longs, Ints]:
    """Return the missing causes (`given`) or awaited causes of the picked rows, as states."""
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
