"""Causal release, compiled: which held and new rows may go now, and in which order.

Theory of operation. Every row has a token (the number of its identity) and links to the
tokens of its causes. `flag[token]` says what became of that identity: DONE (it has a
position), ASIDE (it will never have one), GIVEN_UP (some row was released without it), FORGOTTEN
(DONE, but only its number is known, not its content). Rows
whose last open cause gets DONE go on a heap ordered by (r, d, time, name, count), the definition
of `kernels.order`: r is when the row is released, d its depth among the rows of this step with the
same r. Causes have a lesser (r, d), so the heap gives out the rows sorted by it, and the order
within a group does not depend on the order of rows within a batch.

`wait` counts a row's open links; `dependents` is the reverse of the links, by counting sort.
Everything is O((rows + links) log rows); nothing is recursive.
"""

from __future__ import annotations

import numpy as np

from antecede.kernels.jit import njit
from antecede.kernels.release_cycles import break_cycles
from antecede.kernels.release_rows import (
    ABSENT,
    ASIDE,
    CONFLICT,
    DONE,
    DROP,
    DROPPED,
    DUPLICATE,
    ELSEWHERE,
    FORGOTTEN,
    GIVEN,
    GIVEN_UP,
    LATE,
    MISSING,
    NO_TIME,
    ORDERED,
    PENDING,
    RELEASE,
    SELF,
    SETTLED,
    WAITED,
    Ints,
    Longs,
    Names,
    Order,
    Rows,
    Rule,
    Tokens,
    set_aside,
)
from antecede.kernels.release_ties import compared


@njit
def _goes_first(rows: Rows, names: Names, order: Order, a: int, b: int) -> bool:
    """Tell which of two rows that may go does so first: by (r, d, time, identity)."""
    if order.released[a] != order.released[b]:
        return bool(order.released[a] < order.released[b])
    x, y = order.depth[rows.token[a]], order.depth[rows.token[b]]
    return bool(x < y) if x != y else _before(rows, names, a, b)


@njit
def _before(rows: Rows, names: Names, a: int, b: int) -> bool:
    if rows.time[a] != rows.time[b]:
        if rows.time[a] == NO_TIME or rows.time[b] == NO_TIME:
            return bool(rows.time[b] == NO_TIME)
        return bool(rows.time[a] < rows.time[b])
    x, y = rows.name[a], rows.name[b]
    if x != y:
        side = compared(names, x, y)
        if side != 0:
            return bool(side < 0)
    if rows.number[a] != rows.number[b]:
        return bool(rows.number[a] < rows.number[b])
    if rows.digest[a] != rows.digest[b]:
        return bool(rows.digest[a] < rows.digest[b])
    return a < b


@njit
def _push(
    heap: Ints,
    size: int,
    row: int,
    rows: Rows,
    tokens: Tokens,
    names: Names,
    rule: Rule,
    order: Order,
) -> int:
    """Put a row on the heap whose causes are all released or given up; return the new size."""
    _lift(rows, tokens, rule, order, row)
    at = size
    while at > 0:
        up = (at - 1) >> 1
        if not _goes_first(rows, names, order, row, heap[up]):
            break
        heap[at] = heap[up]
        at = up
    heap[at] = row
    return size + 1


@njit
def _pop(heap: Ints, size: int, rows: Rows, names: Names, order: Order) -> int:
    """Remove the first row, which the caller has read; return the new size."""
    size -= 1
    last = heap[size]
    at = 0
    while True:
        down = 2 * at + 1
        if down >= size:
            break
        if down + 1 < size and _goes_first(rows, names, order, heap[down + 1], heap[down]):
            down += 1
        if not _goes_first(rows, names, order, heap[down], last):
            break
        heap[at] = heap[down]
        at = down
    heap[at] = last
    return size


