"""Commit of a step: changed held rows, ids, and knowledge of ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from antecede.tables.order.stream.batch_ids import (
    RESTARTED,
    make_group_entries,
    make_id_entries,
    make_member_entries,
)
from antecede.tables.order.stream.columns import concat_rows
from antecede.tables.order.stream.held import HeldRows, concatenate_rows, make_empty_rows
from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.rows import NO_TIME, Bits, Ints, Longs
from antecede.tables.order.stream.step import ReleaseState, ShardStep
from antecede.tables.order.stream.storage.id_table import IdEntries
from antecede.tables.order.stream.types import ShardOutput

pa: Any = pyarrow

_UNUSED_STATUSES = (shape.DUPLICATE, shape.CONFLICT, shape.SELF, shape.NULL, shape.BAD)


def commit_step(
    step: ShardStep,
    working: ReleaseState,
    outcome: ShardOutput,
    split: tuple[Ints, Ints],
    rows: Any,
) -> ShardOutput:
    """Write the changes; return the outcome with the rows that leave."""
    staying, leaving = split
    candidates, old = working.rows, working.held.size
    flag, released = _settle_edges(candidates, working.states, step.plan.timed)
    moved = staying[staying < old]
    touched = _find_changed(candidates.first, working.held.edge_flag, flag, moved)
    moved = moved[touched]
    fresh = staying[staying >= old]
    _update_counts(step, working, leaving, fresh)
    _write_ids(step, working, np.concatenate([leaving, fresh]))
    away = np.concatenate([leaving[leaving < old], moved])
    away.sort()
    pool, place = _collect_rows(step, working.picked, away, rows, len(candidates.id_index))
    if pool is not None:
        outcome = outcome._replace(rows=pool.take(pa.array(place[leaving])).combine_chunks())
    edges = candidates.first[old]
    held = working.held._replace(edge_flag=flag[:edges], cause_release=released[:old])
    again = held.take(moved) if len(moved) else make_empty_rows()
    entered = _to_held_rows(step, candidates, old, fresh, flag, released)
    step.held.remove(working.picked[away])
    payload = None
    if pool is not None:
        payload = pool.take(pa.array(place[np.concatenate([moved, fresh])])).combine_chunks()
    step.held.add(concatenate_rows([again, entered]), payload)
    return outcome


def _collect_rows(
    step: ShardStep, picked: Longs, away: Ints, rows: Any, candidates: int
) -> tuple[Any, Longs]:
    place = np.full(candidates, -1, np.int64)
    tables = step.held.read_payload(picked[away]) if len(away) else []
    tables = [table for table in tables if table.num_columns]
    if rows is not None:
        tables.append(rows)
    if not tables:
        return None, place
    pool: Any = concat_rows(tables, step.plan.columns)
    place[away] = np.arange(len(away))
    place[len(picked) :] = len(away) + np.arange(candidates - len(picked))
    return pool, place


def _to_held_rows(
    step: ShardStep,
    rows: shape.Candidates,
    old: int,
    pick: Ints,
    flag: Bits,
    released: Longs,
) -> HeldRows:
    if not len(pick):
        return make_empty_rows()
    edges = slice(rows.first[old], rows.first[-1])
    columns: Any = rows
    new = shape.Candidates(*(column[old:] for column in columns))._replace(
        first=rows.first[old:] - rows.first[old],
        cause=rows.cause[edges],
        edge_flag=flag[edges],
        cause_release=released[old:],
    )
    made = step.to_held_rows(new)._replace(edge_flag=new.edge_flag)
    return made.take((pick - old).astype(np.int32))


def _update_counts(step: ShardStep, working: ReleaseState, leaving: Ints, fresh: Ints) -> None:
    known = step.ids
    rows, old = working.rows, working.held.size
    out = leaving[leaving < old]
    np.subtract.at(known.held, rows.group[out], 1)
    np.add.at(known.held, rows.group[fresh], 1)
    if step.plan.counted:
        np.subtract.at(known.member_held, rows.name[out], 1)
        np.add.at(known.member_held, rows.name[fresh], 1)


def _write_ids(step: ShardStep, working: ReleaseState, settled: Ints) -> None:
    """Write the knowledge of `settled` candidates: those that leave, and new ones that stay."""
    known = step.ids
    states, order = working.states, working.order
    if not step.plan.timed:
        states = states._replace(released=np.full(known.size, step.clock, np.int64))
    known.next = order.next
    begun = known.next > 0
    known.mark[begun] &= ~np.uint8(RESTARTED)
    limit = known.limit
    if limit != NO_TIME:
        step.id_tables["i"].forget(limit)
    now = step.clock
    idle = limit - max(step.plan.state_ttl, 0) if limit != NO_TIME else NO_TIME
    rows = working.rows
    groups = _find_numbers(rows.group[settled], known.groups.size)
    entries = make_group_entries(known, groups, now)
    step.id_tables["g"].add(entries, idle, _make_holds_rows_test(2))
    changed = states.flag != known.flag
    if step.plan.counted:
        member, number = known.get_numbers()
        ranges = known.ranges.extend(member, number, states.flag, states.released, states.digest)
        stood = ~np.isin(rows.status[settled], _UNUSED_STATUSES)
        members = _find_numbers(rows.name[settled[stood]], known.members.size)
        entries = make_member_entries(known, ranges, members, now)
        step.id_tables["m"].add(entries, limit, _make_holds_rows_test(0))
        changed &= (states.flag & ~known.flag & (shape.EXCLUDED | shape.ABANDONED)) != 0
    pick = np.flatnonzero(changed).astype(np.int32)
    done = (states.flag[pick] & shape.DONE) != 0
    timestamp = np.where(done, np.maximum(states.released[pick], step.previous_clock), now)
    step.id_tables["i"].add(make_id_entries(known, pick, states, timestamp), limit)


def _settle_edges(
    rows: shape.Candidates, states: shape.IdStates, timed: bool
) -> tuple[Bits, Longs]:
    flag = rows.edge_flag.copy()
    done = (states.flag[rows.cause] & shape.DONE) != 0
    done &= (flag & (shape.ABANDONED_CAUSE | shape.SETTLED)) == 0
    flag[done] |= shape.SETTLED
    released = rows.cause_release.copy()
    if timed:
        owner = np.repeat(np.arange(len(rows.id_index)), np.diff(rows.first))[done]
        when = states.released[rows.cause[done]]
        np.maximum.at(released, owner, when)
        own = rows.time[owner]
        waited = (when > own) & (own != NO_TIME)
        flag[np.flatnonzero(done)[waited]] |= shape.WAITED
    return flag, released


def _find_changed(first: Longs, before: Bits, after: Bits, pick: Ints) -> NDArray[np.bool_]:
    different = np.concatenate([[0], np.cumsum(before != after[: len(before)])])
    changed: NDArray[np.bool_] = different[first[pick + 1]] != different[first[pick]]
    return changed


def _find_numbers(given: Ints, size: int) -> Ints:
    found = np.zeros(size + 1, np.bool_)
    found[given] = True
    return np.flatnonzero(found[:size]).astype(np.int32)


def _make_holds_rows_test(column: int) -> Any:
    def test(entries: IdEntries) -> NDArray[np.bool_]:
        holds: NDArray[np.bool_] = entries.values[entries.first[:-1] + column] > 0
        return holds

    return test
