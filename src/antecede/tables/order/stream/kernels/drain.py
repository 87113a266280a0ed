"""Causal release, compiled: the held and new rows that may go now, in order.

Every row has a token (the number of its identity) and links to the tokens of its causes.
`flag[token]` is the identity's fate: DONE (it has a position), ASIDE (it will never have one),
GIVEN_UP (a row was released without it), FORGOTTEN (DONE, content unknown). Rows whose last open
cause gets DONE follow in a queue, each with its r (release) and d (depth among the rows of this
step with the same r). Sorting by (r, d, time, identity), the definition of
`tables.kernels.topological`, makes the order independent of the batch's.

`wait` counts a row's open links; `dependents` is the reverse of the links, by counting sort.
Everything is O((rows + links) log rows); nothing is recursive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.kernels import njit, on_cycles, strong_components
from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.rows import (
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
        if rows.time[a] == shape.NO_TIME or rows.time[b] == shape.NO_TIME:
            return bool(rows.time[b] == shape.NO_TIME)
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
    """Choose the new rows that stand for their identity; mark the others as repeats.

    Of several new rows with one identity the first by the tie rule wins. A row that names itself
    stands for nothing, as in a batch. `tokens.row` must name the held rows. Sets status and
    `tokens.row`, `digest`.
    """
    for row in range(held, len(rows.token)):
        token = rows.token[row]
        if rows.status[row] != shape.PENDING:
            continue
        if _names_itself(rows, row):
            rows.status[row] = shape.SELF
            continue
        known = tokens.row[token]
        if (
            tokens.flag[token] & (shape.DONE | shape.ASIDE)
            or 0 <= known < held
            or known == shape.ELSEWHERE
        ):
            rows.status[row] = shape.DUPLICATE
        elif known < 0 or _before(rows, names, row, known):
            if known >= 0:
                rows.status[known] = shape.DUPLICATE
            tokens.row[token] = row
            tokens.digest[token] = rows.digest[row]
        else:
            rows.status[row] = shape.DUPLICATE
    for row in range(held, len(rows.token)):
        token = rows.token[row]
        if rows.status[row] == shape.DUPLICATE:
            other = tokens.digest[token] != rows.digest[row]
            if other and not tokens.flag[token] & shape.FORGOTTEN:
                rows.status[row] = shape.CONFLICT


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
        if rows.status[row] == shape.PENDING:
            for link in range(rows.first[row], rows.first[row + 1]):
                cause = rows.cause[link]
                if not tokens.flag[cause] & shape.DONE and not rows.link[link] & (
                    shape.GIVEN | shape.SETTLED
                ):
                    wait[row] += 1
                    start[cause + 1] += 1
    for token in range(len(tokens.flag)):
        start[token + 1] += start[token]
    fill = start[:-1].copy()
    dependents = np.empty(start[-1], np.int32)
    for row in range(len(wait)):
        if rows.status[row] == shape.PENDING:
            for link in range(rows.first[row], rows.first[row + 1]):
                cause = rows.cause[link]
                if not tokens.flag[cause] & shape.DONE and not rows.link[link] & (
                    shape.GIVEN | shape.SETTLED
                ):
                    dependents[fill[cause]] = row
                    fill[cause] += 1
    return wait, start, dependents


@njit
def _lift(rows: Rows, tokens: Tokens, rule: ReleaseRule, order: ReleaseOrder, row: int) -> None:
    """Compute the row's release and depth, once its causes are released."""
    at = max(rows.time[row], rows.lift[row])
    depth = 0
    for link in range(rows.first[row], rows.first[row + 1]):
        cause = rows.cause[link]
        when = shape.NO_TIME
        if rows.link[link] & shape.SETTLED:
            continue
        if rows.link[link] & shape.GIVEN:
            when = min(rows.arrived[row] + rule.patience, rule.now)
        else:
            when = tokens.released[cause]
        if when > at:
            at, depth = when, 0
        if when == at and not rows.link[link] & shape.GIVEN:
            depth = max(depth, order.depth[cause] + 1)
    order.released[row] = at
    order.depth[rows.token[row]] = depth


@njit
def _release(rows: Rows, tokens: Tokens, rule: ReleaseRule, order: ReleaseOrder, row: int) -> None:
    missing = False
    for link in range(rows.first[row], rows.first[row + 1]):
        if rows.link[link] & shape.GIVEN:
            missing = True
        elif rows.link[link] & shape.SETTLED:
            continue
        elif rule.timed and tokens.released[rows.cause[link]] > rows.time[row] > shape.NO_TIME:
            rows.link[link] |= shape.WAITED
    token = rows.token[row]
    if tokens.flag[token] & shape.GIVEN_UP:
        rows.status[row] = shape.LATE
    elif missing:
        rows.status[row] = shape.MISSING
    else:
        rows.status[row] = shape.ORDERED
    tokens.flag[token] |= shape.DONE
    tokens.row[token] = shape.ABSENT
    tokens.released[token] = order.released[row]