@njit
def admit(rows: Rows, tokens: Tokens, names: Names, held: int) -> None:
    """Settle which new rows come to stand for their identity; mark the others as repeats.

    Of several new rows with one identity the first by the tie rule wins, not the first in
    the batch. A row that names itself stands for nothing, as in a batch. `tokens.row` must name
    the held rows. Sets status and `tokens.row`, `digest`.
    """
    for row in range(held, len(rows.token)):
        token = rows.token[row]
        if rows.status[row] != PENDING:
            continue
        if _names_itself(rows, row):
            rows.status[row] = SELF
            continue
        known = tokens.row[token]
        if tokens.flag[token] & (DONE | ASIDE) or 0 <= known < held or known == ELSEWHERE:
            rows.status[row] = DUPLICATE
        elif known < 0 or _before(rows, names, row, known):
            if known >= 0:
                rows.status[known] = DUPLICATE
            tokens.row[token] = row
            tokens.digest[token] = rows.digest[row]
        else:
            rows.status[row] = DUPLICATE
    for row in range(held, len(rows.token)):
        token = rows.token[row]
        if rows.status[row] == DUPLICATE:
            other = tokens.digest[token] != rows.digest[row]
            if other and not tokens.flag[token] & FORGOTTEN:
                rows.status[row] = CONFLICT


@njit
def _names_itself(rows: Rows, row: int) -> bool:
    for link in range(rows.first[row], rows.first[row + 1]):
        if rows.cause[link] == rows.token[row]:
            return True
    return False


@njit
def _open_links(rows: Rows, tokens: Tokens) -> tuple[Ints, Longs, Ints]:
    """Return each row's number of open links, and the dependents of each token."""
    wait = np.zeros(len(rows.token), np.int32)
    start = np.zeros(len(tokens.flag) + 1, np.int64)
    for row in range(len(wait)):
        if rows.status[row] == PENDING:
            for link in range(rows.first[row], rows.first[row + 1]):
                cause = rows.cause[link]
                if not tokens.flag[cause] & DONE and not rows.link[link] & (GIVEN | SETTLED):
                    wait[row] += 1
                    start[cause + 1] += 1
    for token in range(len(tokens.flag)):
        start[token + 1] += start[token]
    fill = start[:-1].copy()
    dependents = np.empty(start[-1], np.int32)
    for row in range(len(wait)):
        if rows.status[row] == PENDING:
            for link in range(rows.first[row], rows.first[row + 1]):
                cause = rows.cause[link]
                if not tokens.flag[cause] & DONE and not rows.link[link] & (GIVEN | SETTLED):
                    dependents[fill[cause]] = row
                    fill[cause] += 1
    return wait, start, dependents


@njit
def _lift(rows: Rows, tokens: Tokens, rule: Rule, order: Order, row: int) -> None:
    """Work out when the row is released and its depth, once its causes are released."""
    at = max(rows.time[row], rows.lift[row])
    depth = 0
    for link in range(rows.first[row], rows.first[row + 1]):
        cause = rows.cause[link]
        when = NO_TIME
        if rows.link[link] & SETTLED:
            continue
        if rows.link[link] & GIVEN:
            when = min(rows.arrived[row] + rule.patience, rule.now)
        elif rule.timed:
            when = tokens.released[cause]
        if when > at:
            at, depth = when, 0
        if when == at and not rows.link[link] & GIVEN:
            depth = max(depth, order.depth[cause] + 1)
    order.released[row] = at
    order.depth[rows.token[row]] = depth


@njit
def _release(rows: Rows, tokens: Tokens, rule: Rule, order: Order, row: int) -> None:
    """Give the row its position, status and the links it waited for."""
    missing = False
    for link in range(rows.first[row], rows.first[row + 1]):
        if rows.link[link] & GIVEN:
            missing = True
        elif rows.link[link] & SETTLED:
            continue
        elif rule.timed and tokens.released[rows.cause[link]] > rows.time[row] > NO_TIME:
            rows.link[link] |= WAITED
    token = rows.token[row]
    if tokens.flag[token] & GIVEN_UP:
        rows.status[row] = LATE
    elif missing:
        rows.status[row] = MISSING
    else:
        rows.status[row] = ORDERED
    tokens.flag[token] |= DONE
    tokens.row[token] = ABSENT
    tokens.released[token] = order.released[row] if rule.timed else rule.now
    order.position[row] = order.next[rows.group[row]]
    order.next[rows.group[row]] += 1


@njit
def _drop(
    rows: Rows, tokens: Tokens, doomed: Ints, size: int, start: Longs, dependents: Ints
) -> None:
    """Set doomed rows aside, and with them whatever needs them."""
    for index in range(size):
        set_aside(rows, tokens, doomed[index], DROPPED)
    done = 0
    while done < size:
        token = rows.token[doomed[done]]
        done += 1
        for entry in range(start[token], start[token + 1]):
            row = dependents[entry]
            if rows.status[row] == PENDING:
                set_aside(rows, tokens, row, DROPPED)
                doomed[size] = row
                size += 1


