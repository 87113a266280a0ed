"""Causal release for one shard of a stream: rows in, rows out in causal order.

A shard holds many groups. Its state is a head of a few kilobytes and many immutable parts
(`storage.blobs`), so that a micro-batch reads and writes only the new:

`batch_ids`  groups, ids and members, in three ledgers of sealed segments
`held`       the rows that wait, in pieces, found by awaited causes (`affected_rows`)

A step (`step`) numbers the identities of the new rows, wakes the held rows that these can touch,
hands both to `kernels.drain`, which decides on integers (`release`), and writes the changes
(`commit`). Other held rows are not read. `tests/tables/order/stream/reference.py` is the same with
dictionaries and sets; tests compare both, batch by batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from antecede.errors import InputError
from antecede.tables.kernels import first_mention
from antecede.tables.order.stream import affected_rows
from antecede.tables.order.stream.batch_ids import Identities
from antecede.tables.order.stream.columns import ColumnHistory
from antecede.tables.order.stream.commit import keep
from antecede.tables.order.stream.held import HeldPieces
from antecede.tables.order.stream.kernels import drain
from antecede.tables.order.stream.kernels import rows as shape
from antecede.tables.order.stream.kernels.rows import NO_TIME, Longs
from antecede.tables.order.stream.release import give_out, release
from antecede.tables.order.stream.step import NO_PIECE, Step
from antecede.tables.order.stream.storage.blobs import Blobs, ShardParts, opened, pack
from antecede.tables.order.stream.storage.id_table import Ledger
from antecede.tables.order.stream.types import (
    Batch,
    ShardOutput,
    ShardPlan,
    check_same_stream,
    writable,
)


def take_in(step: Step, batch: Batch) -> shape.Rows:
    """Number the new rows and settle which of them stand for their identity."""
    known = step.known
    valid = np.flatnonzero(batch.status == 0).astype(np.int32)
    whole = len(valid) == len(batch.status)
    group = np.full(len(batch.status), -1, np.int32)
    text = batch.group if whole else batch.group.taken(valid)
    group[valid], step.serials = known.group_numbers(text, step.serials)
    token, name = np.full_like(group, -1), np.full_like(group, -1)
    text = batch.name if whole else batch.name.taken(valid)
    name[valid], token[valid] = known.identify(group[valid], text, batch.number[valid])
    owner = np.repeat(group, np.diff(batch.first))
    _, cause = known.identify(owner, batch.cause_name, batch.cause_count)
    once = first_mention(batch.first, cause, known.size)
    cause = cause[once]
    known.learn()
    rows = shape.Rows(
        token=token,
        group=group,
        time=batch.time,
        arrived=_arrivals(step, batch.time),
        digest=batch.digest,
        name=name,
        number=batch.number,
        first=np.concatenate([[0], np.cumsum(once)])[batch.first],
        cause=cause,
        link=np.zeros(len(cause), np.uint8),
        status=batch.status.copy(),
        lift=np.full(len(token), NO_TIME, np.int64),
    )
    tokens = step.tokens()
    step.find_elsewhere(tokens)
    drain.admit(rows, tokens, step.ties(), 0)
    known.digest = tokens.digest
    return rows


def compare_common_columns(
    rows: shape.Rows, step: Step, columns: ColumnHistory, table: pyarrow.Table
) -> None:
    """Mark a conflict as a duplicate where it is one by the columns that both rows have.

    `table` has the user's rows of the batch. Sets `rows.status`.
    """
    at = np.flatnonzero(rows.status == shape.CONFLICT)
    if len(at):
        given: Any = table
        known = step.known.digest[rows.token[at]]
        for digest in columns.earlier_digests(given.take(at)):
            rows.status[at[digest == known]] = shape.DUPLICATE


def _arrivals(step: Step, time: Longs) -> Longs:
    """Patience runs from a row's time, or from the clock when the row came after it."""
    if not step.plan.timed:
        return np.full(len(time), step.clock, np.int64)
    return np.maximum(np.where(time == NO_TIME, step.clock, time), step.before)


FORMAT = 2
"""Of the head."""
_IDS_CAP = 524_288


