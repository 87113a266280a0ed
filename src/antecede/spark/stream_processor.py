"""What runs in Spark's Python workers: pack rows by shard, release them, unpack them.

Theory of operation
-------------------
`pack`       Arrow batches of the user's rows -> one binary row a shard and some ten thousand rows
`Processor`  per shard: held rows and new ones through the kernel; two bytes values in Spark's
             state store, `control` (packed arrays) and `held` (Arrow IPC)
`unpack`     binary rows -> the user's rows with four more columns

With a `time` column the clock is the greatest time in the stream; each partition tells it to
every shard, so that patience ends also in shards where no row comes. Without one the clock is
the batch's timestamp, which Spark keeps in its offset log: a batch run again after a crash
sees the same clock.

Every shard keeps what its checkpoint belongs to (`Plan.about`) and refuses another one; so does
GUARD, whichever shards get rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from antecede.kernels.release import Plan, Shard
from antecede.kernels.release_rows import NO_TIME
from antecede.order.spec import OrderSpec
from antecede.order.table import times_of
from antecede.spark.ordering import DIGEST, SHARD
from antecede.spark.shards import shard_keys
from antecede.spark.stream_rows import batch_of, from_bytes, to_bytes, with_added

pa: Any = pyarrow

GUARD = -1
"""A shard of no rows, visited in every micro-batch: a changed spec is refused before any other
shard of that batch is kept, also where those have no state yet."""
PACKED = "shard int, clock long, payload binary"
RELEASED = "payload binary"
_ROWS_A_PIECE = 50_000


class Job(NamedTuple):
    """What a worker must know: the user's spec, the kernel's plan, time units a ms."""

    spec: OrderSpec
    plan: Plan
    per_ms: float
    tell_time: bool


class Pack:
    """For mapInArrow: the user's rows with SHARD and DIGEST -> PACKED."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Pack one partition; at its end tell every shard the greatest time."""
        clock, waiting, rows = NO_TIME, [], 0
        guarded = False
        for batch in batches:
            if not guarded and batch.num_rows:
                guarded = True
                yield _packed([GUARD], [None], [None])
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= _ROWS_A_PIECE:
                clock = max(clock, self._greatest(waiting))
                yield self._piece(waiting)
                waiting, rows = [], 0
        if rows:
            clock = max(clock, self._greatest(waiting))
            yield self._piece(waiting)
        if self.job.tell_time and clock != NO_TIME:
            shards = self.job.plan.shards
            yield _packed(shard_keys(shards).tolist(), [clock] * shards, [None] * shards)

    def _greatest(self, batches: list[pyarrow.RecordBatch]) -> int:
        if not self.job.plan.timed:
            return NO_TIME
        time, timed, _ = times_of(pa.Table.from_batches(batches), self.job.spec)
        return int(time[timed].max(initial=NO_TIME))

    def _piece(self, batches: list[pyarrow.RecordBatch]) -> pyarrow.RecordBatch:
        table: Any = pa.Table.from_batches(batches)
        shard = table.column(SHARD).to_numpy()
        table = table.drop_columns([SHARD])
        by_shard = np.argsort(shard, kind="stable")
        table = table.take(pa.array(by_shard)).combine_chunks()
        found, begin = np.unique(shard[by_shard], return_index=True)
        ends = [*begin[1:], len(shard)]
        parts = [to_bytes(table.slice(a, b - a)) for a, b in zip(begin, ends, strict=True)]
        keys = shard_keys(self.job.plan.shards)[found]
        return _packed(keys.tolist(), [None] * len(parts), parts)


def _packed(shard: list[int], clock: list[Any], payload: list[Any]) -> pyarrow.RecordBatch:
    columns = [
        pa.array(shard, pa.int32()),
        pa.array(clock, pa.int64()),
        pa.array(payload, pa.binary()),
    ]
    batch: pyarrow.RecordBatch = pa.RecordBatch.from_arrays(columns, ["shard", "clock", "payload"])
    return batch


def unpack(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """For mapInArrow: RELEASED -> the user's rows with the added columns."""
    for batch in batches:
        for payload in batch.column(0):
            yield from pa.ipc.open_stream(payload.as_buffer())


class Processor(StatefulProcessor):
    """The stateful operator; one grouping key is one shard."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def init(self, handle: Any) -> None:
        """Open the two state values."""
        self.handle = handle
        self.control = handle.getValueState("control", "packed binary")
        self.held = handle.getValueState("held", "rows binary")

    # The camelCase names of arguments are Spark's: it passes them by keyword.
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Take in the packed rows of a shard and release what can go."""
        if key[0] == GUARD:
            self._guard()
            return
        clock, parts = NO_TIME, []
        for row in rows:
            if row.clock is not None:
                clock = max(clock, row.clock)
            if row.payload is not None:
                parts.append(bytes(row.payload))
        yield from self._step(parts, self._now(clock, timerValues))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Patience is over for some row."""
        yield from self._step([], self._now(NO_TIME, timerValues))

    def close(self) -> None:
        """Nothing to close: the state belongs to Spark."""

    def _guard(self) -> None:
        """Keep what the checkpoint belongs to; raises InputError when that has changed."""
        state = self.control.get()
        shard = Shard(self.job.plan, None if state is None else bytes(state[0]))
        if state is None:
            self.control.update((shard.dump(),))

    def _now(self, clock: int, timers: Any) -> int:
        present: int = timers.getCurrentProcessingTimeInMs()
        if self.job.plan.timed:
            return clock
        return present if present >= 0 else NO_TIME

    def _step(self, parts: list[bytes], now: int) -> Iterator[Row]:
        state = self.control.get()
        if state is None and not parts:
            return
        job = self.job
        shard = Shard(job.plan, None if state is None else bytes(state[0]))
        new = from_bytes(parts) if parts else None
        if new is not None and job.plan.timed and not job.tell_time:
            times, timed, _ = times_of(new, job.spec)
            now = max(now, int(times[timed].max(initial=NO_TIME)))
        held = self.held.get()
        payloads = ([] if held is None else [bytes(held[0])]) + parts
        if not payloads:
            return
        rows: Any = from_bytes(payloads)
        batch = batch_of(rows.schema.empty_table() if new is None else new, job.spec)
        out = shard.step(batch, now)
        self.control.update((shard.dump(),))
        staying = rows.take(pa.array(out.held))
        if staying.num_rows:
            self.held.update((to_bytes(staying.combine_chunks()),))
        elif held is not None:
            self.held.clear()
        deadline = None if job.plan.timed else shard.deadline()
        if deadline is not None:
            self.handle.registerTimer(deadline)
        leaving = rows.take(pa.array(out.row)).drop_columns([DIGEST])
        leaving = with_added(leaving, out, job.spec, job.per_ms).combine_chunks()
        for start in range(0, leaving.num_rows, _ROWS_A_PIECE):
            yield Row(payload=to_bytes(leaving.slice(start, _ROWS_A_PIECE)))