@njit
def _hopeless(rows: Rows, tokens: Tokens, rule: Rule, row: int) -> bool:
    """Policy drop: a cause was set aside, or has not come in time."""
    late = rule.now != NO_TIME and rows.arrived[row] <= rule.cutoff
    for link in range(rows.first[row], rows.first[row + 1]):
        cause = rows.cause[link]
        if tokens.flag[cause] & DONE or rows.link[link] & (GIVEN | SETTLED):
            continue
        if tokens.flag[cause] & ASIDE or (late and tokens.row[cause] == ABSENT):
            return True
    return False


@njit
def _lowest(rows: Rows, tokens: Tokens) -> Longs:
    """Return, by member, the least number that is held back."""
    lowest = tokens.lowest.copy()
    for row in range(len(rows.token)):
        if rows.status[row] == PENDING:
            member = rows.name[row]
            lowest[member] = min(lowest[member], rows.number[row])
    return lowest


@njit
def _give_up(rows: Rows, tokens: Tokens, rule: Rule, wait: Ints) -> bool:
    """Policy release: when patience is over, no longer wait for causes that never came.

    An earlier number of the same member that is here and held stands in for one that never
    came: it goes first. Returns whether any cause was given up.
    """
    counted = len(tokens.member) > 0 and len(rows.token) > 0
    lowest = _lowest(rows, tokens) if counted else np.empty(0, np.int64)
    any_given = False
    for row in range(len(rows.token)):
        overdue = rule.now != NO_TIME and rows.arrived[row] <= rule.cutoff
        if rows.status[row] != PENDING or not overdue:
            continue
        for link in range(rows.first[row], rows.first[row + 1]):
            cause = rows.cause[link]
            absent = not tokens.flag[cause] & DONE and tokens.row[cause] == ABSENT
            if counted and lowest[tokens.member[cause]] < tokens.number[cause]:
                absent = False
            if absent and not rows.link[link] & (GIVEN | SETTLED):
                rows.link[link] |= GIVEN
                tokens.flag[cause] |= GIVEN_UP
                wait[row] -= 1
                any_given = True
    return any_given


@njit
def settle(
    rows: Rows, tokens: Tokens, names: Names, rule: Rule, order: Order, released: int
) -> int:
    """Release what can be released, then apply the policy; return how many rows got a position.

    `released` did so before. `order.row` begins with their numbers in the order of release. Rows
    set aside have their status set; rows still PENDING are to be held back.
    """
    wait, start, dependents = _open_links(rows, tokens)
    heap = np.empty(len(wait), np.int32)
    size = 0
    for row in range(len(wait)):
        if rows.status[row] == PENDING and wait[row] == 0:
            size = _push(heap, size, row, rows, tokens, names, rule, order)
    released = _drain(
        rows, tokens, names, rule, order, wait, start, dependents, heap, size, released
    )
    break_cycles(rows, tokens, wait, start, dependents)
    if rule.policy == DROP:
        size = 0
        for row in range(len(wait)):
            if rows.status[row] == PENDING and _hopeless(rows, tokens, rule, row):
                heap[size] = row
                size += 1
        _drop(rows, tokens, heap, size, start, dependents)
    while rule.policy == RELEASE and _give_up(rows, tokens, rule, wait):
        size = 0
        for row in range(len(wait)):
            if rows.status[row] == PENDING and wait[row] == 0:
                size = _push(heap, size, row, rows, tokens, names, rule, order)
        released = _drain(
            rows, tokens, names, rule, order, wait, start, dependents, heap, size, released
        )
    return released


@njit
def _drain(
    rows: Rows,
    tokens: Tokens,
    names: Names,
    rule: Rule,
    order: Order,
    wait: Ints,
    start: Longs,
    dependents: Ints,
    heap: Ints,
    size: int,
    released: int,
) -> int:
    while size:
        row = heap[0]
        size = _pop(heap, size, rows, names, order)
        _release(rows, tokens, rule, order, row)
        order.row[released] = row
        released += 1
        token = rows.token[row]
        for entry in range(start[token], start[token + 1]):
            other = dependents[entry]
            if rows.status[other] == PENDING:
                wait[other] -= 1
                if wait[other] == 0:
                    size = _push(heap, size, other, rows, tokens, names, rule, order)
    return released
