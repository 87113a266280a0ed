"""Deliveries of a streaming DataFrame: one packed row a shard, in it one `ReplayedMember` each.

Theory of operation
-------------------
The shape is that of `antecede.spark.streams.ordering`: mapInArrow packs rows by shard, a stateful
operator keyed by shard does the work, mapInArrow unpacks. `hash(group, observer) % shards` is the
shard.

State of a shard, three maps keyed by (group, observer) as JSON text, and one value:
`states`   the `ReplayedMember` as bytes: the snapshot of its `Group`, its clock, its held tickets
`held`     the held rows as an Arrow IPC stream, in the order of their tickets
`waiting`  only where rows are held: a time before which the passing of time changes nothing

`about`    what the checkpoint belongs to: protocol, members, columns with their types, shards; and
           all columns of the rows, which may grow from start to start
           (`tables.order.stream.columns`)

In a micro-batch only observers that get rows, or whose time has come, are read and written.

**Time.** Every partition tells every shard the greatest time of its rows, and time goes on to
`late_s` before it for all observers, so that time-outs act in quiet logs too. Spark's own
watermark would do the same, but drops the rows behind it; here such a row is taken in, at the
observer's clock. All times are data: a batch that runs again after a crash sees the same.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from antecede.core.clocks import up_ns
from antecede.errors import InputError, LocalError, ProtocolError
from antecede.spark.order_columns import SHARD
from antecede.spark.streams.ordering import arrow_schema, check_store
from antecede.spark.streams.processor import GUARD, PACKED, RELEASED, unpack
from antecede.spark.streams.rows import from_bytes, to_bytes
from antecede.spark.streams.shards import shard_keys
from antecede.tables.order.replay import (
    DeliverSpec,
    Key,
    ReplayedMember,
    RowOutcome,
    read_log,
    refused,
    take_all,
    times_of_rows,
    with_outcomes,
)
from antecede.tables.order.stream import (
    StreamColumns,
    check_columns,
    check_nulls,
    check_same_stream,
    joined,
)

pa: Any = pyarrow
_ROWS_A_PIECE = 50_000
_COLUMNS = "columns"
_OTHER = "the checkpoint is of another spec or stream: bring that back, or start from a new one"


def deliver_stream(df: DataFrame, spec: DeliverSpec) -> DataFrame:
    """Return the rows of a streaming DataFrame with what became of them; see `deliver`."""
    check_store(df)
    conf = df.sparkSession.conf
    shards = spec.shards or int(str(conf.get("spark.sql.shuffle.partitions")))
    keys = [F.col(_quoted(name)) for name in (spec.group, spec.observer) if name is not None]
    shard = F.pmod(F.xxhash64(*keys), F.lit(shards)).cast("int")
    packed = df.withColumn(SHARD, shard).mapInArrow(Pack(spec, shards), PACKED)
    columns = StreamColumns(arrow_schema(df.schema), ())
    deliverer = Deliverer(spec, about(df, spec, shards), columns)
    released = packed.groupBy("shard").transformWithState(deliverer, RELEASED, "Append", "None")
    return released.mapInArrow(unpack, delivered_schema(df, spec))


def about(df: DataFrame, spec: DeliverSpec, shards: int) -> str:
    """Return, as JSON, what a checkpoint belongs to: protocol, members, columns, tick, shards.

    `late_s`, `patience_s` and the prefix of the added columns may change from start to start.
    """
    columns = ("observer", "wire", "time", "group", "tiebreak", "sent", "to", "topics")
    named = {field: getattr(spec, field) for field in columns}
    what: dict[str, Any] = {
        field: None if name is None else f"{name} ({df.schema[name].dataType.simpleString()})"
        for field, name in named.items()
    }
    what |= {"order": spec.order, "members": spec.members, "shards": shards}
    what |= {"options": {name: repr(value) for name, value in sorted(spec.options.items())}}
    what |= {"make": getattr(spec.make, "__qualname__", None), "tick_s": float(spec.tick_s)}
    what |= {"time_unit": spec.time_unit, "keys": "spread"}
    return json.dumps(what, sort_keys=True)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class Pack:
    """For mapInArrow: the user's rows with SHARD -> PACKED; `clock` is in nanoseconds."""

    def __init__(self, spec: DeliverSpec, shards: int) -> None:
        self.spec = spec
        self.shards = shards

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Pack one partition; at its end tell every shard the greatest time."""
        greatest: int | None = None
        for number, table in enumerate(_pieces(batches)):
            if number == 0:
                yield _batch([GUARD], [None], [None])
            times = [time for time in times_of_rows(table, self.spec) if time is not None]
            if times:
                latest = max(times)
                greatest = latest if greatest is None else max(greatest, latest)
            yield self._packed(table)
        if greatest is not None and self.spec.told_time:
            shards = shard_keys(self.shards).tolist()
            yield _batch(shards, [greatest] * self.shards, [None] * self.shards)

    def _packed(self, table: pyarrow.Table) -> pyarrow.RecordBatch:
        shard = table.column(SHARD).to_numpy()
        rows: Any = table.drop_columns([SHARD])
        found = np.unique(shard)
        parts = [rows.take(pa.array(np.flatnonzero(shard == one))) for one in found]
        payloads = [to_bytes(part.combine_chunks()) for part in parts]
        keys = shard_keys(self.shards)[found]
        return _batch(keys.tolist(), [None] * len(found), payloads)


def _pieces(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.Table]:
    """Gather batches to tables of at least `_ROWS_A_PIECE` rows, but for the last."""
    waiting: list[pyarrow.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= _ROWS_A_PIECE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting and sum(b.num_rows for b in waiting):
        yield pa.Table.from_batches(waiting)


def _batch(shard: list[int], clock: list[Any], payload: list[Any]) -> pyarrow.RecordBatch:
    columns = pa.array(shard, pa.int32()), pa.array(clock, pa.int64()), pa.array(payload)
    batch: pyarrow.RecordBatch = pa.RecordBatch.from_arrays(
        [columns[0], columns[1], columns[2].cast(pa.binary())], ["shard", "clock", "payload"]
    )
    return batch


class Member(NamedTuple):
    """An observer that was read from the state, and its held rows in the pool of a step."""

    name: str
    observer: ReplayedMember
    rows: dict[int, int]
    """Ticket -> row of the pool."""
    held: frozenset[int]
    """Tickets that were held when it was read."""


class Deliverer(StatefulProcessor):
    """The stateful operator; one grouping key is one shard."""

    def __init__(self, spec: DeliverSpec, belongs_to: str, columns: StreamColumns) -> None:
        self.spec = spec
        self.belongs_to = belongs_to
        self.columns = columns

    def init(self, handle: Any) -> None:
        """Open the three maps and the value."""
        self.about = handle.getValueState("about", "json string")
        self.states = handle.getMapState("states", "name string", "state binary")
        self.held = handle.getMapState("held", "name string", "rows binary")
        self.waiting = handle.getMapState("waiting", "name string", "due long")

    # The camelCase names of arguments are Spark's: it passes them by keyword.
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Take in the packed rows of a shard, let time pass, give out what leaves."""
        self._check_checkpoint()
        if key[0] == GUARD:
            return
        clock, parts = None, []
        for row in rows:
            if row.clock is not None:
                clock = row.clock if clock is None else max(clock, row.clock)
            if row.payload is not None:
                parts.append(bytes(row.payload))
        step = Step(self, from_bytes(parts) if parts else None)
        step.take_in()
        if clock is not None:
            step.pass_time(clock)
        yield from step.leave()

    def _check_checkpoint(self) -> None:
        """Keep what this shard belongs to; raises InputError when that has changed."""
        rows: Any = self.columns.rows
        text = base64.b64encode(rows.serialize()).decode()
        belongs_to = json.dumps(json.loads(self.belongs_to) | {_COLUMNS: text}, sort_keys=True)
        kept = self.about.get()
        if kept is not None:
            before = json.loads(str(kept[0]))
            columns = before.pop(_COLUMNS, None)
            check_same_stream(json.dumps(before), self.belongs_to)
            if columns is not None:
                old = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(columns)))
                check_columns(old, rows)
                check_nulls(old, rows)
        if kept is None or str(kept[0]) != belongs_to:
            self.about.update((belongs_to,))

    def close(self) -> None:
        """Nothing to close: the state belongs to Spark."""


