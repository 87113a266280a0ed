"""Spark's Python workers of an ordered stream: pack rows by shard, release them, unpack them.

Theory of operation
-------------------
- `Pack`: Arrow batches of the user's rows -> one binary row a shard and some ten thousand rows.
- `Processor`: new rows of a shard through `tables.order.stream.shard`; its parts in Spark's state.
- `unpack`: binary rows -> the user's rows with the added columns.

With a `time` column the clock is the greatest time in the stream. Each partition tells it to every
shard, so that patience ends in quiet shards too, and `released_at` never goes back. Without one the
clock is the batch's timestamp, which Spark keeps in its offset log: a batch run again after a crash
sees the same clock.

Every shard is visited in every micro-batch that has rows, and reports its load (`FIGURES`). Every
shard, and GUARD, keeps what its checkpoint belongs to (`ShardPlan.about`) and refuses another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

from antecede.spark.order_columns import DIGEST, SHARD
from antecede.spark.streams.rows import batch_of, from_bytes, to_bytes, with_added
from antecede.spark.streams.shards import shard_keys
from antecede.tables.order import OrderSpec, Status, times_of
from antecede.tables.order.stream import (
    NO_TIME,
    Shard,
    ShardOutput,
    ShardPlan,
    nothing_new,
    warm_up_once,
)

pa: Any = pyarrow

GUARD = -1
"""A shard of no rows, visited in every micro-batch: a changed spec is refused before any other
shard of that batch is kept, also where those have no state yet."""
PACKED = "shard int, clock long, payload binary"
FIGURES = ("held", "oldest_wait_ms", "state_bytes", "written_bytes", *(str(s) for s in Status))
"""Figures of a shard in a micro-batch, one row of RELEASED without payload."""
RELEASED = "payload binary, " + ", ".join(f"`{name}` long" for name in FIGURES)
STATE = "parts"
"""Name of the state variable, a map from names of parts to their bytes.

Parts are those of `tables.order.stream.storage.blobs`.
"""
ROWS_A_PIECE = 50_000
_NOTHING = dict.fromkeys(FIGURES)


class Job(NamedTuple):
    """Parameters of a worker: the user's spec, the kernel's plan, time units a ms.

    `columns` are those of the user's rows as they leave.
    """

    spec: OrderSpec
    plan: ShardPlan
    per_ms: float
    shards: int
    columns: StructType


class Pack:
    """For mapInArrow: the user's rows with SHARD -> PACKED.

    `latest` returns the greatest time of a table, None without any; at the end of a partition it
    is told to every shard. `always`: they are told of its end without a time too.
    """

    def __init__(
        self, shards: int, latest: Callable[[pyarrow.Table], int | None], *, always: bool
    ) -> None:
        self.keys = shard_keys(shards)
        self.latest = latest
        self.always = always

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Pack one partition."""
        times: list[int | None] = []
        for table in _pieces(batches):
            if not times:
                yield _packed([GUARD], [None], [None])
            times.append(self.latest(table))
            yield self._piece(table)
        clock = max((time for time in times if time is not None), default=None)
        if clock is not None or (times and self.always):
            shards = len(self.keys)
            yield _packed(self.keys.tolist(), [clock] * shards, [None] * shards)

    def _piece(self, table: Any) -> pyarrow.RecordBatch:
        shard = table.column(SHARD).to_numpy()
        by_shard = np.argsort(shard, kind="stable")
        table = table.drop_columns([SHARD]).take(pa.array(by_shard)).combine_chunks()
        found, begin = np.unique(shard[by_shard], return_index=True)
        ends = [*begin[1:], len(shard)]
        parts = [to_bytes(table.slice(a, b - a)) for a, b in zip(begin, ends, strict=True)]
        return _packed(self.keys[found].tolist(), [None] * len(parts), parts)


def _pieces(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.Table]:
    """Gather batches to tables of at least `ROWS_A_PIECE` rows, but for the last."""
    waiting: list[pyarrow.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_A_PIECE:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting)


def _packed(shard: list[int], clock: list[Any], payload: list[Any]) -> pyarrow.RecordBatch:
    columns = [
        pa.array(shard, pa.int32()),
        pa.array(clock, pa.int64()),
        pa.array(payload, pa.binary()),
    ]
    batch: pyarrow.RecordBatch = pa.RecordBatch.from_arrays(columns, ["shard", "clock", "payload"])
    return batch


