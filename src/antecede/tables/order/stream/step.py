"""State of one step of a shard: known ids, candidates, and the rows under release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from antecede.tables.order.stream import affected_rows
from antecede.tables.order.stream.batch_ids import BatchIds
from antecede.tables.order.stream.held import (
    HeldRows,
    HeldSegments,
    make_empty_rows,
    make_segment_arrays,
)
from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.rows import NO_TIME, Longs
from antecede.tables.order.stream.storage.id_table import IdTable
from antecede.tables.order.stream.types import ShardPlan

LATE_MARK = 1
"""Mark of a held row: a dependent was released without it before it came."""
EMPTY_SEGMENT = make_segment_arrays(make_empty_rows(), np.zeros(0, np.uint8))


@dataclass(frozen=True, slots=True)
class ReleaseState:
    """Candidates of a step: held rows by segment and row, followed by the new ones."""

    picked: Longs
    held: HeldRows
    rows: shape.Candidates
    states: shape.IdStates
    order: shape.ReleaseOrder
    count: int


@dataclass(slots=True)
class ShardStep:
    """Micro-batch of a shard in progress."""

    plan: ShardPlan
    held: HeldSegments
    id_tables: Mapping[str, IdTable]
    ids: BatchIds
    previous_clock: int  # clock until this step
    clock: int
    serials: int  # number of groups so far

    def make_tie_names(self) -> shape.TieNames:
        """Return the names that order rows of the same release."""
        names = self.ids.members if self.plan.counted else self.ids.events
        return shape.TieNames(names.pool, names.ends, self.plan.numbers)

    def make_states(self) -> shape.IdStates:
        """Return a fresh copy of the state of each id."""
        known = self.ids
        member, number = np.empty(0, np.int32), np.empty(0, np.int64)
        if self.plan.counted:
            member, number = known.get_numbers()
        return shape.IdStates(
            known.flag.copy(),
            known.released.copy() if self.plan.timed else np.full(known.size, NO_TIME, np.int64),
            known.digest.copy(),
            np.full(known.size, shape.ABSENT, np.int32),
            member,
            number,
            np.full(known.members.size, 2**63 - 1, np.int64),
        )

    def mark_held_ids(self, states: shape.IdStates) -> None:
        """Mark the ids of held rows; each is looked up once a step."""
        known = self.ids
        begin = len(known.held_row)
        known.held_row = np.concatenate([known.held_row, np.full(known.size - begin, -1, np.int64)])
        if not self.held.count:
            return
        free = (states.flag[begin:] & (shape.DONE | shape.EXCLUDED)) == 0
        ask = (begin + np.flatnonzero(free)).astype(np.int32)
        views, _opened = self.held.make_views(EMPTY_SEGMENT)
        digest = np.zeros(len(ask), np.int64)
        serial, text, number = known.get_names(ask)
        place = affected_rows.find_held(views, serial, *text, number, digest)
        known.held_row[ask] = place
        states.digest[ask[place >= 0]] = digest[place >= 0]
        states.row[known.held_row >= 0] = shape.ELSEWHERE

    def to_held_rows(self, new: shape.Candidates) -> HeldRows:
        """Return the new rows as held rows; rows without an id have no name."""
        known = self.ids
        valid = new.id_index >= 0
        id_index = np.where(valid, new.id_index, 0)
        group = np.where(valid, new.group, 0)
        if not known.size:
            return make_empty_rows()
        serial, name, number = known.get_names(id_index)
        _, cause, cause_number = known.get_names(new.cause)
        settled = (known.flag[new.cause] & shape.DONE) != 0
        late = valid & ((known.flag[id_index] & shape.ABANDONED) != 0)
        return HeldRows(
            serial=serial,
            group=known.groups.take(group),
            name=name,
            number=number,
            time=new.time,
            arrived=new.arrived,
            digest=new.digest,
            cause_release=new.cause_release,
            mark=np.where(late, LATE_MARK, 0).astype(np.uint8),
            first=new.first,
            cause=cause,
            cause_number=cause_number,
            edge_flag=new.edge_flag | np.where(settled, shape.SETTLED, 0).astype(np.uint8),
        )
