"""Trace of a live peer: its sends and deliveries, for `antecede audit`.

Parquet files in the event schema, `trace-NAME~INCARNATION-000001.parquet` and so on. A file with
its final name is complete. A thread writes them, so the loop does not wait. A crash loses at most
the open file. Rows that come faster than the disk are dropped, counted and logged.

With `every_s` the newest file is rewritten and replaced at that interval, for readers that follow
the group.

    kind         send, deliver
    id           of the message: "SENDER-ID:NUMBER"
    seq          send: number in the sender log; deliver: number in this trace, from 1
    member       sender id: one incarnation of a member
    causes       send: direct causes in the order. With order "reply" the parents. With causal
                 orders the newest message taken from each sender since the last send, and
                 that send. With "fifo" that send.
    send_time    of a send; arrival of a delivery: the system clock, ns
    run          tag of the group
"""

from __future__ import annotations

import hashlib
import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from antecede.core.clocks import intervals
from antecede.core.protocols import Relation
from antecede.errors import MissingExtraError, StoreError
from antecede.live.events import Id, SentBatch
from antecede.tables.trace import DELIVER, SEND

try:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter, read_table

    from antecede.tables.trace import SCHEMA
except ImportError as error:
    raise MissingExtraError("traces of live peers", "trace") from error

ROWS: Final = 200_000
AGE_S: Final = 60.0
WAITING: Final = 500_000
LONGEST: Final = 150
CHUNK: Final = 8192
"""Rows written together, unless a second passes first."""
PUBLISHING: Final = 0.1
"""Fraction of time for rewriting the newest file, if it is large."""
LOG: Final = logging.getLogger("antecede.live")


class _Rows(NamedTuple):
    """Consecutive messages of one sender that were sent or delivered."""

    kind: str
    lane: str
    first: int
    size: int
    seq: int
    """Of the first message: number in the sender log, or among the deliveries of the trace."""
    causes: tuple[str, ...]
    time_ns: int


