"""Causal release for one shard of a stream: rows in, rows out in causal order.

The state is a head of a few kilobytes and many immutable blobs (`storage.blobs`), so that a
micro-batch reads and writes only what is new: `batch_ids` (id tables) and `held` (rows that wait).
A step numbers the ids of the new rows and finds the held rows that these can affect. Then
`kernels.drain` decides on integers (`release`), and `commit` writes the changes. Tests compare it
with `tests/tables/order/stream/reference.py`, batch by batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from antecede.errors import InputError
from antecede.tables.kernels import first_mention
from antecede.tables.order.stream import affected_rows
from antecede.tables.order.stream.batch_ids import BatchIds
from antecede.tables.order.stream.columns import ColumnHistory
from antecede.tables.order.stream.commit import commit_step
from antecede.tables.order.stream.held import HeldSegments
from antecede.tables.order.stream.kernels import drain
from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.rows import NO_TIME, Longs
from antecede.tables.order.stream.release import make_output, release_rows
from antecede.tables.order.stream.step import EMPTY_SEGMENT, ShardStep
from antecede.tables.order.stream.storage.blobs import BlobStore, ShardParts, pack, unpack
from antecede.tables.order.stream.storage.id_table import IdTable
from antecede.tables.order.stream.types import (
    ControlColumns,
    ShardOutput,
    ShardPlan,
    check_same_stream,
    make_writable,
)


def number_rows(step: ShardStep, batch: ControlColumns) -> shape.Candidates:
    """Number the new rows and choose which of them represent their id."""
    known = step.ids
    valid = np.flatnonzero(batch.status == 0).astype(np.int32)
    whole = len(valid) == len(batch.status)
    group = np.full(len(batch.status), -1, np.int32)
    text = batch.group if whole else batch.group.take(valid)
    group[valid], step.serials = known.number_groups(text, step.serials)
    id_index, name = np.full_like(group, -1), np.full_like(group, -1)
    text = batch.name if whole else batch.name.take(valid)
    name[valid], id_index[valid] = known.identify(group[valid], text, batch.number[valid])
    owner = np.repeat(group, np.diff(batch.first))
    _, cause = known.identify(owner, batch.cause_name, batch.cause_count)
    once = first_mention(batch.first, cause, known.size)
    cause = cause[once]
    known.look_up()
    rows = shape.Candidates(
        id_index=id_index,
        group=group,
        time=batch.time,
        arrived=_find_arrivals(step, batch.time),
        digest=batch.digest,
        name=name,
        number=batch.number,
        first=np.concatenate([[0], np.cumsum(once)])[batch.first],
        cause=cause,
        edge_flag=np.zeros(len(cause), np.uint8),
        status=batch.status.copy(),
        cause_release=np.full(len(id_index), NO_TIME, np.int64),
    )
    states = step.make_states()
    step.mark_held_ids(states)
    drain.admit(rows, states, step.make_tie_names(), 0)
    known.digest = states.digest
    return rows


def compare_common_columns(
    rows: shape.Candidates, step: ShardStep, columns: ColumnHistory, table: pyarrow.Table
) -> None:
    """Mark a conflict in `rows.status` as a duplicate if it is one by the common columns."""
    at = np.flatnonzero(rows.status == shape.CONFLICT)
    if len(at):
        given: Any = table
        known = step.ids.digest[rows.id_index[at]]
        for digest in columns.compute_earlier_digests(given.take(at)):
            rows.status[at[digest == known]] = shape.DUPLICATE


def _find_arrivals(step: ShardStep, time: Longs) -> Longs:
    """Return the start of patience: the row's time, or the clock when the row came later."""
    if not step.plan.timed:
        return np.full(len(time), step.clock, np.int64)
    return np.maximum(np.where(time == NO_TIME, step.clock, time), step.previous_clock)


FORMAT = 2
_MAX_MERGED_IDS = 524_288


