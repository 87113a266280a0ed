"""Rows that are their own cause by way of others: they can never be released."""

from __future__ import annotations

import numpy as np

from antecede.kernels.jit import njit
from antecede.order.stream.kernels.rows import (
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
    Tarjan's components of the rest, without recursion, are the cycles.
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
    number = np.zeros(total, np.int32)
    low = np.zeros(total, np.int32)
    on_stack = np.zeros(total, np.uint8)
    stack = np.empty(total, np.int32)
    path = np.empty(total, np.int32)
    edge = np.zeros(total, np.int64)
    cyclic = np.zeros(total, np.uint8)
    height = counter = found = 0
    for root in range(total):
        if inside[root] <= 0 or number[root]:
            continue
        depth = 0
        path[0] = root
        while depth >= 0:
            row = path[depth]
            token = rows.token[row]
            if number[row] == 0:
                counter += 1
                number[row] = low[row] = counter
                stack[height] = row
                height += 1
                on_stack[row] = 1
                edge[row] = start[token]
            if edge[row] < start[token + 1]:
                other = dependents[edge[row]]
                edge[row] += 1
                if inside[other] > 0:
                    if number[other] == 0:
                        depth += 1
                        path[depth] = other
                    elif on_stack[other]:
                        low[row] = min(low[row], number[other])
                continue
            if low[row] == number[row]:
                alone = stack[height - 1] == row
                while True:
                    height -= 1
                    member = stack[height]
                    on_stack[member] = 0
                    if not alone:
                        cyclic[member] = 1
                    if member == row:
                        break
            depth -= 1
            if depth >= 0:
                low[path[depth]] = min(low[path[depth]], low[row])
    for row in range(total):
        if cyclic[row]:
            set_aside(rows, tokens, row, CYCLE)
            found += 1
    return found
