"""Changes of a step written to the state: held rows, identities, knowledge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from antecede.tables.order.stream.batch_ids import (
    RESTARTED,
    group_entries,
    id_entries,
    member_entries,
)
from antecede.tables.order.stream.columns import joined
from antecede.tables.order.stream.held import HeldRows, joined_rows, no_rows
from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.rows import NO_TIME, Bits, Ints, Longs
from antecede.tables.order.stream.step import Step, Working
from antecede.tables.order.stream.storage.id_table import Entries
from antecede.tables.order.stream.types import ShardOutput

pa: Any = pyarrow

_STOOD_FOR_NOTHING = (shape.DUPLICATE, shape.CONFLICT, shape.SELF, shape.NULL, shape.BAD)


def keep(
    step: Step,
    working: Working,
    outcome: ShardOutput,
    split: tuple[Ints, Ints],
    rows: Any,
) -> ShardOutput:
    """Write what changed; return the outcome with the rows that leave."""
    staying, leaving = split
    candidates, old = working.rows, working.held.size
    link, lift = _settle_links(candidates, working.tokens, step.plan.timed)
    moved = staying[staying < old]
    touched = _changed(candidates.first, working.held.link, link, moved)
    moved = moved[touched]
    fresh = staying[staying >= old]
    _count(step, working, leaving, fresh)
    _remember(step, working, np.concatenate([leaving, fresh]))
    away = np.concatenate([leaving[leaving < old], moved])
    away.sort()
    pool, place = _pool(step, working.picked, away, rows, len(candidates.token))
    if pool is not None:
        outcome = outcome._replace(rows=pool.take(pa.array(place[leaving])).combine_chunks())
    links = candidates.first[old]
    held = working.held._replace(link=link[:links], lift=lift[:old])
    again = held.taken(moved) if len(moved) else no_rows()
    entered = _as_held_rows(step, candidates, old, fresh, link, lift)
    step.held.remove(working.picked[away])
    payload = None
    if pool is not None:
        payload = pool.take(pa.array(place[np.concatenate([moved, fresh])])).combine_chunks()
    step.held.add(joined_rows([again, entered]), payload)
    return outcome


def _pool(step: Step, picked: Longs, away: Ints, rows: Any, candidates: int) -> tuple[Any, Longs]:
    """Return the user's rows that leave or move and the new ones; and where each stands."""
    place = np.full(candidates, -1, np.int64)
    tables = step.held.payload(picked[away]) if len(away) else []
    tables = [table for table in tables if table.num_columns]
    if rows is not None:
        tables.append(rows)
    if not tables:
        return None, place
    pool: Any = joined(tables, step.plan.columns)
    place[away] = np.arange(len(away))
    place[len(picked) :] = len(away) + np.arange(candidates - len(picked))
    return pool, place


def _as_held_rows(
    step: Step,
    rows: shape.Rows,
    old: int,
    pick: Ints,
    link: Bits,
    lift: Longs,
) -> HeldRows:
    if not len(pick):
        return no_rows()
    links = slice(rows.first[old], rows.first[-1])
    columns: Any = rows
    new = shape.Rows(*(column[old:] for column in columns))._replace(
        first=rows.first[old:] - rows.first[old],
        cause=rows.cause[links],
        link=link[links],
        lift=lift[old:],
    )
    made = step.as_held(new)._replace(link=new.link)
    return made.taken((pick - old).astype(np.int32))


def _count(step: Step, working: Working, leaving: Ints, fresh: Ints) -> None:
    known = step.known
    rows, old = working.rows, working.held.size
    out = leaving[leaving < old]
    np.subtract.at(known.held, rows.group[out], 1)
    np.add.at(known.held, rows.group[fresh], 1)
    if step.plan.counted:
        np.subtract.at(known.member_held, rows.name[out], 1)
        np.add.at(known.member_held, rows.name[fresh], 1)


def _remember(step: Step, working: Working, settled: Ints) -> None:
    """Write what is known now of groups, ids and members, and forget what is too old.

    `settled` are the candidates that leave, and the new ones that stay.
    """
    known = step.known
    tokens, order = working.tokens, working.order
    if not step.plan.timed:
        tokens = tokens._replace(released=np.full(known.size, step.clock, np.int64))
    known.next = order.next
    begun = known.next > 0
    known.mark[begun] &= ~np.uint8(RESTARTED)
    limit = known.limit
    if limit != NO_TIME:
        step.ledgers["i"].forget(limit)
    now = step.clock
    idle = limit - max(step.plan.state_ttl, 0) if limit != NO_TIME else NO_TIME
    rows = working.rows
    groups = _numbers(rows.group[settled], known.groups.size)
    entries = group_entries(known, groups, now)
    step.ledgers["g"].add(entries, idle, _holds_rows(2))
    changed = tokens.flag != known.flag
    if step.plan.counted:
        member, number = known.numbers()
        runs = known.runs.extended(member, number, tokens.flag, tokens.released, tokens.digest)
        stood = ~np.isin(rows.status[settled], _STOOD_FOR_NOTHING)
        members = _numbers(rows.name[settled[stood]], known.members.size)
        entries = member_entries(known, runs, members, now)
        step.ledgers["m"].add(entries, limit, _holds_rows(0))
        changed &= (tokens.flag & ~known.flag & (shape.ASIDE | shape.GIVEN_UP)) != 0
    pick = np.flatnonzero(changed).astype(np.int32)
    done = (tokens.flag[pick] & shape.DONE) != 0
    stamp = np.where(done, np.maximum(tokens.released[pick], step.before), now)
    step.ledgers["i"].add(id_entries(known, pick, tokens, stamp), limit)


def _settle_links(rows: shape.Rows, tokens: shape.Tokens, timed: bool) -> tuple[Bits, Longs]:
    """Return links and lifts with what came of the causes in this step."""
    link = rows.link.copy()
    done = (tokens.flag[rows.cause] & shape.DONE) != 0
    done &= (link & (shape.GIVEN | shape.SETTLED)) == 0
    link[done] |= shape.SETTLED
    lift = rows.lift.copy()
    if timed:
        owner = np.repeat(np.arange(len(rows.token)), np.diff(rows.first))[done]
        when = tokens.released[rows.cause[done]]
        np.maximum.at(lift, owner, when)
        own = rows.time[owner]
        waited = (when > own) & (own != NO_TIME)
        link[np.flatnonzero(done)[waited]] |= shape.WAITED
    return link, lift


def _changed(first: Longs, before: Bits, after: Bits, pick: Ints) -> NDArray[np.bool_]:
    """Return which of the picked rows, all held before, have a link that changed."""
    different = np.concatenate([[0], np.cumsum(before != after[: len(before)])])
    changed: NDArray[np.bool_] = different[first[pick + 1]] != different[first[pick]]
    return changed


def _numbers(given: Ints, size: int) -> Ints:
    """Return which of the numbers 0 to size - 1 are given, sorted; -1 is none."""
    found = np.zeros(size + 1, np.bool_)
    found[given] = True
    return np.flatnonzero(found[:size]).astype(np.int32)


def _holds_rows(column: int) -> Any:
    """Return the test of ledger entries whose count of held rows is not 0."""

    def test(entries: Entries) -> NDArray[np.bool_]:
        holds: NDArray[np.bool_] = entries.values[entries.first[:-1] + column] > 0
        return holds

    return test
