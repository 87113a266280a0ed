"""Release of a step: candidates, their order, and the rows that leave."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.errors import InputError
from antecede.tables.order.stream import affected_rows
from antecede.tables.order.stream.batch_ids import RESTARTED
from antecede.tables.order.stream.held import HeldRows, make_segment_arrays
from antecede.tables.order.stream.kernels import drain
from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.rows import NO_TIME, Ints, Longs
from antecede.tables.order.stream.step import EMPTY_SEGMENT, LATE_MARK, ReleaseState, ShardStep
from antecede.tables.order.stream.types import ReleasedCauses, ShardOutput

_SHARED_COLUMNS = ("time", "arrived", "digest", "number", "first", "edge_flag", "cause_release")
POLICIES = {"hold": shape.HOLD, "release": shape.RELEASE, "drop": shape.DROP}


class AppliedPolicy(NamedTuple):
    """Policy, and the arrival up to which it applies."""

    policy: str
    cutoff: int


def release_rows(step: ShardStep, new: shape.Candidates) -> ReleaseState:
    """Release rows; beyond `max_held_rows` also the oldest held ones, or raise InputError."""
    cutoff = NO_TIME if step.clock == NO_TIME else step.clock - step.plan.patience
    applied = [AppliedPolicy(step.plan.policy, cutoff)]
    while True:
        working = _settle(step, new, applied)
        over = _count_overflow(step, working)
        if over <= 0:
            return working
        applied.append(_make_overflow_policy(step, working, over, applied[-1].cutoff))


def _settle(step: ShardStep, new: shape.Candidates, applied: list[AppliedPolicy]) -> ReleaseState:
    known = step.ids
    picked = _find_affected(step, new, applied)
    held = step.held.read_rows(picked)
    rows = _join_candidates(step, held, new)
    states = step.make_states()
    step.mark_held_ids(states)
    _assign_rows(rows, states)
    if step.plan.counted and any(entry.policy == "release" for entry in applied):
        _find_lowest(step, states, picked)
    order = shape.ReleaseOrder(
        np.empty(len(rows.id_index), np.int32),
        np.full(len(rows.id_index), -1, np.int64),
        np.full(len(rows.id_index), NO_TIME, np.int64),
        known.next.copy(),
        np.full(len(states.flag), -1, np.int32),
    )
    plan, count = step.plan, 0
    for entry in applied:
        policy = POLICIES[entry.policy]
        rule = shape.ReleaseRule(policy, plan.patience, step.clock, plan.timed, entry.cutoff)
        count = drain.settle(rows, states, step.make_tie_names(), rule, order, count)
    if not plan.timed:
        shape.mark_waiting(rows, states, held.size)
    return ReleaseState(picked, held, rows, states, order, count)


def _find_affected(step: ShardStep, new: shape.Candidates, applied: list[AppliedPolicy]) -> Longs:
    """Return the held rows (segment << 32 | row, sorted) that this step may affect."""
    known = step.ids
    if not step.held.count:
        return np.zeros(0, np.int64)
    if len(applied) > 1:
        return step.held.list_rows()
    new_rows = step.to_held_rows(new)
    # Without any id `new_rows` is empty.
    dead = (new.status != shape.PENDING).astype(np.uint8)[: new_rows.size]
    views, _opened = step.held.make_views(make_segment_arrays(new_rows, dead))
    last = np.int64(len(views) - 1) << 32
    alive = dead == 0
    eager = any(entry.policy == "drop" for entry in applied)
    free = alive if eager else alive & _has_no_open_edge(new_rows)
    seeds = last | np.flatnonzero(free)
    reached, gone = affected_rows.find_affected(views, seeds, eager)
    old = reached < last
    touched, leaving = reached[old], np.sort(reached[gone & old])
    alive[reached[gone & ~old] & 0xFFFFFFFF] = False
    if applied[-1].policy != "hold" and step.clock != NO_TIME:
        overdue = affected_rows.find_overdue(views, applied[-1].cutoff)
        if len(overdue):  # rows on a cycle stay
            reached, _ = affected_rows.find_affected(views, np.concatenate([seeds, overdue]), eager)
            touched = reached[reached < last]
    if not eager and alive.any():
        behind_old = _has_staying_cause(new, known.held_row, leaving)
        still, joined = np.flatnonzero(alive), np.flatnonzero(alive & behind_old)
        touched = np.union1d(
            touched, affected_rows.find_on_cycles(views, last | still, last | joined)
        )
    touched.sort()
    return touched


def _join_candidates(step: ShardStep, held: HeldRows, new: shape.Candidates) -> shape.Candidates:
    known = step.ids
    if not held.size:
        return new._replace(edge_flag=new.edge_flag.copy(), status=new.status.copy())
    group, step.serials = known.number_groups(held.group, step.serials)
    name, id_index = known.identify(group, held.name, held.number)
    owner = np.repeat(group, np.diff(held.first))
    _, cause = known.identify(owner, held.cause, held.cause_number)
    known.look_up()
    late = id_index[held.mark & LATE_MARK != 0]
    known.flag[late] |= shape.ABANDONED
    before: dict[str, Any] = {
        "id_index": id_index,
        "group": group,
        "name": name,
        "cause": cause,
        "status": np.zeros(held.size, np.uint8),
        **{column: getattr(held, column) for column in _SHARED_COLUMNS},
    }
    after = new._replace(first=new.first[1:] + held.first[-1])._asdict()
    joined = {column: np.concatenate([before[column], after[column]]) for column in after}
    return shape.Candidates(**joined)


def _find_lowest(step: ShardStep, states: shape.IdStates, picked: Longs) -> None:
    known = step.ids
    if not step.held.count:
        return
    views, _opened = step.held.make_views(EMPTY_SEGMENT, picked)
    every = np.arange(known.members.size, dtype=np.int32)
    names = known.members.take(every)
    serial = known.serial[known.members.namespace[every]]
    states.lowest[:] = affected_rows.find_lowest(views, serial, *names)


def _count_overflow(step: ShardStep, working: ReleaseState) -> int:
    if step.plan.max_held_rows < 0:
        return 0
    pending = int((working.rows.status == shape.PENDING).sum())
    return step.held.count - len(working.picked) + pending - step.plan.max_held_rows


def _make_overflow_policy(
    step: ShardStep, working: ReleaseState, over: int, cutoff: int
) -> AppliedPolicy:
    """Return the policy that ends the wait of at least `over` more of the oldest rows."""
    if step.plan.on_overflow == "fail" or step.clock == NO_TIME:
        untimed = "" if step.plan.on_overflow == "fail" else " (without a clock)"
        raise InputError(
            f"{step.plan.max_held_rows + over} rows of one shard wait for causes, and its limit is "
            f"{step.plan.max_held_rows}{untimed}: raise max_held_rows=, set "
            'on_overflow="release" or "drop" for the oldest rows, or limit waits by on_missing= '
            "and patience="
        )
    pending = working.rows.arrived[working.rows.status == shape.PENDING]
    others = step.held.read_rows(np.setdiff1d(step.held.list_rows(), working.picked))
    times = np.sort(np.concatenate([pending, others.arrived]))
    later = times[times > cutoff]
    if not len(later):
        raise InputError(
            f"{over} rows more than max_held_rows={step.plan.max_held_rows} wait in one shard, and "
            "none can be released: raise it"
        )
    return AppliedPolicy(step.plan.on_overflow, int(later[min(over, len(later)) - 1]))


def make_output(step: ShardStep, working: ReleaseState) -> tuple[ShardOutput, Ints, Ints]:
    """Return the output, the candidates that stay, and those that leave, in order."""
    rows, order = working.rows, working.order
    positioned = order.row[: working.count]
    aside = np.flatnonzero((rows.status != shape.PENDING) & (order.position < 0))
    row = np.concatenate([positioned, aside.astype(np.int32)])
    staying = np.flatnonzero(rows.status == shape.PENDING).astype(np.int32)
    timed = (order.released[row] != NO_TIME) & (rows.time[row] != NO_TIME)
    units = np.where(timed & step.plan.timed, order.released[row] - rows.time[row], -1)
    status = rows.status[row]
    status[_find_restarted(step, rows, order, row)] = shape.RESTARTED
    at = order.released[row] if step.plan.timed else np.full(len(row), NO_TIME, np.int64)
    outcome = ShardOutput(
        rows=None,
        status=status,
        position=order.position[row],
        waited_units=units,
        waited=_list_causes(step, working, positioned, len(aside), False),
        missing_causes=_list_causes(step, working, positioned, len(aside), True),
        released=np.where(order.position[row] < 0, NO_TIME, np.maximum(at, step.previous_clock)),
    )
    return outcome, staying, row


def _find_restarted(
    step: ShardStep, rows: shape.Candidates, order: shape.ReleaseOrder, row: Ints
) -> Longs:
    known = step.ids
    first = np.flatnonzero(order.position[row] == 0)
    anew: Longs = first[(known.mark[rows.group[row[first]]] & RESTARTED) != 0]
    return anew


def _list_causes(
    step: ShardStep, working: ReleaseState, positioned: Ints, aside: int, abandoned: bool
) -> ReleasedCauses:
    first, pick = shape.list_causes(working.rows, positioned, abandoned)
    first = np.concatenate([first, np.full(aside, first[-1], np.int64)])
    _, name, number = step.ids.get_names(pick)
    return ReleasedCauses(first, name, number)


def _assign_rows(rows: shape.Candidates, states: shape.IdStates) -> None:
    pending = np.flatnonzero(rows.status == shape.PENDING)
    states.row[rows.id_index[pending]] = pending
    states.digest[rows.id_index[pending]] = rows.digest[pending]


def _has_staying_cause(rows: shape.Candidates, place: Longs, gone: Longs) -> NDArray[np.bool_]:
    """Return which rows name a held row (`place`, by id) that is not in `gone` (sorted)."""
    named = place[rows.cause]
    at = np.searchsorted(gone, named)
    stays = named >= 0
    stays[at < len(gone)] &= gone[at[at < len(gone)]] != named[at < len(gone)]
    count = np.concatenate([[0], np.cumsum(stays)])
    names: NDArray[np.bool_] = count[rows.first[1:]] != count[rows.first[:-1]]
    return names


def _has_no_open_edge(rows: HeldRows) -> NDArray[np.bool_]:
    opened_links = np.concatenate([[0], np.cumsum(rows.edge_flag & shape.SETTLED == 0)])
    free: NDArray[np.bool_] = opened_links[rows.first[1:]] == opened_links[rows.first[:-1]]
    return free
