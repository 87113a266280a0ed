"""Causal order of a streaming DataFrame: the query plan around `streams.processor`.

The plan is mapInArrow, then transformWithState over one binary row per shard, then mapInArrow.
Reasons and costs: `docs/design/streaming.md`.
"""

from __future__ import annotations

import json
import math
from functools import partial
from typing import Any

import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.errors import InputError, SetupError
from antecede.spark.columns import hash_columns, hash_content
from antecede.spark.order_columns import (
    ROW_HASH,
    SHARD,
    check_input,
    get_arrow_type,
    make_output_schema,
)
from antecede.spark.streams.processor import (
    METRICS,
    PACKED_SCHEMA,
    RELEASED_SCHEMA,
    Processor,
    ShardPacker,
    WorkerPlan,
    find_latest_time,
    unpack,
)
from antecede.spark.streams.shards import choose_shard_count
from antecede.spark.streams.state import StreamIdentity, check_checkpoint, find_identity
from antecede.tables.order import OrderSpec, duration_ms, goes_by_value
from antecede.tables.order.stream import ShardPlan, StreamColumns, warm_up_once

pa: Any = pyarrow
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PER_MS = {"s": 0.001, "ms": 1.0, "us": 1e3, "ns": 1e6}


def order_stream(df: DataFrame, spec: OrderSpec) -> DataFrame:
    """Order a streaming DataFrame causally within each group.

    Every input row is returned once, with the columns of `spec.added`, as soon as its causes have
    been returned. Kernels are compiled before this function returns. A query restarted from a
    checkpoint with another spec fails in its first micro-batch and names the difference. Without a
    timestamp as `time`, timeouts and the state TTL use processing time; such a query does not end
    under `availableNow`, because Spark waits for timers.

    Raises InputError for unsupported columns, and SetupError if the state store is not RocksDB.
    """
    check_input(df, spec)
    check_store(df)
    job = plan_worker(df, spec)
    if spec.checkpoint is not None and job.plan.columns is not None:
        columns = job.plan.columns.rows
        check_checkpoint(df.sparkSession, spec.checkpoint, job.plan.about, columns)
    warm_up_once(job.plan.counted)
    hash_function = hash_content if _has_null_marks(json.loads(job.plan.about)) else hash_columns
    key = F.lit(0) if spec.group is None else hash_columns(df, [spec.group])
    with_keys = df.withColumns(
        {
            SHARD: F.pmod(key, F.lit(job.shards)).cast("int"),
            ROW_HASH: hash_function(df, spec.content_of(df.columns)),
        }
    )
    packed = with_keys.mapInArrow(
        ShardPacker(job.shards, partial(find_latest_time, job), always=True), PACKED_SCHEMA
    )
    on_timers = not job.plan.timed and (spec.on_missing != "hold" or spec.state_ttl is not None)
    released = packed.groupBy("shard").transformWithState(
        Processor(job), RELEASED_SCHEMA, "Append", "ProcessingTime" if on_timers else "None"
    )
    if spec.metrics is not None:
        sums = [
            (F.max if name == "oldest_wait_ms" else F.sum)(name).alias(name) for name in METRICS
        ]
        released = released.observe(spec.metrics, *sums)
    added = make_output_schema(df, spec).fields[len(df.columns) :]
    return released.mapInArrow(unpack, t.StructType([*job.columns.fields, *added]))