@njit
def _break_cycles(rows: Rows, tokens: Tokens, start: Longs, dependents: Ints) -> None:
    total = len(rows.token)
    first = np.empty(total, np.int64)
    last = np.empty(total, np.int64)
    for row in range(total):
        first[row] = start[rows.token[row]]
        last[row] = start[rows.token[row] + 1]
    inside = rows.status == shape.PENDING
    cyclic = on_cycles(strong_components(first, last, dependents.astype(np.int64), inside))
    for row in range(total):
        if cyclic[row]:
            set_aside(rows, tokens, row, shape.CYCLE)


@njit
def _drop(rows: Rows, tokens: Tokens, rule: ReleaseRule, start: Longs, dependents: Ints) -> None:
    """Policy drop: set hopeless rows aside, and rows that need them."""
    doomed = np.empty(len(rows.token), np.int32)
    size = 0
    for row in range(len(rows.token)):
        if rows.status[row] == shape.PENDING and _hopeless(rows, tokens, rule, row):
            doomed[size] = row
            size += 1
    for index in range(size):
        set_aside(rows, tokens, doomed[index], shape.DROPPED)
    done = 0
    while done < size:
        token = rows.token[doomed[done]]
        done += 1
        for entry in range(start[token], start[token + 1]):
            row = dependents[entry]
            if rows.status[row] == shape.PENDING:
                set_aside(rows, tokens, row, shape.DROPPED)
                doomed[size] = row
                size += 1


@njit
def _hopeless(rows: Rows, tokens: Tokens, rule: ReleaseRule, row: int) -> bool:
    """Policy drop: a cause was set aside, or has not come in time."""
    late = rule.now != shape.NO_TIME and rows.arrived[row] <= rule.cutoff
    for link in range(rows.first[row], rows.first[row + 1]):
        cause = rows.cause[link]
        if tokens.flag[cause] & shape.DONE or rows.link[link] & (shape.GIVEN | shape.SETTLED):
            continue
        if tokens.flag[cause] & shape.ASIDE or (late and tokens.row[cause] == shape.ABSENT):
            return True
    return False


@njit
def _lowest(rows: Rows, tokens: Tokens) -> Longs:
    lowest = tokens.lowest.copy()
    for row in range(len(rows.token)):
        if rows.status[row] == shape.PENDING:
            member = rows.name[row]
            lowest[member] = min(lowest[member], rows.number[row])
    return lowest


@njit
def _give_up(rows: Rows, tokens: Tokens, rule: ReleaseRule, wait: Ints) -> bool:
    """Policy release: stop waiting for causes that did not come within patience.

    An earlier number of the same member that is held stands in for one that never came: it goes
    first. Returns whether any cause was given up.
    """
    counted = len(tokens.member) > 0 and len(rows.token) > 0
    lowest = _lowest(rows, tokens) if counted else np.empty(0, np.int64)
    any_given = False
    for row in range(len(rows.token)):
        overdue = rule.now != shape.NO_TIME and rows.arrived[row] <= rule.cutoff
        if rows.status[row] != shape.PENDING or not overdue:
            continue
        for link in range(rows.first[row], rows.first[row + 1]):
            cause = rows.cause[link]
            absent = not tokens.flag[cause] & shape.DONE and tokens.row[cause] == shape.ABSENT
            if counted and lowest[tokens.member[cause]] < tokens.number[cause]:
                absent = False
            if absent and not rows.link[link] & (shape.GIVEN | shape.SETTLED):
                rows.link[link] |= shape.GIVEN
                tokens.flag[cause] |= shape.GIVEN_UP
                wait[row] -= 1
                any_given = True
    return any_given


class _Open(NamedTuple):
    """Number of open links of each row, and the rows that wait for each token."""

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
    """Release rows, then apply the policy; return how many rows got a position.

    `order.row` begins with the numbers of the `released` ones before. Rows set aside have their
    status set; rows still PENDING are to be held back.
    """
    opened = _Open(*_open_links(rows, tokens))
    released = _drain(rows, tokens, names, rule, order, opened, released)
    _break_cycles(rows, tokens, opened.start, opened.dependents)
    if rule.policy == shape.DROP:
        _drop(rows, tokens, rule, opened.start, opened.dependents)
    while rule.policy == shape.RELEASE and _give_up(rows, tokens, rule, opened.wait):
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
    time[time == shape.NO_TIME] = 2**63 - 1
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
        if rows.status[row] == shape.PENDING and wait[row] == 0:
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
            if rows.status[other] == shape.PENDING:
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
