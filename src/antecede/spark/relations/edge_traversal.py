"""Traversal of declared causes from some events, one join per superstep.

The engine of local tables then decides on the rows that were reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.errors import InputError
from antecede.spark.columns import column_of
from antecede.spark.evidence import explode_causes, require_evidence, select_keys
from antecede.spark.partitions import make_worker_column, partition_by_group, split_array
from antecede.spark.relations.labels import RESULT, check_relation_input
from antecede.tables.causality import NO_PLACE, mark_reachable, not_there
from antecede.tables.order import OrderSpec, graph_of

IS_EVENT = "__antecede_event"
"""Hidden column: the row is one of the given events."""
_BROADCAST_ROWS = 1_000_000
"""Limit of rows that are broadcast; otherwise Spark would sort all edges in each superstep."""
HIDDEN = ("__antecede_g", "__antecede_k")


def walk(
    df: DataFrame,
    events: Sequence[object],
    spec: OrderSpec,
    max_supersteps: int,
    *,
    backwards: bool,
) -> DataFrame:
    """Return the rows before (else after) the events, with one job per superstep.

    Raises InputError for unknown or unordered events, and after `max_supersteps`.
    """
    if (
        isinstance(max_supersteps, bool)
        or not isinstance(max_supersteps, int)
        or max_supersteps < 1
    ):
        raise InputError(f"max_supersteps={max_supersteps!r}: expected an integer of at least 1")
    name = str(spec.id)
    check_relation_input(df, spec, "following causes")
    require_evidence(df, spec)
    wanted = make_event_table(df, events, name)
    keyed = df.select(*select_keys(df, spec), column_of(name).alias("own"))
    seeds = keyed.join(F.broadcast(wanted), F.col("own") == F.col("wanted"), "left_semi")
    seeds = seeds.distinct().localCheckpoint()
    _raise_for_first(
        wanted.join(seeds, F.col("own") == F.col("wanted"), "left_anti"), not_there("{}")
    )
    edges = find_edges(df, spec, backwards=backwards).persist()
    try:
        reached = find_reachable(
            edges, seeds.select("g", "k", F.lit(True).alias(IS_EVENT)), max_supersteps
        )
        made = _decide(df, reached, spec, backwards=backwards).localCheckpoint()
    finally:
        edges.unpersist()
    placed = made.where(F.col(IS_EVENT) & F.col(RESULT)["placed"]).select(
        column_of(name).alias("own")
    )
    lost = wanted.join(placed, F.col("own") == F.col("wanted"), "left_anti")
    _raise_for_first(lost, "the event {} " + NO_PLACE)
    return made.where(F.col(RESULT)["found"]).select(*map(column_of, df.columns))


def _raise_for_first(bad_events: DataFrame, message: str) -> None:
    row = bad_events.select("text").orderBy("text").first()
    if row is not None:
        raise InputError(message.format(row[0]))


def find_edges(df: DataFrame, spec: OrderSpec, *, backwards: bool) -> DataFrame:
    """Return the distinct declared causes as (g, start, end)."""
    return explode_causes(df, spec, backwards=backwards).distinct()


def find_reachable(edges: DataFrame, seeds: DataFrame, max_supersteps: int) -> DataFrame:
    """Return (g, k, event): the events and all that edges lead to. Raises InputError."""
    found, front = seeds, seeds.select("g", "k")
    small = front.count() <= _BROADCAST_ROWS
    for done in range(max_supersteps + 1):
        known = front.withColumnRenamed("k", "start")
        step = edges.join(F.broadcast(known) if small else known, ["g", "start"])
        step = step.select("g", F.col("end").alias("k")).distinct()
        front = step.join(found, ["g", "k"], "left_anti").localCheckpoint()
        if not (size := front.count()):
            return found
        small = size <= _BROADCAST_ROWS
        found = found.unionAll(front.withColumn(IS_EVENT, F.lit(False)))
        if done % 16 == 15:  # truncate the growing plan
            found = found.localCheckpoint()
    raise InputError(
        f"chains of causes exceed max_supersteps={max_supersteps}: raise it (one Spark job each), "
        "or add causal labels by add_causal_labels and omit after=, which needs no jobs"
    )


def _decide(df: DataFrame, reached: DataFrame, spec: OrderSpec, *, backwards: bool) -> DataFrame:
    group, key = select_keys(df, spec)
    reached = reached.toDF(*HIDDEN, IS_EVENT)
    rows = df.join(reached, (group == F.col(HIDDEN[0])) & (key == F.col(HIDDEN[1])))
    rows = rows.select(*map(column_of, df.columns), IS_EVENT)
    return partition_by_group(rows, spec).withColumn(
        RESULT, _make_decision_column(df, spec, backwards=backwards)
    )


def _make_decision_column(df: DataFrame, spec: OrderSpec, *, backwards: bool) -> Column:
    def antecede_decide(table: pa.Table, digests: Any, sizes: list[int]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        graph = graph_of(table.select(list(spec.used)), spec, digests)
        events: Any = table.column(IS_EVENT).to_numpy()
        found = pa.array(mark_reachable(graph, events, backwards=backwards))
        made = pa.StructArray.from_arrays([found, pa.array(graph.alive)], ["found", "placed"])
        yield from split_array(made, sizes)

    kind = t.StructType().add("found", t.BooleanType()).add("placed", t.BooleanType())
    return make_worker_column(df, spec, antecede_decide, kind, {IS_EVENT: F.col(IS_EVENT)})


def make_event_table(df: DataFrame, events: Sequence[object], id: str) -> DataFrame:
    """Return the ids as a table: `wanted` in the type of the id column, `text` as text."""
    if isinstance(events, str | bytes) or not isinstance(events, Sequence):
        raise InputError(
            f"events must be a list of ids or a DataFrame, not {type(events).__name__}"
        )
    if any(event is None for event in events):
        raise InputError("events contain null, which is not an id")
    kind = df.schema[id].dataType
    schema = t.StructType([t.StructField("wanted", kind), t.StructField("text", t.StringType())])
    if isinstance(kind, t.FractionalType) and not isinstance(kind, t.DecimalType):
        events = [float(one) if isinstance(one, int) else one for one in events]
    try:
        rows = [(event, str(event)) for event in dict.fromkeys(events)]
        if isinstance(kind, t.StringType) and not all(isinstance(one, str) for one in events):
            raise TypeError("not text")  # Spark would convert any value
        return df.sparkSession.createDataFrame(rows, schema)
    except (PySparkException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"events do not match column {id} of type {kind.simpleString()}: {error}"
        ) from error
