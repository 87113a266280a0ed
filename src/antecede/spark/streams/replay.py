"""Replay of logged messages in a streaming DataFrame, with one `ReplayedMember` per observer.

As in `antecede.spark.streams.ordering`, mapInArrow packs rows by shard, a stateful operator
processes them, and mapInArrow unpacks. The shard is `hash(group, observer) % shards`. Its state:

- `states`: (group, observer) as JSON -> the `ReplayedMember` as bytes: the snapshot of its `Group`,
  its clock, its held arrival numbers.
- `held`: the same key -> held rows as an Arrow IPC stream, by arrival number.
- `waiting`: the same key, only for held rows -> the time before which ticks change nothing.
- `about`: the identity of the stream, and all columns of the rows, which may grow between starts
  (`tables.order.stream.columns`).

Only observers that receive rows or whose time has come are read and written. The greatest time of a
partition is sent to every shard, and the time of all observers advances to `late_s` before it, so
timeouts also work in idle logs. Late rows are processed at the observer's clock. All times are
data, so a batch repeated after a crash has the same times.
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
from antecede.spark.streams.ordering import check_store, to_arrow_schema
from antecede.spark.streams.processor import (
    GUARD,
    PACKED_SCHEMA,
    PIECE_ROWS,
    RELEASED_SCHEMA,
    ShardPacker,
    unpack,
    unpack_rows,
)
from antecede.spark.streams.rows import from_bytes, to_bytes
from antecede.tables.order.replay import (
    DeliverSpec,
    Key,
    ReplayedMember,
    RowOutcome,
    list_added_fields,
    read_log,
    reject_rows,
    take_all,
    times_of_rows,
    with_outcomes,
)
from antecede.tables.order.stream import (
    StreamColumns,
    check_columns,
    check_nulls,
    check_same_stream,
    concat_rows,
)

pa: Any = pyarrow
_COLUMNS = "columns"
_OTHER_STREAM = (
    "the checkpoint belongs to another spec or stream: restore that spec, or use a new checkpoint"
)


def replay_stream(df: DataFrame, spec: DeliverSpec) -> DataFrame:
    """Return the rows of a streaming DataFrame with their outcomes; see `replay_log`."""
    check_store(df)
    conf = df.sparkSession.conf
    shards = spec.shards or int(str(conf.get("spark.sql.shuffle.partitions")))
    keys = [column_of(name) for name in (spec.group, spec.observer) if name is not None]
    shard = F.pmod(F.xxhash64(*keys), F.lit(shards)).cast("int")
    pack = ShardPacker(shards, partial(_find_latest_time, spec), always=False)
    packed = df.withColumn(SHARD, shard).mapInArrow(pack, PACKED_SCHEMA)
    columns = StreamColumns(to_arrow_schema(df.schema), ())
    deliverer = ReplayProcessor(spec, describe_stream(df, spec, shards), columns)
    released = packed.groupBy("shard").transformWithState(
        deliverer, RELEASED_SCHEMA, "Append", "None"
    )
    return released.mapInArrow(unpack, make_replay_schema(df, spec))


def describe_stream(df: DataFrame, spec: DeliverSpec, shards: int) -> str:
    """Return the identity of a stream as JSON, without `late_s`, `patience_s` and the prefix."""
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


def _find_latest_time(spec: DeliverSpec, table: pyarrow.Table) -> int | None:
    if not spec.told_time:
        return None
    return max((time for time in times_of_rows(table, spec) if time is not None), default=None)


class ObserverState(NamedTuple):
    """An observer read from the state, and its held rows in the pool of a micro-batch."""

    name: str
    observer: ReplayedMember
    rows: dict[int, int]
    """Arrival number -> row of the pool."""
    held: frozenset[int]
    """Arrival numbers that were held when the observer was read."""


class ReplayProcessor(StatefulProcessor):
    """Stateful operator; one grouping key is one shard."""

    def __init__(self, spec: DeliverSpec, identity: str, columns: StreamColumns) -> None:
        self.spec = spec
        self.identity = identity
        self.columns = columns

    def init(self, handle: Any) -> None:
        """Open the three maps and the value."""
        self.about = handle.getValueState("about", "json string")
        self.states = handle.getMapState("states", "name string", "state binary")
        self.held = handle.getMapState("held", "name string", "rows binary")
        self.waiting = handle.getMapState("waiting", "name string", "due long")

    # Spark passes these arguments by keyword, so the names are fixed.
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Receive the packed rows of a shard, advance time, and yield the released rows."""
        self._check_checkpoint()
        if key[0] == GUARD:
            return
        clock, new = unpack_rows(rows)
        step = MicroBatch(self, new)
        step.receive_rows()
        if clock is not None:
            step.advance_time(clock)
        yield from step.release()

    def _check_checkpoint(self) -> None:
        rows: Any = self.columns.rows
        text = base64.b64encode(rows.serialize()).decode()
        belongs_to = json.dumps(json.loads(self.identity) | {_COLUMNS: text}, sort_keys=True)
        kept = self.about.get()
        if kept is not None:
            before = json.loads(str(kept[0]))
            columns = before.pop(_COLUMNS, None)
            check_same_stream(json.dumps(before), self.identity)
            if columns is not None:
                old = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(columns)))
                check_columns(old, rows)
                check_nulls(old, rows)
        if kept is None or str(kept[0]) != belongs_to:
            self.about.update((belongs_to,))

    def close(self) -> None:
        """Do nothing; Spark owns the state."""


