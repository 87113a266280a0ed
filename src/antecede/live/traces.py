"""What a live peer did, as a trace: its sendings and deliveries, for `antecede audit`.

Parquet files in the event schema, `trace-NAME~LIFE-000001.parquet` and so on; a file that has its
name is whole. A thread writes, so the loop does not wait. What a crash takes is at most the file
that was open; what came faster than it could be written is not written, counted, and said.

For whoever follows the group, `every_s` puts what there is into the file that often: the newest
file is then written anew with all its rows, and replaced at once.

    kind         send, deliver
    id           of the message: "LANE:NUMBER"
    seq          of a send its number in the lane; of a delivery its number in this trace, from 1
    member       the lane: one life of a member
    causes       of a send: what the order promises to deliver before it, as far as not implied by
                 others of them: with order "reply" what it answers; with causal orders what was
                 handed to the application since its last send, the newest of each lane, and
                 that last send; with "fifo" that last send
    send_time    of a send, arrival of a delivery: the system's clock, ns
    run          of the group, from when it was founded
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
from antecede.live.events import Id, Said
from antecede.tables.trace import DELIVER, SEND

try:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter, read_table

    from antecede.tables.trace import SCHEMA
except ImportError as error:
    raise MissingExtraError("traces of live peers", "trace") from error

ROWS: Final = 200_000
"""Of one file."""
AGE_S: Final = 60.0
"""After so long a file is finished."""
WAITING: Final = 500_000
"""Rows that wait to be written, at most."""
LONGEST: Final = 150
"""Characters of a lane in the name of a file."""
CHUNK: Final = 8192
"""Rows that are written at once, or what there is after a second."""
PUBLISHING: Final = 0.1
"""Part of the time that may go into writing the newest file anew, for a large one."""
LOG: Final = logging.getLogger("antecede.live")


class _Rows(NamedTuple):
    """Messages of one lane that were sent or delivered, one after the other."""

    kind: str
    lane: str
    first: int
    size: int
    seq: int
    """Of the first: number in the lane, or among the deliveries of the trace."""
    causes: tuple[str, ...]
    time_ns: int


class Trace:
    """Writes what one life of a peer does to files in a folder. `run`: names the group."""

    def __init__(
        self,
        folder: Path,
        lane: str,
        run: str,
        relation: Relation,
        every_s: float | None = None,
    ) -> None:
        """Go on behind what the lane's files in the folder have. `relation`: what the order keeps.

        `every_s`: after so long a row is in a file that can be read, unless that is large; None:
        when its file is finished, after a minute at most. Raises StoreError where the folder cannot
        be made, read or written.
        """
        self.trouble = ""
        """Why nothing more is written; empty: it is."""
        self._me, self._relation = lane, relation
        self._since: dict[str, int] = {}
        """Lane -> newest message that was handed over since the last send."""
        self._last = 0
        self._put_in = self._refused = 0
        """Rows that went to the thread, and that did not; of the loop alone."""
        self._queue: queue.SimpleQueue[_Rows | None] = queue.SimpleQueue()
        self._files = (
            _Files(folder, lane, run) if every_s is None else _Published(folder, lane, run, every_s)
        )
        self._pause_s = 1.0 if every_s is None else min(1.0, every_s)
        self._noted: defaultdict[str, list[int]]
        self._noted, self._deliveries = self._files.read_deliveries()
        """Lane -> numbers delivered, as bounds of intervals: what comes again after a restart is
        not noted twice. And how many deliveries the trace counts."""
        self._thread = threading.Thread(target=self._run, name="antecede-trace", daemon=True)
        self._thread.start()

    # -- in the loop -------------------------------------------------------------------------------

    def sent(self, message: Id, reply_to: Iterable[Id] = ()) -> None:
        """Note that the application sent something."""
        number = message.number
        causes = [str(one) for one in reply_to]
        causes += [f"{lane}:{newest}" for lane, newest in self._since.items()]
        if self._last and self._relation in (Relation.FIFO, Relation.BY_DELIVERY):
            causes.append(f"{self._me}:{self._last}")
        self._since.clear()
        self._last = number
        self._put(_Rows(SEND, self._me, number, 1, number, tuple(causes), time.time_ns()))

    def delivered(self, said: Said) -> None:
        """Note that something is handed to the application; not what was said before it joined."""
        if said.is_history or not said.live_count:
            return
        noted, last = self._noted[said.lane], said.first + said.live_count - 1
        if noted and noted[-1] == said.first:  # the usual case: the next numbers of the lane
            noted[-1] = last + 1
            fresh: Sequence[int] = range(said.first, last + 1)
        else:
            fresh = [n for n in range(said.first, last + 1) if intervals.insert(noted, n)]
        for first, count in _runs(fresh):
            seq = self._deliveries + 1
            self._deliveries += count
            self._put(_Rows(DELIVER, said.lane, first, count, seq, (), time.time_ns()))
        if fresh and self._relation is Relation.BY_DELIVERY:
            self._since[said.lane] = last

    @property
    def lost(self) -> int:
        """Rows that are in no file, since they came too fast or the disk refused."""
        return self._refused + (self._put_in - self._files.finished if self.trouble else 0)

    def _put(self, rows: _Rows) -> None:
        if self.trouble or self._put_in - self._files.written + rows.size > WAITING:
            if not self._refused and not self.trouble:
                self._say("rows come faster than they are written")
            self._refused += rows.size
            return
        self._put_in += rows.size
        self._queue.put(rows)

    def _say(self, why: str) -> None:
        extra = {"antecede_event": "trace_failed", "antecede_reason": why}
        LOG.error("%s: the trace is not whole any more: %s", self._me, why, extra=extra)

    def close(self) -> None:
        """Write what waits, and finish the file. Blocks until that is done."""
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
        """Wait for rows and write them; False: there will be no more."""
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
    """Yield (first, count) of the runs of ascending numbers without gaps."""
    for _, run in groupby(enumerate(numbers), lambda one: one[1] - one[0]):
        run_numbers = [number for _, number in run]
        yield run_numbers[0], len(run_numbers)


class _Files:
    """Parquet files that follow one another."""

    def __init__(self, folder: Path, lane: str, run: str) -> None:
        self.folder, self._run = folder, run
        self._stem = _stem(lane)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            numbers = [_number(path) for path in folder.glob("*.parquet") if self._mine(path)]
            for path in folder.glob(".*.part"):
                if path.name[1:].startswith(f"{self._stem}-"):
                    path.unlink()  # of a crash: it has no end, so nobody can read it
        except OSError as error:
            raise StoreError(f"{folder} takes no trace: {error.strerror or error}") from error
        self._next = max(numbers, default=0) + 1
        self._writer: ParquetWriter | None = None
        self._rows, self._began = 0, 0.0
        self.written = self.finished = 0
        """Rows given to a file, and those in files that are whole; of the thread alone."""

    def read_deliveries(self) -> tuple[defaultdict[str, list[int]], int]:
        """Return lane -> delivered numbers as bounds of intervals, and the last delivery's number.

        Messages are compared by id: a delivery that a crash undid may come again in another order.
        Raises StoreError for a file that is not whole.
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
                raise StoreError(f"{path} is no whole trace: {error}") from error
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
        """Finish the file if it is large or old enough."""
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