class Shard:
    """One shard; `step` takes a micro-batch and keeps the state in `blobs`."""

    def __init__(self, plan: ShardPlan, blobs: Blobs) -> None:
        self.plan = plan
        self.parts = ShardParts(blobs)
        self.clock = NO_TIME
        self.serials = 0
        self.ledgers = {
            "g": Ledger("g", self.parts, 4, 2**62),
            "i": Ledger("i", self.parts, 16, _IDS_CAP),
            "m": Ledger("m", self.parts, 4, 2**62),
        }
        self.columns = ColumnHistory(plan.columns)
        self.held = HeldPieces(self.parts, plan.columns)
        head = blobs.get("head")
        if head is not None:
            self._load(head)

    @property
    def held_rows(self) -> int:
        """Number of rows held back."""
        return self.held.count

    @property
    def size(self) -> int:
        """Bytes of the state, the head aside."""
        return self.held.size + sum(ledger.size for ledger in self.ledgers.values())

    def keep(self) -> None:
        """Write the head: without it nothing of a step is kept."""
        facts = [FORMAT, self.plan.counted, self.clock, self.serials]
        arrays: dict[str, NDArray[Any]] = {"head": np.array(facts, np.int64)}
        for ledger in self.ledgers.values():
            arrays |= ledger.dump()
        arrays |= self.held.dump() | self.columns.dump(self.parts)
        arrays["about"] = np.frombuffer(self.plan.about.encode(), np.uint8)
        data = pack(arrays)
        self.parts.blobs.put("head", data)
        self.parts.written += len(data)

    def _load(self, data: bytes) -> None:
        head = opened(bytearray(data))
        form, counted, self.clock, self.serials = (int(fact) for fact in head["head"][:4])
        if form != FORMAT:
            raise InputError(
                f"this checkpoint was written by another version of antecede (format {form}, "
                f"this one writes {FORMAT}): go on with that version, or start from a new one"
            )
        if self.plan.about:
            check_same_stream(head["about"].tobytes().decode(), self.plan.about)
        if bool(counted) != self.plan.counted:
            raise InputError("this checkpoint was written with another way of naming causes")
        for ledger in self.ledgers.values():
            ledger.load(head)
        self.held.load(head)
        self.columns.load(self.parts, head, self.held.schema)

    # -- a step -----------------------------------------------------------------------------

    def step(self, batch: Batch, now: int = NO_TIME, rows: Any = None) -> ShardOutput:
        """Take in a micro-batch; `now` is the clock (timed: the greatest time seen anywhere).

        `rows` are the user's rows of the batch, an Arrow table, or None. Writes the changes to
        `blobs`, the head included. Raises InputError, and keeps nothing, when more rows would be
        held than the plan allows and none may go.
        """
        batch, before = writable(batch), self.clock
        self.clock = max(before, now)
        known = Identities(self.plan, self.ledgers, before)
        step = Step(self.plan, self.held, self.ledgers, known, before, self.clock, self.serials)
        new = take_in(step, batch)
        if rows is not None:
            compare_common_columns(new, step, self.columns, rows)
        working = release(step, new)
        outcome, staying, leaving = give_out(step, working)
        outcome = keep(step, working, outcome, (staying, leaving), rows)
        self.serials = step.serials
        self.keep()
        return outcome

    def pass_time(self, now: int) -> None:
        """Let the clock go on where no row comes and none is held; writes the head if it does."""
        if now > self.clock:
            self.clock = now
            self.keep()

    def oldest_wait(self) -> int | None:
        """Return the longest wait of a held row, in units of the clock; None: unknown."""
        if not self.held.count or self.clock == NO_TIME:
            return None
        views, _opened = self.held.views(NO_PIECE)
        least = affected_rows.next_arrival(views, NO_TIME)
        return None if least == 2**63 - 1 else max(self.clock - int(least), 0)

    def deadline(self) -> int | None:
        """Return the next end of a held row's patience after the present; None: there is none."""
        if self.plan.policy == "hold" or not self.held.count:
            return None
        views, _opened = self.held.views(NO_PIECE)
        least = affected_rows.next_arrival(views, self.clock - self.plan.patience)
        return None if least == 2**63 - 1 else int(least) + self.plan.patience
