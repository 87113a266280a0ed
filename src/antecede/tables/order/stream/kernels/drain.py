"""Causal release of the held and new rows that are deliverable, in order.

Every row has an id index and edges to the id indexes of its causes. `flag[id_index]` is the id's
state: DONE (it has a position), EXCLUDED (it never gets one), ABANDONED (a row was released without
it), FORGOTTEN (DONE, content unknown). A row enters a queue when its last open cause is DONE. Rows
are sorted by (r, d, time, identity), the definition of `tables.kernels.topological`, so their order
does not depend on that of the batch.

`wait` counts a row's open edges; `dependents` is the reverse of the edges, by counting sort. The
time is O((rows + edges) log rows); nothing is recursive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from antecede.tables.kernels import njit, on_cycles, strong_components
from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.rows import (
    Candidates,
    IdStates,
    Ints,
    Longs,
    ReleaseOrder,
    ReleaseRule,
    TieNames,
    exclude_row,
)
from antecede.tables.order.stream.kernels.tie_break import compare_names


@njit
def _is_before(rows: Candidates, names: TieNames, a: int, b: int) -> bool:
    if rows.time[a] != rows.time[b]:
        if rows.time[a] == shape.NO_TIME or rows.time[b] == shape.NO_TIME:
            return bool(rows.time[b] == shape.NO_TIME)
        return bool(rows.time[a] < rows.time[b])
    x, y = rows.name[a], rows.name[b]
    if x != y:
        side = compare_names(names, x, y)
        if side != 0:
            return bool(side < 0)
    if rows.number[a] != rows.number[b]:
        return bool(rows.number[a] < rows.number[b])
    if rows.digest[a] != rows.digest[b]:
        return bool(rows.digest[a] < rows.digest[b])
    return a < b


@njit
def admit(rows: Candidates, states: IdStates, names: TieNames, held: int) -> None:
    """Choose the new rows that represent their id; mark the others as repeats.

    Of several new rows with one id the first by the tie rule is chosen. A row that names itself
    represents nothing, as in a batch. `states.row` must name the held rows.
    """
    for row in range(held, len(rows.id_index)):
        id_index = rows.id_index[row]
        if rows.status[row] != shape.PENDING:
            continue
        if _has_self_cause(rows, row):
            rows.status[row] = shape.SELF
            continue
        known = states.row[id_index]
        if (
            states.flag[id_index] & (shape.DONE | shape.EXCLUDED)
            or 0 <= known < held
            or known == shape.ELSEWHERE
        ):
            rows.status[row] = shape.DUPLICATE
        elif known < 0 or _is_before(rows, names, row, known):
            if known >= 0:
                rows.status[known] = shape.DUPLICATE
            states.row[id_index] = row
            states.digest[id_index] = rows.digest[row]
        else:
            rows.status[row] = shape.DUPLICATE
    for row in range(held, len(rows.id_index)):
        id_index = rows.id_index[row]
        if rows.status[row] == shape.DUPLICATE:
            other = states.digest[id_index] != rows.digest[row]
            if other and not states.flag[id_index] & shape.FORGOTTEN:
                rows.status[row] = shape.CONFLICT


@njit
def _has_self_cause(rows: Candidates, row: int) -> bool:
    for edge in range(rows.first[row], rows.first[row + 1]):
        if rows.cause[edge] == rows.id_index[row]:
            return True
    return False


@njit
def _count_open_edges(rows: Candidates, states: IdStates) -> tuple[Ints, Longs, Ints]:
    wait = np.zeros(len(rows.id_index), np.int32)
    start = np.zeros(len(states.flag) + 1, np.int64)
    for row in range(len(wait)):
        if rows.status[row] == shape.PENDING:
            for edge in range(rows.first[row], rows.first[row + 1]):
                cause = rows.cause[edge]
                if not states.flag[cause] & shape.DONE and not rows.edge_flag[edge] & (
                    shape.ABANDONED_CAUSE | shape.SETTLED
                ):
                    wait[row] += 1
                    start[cause + 1] += 1
    for id_index in range(len(states.flag)):
        start[id_index + 1] += start[id_index]
    fill = start[:-1].copy()
    dependents = np.empty(start[-1], np.int32)
    for row in range(len(wait)):
        if rows.status[row] == shape.PENDING:
            for edge in range(rows.first[row], rows.first[row + 1]):
                cause = rows.cause[edge]
                if not states.flag[cause] & shape.DONE and not rows.edge_flag[edge] & (
                    shape.ABANDONED_CAUSE | shape.SETTLED
                ):
                    dependents[fill[cause]] = row
                    fill[cause] += 1
    return wait, start, dependents


@njit
def _compute_release(
    rows: Candidates, states: IdStates, rule: ReleaseRule, order: ReleaseOrder, row: int
) -> None:
    at = max(rows.time[row], rows.cause_release[row])
    depth = 0
    for edge in range(rows.first[row], rows.first[row + 1]):
        cause = rows.cause[edge]
        when = shape.NO_TIME
        if rows.edge_flag[edge] & shape.SETTLED:
            continue
        if rows.edge_flag[edge] & shape.ABANDONED_CAUSE:
            when = min(rows.arrived[row] + rule.patience, rule.now)
        else:
            when = states.released[cause]
        if when > at:
            at, depth = when, 0
        if when == at and not rows.edge_flag[edge] & shape.ABANDONED_CAUSE:
            depth = max(depth, order.depth[cause] + 1)
    order.released[row] = at
    order.depth[rows.id_index[row]] = depth


@njit
def _release_row(
    rows: Candidates, states: IdStates, rule: ReleaseRule, order: ReleaseOrder, row: int
) -> None:
    missing = False
    for edge in range(rows.first[row], rows.first[row + 1]):
        if rows.edge_flag[edge] & shape.ABANDONED_CAUSE:
            missing = True
        elif rows.edge_flag[edge] & shape.SETTLED:
            continue
        elif rule.timed and states.released[rows.cause[edge]] > rows.time[row] > shape.NO_TIME:
            rows.edge_flag[edge] |= shape.WAITED
    id_index = rows.id_index[row]
    if states.flag[id_index] & shape.ABANDONED:
        rows.status[row] = shape.LATE
    elif missing:
        rows.status[row] = shape.MISSING
    else:
        rows.status[row] = shape.ORDERED
    states.flag[id_index] |= shape.DONE
    states.row[id_index] = shape.ABSENT
    states.released[id_index] = order.released[row]


@njit
def _exclude_cycles(rows: Candidates, states: IdStates, start: Longs, dependents: Ints) -> None:
    total = len(rows.id_index)
    first = np.empty(total, np.int64)
    last = np.empty(total, np.int64)
    for row in range(total):
        first[row] = start[rows.id_index[row]]
        last[row] = start[rows.id_index[row] + 1]
    inside = rows.status == shape.PENDING
    cyclic = on_cycles(strong_components(first, last, dependents.astype(np.int64), inside))
    for row in range(total):
        if cyclic[row]:
            exclude_row(rows, states, row, shape.CYCLE)


@njit
def _drop_rows(
    rows: Candidates, states: IdStates, rule: ReleaseRule, start: Longs, dependents: Ints
) -> None:
    doomed = np.empty(len(rows.id_index), np.int32)
    size = 0
    for row in range(len(rows.id_index)):
        if rows.status[row] == shape.PENDING and _is_hopeless(rows, states, rule, row):
            doomed[size] = row
            size += 1
    for index in range(size):
        exclude_row(rows, states, doomed[index], shape.DROPPED)
    done = 0
    while done < size:
        id_index = rows.id_index[doomed[done]]
        done += 1
        for entry in range(start[id_index], start[id_index + 1]):
            row = dependents[entry]
            if rows.status[row] == shape.PENDING:
                exclude_row(rows, states, row, shape.DROPPED)
                doomed[size] = row
                size += 1


@njit
def _is_hopeless(rows: Candidates, states: IdStates, rule: ReleaseRule, row: int) -> bool:
    late = rule.now != shape.NO_TIME and rows.arrived[row] <= rule.cutoff
    for edge in range(rows.first[row], rows.first[row + 1]):
        cause = rows.cause[edge]
        if states.flag[cause] & shape.DONE or rows.edge_flag[edge] & (
            shape.ABANDONED_CAUSE | shape.SETTLED
        ):
            continue
        if states.flag[cause] & shape.EXCLUDED or (late and states.row[cause] == shape.ABSENT):
            return True
    return False


@njit
def _find_lowest(rows: Candidates, states: IdStates) -> Longs:
    lowest = states.lowest.copy()
    for row in range(len(rows.id_index)):
        if rows.status[row] == shape.PENDING:
            member = rows.name[row]
            lowest[member] = min(lowest[member], rows.number[row])
    return lowest


@njit
def _abandon_causes(rows: Candidates, states: IdStates, rule: ReleaseRule, wait: Ints) -> bool:
    """Abandon causes that did not come within patience; return whether there are any.

    A held earlier number of the same member takes precedence over one that never came.
    """
    counted = len(states.member) > 0 and len(rows.id_index) > 0
    lowest = _find_lowest(rows, states) if counted else np.empty(0, np.int64)
    any_given = False
    for row in range(len(rows.id_index)):
        overdue = rule.now != shape.NO_TIME and rows.arrived[row] <= rule.cutoff
        if rows.status[row] != shape.PENDING or not overdue:
            continue
        for edge in range(rows.first[row], rows.first[row + 1]):
            cause = rows.cause[edge]
            absent = not states.flag[cause] & shape.DONE and states.row[cause] == shape.ABSENT
            if counted and lowest[states.member[cause]] < states.number[cause]:
                absent = False
            if absent and not rows.edge_flag[edge] & (shape.ABANDONED_CAUSE | shape.SETTLED):
                rows.edge_flag[edge] |= shape.ABANDONED_CAUSE
                states.flag[cause] |= shape.ABANDONED
                wait[row] -= 1
                any_given = True
    return any_given


class _OpenEdges(NamedTuple):
    wait: Ints
    start: Longs
    dependents: Ints


def settle(
    rows: Candidates,
    states: IdStates,
    names: TieNames,
    rule: ReleaseRule,
    order: ReleaseOrder,
    released: int,
) -> int:
    """Release rows, then apply the policy; return how many rows got a position.

    `order.row` begins with the `released` rows of earlier calls. PENDING rows remain held.
    """
    opened = _OpenEdges(*_count_open_edges(rows, states))
    released = _drain(rows, states, names, rule, order, opened, released)
    _exclude_cycles(rows, states, opened.start, opened.dependents)
    if rule.policy == shape.DROP:
        _drop_rows(rows, states, rule, opened.start, opened.dependents)
    while rule.policy == shape.RELEASE and _abandon_causes(rows, states, rule, opened.wait):
        released = _drain(rows, states, names, rule, order, opened, released)
    return released


def _drain(
    rows: Candidates,
    states: IdStates,
    names: TieNames,
    rule: ReleaseRule,
    order: ReleaseOrder,
    opened: _OpenEdges,
    begin: int,
) -> int:
    end = _release_in_causal_order(rows, states, rule, order, *opened, begin)
    gone = order.row[begin:end]
    time = rows.time[gone]
    time[time == shape.NO_TIME] = 2**63 - 1
    depth = order.depth[rows.id_index[gone]]
    by = np.lexsort((time, depth, order.released[gone]))
    order.row[begin:end] = gone[by]
    _assign_positions(rows, names, order, begin, end)
    return end


@njit
def _release_in_causal_order(
    rows: Candidates,
    states: IdStates,
    rule: ReleaseRule,
    order: ReleaseOrder,
    wait: Ints,
    start: Longs,
    dependents: Ints,
    begin: int,
) -> int:
    end = begin
    for row in range(len(wait)):
        if rows.status[row] == shape.PENDING and wait[row] == 0:
            order.row[end] = row
            end += 1
    done = begin
    while done < end:
        row = order.row[done]
        done += 1
        _compute_release(rows, states, rule, order, row)
        _release_row(rows, states, rule, order, row)
        id_index = rows.id_index[row]
        for entry in range(start[id_index], start[id_index + 1]):
            other = dependents[entry]
            if rows.status[other] == shape.PENDING:
                wait[other] -= 1
                if wait[other] == 0:
                    order.row[end] = other
                    end += 1
    return end


@njit
def _assign_positions(
    rows: Candidates, names: TieNames, order: ReleaseOrder, begin: int, end: int
) -> None:
    at = begin
    while at < end:
        stop = at + 1
        while stop < end and _is_tied(rows, order, order.row[at], order.row[stop]):
            stop += 1
        if stop - at > 1:
            _sort_by_identity(rows, names, order.row[at:stop])
        at = stop
    for at in range(begin, end):
        row = order.row[at]
        order.position[row] = order.next[rows.group[row]]
        order.next[rows.group[row]] += 1


@njit
def _is_tied(rows: Candidates, order: ReleaseOrder, a: int, b: int) -> bool:
    return bool(
        order.released[a] == order.released[b]
        and order.depth[rows.id_index[a]] == order.depth[rows.id_index[b]]
        and rows.time[a] == rows.time[b]
    )


@njit
def _sort_by_identity(rows: Candidates, names: TieNames, part: Ints) -> None:
    other = np.empty_like(part)
    width = 1
    while width < len(part):
        for low in range(0, len(part), 2 * width):
            middle, high = min(low + width, len(part)), min(low + 2 * width, len(part))
            left, right = low, middle
            for at in range(low, high):
                first = right >= high or (
                    left < middle and not _is_before(rows, names, part[right], part[left])
                )
                if first:
                    other[at] = part[left]
                    left += 1
                else:
                    other[at] = part[right]
                    right += 1
        part[:] = other
        width *= 2