class Step:
    """One micro-batch of one shard."""

    def __init__(self, home: Deliverer, table: pyarrow.Table | None) -> None:
        self.home, self.spec, self.table = home, home.spec, table
        self.pool: list[pyarrow.Table] = [] if table is None else [table]
        self.size = 0 if table is None else table.num_rows
        self.members: dict[str, Member] = {}
        self.left: list[RowOutcome] = []
        """Rows that leave; their tickets are rows of the pool."""

    def take_in(self) -> None:
        """Give every observer its new rows."""
        if self.table is None:
            return
        log = read_log(self.table, self.spec)
        self.left += log.refused
        for key, rows in log.rows.items():
            try:
                member = self._member(key)
            except LocalError as error:
                self.left += refused(rows, error)
                continue
            observer, numbered = member.observer, []
            for row in rows:
                member.rows[observer.tickets] = row.ticket
                numbered.append(row._replace(ticket=observer.tickets))
                observer.tickets += 1
            self._leaving(member, take_all(observer, numbered))

    def pass_time(self, greatest_ns: int) -> None:
        """Let time go on to `late_s` before the greatest time of the stream, for all."""
        until = greatest_ns - up_ns(self.spec.late_s, "late_s")
        known = list(self.home.waiting.iterator())
        due = [name for (name,), (when,) in known if when <= until and name not in self.members]
        for name in due:
            self._member(Key(*json.loads(name)))
        for member in self.members.values():
            observer = member.observer
            if observer.waiting:
                self._leaving(member, observer.advance(until))

    def leave(self) -> Iterator[Row]:
        """Store the members that were touched and return the rows that leave, packed."""
        if not self.pool:
            return
        pool: Any = joined(self.pool, self.home.columns)
        for member in self.members.values():
            self._store(member, pool)
        for start in range(0, len(self.left), _ROWS_A_PIECE):
            some = self.left[start : start + _ROWS_A_PIECE]
            rows = pool.take(pa.array([outcome.ticket for outcome in some])).combine_chunks()
            numbered = [outcome._replace(ticket=k) for k, outcome in enumerate(some)]
            yield Row(payload=to_bytes(with_outcomes(rows, numbered, self.spec)))

    def _member(self, key: Key) -> Member:
        """Return an observer from the state, or a new one. Raises LocalError."""
        name = json.dumps(key)
        if name not in self.members:
            self.members[name] = self._read(name, key)
        return self.members[name]

    def _read(self, name: str, key: Key) -> Member:
        home, rows = self.home, self.home.held.getValue((name,))
        held = None if rows is None else from_bytes([bytes(rows[0])])
        observer = ReplayedMember(self.spec, key.observer, key.group)
        state = home.states.getValue((name,))
        if state is not None:
            try:
                observer.restore(bytes(state[0]))
            except ProtocolError as error:
                raise InputError(f"{_OTHER} ({error})") from error
        tickets = sorted(observer.waiting)
        member = Member(name, observer, {}, frozenset(tickets))
        if held is not None:
            member.rows.update(
                zip(tickets, range(self.size, self.size + len(tickets)), strict=True)
            )
            self.pool.append(held)
            self.size += held.num_rows
        return member

    def _leaving(self, member: Member, outcomes: Iterable[RowOutcome]) -> None:
        for outcome in outcomes:
            self.left.append(outcome._replace(ticket=member.rows[outcome.ticket]))

    def _store(self, member: Member, pool: Any) -> None:
        home, observer, name = self.home, member.observer, (member.name,)
        home.states.updateValue(name, (observer.snapshot(),))
        if observer.waiting != member.held:
            if observer.waiting:
                rows = pool.take(pa.array([member.rows[k] for k in sorted(observer.waiting)]))
                home.held.updateValue(name, (to_bytes(rows.combine_chunks()),))
            else:
                home.held.removeKey(name)
        due = observer.due()
        if due is not None:
            home.waiting.updateValue(name, (due,))
        elif member.held:
            home.waiting.removeKey(name)


def delivered_schema(df: DataFrame, spec: DeliverSpec) -> t.StructType:
    """Return the schema of the result: the input's columns, then those of `spec.added`."""
    text, whole = t.StringType(), t.LongType()
    kinds = (
        whole,
        text,
        t.DoubleType(),
        t.ArrayType(text),
        text,
        text,
        whole,
        t.BinaryType(),
    )
    added = [t.StructField(name, kind) for name, kind in zip(spec.added, kinds, strict=True)]
    return t.StructType([*df.schema.fields, *added])