class TraceWriter:
    """Writer of the trace of one incarnation. `run`: tag of the group."""

    def __init__(
        self,
        folder: Path,
        lane: str,
        run: str,
        relation: Relation,
        every_s: float | None = None,
    ) -> None:
        """Continue the files of a sender id in a folder. `relation`: the relation that the order
        keeps. `every_s`: interval after which a row is readable, unless the file is large. None:
        when its file is closed, after a minute at most. Raises StoreError if the folder cannot be
        created, read or written.
        """
        self.trouble = ""
        """Reason why writing stopped. Empty: it has not."""
        self._me, self._relation = lane, relation
        self._since: dict[str, int] = {}
        """Sender id -> newest message taken since the last send."""
        self._last = 0
        self._put_in = self._refused = 0
        """Rows passed to the thread, and rejected rows; used in the loop only."""
        self._queue: queue.SimpleQueue[_Rows | None] = queue.SimpleQueue()
        self._files = (
            _TraceFiles(folder, lane, run)
            if every_s is None
            else _Published(folder, lane, run, every_s)
        )
        self._pause_s = 1.0 if every_s is None else min(1.0, every_s)
        self._noted: defaultdict[str, list[int]]
        self._noted, self._deliveries = self._files.read_deliveries()
        """Sender id -> delivered numbers as interval bounds, so that repeated deliveries are not
        traced twice; number of traced deliveries."""
        self._thread = threading.Thread(target=self._run, name="antecede-trace", daemon=True)
        self._thread.start()

    # -- in the loop -------------------------------------------------------------------------------

    def record_send(self, message: Id, reply_to: Iterable[Id] = ()) -> None:
        """Record a send of the application."""
        number = message.number
        causes = [str(one) for one in reply_to]
        causes += [f"{lane}:{newest}" for lane, newest in self._since.items()]
        if self._last and self._relation in (Relation.FIFO, Relation.BY_DELIVERY):
            causes.append(f"{self._me}:{self._last}")
        self._since.clear()
        self._last = number
        self._put(_Rows(SEND, self._me, number, 1, number, tuple(causes), time.time_ns()))

    def record_deliveries(self, said: SentBatch) -> None:
        """Record deliveries, except history from before the join."""
        if said.is_history or not said.live_count:
            return
        noted, last = self._noted[said.sender_id], said.first + said.live_count - 1
        if noted and noted[-1] == said.first:  # the usual case: the next numbers of the sender
            noted[-1] = last + 1
            fresh: Sequence[int] = range(said.first, last + 1)
        else:
            fresh = [n for n in range(said.first, last + 1) if intervals.insert(noted, n)]
        for first, count in _runs(fresh):
            seq = self._deliveries + 1
            self._deliveries += count
            self._put(_Rows(DELIVER, said.sender_id, first, count, seq, (), time.time_ns()))
        if fresh and self._relation is Relation.BY_DELIVERY:
            self._since[said.sender_id] = last

    @property
    def lost(self) -> int:
        """Rows in no file, since they came too fast or the disk failed."""
        return self._refused + (self._put_in - self._files.finished if self.trouble else 0)

    def _put(self, rows: _Rows) -> None:
        if self.trouble or self._put_in - self._files.written + rows.size > WAITING:
            if not self._refused and not self.trouble:
                self._say("rows are dropped, since they come faster than the disk")
            self._refused += rows.size
            return
        self._put_in += rows.size
        self._queue.put(rows)

    def _say(self, why: str) -> None:
        extra = {"antecede_event": "trace_failed", "antecede_reason": why}
        LOG.error("%s: trace incomplete: %s", self._me, why, extra=extra)

    def close(self) -> None:
        """Write the queued rows and close the file. Blocks until that is done."""
        self._queue.put(None)
        self._thread.join()

    # -- in the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._write_some():
                self._files.rotate()
            self._files.finish()
        except (OSError, pa.ArrowException) as error:
            self.trouble = f"{self._files.folder}: {error}"
            self._say(self.trouble)
            while self._queue.get() is not None:
                pass

    def _write_some(self) -> bool:
        """Wait for rows and write them. False: the trace is closed."""
        rows: list[_Rows] = []
        count, more, end = 0, True, time.monotonic() + self._pause_s
        while count < CHUNK and (left := end - time.monotonic()) > 0:
            try:
                one = self._queue.get(timeout=left)
            except queue.Empty:
                break
            if one is None:
                more = False
                break
            rows.append(one)
            count += one.size
        if rows:
            self._files.write(rows, self._me)
        return more


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    for _, run in groupby(enumerate(numbers), lambda one: one[1] - one[0]):
        run_numbers = [number for _, number in run]
        yield run_numbers[0], len(run_numbers)


class _TraceFiles:
    def __init__(self, folder: Path, lane: str, run: str) -> None:
        self.folder, self._run = folder, run
        self._stem = _stem(lane)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            numbers = [_number(path) for path in folder.glob("*.parquet") if self._mine(path)]
            for path in folder.glob(".*.part"):
                if path.name[1:].startswith(f"{self._stem}-"):
                    path.unlink()  # left by a crash, incomplete and unreadable
        except OSError as error:
            raise StoreError(
                f"trace folder {folder} cannot be used: {error.strerror or error}"
            ) from error
        self._next = max(numbers, default=0) + 1
        self._writer: ParquetWriter | None = None
        self._rows, self._began = 0, 0.0
        self.written = self.finished = 0
        """Rows passed to a file, and rows in complete files; used in the thread only."""

    def read_deliveries(self) -> tuple[defaultdict[str, list[int]], int]:
        """Return sender id -> delivered numbers as interval bounds, and the last delivery's number.
        Messages are compared by id: a delivery undone by a crash may be repeated in another order.
        Raises StoreError for an incomplete file.
        """
        noted: defaultdict[str, list[int]] = defaultdict(list)
        last = 0
        for number in range(1, self._next):
            path = self.folder / f"{self._stem}-{number:06}.parquet"
            try:
                table = read_table(
                    path, columns=["id", "seq"], filters=[("kind", "=", DELIVER)]
                ).to_pydict()
            except FileNotFoundError:
                continue
            except (OSError, pa.ArrowException) as error:
                raise StoreError(
                    f"{path} is not a complete trace file: {error}; delete it"
                ) from error
            for one in table["id"]:
                lane, _, digits = one.rpartition(":")
                intervals.insert(noted[lane], int(digits))
            last = max(last, *table["seq"], 0)
        return noted, last

    def _mine(self, path: Path) -> bool:
        return path.stem.rpartition("-")[0] == self._stem

    def _paths(self) -> tuple[Path, Path]:
        name = f"{self._stem}-{self._next:06}.parquet"
        return self.folder / f".{name}.part", self.folder / name

    def write(self, rows: Sequence[_Rows], me: str) -> None:
        if self._writer is None:
            self._writer = ParquetWriter(str(self._paths()[0]), SCHEMA, compression="zstd")
            self._rows, self._began = 0, time.monotonic()
        table = _table(rows, me, self._run, self._rows)
        self._writer.write_batch(table)
        self._rows += table.num_rows
        self.written += table.num_rows

    def rotate(self) -> None:
        """Close the file if it is large or old enough."""
        if self._rows >= ROWS or time.monotonic() - self._began >= AGE_S:
            self.finish()

    def finish(self) -> None:
        if self._writer is None:
            return
        self._writer.close()
        self._writer = None
        draft, path = self._paths()
        draft.replace(path)
        self.finished = self.written
        self._next += 1


