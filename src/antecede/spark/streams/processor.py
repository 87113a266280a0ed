"""Python workers of an ordered stream: pack rows by shard, release them, unpack them.

- `ShardPacker`: Arrow batches of the user's rows -> one binary row per shard and some ten thousand
  rows.
- `Processor`: new rows of a shard through `tables.order.stream.shard`; blobs in Spark's state.
- `unpack`: binary rows -> the user's rows with the added columns.

With a `time` column the clock is the greatest time in the stream, sent by each partition to every
shard, so timeouts also work in idle shards. Without one it is the batch timestamp in Spark's offset
log, the same after a crash. Every shard is visited in every micro-batch that has rows, and reports
its load (`METRICS`). Every shard, and GUARD, stores the identity of its stream (`ShardPlan.about`)
and rejects another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import StructType

from antecede.spark.order_columns import ROW_HASH, SHARD
from antecede.spark.streams.rows import append_added, from_bytes, read_batch, to_bytes
from antecede.spark.streams.shards import find_shard_keys
from antecede.tables.order import OrderSpec, Status, times_of
from antecede.tables.order.stream import (
    NO_TIME,
    Shard,
    ShardOutput,
    ShardPlan,
    make_empty_columns,
    warm_up_once,
)

pa: Any = pyarrow

GUARD = -1
"""Shard without rows that rejects a changed spec before other shards are stored."""
PACKED_SCHEMA = "shard int, clock long, payload binary"
METRICS = ("held", "oldest_wait_ms", "state_bytes", "written_bytes", *(str(s) for s in Status))
"""Metrics of a shard in a micro-batch: one row of RELEASED_SCHEMA without payload."""
RELEASED_SCHEMA = "payload binary, " + ", ".join(f"`{name}` long" for name in METRICS)
STATE = "parts"
"""State variable: a map from blob names to bytes (`tables.order.stream.storage.blobs`)."""
PIECE_ROWS = 50_000
_NO_METRICS = dict.fromkeys(METRICS)


class WorkerPlan(NamedTuple):
    """Parameters of a worker: the user's spec, the kernel's plan, and columns of released rows."""

    spec: OrderSpec
    plan: ShardPlan
    units_per_ms: float
    shards: int
    columns: StructType


class ShardPacker:
    """Function for mapInArrow: the user's rows with SHARD -> PACKED_SCHEMA.

    `find_latest` returns the greatest time of a table or None; it is sent to every shard at the end
    of a partition. `always`: notify shards even without a time.
    """

    def __init__(
        self, shards: int, find_latest: Callable[[pyarrow.Table], int | None], *, always: bool
    ) -> None:
        self.keys = find_shard_keys(shards)
        self.find_latest = find_latest
        self.always = always

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Pack one partition."""
        times: list[int | None] = []
        for table in _gather_tables(batches):
            if not times:
                yield _make_packed_batch([GUARD], [None], [None])
            times.append(self.find_latest(table))
            yield self._pack_table(table)
        clock = max((time for time in times if time is not None), default=None)
        if clock is not None or (times and self.always):
            shards = len(self.keys)
            yield _make_packed_batch(self.keys.tolist(), [clock] * shards, [None] * shards)

    def _pack_table(self, table: Any) -> pyarrow.RecordBatch:
        shard = table.column(SHARD).to_numpy()
        by_shard = np.argsort(shard, kind="stable")
        table = table.drop_columns([SHARD]).take(pa.array(by_shard)).combine_chunks()
        found, begin = np.unique(shard[by_shard], return_index=True)
        ends = [*begin[1:], len(shard)]
        parts = [to_bytes(table.slice(a, b - a)) for a, b in zip(begin, ends, strict=True)]
        return _make_packed_batch(self.keys[found].tolist(), [None] * len(parts), parts)


def _gather_tables(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.Table]:
    """Combine batches to tables of at least `PIECE_ROWS` rows, except the last."""
    waiting: list[pyarrow.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= PIECE_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting)


def _make_packed_batch(
    shard: list[int], clock: list[Any], payload: list[Any]
) -> pyarrow.RecordBatch:
    columns = [
        pa.array(shard, pa.int32()),
        pa.array(clock, pa.int64()),
        pa.array(payload, pa.binary()),
    ]
    batch: pyarrow.RecordBatch = pa.RecordBatch.from_arrays(columns, ["shard", "clock", "payload"])
    return batch


