"""Deliveries of a streaming DataFrame: one packed row a shard, in it one `ReplayedMember` each.

Theory of operation
-------------------
As in `antecede.spark.streams.ordering`, mapInArrow packs rows by shard, a stateful operator
keyed by shard does the work, mapInArrow unpacks. The shard is `hash(group, observer) % shards`.

State of a shard, three maps keyed by (group, observer) as JSON text, and one value:

- `states`: the `ReplayedMember` as bytes: the snapshot of its `Group`, its clock, its held tickets.
- `held`: the held rows as an Arrow IPC stream, in the order of their tickets.
- `waiting`: only where rows are held: a time before which the passing of time changes nothing.
- `about`: what the checkpoint belongs to (protocol, members, columns with types, shards), and all
  columns of the rows, which may grow from start to start (`tables.order.stream.columns`).

A micro-batch reads and writes only observers that get rows, or whose time has come.

**Time.** Every partition tells every shard the greatest time of its rows. Time goes on to `late_s`
before it for all observers, so that time-outs act in quiet logs too. Spark's own watermark would
drop the rows behind it; here such a row is taken in, at the observer's clock. All times are data: a
batch that runs again after a crash sees the same.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pyarrow
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from antecede.core.clocks import up_ns
from antecede.errors import InputError, LocalError, ProtocolError
from antecede.spark.columns import column_of, spark_schema
from antecede.spark.order_columns import SHARD
from antecede.spark.streams.ordering import arrow_schema, check_store
from antecede.spark.streams.processor import (
    GUARD,
    PACKED,
    RELEASED,
    ROWS_A_PIECE,
    Pack,
    received,
    unpack,
)
from antecede.spark.streams.rows import from_bytes, to_bytes
from antecede.tables.order.replay import (
    DeliverSpec,
    Key,
    ReplayedMember,
    RowOutcome,
    added,
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
_COLUMNS = "columns"
_OTHER = "the checkpoint is of another spec or stream: bring that back, or start from a new one"


def deliver_stream(df: DataFrame, spec: DeliverSpec) -> DataFrame:
    """Return the rows of a streaming DataFrame with what became of them; see `deliver`."""
    check_store(df)
    conf = df.sparkSession.conf
    shards = spec.shards or int(str(conf.get("spark.sql.shuffle.partitions")))
    keys = [column_of(name) for name in (spec.group, spec.observer) if name is not None]
    shard = F.pmod(F.xxhash64(*keys), F.lit(shards)).cast("int")
    pack = Pack(shards, partial(_latest_time, spec), always=False)
    packed = df.withColumn(SHARD, shard).mapInArrow(pack, PACKED)
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


def _latest_time(spec: DeliverSpec, table: pyarrow.Table) -> int | None:
    """Return the greatest time of some rows, ns; None where `spec` goes by no times."""
    if not spec.told_time:
        return None
    return max((time for time in times_of_rows(table, spec) if time is not None), default=None)


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
        clock, new = received(rows)
        step = Step(self, new)
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
        for start in range(0, len(self.left), ROWS_A_PIECE):
            some = self.left[start : start + ROWS_A_PIECE]
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
    return t.StructType([*df.schema.fields, *spark_schema(added(spec))])