def plan_worker(df: DataFrame, spec: OrderSpec) -> WorkerPlan:
    """Compute the parameters of the workers. Raises InputError for invalid durations."""
    waits = spec.on_missing != "hold" or spec.state_ttl is not None
    per_ms = _get_units_per_ms(df, spec)
    if waits and spec.time is not None and per_ms is None:
        raise InputError(
            f"column {spec.time} has no unit: give time_unit= (s, ms, us or ns) for timeouts by "
            f"event time, or omit time= for timeouts by processing time"
        )
    scale = 1.0 if per_ms is None else per_ms
    state_ttl = -1 if spec.state_ttl is None else _to_units(spec.state_ttl, scale)
    patience = _to_units(spec.patience, scale)
    kept = _read_identity(df, spec)
    facts = kept.facts
    shards = spec.shards or _choose_shard_count(df, spec, facts)
    name = spec.id or spec.member or str(spec.sender)
    numbers = goes_by_value(get_arrow_type(name, df.schema[name].dataType))
    max_held_rows = -1 if spec.max_held_rows is None else spec.max_held_rows
    if (
        spec.group is not None and spec.max_held_rows is not None
    ):  # without groups one shard has them
        max_held_rows = -(-spec.max_held_rows // shards)
    columns = make_nullable(df.schema, kept.columns)
    has_marks = _has_null_marks(facts)
    plan = ShardPlan(
        counted=spec.id is None,
        timed=per_ms is not None,
        policy=spec.on_missing,
        patience=patience,
        state_ttl=state_ttl,
        numbers=numbers,
        max_held_rows=max_held_rows,
        on_overflow=spec.on_overflow,
        about=describe_stream(df, spec, shards, nulls=has_marks),
        columns=StreamColumns(
            to_arrow_schema(columns).append(pa.field(ROW_HASH, pa.int64())),
            tuple(spec.content_of(df.columns)),
            has_marks,
        ),
    )
    return WorkerPlan(spec, plan, scale, shards, columns)


def _read_identity(df: DataFrame, spec: OrderSpec) -> StreamIdentity:
    """Return the identity stored in the checkpoint; empty if nothing is committed."""
    if spec.checkpoint is None:
        return StreamIdentity()

    def mine(one: dict[str, Any]) -> str:
        return describe_stream(df, spec, one["shards"], nulls=_has_null_marks(one))

    return find_identity(df.sparkSession, spec.checkpoint, mine)


def _has_null_marks(identity: dict[str, Any]) -> bool:
    """Return whether row hashes include nulls: in new streams, and if the stored ones do."""
    return not identity or "digests" in identity


def to_arrow_schema(schema: t.StructType) -> pyarrow.Schema:
    """Return the Arrow schema of a DataFrame's columns, in UTC. Raises InputError."""
    fields = [pa.field(f.name, get_arrow_type(f.name, f.dataType), f.nullable) for f in schema]
    made: pyarrow.Schema = pa.schema(fields)
    return made


def make_nullable(schema: t.StructType, stored: pyarrow.Schema | None) -> t.StructType:
    """Make columns nullable that differ from the `stored` ones: held rows may lack them."""
    if stored is None:
        return schema
    now = to_arrow_schema(schema)
    known = set(stored.names)
    made = t.StructType()
    for field, nullable in zip(schema, schema.toNullable(), strict=True):
        same = field.name in known and now.field(field.name) == stored.field(field.name)
        made.add(field if same else nullable)
    return made


def _choose_shard_count(df: DataFrame, spec: OrderSpec, identity: dict[str, Any]) -> int:
    if identity:
        return int(identity["shards"])
    tasks = int(str(df.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    return tasks if spec.group is None else choose_shard_count(tasks)


def describe_stream(df: DataFrame, spec: OrderSpec, shards: int, *, nulls: bool = True) -> str:
    """Return the identity of a stream as JSON, without timeouts, TTL and names of added columns."""

    def kind(name: str | None) -> str | None:
        return None if name is None else f"{name} ({df.schema[name].dataType.simpleString()})"

    single = ("id", "group", "clock", "member", "sender", "seq", "time")
    what: dict[str, Any] = {field: kind(getattr(spec, field)) for field in single}
    what |= {"after": [kind(name) for name in spec.after], "time_unit": spec.time_unit}
    what |= {"first_seq": spec.first_seq, "on_missing": spec.on_missing, "shards": shards}
    what["keys"] = "spread"  # format of shard keys, see `shards`
    if nulls:
        what["digests"] = "nulls"  # row hashes include nulls, see `tables.order.row_hash`
    what["content"] = None if spec.content is None else sorted(spec.content)
    return json.dumps(what, sort_keys=True)


def _to_units(duration: Any, per_ms: float) -> int:
    return min(math.ceil(duration_ms(duration) * per_ms), 2**61)


def _get_units_per_ms(df: DataFrame, spec: OrderSpec) -> float | None:
    """Return the units of `time` in a millisecond after conversion to Arrow; None: no clock."""
    if spec.time is None:
        return None
    kind = df.schema[spec.time].dataType
    if isinstance(kind, t.TimestampType | t.TimestampNTZType):
        return _PER_MS["us"]
    if isinstance(kind, t.DateType):
        return _PER_MS["ms"]
    if not isinstance(kind, t.IntegralType):
        raise InputError(f"time column {spec.time} must be a timestamp, not {kind.simpleString()}")
    return None if spec.time_unit is None else _PER_MS[spec.time_unit]


def check_store(df: DataFrame) -> None:
    """Raise SetupError if the session's state store is not RocksDB."""
    provider: Any = df.sparkSession.conf.get(_PROVIDER, "")
    if not str(provider).endswith("RocksDBStateStoreProvider"):
        raise SetupError(
            "causal order of a stream needs Spark's RocksDB state store; before starting the "
            f'query run spark.conf.set("{_PROVIDER}", "{_ROCKSDB}")'
        )
