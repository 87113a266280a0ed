"""Causal order of a streaming DataFrame: the plan around the operator in `streams.processor`.

The shape, mapInArrow -> transformWithState over one binary row a shard -> mapInArrow, and
what it costs: `docs/design/streaming.md`.
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
    """Return the rows of a streaming DataFrame in causal order within each group.

    Every input row comes out once, with the columns of `spec.added`, as soon as its causes have
    come out; positions in a group follow the causes and never repeat. The kernels are compiled
    before this returns, unless this machine has them. A query that is started again from a
    checkpoint with another spec fails in its first micro-batch and names the difference (`about`).
    Without a timestamp as `time`, the policies `release` and `drop` and `remember` run on
    processing time; such a query does not end by itself under `availableNow`, because Spark then
    waits for timers.

    Raises InputError for columns that cannot serve, SetupError when the session's state store is
    not RocksDB.
    """
    check_input(df, spec)
    check_store(df)
    job = plan_worker(df, spec)
    if spec.checkpoint is not None and job.plan.columns is not None:
        columns = job.plan.columns.rows
        check_checkpoint(df.sparkSession, spec.checkpoint, job.plan.about, columns)
    warm_up_once(job.plan.counted)
    told = hash_content if _has_null_marks(json.loads(job.plan.about)) else hash_columns
    key = F.lit(0) if spec.group is None else hash_columns(df, [spec.group])
    with_keys = df.withColumns(
        {
            SHARD: F.pmod(key, F.lit(job.shards)).cast("int"),
            ROW_HASH: told(df, spec.content_of(df.columns)),
        }
    )
    packed = with_keys.mapInArrow(
        ShardPacker(job.shards, partial(find_latest_time, job), always=True), PACKED_SCHEMA
    )
    on_timers = not job.plan.timed and (spec.missing != "hold" or spec.remember is not None)
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
    """Work out what the workers need. Raises InputError for durations that do not parse."""
    waits = spec.missing != "hold" or spec.remember is not None
    per_ms = _get_units_per_ms(df, spec)
    if waits and spec.time is not None and per_ms is None:
        raise InputError(
            f"column {spec.time} holds plain numbers: give time_unit= (s, ms, us or ns), so that "
            f"patience and remember can be measured by it, or leave time= out to go by the clock"
        )
    scale = 1.0 if per_ms is None else per_ms
    remember = -1 if spec.remember is None else _to_units(spec.remember, scale)
    patience = _to_units(spec.patience, scale)
    kept = _read_identity(df, spec)
    facts = kept.facts
    shards = spec.shards or _choose_shard_count(df, spec, facts)
    name = spec.id or spec.member or str(spec.sender)
    numbers = goes_by_value(get_arrow_type(name, df.schema[name].dataType))
    max_held = -1 if spec.max_held is None else spec.max_held
    if spec.group is not None and spec.max_held is not None:  # without groups one shard has them
        max_held = -(-spec.max_held // shards)
    columns = make_nullable(df.schema, kept.columns)
    has_marks = _has_null_marks(facts)
    plan = ShardPlan(
        counted=spec.id is None,
        timed=per_ms is not None,
        policy=spec.missing,
        patience=patience,
        remember=remember,
        numbers=numbers,
        max_held=max_held,
        over_held=spec.over_held,
        about=describe_stream(df, spec, shards, nulls=has_marks),
        columns=StreamColumns(
            to_arrow_schema(columns).append(pa.field(ROW_HASH, pa.int64())),
            tuple(spec.content_of(df.columns)),
            has_marks,
        ),
    )
    return WorkerPlan(spec, plan, scale, shards, columns)


def _read_identity(df: DataFrame, spec: OrderSpec) -> StreamIdentity:
    """Return what the checkpoint belongs to, empty if none is given or nothing is committed."""
    if spec.checkpoint is None:
        return StreamIdentity()

    def mine(one: dict[str, Any]) -> str:
        return describe_stream(df, spec, one["shards"], nulls=_has_null_marks(one))

    return find_identity(df.sparkSession, spec.checkpoint, mine)


def _has_null_marks(identity: dict[str, Any]) -> bool:
    """Tell whether digests tell what is null: in new streams, and where they did before."""
    return not identity or "digests" in identity


def to_arrow_schema(schema: t.StructType) -> pyarrow.Schema:
    """Return the columns of a DataFrame as they come to Python, in one time zone.

    Raises InputError for a type that cannot come there.
    """
    fields = [pa.field(f.name, get_arrow_type(f.name, f.dataType), f.nullable) for f in schema]
    made: pyarrow.Schema = pa.schema(fields)
    return made


def make_nullable(schema: t.StructType, stored: pyarrow.Schema | None) -> t.StructType:
    """Return columns of which those may be null that have changed since a stream began.

    `kept`: the columns in its checkpoint (None: unknown). Rows held from before may have null in
    added columns, also where new rows never do.
    """
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
    """Return the number of shards that the checkpoint has, of a new stream one to grow into."""
    if identity:
        return int(identity["shards"])
    tasks = int(str(df.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    return tasks if spec.group is None else choose_shard_count(tasks)


def describe_stream(df: DataFrame, spec: OrderSpec, shards: int, *, nulls: bool = True) -> str:
    """Return, as JSON, what a checkpoint belongs to: columns with types, policy, shards.

    `patience`, `remember` and the names of the added columns may change from start to start.
    """

    def kind(name: str | None) -> str | None:
        return None if name is None else f"{name} ({df.schema[name].dataType.simpleString()})"

    single = ("id", "group", "clock", "member", "sender", "seq", "time")
    what: dict[str, Any] = {field: kind(getattr(spec, field)) for field in single}
    what |= {"after": [kind(name) for name in spec.after], "time_unit": spec.time_unit}
    what |= {"first_seq": spec.first_seq, "missing": spec.missing, "shards": shards}
    what["keys"] = "spread"  # how shards are keyed: see `shards`
    if nulls:
        what["digests"] = "nulls"  # what is null tells contents apart: see `tables.order.row_hash`
    what["content"] = None if spec.content is None else sorted(spec.content)
    return json.dumps(what, sort_keys=True)


def _to_units(duration: Any, per_ms: float) -> int:
    return min(math.ceil(duration_ms(duration) * per_ms), 2**61)


def _get_units_per_ms(df: DataFrame, spec: OrderSpec) -> float | None:
    """Return the units of `time` in a millisecond as Arrow will have them; None: no clock."""
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
    """Raise SetupError when the session keeps the state of streams in anything but RocksDB."""
    provider: Any = df.sparkSession.conf.get(_PROVIDER, "")
    if not str(provider).endswith("RocksDBStateStoreProvider"):
        raise SetupError(
            "causal order of a stream needs Spark's RocksDB state store; before starting the "
            f'query run spark.conf.set("{_PROVIDER}", "{_ROCKSDB}")'
        )