def unpack_rows(rows: Iterator[Row]) -> tuple[int | None, pyarrow.Table | None]:
    """Return the greatest clock in the packed rows of a shard, and their rows, if any."""
    clock: int | None = None
    parts = []
    for row in rows:
        if row.clock is not None:
            clock = row.clock if clock is None else max(clock, row.clock)
        if row.payload is not None:
            parts.append(bytes(row.payload))
    return clock, from_bytes(parts) if parts else None


def find_latest_time(plan: WorkerPlan, table: pyarrow.Table) -> int | None:
    """Return the greatest time of some rows; None without an event-time clock."""
    if not plan.plan.timed:
        return None
    time, timed, _ = times_of(table, plan.spec)
    return int(time[timed].max()) if timed.any() else None


def unpack(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Unpack RELEASED_SCHEMA to the user's rows with the added columns, for mapInArrow."""
    for batch in batches:
        for payload in batch.column(0):
            if payload.is_valid:
                yield from pa.ipc.open_stream(payload.as_buffer())


class SparkBlobStore:
    """Blobs of a shard in Spark's state store (`order.stream.blobs.Blobs`)."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def get(self, name: str) -> bytes | None:
        """Return the bytes of a name, None if there are none."""
        value = self.state.getValue((name,))
        return None if value is None else bytes(value[0])

    def put(self, name: str, data: bytes) -> None:
        """Store bytes under a name."""
        self.state.updateValue((name,), (data,))

    def remove(self, name: str) -> None:
        """Delete a name."""
        self.state.removeKey((name,))


class Processor(StatefulProcessor):
    """Stateful operator; one grouping key is one shard."""

    def __init__(self, job: WorkerPlan) -> None:
        self.job = job

    def init(self, handle: Any) -> None:
        """Open the map of blobs and compile the kernels."""
        warm_up_once(self.job.plan.counted)
        self.handle = handle
        self.parts = SparkBlobStore(handle.getMapState(STATE, "name string", "data binary"))

    # Spark passes these arguments by keyword, so the names are fixed.
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Receive the packed rows of a shard and release the deliverable ones."""
        if key[0] == GUARD:
            self._store_identity()
            return
        clock, new = unpack_rows(rows)
        yield from self._step(new, self._now(NO_TIME if clock is None else clock, timerValues))

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Apply the timeout of held rows."""
        yield from self._step(None, self._now(NO_TIME, timerValues))

    def close(self) -> None:
        """Do nothing; Spark owns the state."""

    def _store_identity(self) -> None:
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
            shard.tick_range(now)
            yield Row(payload=None, **_NO_METRICS | self._collect_metrics(shard, None))
            return
        batch = make_empty_columns() if new is None else read_batch(new, job.spec)
        out = shard.step(batch, now, new)
        deadline = None if job.plan.timed else shard.deadline()
        if deadline is not None:
            self.handle.registerTimer(deadline)
        if out.rows is not None and out.rows.num_rows:
            leaving = out.rows.drop_columns([ROW_HASH])
            leaving = append_added(leaving, out, job.spec, job.units_per_ms).combine_chunks()
            for start in range(0, leaving.num_rows, PIECE_ROWS):
                piece = to_bytes(leaving.slice(start, PIECE_ROWS))
                yield Row(payload=piece, **_NO_METRICS)
        yield Row(payload=None, **_NO_METRICS | self._collect_metrics(shard, out))

    def _collect_metrics(self, shard: Shard, out: ShardOutput | None) -> dict[str, int | None]:
        wait = shard.oldest_wait()
        figures: dict[str, int | None] = {
            "held": shard.held_rows,
            "oldest_wait_ms": None if wait is None else int(wait / self.job.units_per_ms),
            "state_bytes": shard.size,
            "written_bytes": shard.parts.written,
        }
        found = np.zeros(0, np.uint8) if out is None else out.status
        counts = np.bincount(found, minlength=len(Status) + 1)
        return figures | {str(status): int(counts[1 + k]) for k, status in enumerate(Status)}
