"""Rows that are their own cause by way of others: they can never be released."""

from __future__ import annotations

import numpy as np

from antecede.tables.kernels import njit, on_cycles, strong_components
from antecede.tables.order.stream.kernels.rows import (
    CYCLE,
    GIVEN,
    PENDING,
    SETTLED,
    Ints,
    Longs,
    Rows,
    Tokens,
    set_aside,
)


@njit
def break_cycles(rows: Rows, tokens: Tokens, wait: Ints, start: Longs, dependents: Ints) -> int:
    """Set aside every pending row that is its own cause by way of others; return how many.

    Rows that no cycle can hold back are peeled off first (absent causes count as satisfied);
    the strong components of the rest are the cycles.
    """
    total = len(rows.token)
    inside = np.zeros(total, np.int32)
    queue = np.empty(total, np.int32)
    filled = 0
    for row in range(total):
        inside[row] = -1
        if rows.status[row] == PENDING:
            inside[row] = 0
            for link in range(rows.first[row], rows.first[row + 1]):
                if not rows.link[link] & (GIVEN | SETTLED) and tokens.row[rows.cause[link]] >= 0:
                    inside[row] += 1
            if inside[row] == 0:
                queue[filled] = row
                filled += 1
    done = 0
    while done < filled:
        row = queue[done]
        inside[row] = -1
        done += 1
        token = rows.token[row]
        for entry in range(start[token], start[token + 1]):
            other = dependents[entry]
            if rows.status[other] == PENDING:
                inside[other] -= 1
                if inside[other] == 0:
                    queue[filled] = other
                    filled += 1
    left = 0
    for row in range(total):
        if inside[row] > 0:
            left += 1
    if left == 0:
        return 0
    return _components(rows, tokens, inside, start, dependents)


@njit
def _components(rows: Rows, tokens: Tokens, inside: Ints, start: Longs, dependents: Ints) -> int:
    total = len(rows.token)
    first = np.empty(total, np.int64)
    last = np.empty(total, np.int64)
    for row in range(total):
        first[row] = start[rows.token[row]]
        last[row] = start[rows.token[row] + 1]
    neighbours = dependents.astype(np.int64)
    cyclic = on_cycles(strong_components(first, last, neighbours, inside > 0))
    found = 0
    for row in range(total):
        if cyclic[row]:
            set_aside(rows, tokens, row, CYCLE)
            found += 1
    return found