class MicroBatch:
    """One micro-batch of one shard."""

    def __init__(self, processor: ReplayProcessor, table: pyarrow.Table | None) -> None:
        self.processor, self.spec, self.table = processor, processor.spec, table
        self.pool: list[pyarrow.Table] = [] if table is None else [table]
        self.size = 0 if table is None else table.num_rows
        self.members: dict[str, ObserverState] = {}
        self.outcomes: list[RowOutcome] = []
        """Outcomes of released rows; their tickets are rows of the pool."""

    def receive_rows(self) -> None:
        """Pass the new rows to their observers."""
        if self.table is None:
            return
        log = read_log(self.table, self.spec)
        self.outcomes += log.refused
        for key, rows in log.rows.items():
            try:
                member = self._get_member(key)
            except LocalError as error:
                self.outcomes += reject_rows(rows, error)
                continue
            observer, numbered = member.observer, []
            for row in rows:
                member.rows[observer.tickets] = row.ticket
                numbered.append(row._replace(ticket=observer.tickets))
                observer.tickets += 1
            self._add_outcomes(member, take_all(observer, numbered))

    def advance_time(self, greatest_ns: int) -> None:
        """Advance all observers to `late_s` before the greatest time of the stream."""
        until = greatest_ns - up_ns(self.spec.late_s, "late_s")
        known = list(self.processor.waiting.iterator())
        due = [name for (name,), (when,) in known if when <= until and name not in self.members]
        for name in due:
            self._get_member(Key(*json.loads(name)))
        for member in self.members.values():
            observer = member.observer
            if observer.waiting:
                self._add_outcomes(member, observer.advance(until))

    def release(self) -> Iterator[Row]:
        """Store the changed members and yield the released rows, packed."""
        if not self.pool:
            return
        pool: Any = concat_rows(self.pool, self.processor.columns)
        for member in self.members.values():
            self._store_member(member, pool)
        for start in range(0, len(self.outcomes), PIECE_ROWS):
            some = self.outcomes[start : start + PIECE_ROWS]
            rows = pool.take(pa.array([outcome.ticket for outcome in some])).combine_chunks()
            numbered = [outcome._replace(ticket=k) for k, outcome in enumerate(some)]
            yield Row(payload=to_bytes(with_outcomes(rows, numbered, self.spec)))

    def _get_member(self, key: Key) -> ObserverState:
        name = json.dumps(key)
        if name not in self.members:
            self.members[name] = self._load_member(name, key)
        return self.members[name]

    def _load_member(self, name: str, key: Key) -> ObserverState:
        home, rows = self.processor, self.processor.held.getValue((name,))
        held = None if rows is None else from_bytes([bytes(rows[0])])
        observer = ReplayedMember(self.spec, key.observer, key.group)
        state = home.states.getValue((name,))
        if state is not None:
            try:
                observer.restore(bytes(state[0]))
            except ProtocolError as error:
                raise InputError(f"{_OTHER_STREAM} ({error})") from error
        tickets = sorted(observer.waiting)
        member = ObserverState(name, observer, {}, frozenset(tickets))
        if held is not None:
            member.rows.update(
                zip(tickets, range(self.size, self.size + len(tickets)), strict=True)
            )
            self.pool.append(held)
            self.size += held.num_rows
        return member

    def _add_outcomes(self, member: ObserverState, outcomes: Iterable[RowOutcome]) -> None:
        for outcome in outcomes:
            self.outcomes.append(outcome._replace(ticket=member.rows[outcome.ticket]))

    def _store_member(self, member: ObserverState, pool: Any) -> None:
        home, observer, name = self.processor, member.observer, (member.name,)
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


def make_replay_schema(df: DataFrame, spec: DeliverSpec) -> t.StructType:
    """Return the schema of the result: the input's columns, then those of `spec.added`."""
    return t.StructType([*df.schema.fields, *spark_schema(list_added_fields(spec))])