def received(rows: Iterator[Row]) -> tuple[int | None, pyarrow.Table | None]:
    """Return the greatest clock in the packed rows of a shard, and the rows in them, if any."""
    clock: int | None = None
    parts = []
    for row in rows:
        if row.clock is not None:
            clock = row.clock if clock is None else max(clock, row.clock)
        if row.payload is not None:
            parts.append(bytes(row.payload))
    return clock, from_bytes(parts) if parts else None


def latest_time(job: Job, table: pyarrow.Table) -> int | None:
    """Return the greatest time of some rows; None without a clock by time."""
    if not job.plan.timed:
        return None
    time, timed, _ = times_of(table, job.spec)
    return int(time[timed].max()) if timed.any() else None


def unpack(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """For mapInArrow: RELEASED -> the user's rows with the added columns."""
    for batch in batches:
        for payload in batch.column(0):
            if payload.is_valid:
                yield from pa.ipc.open_stream(payload.as_buffer())


class StateParts:
    """The parts of a shard in Spark's state store (`order.stream.blobs.Blobs`)."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def get(self, name: str) -> bytes | None:
        """Return the bytes of that name, None when there are none."""
        value = self.state.getValue((name,))
        return None if value is None else bytes(value[0])

    def put(self, name: str, data: bytes) -> None:
        """Keep bytes under a name."""
        self.state.updateValue((name,), (data,))

    def remove(self, name: str) -> None:
        """Forget a name."""
        self.state.removeKey((name,))


class Processor(StatefulProcessor):
    """The stateful operator; one grouping key is one shard."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def init(self, handle: Any) -> None:
        """Open the map of parts; compile, the first."""
        warm_up_once(self.job.plan.counted)
        self.handle = handle
        self.parts = StateParts(handle.getMapState(STATE, "name string", "data binary"))

    # The camelCase names of arguments are Spark's: it passes them by keyword.
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Take in the packed rows of a shard and release what can go."""
        if key[0] == GUARD:
            self._guard()
            return
        clock, new = received(rows)
        yield from self._step(new, self._now(NO_TIME if clock is None else clock, timerValues))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Patience is over for some row."""
        yield from self._step(None, self._now(NO_TIME, timerValues))

    def close(self) -> None:
        """Nothing to close: the state belongs to Spark."""

    def _guard(self) -> None:
        """Keep what the checkpoint belongs to; raises InputError when that has changed."""
        shard = Shard(self.job.plan, self.parts)
        if self.parts.get("head") is None or shard.columns.has_changed:
            shard.keep()

    def _now(self, clock: int, timers: Any) -> int:
        present: int = timers.getCurrentProcessingTimeInMs()
        if self.job.plan.timed:
            return clock
        return present if present >= 0 else NO_TIME

    def _step(self, new: pyarrow.Table | None, now: int) -> Iterator[Row]:
        job = self.job
        shard = Shard(job.plan, self.parts)
        if new is None and not shard.held_rows:
            shard.pass_time(now)
            yield Row(payload=None, **_NOTHING | self._figures(shard, None))
            return
        batch = nothing_new() if new is None else batch_of(new, job.spec)
        out = shard.step(batch, now, new)
        deadline = None if job.plan.timed else shard.deadline()
        if deadline is not None:
            self.handle.registerTimer(deadline)
        if out.rows is not None and out.rows.num_rows:
            leaving = out.rows.drop_columns([DIGEST])
            leaving = with_added(leaving, out, job.spec, job.per_ms).combine_chunks()
            for start in range(0, leaving.num_rows, ROWS_A_PIECE):
                piece = to_bytes(leaving.slice(start, ROWS_A_PIECE))
                yield Row(payload=piece, **_NOTHING)
        yield Row(payload=None, **_NOTHING | self._figures(shard, out))

    def _figures(self, shard: Shard, out: ShardOutput | None) -> dict[str, int | None]:
        """Return what a shard says of itself after a micro-batch."""
        wait = shard.oldest_wait()
        figures: dict[str, int | None] = {
            "held": shard.held_rows,
            "oldest_wait_ms": None if wait is None else int(wait / self.job.per_ms),
            "state_bytes": shard.size,
            "written_bytes": shard.parts.written,
        }
        found = np.zeros(0, np.uint8) if out is None else out.status
        counts = np.bincount(found, minlength=len(Status) + 1)
        return figures | {str(status): int(counts[1 + k]) for k, status in enumerate(Status)}