class _Published(_TraceFiles):
    """Files of which the newest is readable while it grows."""

    def __init__(self, folder: Path, lane: str, run: str, every_s: float) -> None:
        super().__init__(folder, lane, run)
        self._every_s = every_s
        self._open: list[pa.RecordBatch] = []
        self._due = 0.0

    def write(self, rows: Sequence[_Rows], me: str) -> None:
        if not self._open:
            self._rows = 0
        table = _table(rows, me, self._run, self._rows)
        self._open.append(table)
        self._rows += table.num_rows
        self.written += table.num_rows

    def rotate(self) -> None:
        """Publish the rows at the interval, and start the next file if this one is large."""
        if self._rows >= ROWS:
            self.finish()
        elif self.finished < self.written and time.monotonic() >= self._due:
            begun = time.monotonic()
            self._publish()
            now = time.monotonic()
            self._due = now + max(self._every_s, (now - begun) / PUBLISHING)

    def _publish(self) -> None:
        draft, path = self._paths()
        with ParquetWriter(str(draft), SCHEMA, compression="zstd") as writer:
            writer.write_table(pa.Table.from_batches(self._open))
        draft.replace(path)
        self.finished = self.written

    def finish(self) -> None:
        if not self._open:
            return
        if self.finished < self.written:
            self._publish()
        self._open, self._rows = [], 0
        self._next += 1


def _stem(lane: str) -> str:
    """Return the prefix of a sender's file names: never hidden, never too long."""
    name = quote(lane, safe=" ~")
    if len(name) > LONGEST:
        digest = hashlib.blake2b(lane.encode(), digest_size=8).hexdigest()
        name = f"{name[:LONGEST]}-{digest}"
    return f"trace-{name}"


def _number(path: Path) -> int:
    text = path.stem.rpartition("-")[2]
    return int(text) if text.isdecimal() else 0


def _table(rows: Sequence[_Rows], me: str, run: str, first: int) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {name: [] for name in ("kind", "id", "seq", "causes")}
    send_time: list[int | None] = []
    arrival: list[int | None] = []
    for one in rows:
        numbers = range(one.first, one.first + one.size)
        columns["kind"] += [one.kind] * one.size
        columns["id"] += [f"{one.lane}:{number}" for number in numbers]
        columns["seq"] += range(one.seq, one.seq + one.size)
        columns["causes"] += [one.causes] * one.size
        sent = one.kind == SEND
        send_time += [one.time_ns if sent else None] * one.size
        arrival += [None if sent else one.time_ns] * one.size
    count = len(send_time)
    known = {
        **columns,
        "run": [run] * count,
        "member": [me] * count,
        "topics": [()] * count,
        "file_order": range(first, first + count),
        "send_time": send_time,
        "arrival": arrival,
    }
    arrays = [pa.array(known.get(field.name) or [None] * count, field.type) for field in SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