class _Published(_Files):
    """The same, and the newest of them can be read as it grows."""

    def __init__(self, folder: Path, lane: str, run: str, every_s: float) -> None:
        super().__init__(folder, lane, run)
        self._every_s = every_s
        self._open: list[pa.RecordBatch] = []
        """All rows of the newest file."""
        self._due = 0.0

    def write(self, rows: Sequence[_Rows], me: str) -> None:
        if not self._open:
            self._rows = 0
        table = _table(rows, me, self._run, self._rows)
        self._open.append(table)
        self._rows += table.num_rows
        self.written += table.num_rows

    def rotate(self) -> None:
        """Show what there is if it is time, and go on to the next file if this one is large."""
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
    """Return what the files of a lane begin with: never hidden, never too long for a file."""
    name = quote(lane, safe=" ~")
    if len(name) > LONGEST:
        digest = hashlib.blake2b(lane.encode(), digest_size=8).hexdigest()
        name = f"{name[:LONGEST]}-{digest}"
    return f"trace-{name}"


def _number(path: Path) -> int:
    text = path.stem.rpartition("-")[2]
    return int(text) if text.isdecimal() else 0


def _table(rows: Sequence[_Rows], me: str, run: str, first: int) -> pa.RecordBatch:
    """Return rows in the event schema."""
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
