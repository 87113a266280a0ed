"""Release of a step: candidates, their order, and the rows that leave."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.errors import InputError
from antecede.tables.order.stream import affected_rows
from antecede.tables.order.stream.batch_ids import RESTARTED
from antecede.tables.order.stream.held import HeldRows, piece_arrays
from antecede.tables.order.stream.kernels import drain
from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.rows import NO_TIME, Ints, Longs
from antecede.tables.order.stream.step import LATE, NO_PIECE, Step, Working
from antecede.tables.order.stream.types import Links, ShardOutput

_SAME = ("time", "arrived", "digest", "number", "first", "link", "lift")
"""Columns that held rows and candidates share."""
POLICIES = {"hold": shape.HOLD, "release": shape.RELEASE, "drop": shape.DROP}


class Turn(NamedTuple):
    """A policy, and the arrival up to which it applies."""

    policy: str
    cutoff: int


def release(step: Step, new: shape.Rows) -> Working:
    """Release rows; beyond `max_held_rows` also the oldest that wait.

    Raises InputError where none of those may go.
    """
    cutoff = NO_TIME if step.clock == NO_TIME else step.clock - step.plan.patience
    turns = [Turn(step.plan.policy, cutoff)]
    while True:
        working = _settled(step, new, turns)
        over = _over(step, working)
        if over <= 0:
            return working
        turns.append(_when_over(step, working, over, turns[-1].cutoff))


def _settled(step: Step, new: shape.Rows, turns: list[Turn]) -> Working:
    """Release what can go: the new rows and the held ones that they can touch."""
    known = step.known
    picked = _woken(step, new, turns)
    held = step.held.rows(picked)
    rows = _candidates(step, held, new)
    tokens = step.tokens()
    step.find_elsewhere(tokens)
    _place(rows, tokens)
    if step.plan.counted and any(turn.policy == "release" for turn in turns):
        _find_lowest(step, tokens, picked)
    order = shape.ReleaseOrder(
        np.empty(len(rows.token), np.int32),
        np.full(len(rows.token), -1, np.int64),
        np.full(len(rows.token), NO_TIME, np.int64),
        known.next.copy(),
        np.full(len(tokens.flag), -1, np.int32),
    )
    plan, count = step.plan, 0
    for turn in turns:
        policy = POLICIES[turn.policy]
        rule = shape.ReleaseRule(policy, plan.patience, step.clock, plan.timed, turn.cutoff)
        count = drain.settle(rows, tokens, step.ties(), rule, order, count)
    if not plan.timed:
        shape.mark_waiting(rows, tokens, held.size)
    return Working(picked, held, rows, tokens, order, count)


def _woken(step: Step, new: shape.Rows, turns: list[Turn]) -> Longs:
    """Return the held rows (piece << 32 | row, sorted) that this step may touch."""
    known = step.known
    if not step.held.count:
        return np.zeros(0, np.int64)
    if len(turns) > 1:
        return step.held.all_rows()
    mine = step.as_held(new)
    # Of rows that have no identity at all nothing can be held: then `mine` has none of them.
    dead = (new.status != shape.PENDING).astype(np.uint8)[: mine.size]
    views, _opened = step.held.views(piece_arrays(mine, dead))
    last = np.int64(len(views) - 1) << 32
    alive = dead == 0
    eager = any(turn.policy == "drop" for turn in turns)
    free = alive if eager else alive & _nothing_open(mine)
    seeds = last | np.flatnonzero(free)
    reached, gone = affected_rows.woken(views, seeds, eager)
    old = reached < last
    touched, leaving = reached[old], np.sort(reached[gone & old])
    alive[reached[gone & ~old] & 0xFFFFFFFF] = False
    if turns[-1].policy != "hold" and step.clock != NO_TIME:
        overdue = affected_rows.overdue(views, turns[-1].cutoff)
        if len(overdue):  # whether these leave is not sure: one on a cycle does not
            reached, _ = affected_rows.woken(views, np.concatenate([seeds, overdue]), eager)
            touched = reached[reached < last]
    if not eager and alive.any():
        behind_old = _names_one_that_stays(new, known.place, leaving)
        still, joined = np.flatnonzero(alive), np.flatnonzero(alive & behind_old)
        touched = np.union1d(touched, affected_rows.in_cycles(views, last | still, last | joined))
    touched.sort()
    return touched


def _candidates(step: Step, held: HeldRows, new: shape.Rows) -> shape.Rows:
    """Return held rows and new ones as candidates, the identities of all numbered."""
    known = step.known
    if not held.size:
        return new._replace(link=new.link.copy(), status=new.status.copy())
    group, step.serials = known.group_numbers(held.group, step.serials)
    name, token = known.identify(group, held.name, held.number)
    owner = np.repeat(group, np.diff(held.first))
    _, cause = known.identify(owner, held.cause, held.cause_number)
    known.learn()
    late = token[held.mark & LATE != 0]
    known.flag[late] |= shape.GIVEN_UP
    before: dict[str, Any] = {
        "token": token,
        "group": group,
        "name": name,
        "cause": cause,
        "status": np.zeros(held.size, np.uint8),
        **{column: getattr(held, column) for column in _SAME},
    }
    after = new._replace(first=new.first[1:] + held.first[-1])._asdict()
    joined = {column: np.concatenate([before[column], after[column]]) for column in after}
    return shape.Rows(**joined)


def _find_lowest(step: Step, tokens: shape.Tokens, picked: Longs) -> None:
    """Learn the least number that each member has among held rows that are no candidates."""
    known = step.known
    if not step.held.count:
        return
    views, _opened = step.held.views(NO_PIECE, picked)
    every = np.arange(known.members.size, dtype=np.int32)
    names = known.members.taken(every)
    serial = known.serial[known.members.owner[every]]
    tokens.lowest[:] = affected_rows.lowest_of(views, serial, *names)


def _over(step: Step, working: Working) -> int:
    if step.plan.max_held_rows < 0:
        return 0
    pending = int((working.rows.status == shape.PENDING).sum())
    return step.held.count - len(working.picked) + pending - step.plan.max_held_rows


def _when_over(step: Step, working: Working, over: int, cutoff: int) -> Turn:
    """Return the turn that ends the wait of at least `over` more of the oldest rows."""
    if step.plan.on_overflow == "fail" or step.clock == NO_TIME:
        untimed = "" if step.plan.on_overflow == "fail" else " (there is no clock to go by)"
        raise InputError(
            f"{step.plan.max_held_rows + over} rows of one shard would wait for causes that have "
            f"not come; it may hold {step.plan.max_held_rows}{untimed}: give max_held_rows= a "
            'greater number, on_overflow="release" or "drop" to let the oldest go, or on_missing= '
            "and patience= so that rows do not wait for good"
        )
    pending = working.rows.arrived[working.rows.status == shape.PENDING]
    others = step.held.rows(np.setdiff1d(step.held.all_rows(), working.picked))
    times = np.sort(np.concatenate([pending, others.arrived]))
    later = times[times > cutoff]
    if not len(later):
        raise InputError(
            f"{over} rows more than max_held_rows={step.plan.max_held_rows} wait in one shard, for "
            "rows that wait as well: give a greater number"
        )
    return Turn(step.plan.on_overflow, int(later[min(over, len(later)) - 1]))


def give_out(step: Step, working: Working) -> tuple[ShardOutput, Ints, Ints]:
    """Return what leaves, with the candidates that stay and those that leave, in order."""
    rows, order = working.rows, working.order
    positioned = order.row[: working.count]
    aside = np.flatnonzero((rows.status != shape.PENDING) & (order.position < 0))
    row = np.concatenate([positioned, aside.astype(np.int32)])
    staying = np.flatnonzero(rows.status == shape.PENDING).astype(np.int32)
    timed = (order.released[row] != NO_TIME) & (rows.time[row] != NO_TIME)
    units = np.where(timed & step.plan.timed, order.released[row] - rows.time[row], -1)
    status = rows.status[row]
    status[_first_anew(step, rows, order, row)] = shape.RESTARTED
    at = order.released[row] if step.plan.timed else np.full(len(row), NO_TIME, np.int64)
    outcome = ShardOutput(
        rows=None,
        status=status,
        position=order.position[row],
        waited_units=units,
        waited=_links(step, working, positioned, len(aside), False),
        missing_causes=_links(step, working, positioned, len(aside), True),
        released=np.where(order.position[row] < 0, NO_TIME, np.maximum(at, step.before)),
    )
    return outcome, staying, row


def _first_anew(step: Step, rows: shape.Rows, order: shape.ReleaseOrder, row: Ints) -> Longs:
    known = step.known
    first = np.flatnonzero(order.position[row] == 0)
    anew: Longs = first[(known.mark[rows.group[row[first]]] & RESTARTED) != 0]
    return anew


def _links(step: Step, working: Working, positioned: Ints, aside: int, given: bool) -> Links:
    first, pick = shape.links_of(working.rows, positioned, given)
    first = np.concatenate([first, np.full(aside, first[-1], np.int64)])
    _, name, number = step.known.names_of(pick)
    return Links(first, name, number)


def _place(rows: shape.Rows, tokens: shape.Tokens) -> None:
    """Set the candidate that stands for each identity."""
    pending = np.flatnonzero(rows.status == shape.PENDING)
    tokens.row[rows.token[pending]] = pending
    tokens.digest[rows.token[pending]] = rows.digest[pending]


def _names_one_that_stays(rows: shape.Rows, place: Longs, gone: Longs) -> NDArray[np.bool_]:
    """Return which rows name a held row (`place`, by identity) that is none of `gone` (sorted)."""
    named = place[rows.cause]
    at = np.searchsorted(gone, named)
    stays = named >= 0
    stays[at < len(gone)] &= gone[at[at < len(gone)]] != named[at < len(gone)]
    count = np.concatenate([[0], np.cumsum(stays)])
    names: NDArray[np.bool_] = count[rows.first[1:]] != count[rows.first[:-1]]
    return names


def _nothing_open(rows: HeldRows) -> NDArray[np.bool_]:
    opened_links = np.concatenate([[0], np.cumsum(rows.link & shape.SETTLED == 0)])
    free: NDArray[np.bool_] = opened_links[rows.first[1:]] == opened_links[rows.first[:-1]]
    return free
