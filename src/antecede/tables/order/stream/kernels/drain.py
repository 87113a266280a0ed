"""Causal release, compiled: which held and new rows may go now, and in which order.

Theory of operation. Every row has a token (the number of its identity) and links to the
tokens of its causes. `flag[token]` says what became of that identity: DONE (it has a
position), ASIDE (it will never have one), GIVEN_UP (some row was released without it), FORGOTTEN
(DONE, but only its number is known, not its content). Rows whose last open cause gets DONE follow
in a queue, each with its r (when it is released) and d (its depth among the rows of this step with
the same r). Causes have a lesser (r, d), so sorting by (r, d, time, identity), the definition of
`tables.kernels.topological`, puts them first, and the order does not depend on the order of rows in
a batch.

`wait` counts a row's open links; `dependents` is the reverse of the links, by counting sort.
Everything is O((rows + links) log rows); nothing is recursive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.kernels import njit
from antecede.tables.order.stream.kernels.cycles import break_cycles
from antecede.tables.order.stream.kernels.rows import (
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
    ReleaseOrder,
    ReleaseRule,
    Rows,
    TieNames,
    Tokens,
    set_aside,
)
from antecede.tables.order.stream.kernels.tie_break import compared


@njit
def _before(rows: Rows, names: TieNames, a: int, b: int) -> bool:
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
def admit(rows: Rows, tokens: Tokens, names: TieNames, held: int) -> None:
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
def _lift(rows: Rows, tokens: Tokens, rule: ReleaseRule, order: ReleaseOrder, row: int) -> None:
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
        else:
            when = tokens.released[cause]
        if when > at:
            at, depth = when, 0
        if when == at and not rows.link[link] & GIVEN:
            depth = max(depth, order.depth[cause] + 1)
    order.released[row] = at
    order.depth[rows.token[row]] = depth


@njit
def _release(rows: Rows, tokens: Tokens, rule: ReleaseRule, order: ReleaseOrder, row: int) -> None:
    """Give the row its status and the links it waited for."""
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
    tokens.released[token] = order.released[row]


@njit
def _drop(rows: Rows, tokens: Tokens, rule: ReleaseRule, start: Longs, dependents: Ints) -> None:
    """Policy drop: set hopeless rows aside, and with them whatever needs them."""
    doomed = np.empty(len(rows.token), np.int32)
    size = 0
    for row in range(len(rows.token)):
        if rows.status[row] == PENDING and _hopeless(rows, tokens, rule, row):
            doomed[size] = row
            size += 1
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
def _hopeless(rows: Rows, tokens: Tokens, rule: ReleaseRule, row: int) -> bool:
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
def _give_up(rows: Rows, tokens: Tokens, rule: ReleaseRule, wait: Ints) -> bool:
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


class _Open(NamedTuple):
    """How many causes each row waits for, and the rows that wait for each token."""

    wait: Ints
    start: Longs
    dependents: Ints


def settle(
    rows: Rows,
    tokens: Tokens,
    names: TieNames,
    rule: ReleaseRule,
    order: ReleaseOrder,
    released: int,
) -> int:
    """Release what can be released, then apply the policy; return how many rows got a position.

    `released` did so before. `order.row` begins with their numbers in the order of release. Rows
    set aside have their status set; rows still PENDING are to be held back.
    """
    opened = _Open(*_open_links(rows, tokens))
    released = _drain(rows, tokens, names, rule, order, opened, released)
    break_cycles(rows, tokens, *opened)
    if rule.policy == DROP:
        _drop(rows, tokens, rule, opened.start, opened.dependents)
    while rule.policy == RELEASE and _give_up(rows, tokens, rule, opened.wait):
        released = _drain(rows, tokens, names, rule, order, opened, released)
    return released


def _drain(
    rows: Rows,
    tokens: Tokens,
    names: TieNames,
    rule: ReleaseRule,
    order: ReleaseOrder,
    opened: _Open,
    begin: int,
) -> int:
    """Release every row that waits for nothing, in order; return how many have gone in all."""
    end = _flow(rows, tokens, rule, order, *opened, begin)
    gone = order.row[begin:end]
    time = rows.time[gone]
    time[time == NO_TIME] = 2**63 - 1
    depth = order.depth[rows.token[gone]]
    by = np.lexsort((time, depth, order.released[gone]))
    order.row[begin:end] = gone[by]
    _place(rows, names, order, begin, end)
    return end


@njit
def _flow(
    rows: Rows,
    tokens: Tokens,
    rule: ReleaseRule,
    order: ReleaseOrder,
    wait: Ints,
    start: Longs,
    dependents: Ints,
    begin: int,
) -> int:
    """Release every row that waits for nothing, causes before effects."""
    end = begin
    for row in range(len(wait)):
        if rows.status[row] == PENDING and wait[row] == 0:
            order.row[end] = row
            end += 1
    done = begin
    while done < end:
        row = order.row[done]
        done += 1
        _lift(rows, tokens, rule, order, row)
        _release(rows, tokens, rule, order, row)
        token = rows.token[row]
        for entry in range(start[token], start[token + 1]):
            other = dependents[entry]
            if rows.status[other] == PENDING:
                wait[other] -= 1
                if wait[other] == 0:
                    order.row[end] = other
                    end += 1
    return end


@njit
def _place(rows: Rows, names: TieNames, order: ReleaseOrder, begin: int, end: int) -> None:
    """Sort rows of equal (r, d, time) by identity, and give all their positions."""
    at = begin
    while at < end:
        stop = at + 1
        while stop < end and _level(rows, order, order.row[at], order.row[stop]):
            stop += 1
        if stop - at > 1:
            _by_identity(rows, names, order.row[at:stop])
        at = stop
    for at in range(begin, end):
        row = order.row[at]
        order.position[row] = order.next[rows.group[row]]
        order.next[rows.group[row]] += 1


@njit
def _level(rows: Rows, order: ReleaseOrder, a: int, b: int) -> bool:
    return bool(
        order.released[a] == order.released[b]
        and order.depth[rows.token[a]] == order.depth[rows.token[b]]
        and rows.time[a] == rows.time[b]
    )


@njit
def _by_identity(rows: Rows, names: TieNames, part: Ints) -> None:
    """Sort rows of one time in place, by merging ever longer runs."""
    other = np.empty_like(part)
    width = 1
    while width < len(part):
        for low in range(0, len(part), 2 * width):
            middle, high = min(low + width, len(part)), min(low + 2 * width, len(part))
            left, right = low, middle
            for at in range(low, high):
                first = right >= high or (
                    left < middle and not _before(rows, names, part[right], part[left])
                )
                if first:
                    other[at] = part[left]
                    left += 1
                else:
                    other[at] = part[right]
                    right += 1
        part[:] = other
        width *= 2