class Shard:
    """Shard of a stream, with its state in `blobs`."""

    def __init__(self, plan: ShardPlan, blobs: BlobStore) -> None:
        self.plan = plan
        self.parts = ShardParts(blobs)
        self.clock = NO_TIME
        self.serials = 0
        self.id_tables = {
            "g": IdTable("g", self.parts, 4, 2**62),
            "i": IdTable("i", self.parts, 16, _MAX_MERGED_IDS),
            "m": IdTable("m", self.parts, 4, 2**62),
        }
        self.columns = ColumnHistory(plan.columns)
        self.held = HeldSegments(self.parts, plan.columns)
        head = blobs.get("head")
        if head is not None:
            self._load(head)

    @property
    def held_rows(self) -> int:
        """Number of rows held."""
        return self.held.count

    @property
    def size(self) -> int:
        """Bytes of the state, without the head."""
        return self.held.size + sum(table.size for table in self.id_tables.values())

    def keep(self) -> None:
        """Write the head, which makes the last step permanent."""
        facts = [FORMAT, self.plan.counted, self.clock, self.serials]
        arrays: dict[str, NDArray[Any]] = {"head": np.array(facts, np.int64)}
        for table in self.id_tables.values():
            arrays |= table.dump()
        arrays |= self.held.dump() | self.columns.dump(self.parts)
        arrays["about"] = np.frombuffer(self.plan.about.encode(), np.uint8)
        data = pack(arrays)
        self.parts.store.put("head", data)
        self.parts.written += len(data)

    def _load(self, data: bytes) -> None:
        head = unpack(bytearray(data))
        form, counted, self.clock, self.serials = (int(fact) for fact in head["head"][:4])
        if form != FORMAT:
            raise InputError(
                f"this checkpoint was written by another version of antecede (format {form}, this "
                f"one writes {FORMAT}): continue with that version, or start from a new checkpoint"
            )
        if self.plan.about:
            check_same_stream(head["about"].tobytes().decode(), self.plan.about)
        if bool(counted) != self.plan.counted:
            raise InputError(
                "this checkpoint has other key columns (ids, or members and numbers): use "
                "those, or start from a new checkpoint"
            )
        for table in self.id_tables.values():
            table.load(head)
        self.held.load(head)
        self.columns.load(self.parts, head, self.held.read_schema)

    # -- a step -----------------------------------------------------------------------------

    def step(self, batch: ControlColumns, now: int = NO_TIME, rows: Any = None) -> ShardOutput:
        """Process a micro-batch; `now` is the clock (timed: the greatest time seen anywhere).

        `rows` are the user's rows of the batch, an Arrow table, or None. Raises InputError, and
        writes nothing, when more rows would be held than the plan allows and none may be released.
        """
        batch, before = make_writable(batch), self.clock
        self.clock = max(before, now)
        known = BatchIds(self.plan, self.id_tables, before)
        step = ShardStep(
            self.plan, self.held, self.id_tables, known, before, self.clock, self.serials
        )
        new = number_rows(step, batch)
        if rows is not None:
            compare_common_columns(new, step, self.columns, rows)
        working = release_rows(step, new)
        outcome, staying, leaving = make_output(step, working)
        outcome = commit_step(step, working, outcome, (staying, leaving), rows)
        self.serials = step.serials
        self.keep()
        return outcome

    def tick_range(self, now: int) -> None:
        """Advance the clock where no row comes and none is held; write the head if it moves."""
        if now > self.clock:
            self.clock = now
            self.keep()

    def oldest_wait(self) -> int | None:
        """Return the longest wait of a held row, in units of the clock; None: unknown."""
        if not self.held.count or self.clock == NO_TIME:
            return None
        views, _opened = self.held.make_views(EMPTY_SEGMENT)
        least = affected_rows.find_next_arrival(views, NO_TIME)
        return None if least == 2**63 - 1 else max(self.clock - int(least), 0)

    def deadline(self) -> int | None:
        """Return the next time at which a held row's patience ends; None: never."""
        if self.plan.policy == "hold" or not self.held.count:
            return None
        views, _opened = self.held.make_views(EMPTY_SEGMENT)
        least = affected_rows.find_next_arrival(views, self.clock - self.plan.patience)
        return None if least == 2**63 - 1 else int(least) + self.plan.patience
