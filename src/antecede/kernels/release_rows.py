"""What the release kernel works on: candidates with links, tokens, outcomes, as flat arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.kernels.jit import njit

Bits = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

PENDING, ORDERED, MISSING, DUPLICATE, CONFLICT, SELF, CYCLE, NULL, BAD, LATE, DROPPED = range(11)
"""Outcome of a row; PENDING: it stays held back. NULL and BAD come from whoever read the row."""
DONE, ASIDE, GIVEN_UP, FORGOTTEN = 1, 2, 4, 8
WAITED, GIVEN = 1, 2
"""Bits of a link: the row waited for this cause; the row was released without it."""
HOLD, RELEASE, DROP = range(3)
NO_TIME = -(2**63)


class Rows(NamedTuple):
    """Candidates: the held rows first, then the new ones; links of row r: first[r]:first[r+1]."""

    token: Ints
    group: Ints
    time: Longs
    arrived: Longs
    digest: Longs
    name: Ints
    number: Longs
    first: Longs
    cause: Ints
    link: Bits
    status: Bits


class Tokens(NamedTuple):
    """What is known of each identity; `row` is the candidate that has it, or -1.

    `member` and `number`: what the identity is made of (clocks and FIFO), else empty.
    """

    flag: Bits
    released: Longs
    digest: Longs
    row: Ints
    member: Ints
    number: Longs


class Order(NamedTuple):
    """The result, in order of release: row, and by row its position and time of release."""

    row: Ints
    position: Longs
    released: Longs
    next: Longs
    """By group: the next free position."""
    depth: Ints
    """By token: the depth of its row among those of one time of release; -1: not of this step."""


class Names(NamedTuple):
    """The names that break ties: bytes of all, and where each ends.

    `numbers`: they are numbers written out, and go by their value; otherwise by their bytes,
    which is the order of code points.
    """

    pool: Bits
    ends: Longs
    numbers: bool = False


class Rule(NamedTuple):
    """Policy, patience and the clock's present, in units of the clock; `timed`: rows have times."""

    policy: int
    patience: int
    now: int
    timed: bool


@njit
def set_aside(rows: Rows, tokens: Tokens, row: int, status: int) -> None:
    """Give a row a status without position; whoever needs it will wait or be dropped."""
    rows.status[row] = status
    token = rows.token[row]
    tokens.flag[token] |= ASIDE
    tokens.row[token] = -1


@njit
def mark_waiting(rows: Rows, tokens: Tokens, held: int) -> None:
    """Without times: a new row that stays waits for the causes it has not seen by now."""
    for row in range(held, len(rows.token)):
        if rows.status[row] == PENDING:
            for link in range(rows.first[row], rows.first[row + 1]):
                if not tokens.flag[rows.cause[link]] & DONE:
                    rows.link[link] |= WAITED


@njit
def links_of(rows: Rows, pick: Ints, given: bool) -> tuple[Longs, Ints]:
    """Return the tokens without which the picked rows went (`given`), or that they waited for."""
    first = np.zeros(len(pick) + 1, np.int64)
    cause = np.empty(len(rows.cause), np.int32)
    size = 0
    for index in range(len(pick)):
        row = pick[index]
        for link in range(rows.first[row], rows.first[row + 1]):
            without = rows.link[link] & GIVEN != 0
            if without if given else rows.link[link] == WAITED:
                cause[size] = rows.cause[link]
                size += 1
        first[index + 1] = size
    return first, cause[:size].copy()


@njit
def take_links(rows: Rows, pick: Ints) -> tuple[Longs, Ints, Bits]:
    """Return the links of the picked rows, renumbered."""
    first = np.zeros(len(pick) + 1, np.int64)
    cause = np.empty(len(rows.cause), np.int32)
    bits = np.empty(len(rows.cause), np.uint8)
    size = 0
    for index in range(len(pick)):
        row = pick[index]
        for link in range(rows.first[row], rows.first[row + 1]):
            cause[size] = rows.cause[link]
            bits[size] = rows.link[link]
            size += 1
        first[index + 1] = size
    return first, cause[:size].copy(), bits[:size].copy()
