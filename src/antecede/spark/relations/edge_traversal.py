"""Declared causes followed outwards from some events, a join a step; then one engine decides."""

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
from antecede.spark.evidence import keys_of, named_causes, refuse_unless_supported
from antecede.spark.partitions import by_group, made_by_worker, slices
from antecede.spark.relations.labels import MADE, checked
from antecede.tables.causality import NO_PLACE, marked, not_there
from antecede.tables.order import OrderSpec, graph_of

EVENT = "__antecede_event"
"""Hidden column: whether a row is one of the given events."""
_SMALL = 1_000_000
"""Rows of one step that are sent to every task: else Spark would sort all edges at each."""
HIDDEN = ("__antecede_g", "__antecede_k")


def walk(
    df: DataFrame, events: Sequence[object], spec: OrderSpec, rounds: int, *, backwards: bool
) -> DataFrame:
    """Return the rows before (else after) the events; see `reaching.past`.

    Runs a job a step. Raises InputError for events without an answer and after `rounds` steps.
    """
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise InputError(f"rounds must be a whole number of at least 1, not {rounds!r}")
    name = str(spec.id)
    checked(df, spec, "following causes")
    refuse_unless_supported(df, spec)
    wanted = wanted_of(df, events, name)
    keyed = df.select(*keys_of(df, spec), column_of(name).alias("own"))
    seeds = keyed.join(F.broadcast(wanted), F.col("own") == F.col("wanted"), "left_semi")
    seeds = seeds.distinct().localCheckpoint()
    _refuse(wanted.join(seeds, F.col("own") == F.col("wanted"), "left_anti"), not_there("{}"))
    edges = edges_of(df, spec, backwards=backwards).persist()
    try:
        reached = reached_by(edges, seeds.select("g", "k", F.lit(True).alias(EVENT)), rounds)
        made = _decided(df, reached, spec, backwards=backwards).localCheckpoint()
    finally:
        edges.unpersist()
    placed = made.where(F.col(EVENT) & F.col(MADE)["placed"]).select(column_of(name).alias("own"))
    lost = wanted.join(placed, F.col("own") == F.col("wanted"), "left_anti")
    _refuse(lost, "the event {} " + NO_PLACE)
    return made.where(F.col(MADE)["found"]).select(*map(column_of, df.columns))


def _refuse(wrong: DataFrame, said: str) -> None:
    row = wrong.select("said").orderBy("said").first()
    if row is not None:
        raise InputError(said.format(row[0]))


def edges_of(df: DataFrame, spec: OrderSpec, *, backwards: bool) -> DataFrame:
    """Return the declared causes, as (g, step from, step to); each once."""
    return named_causes(df, spec, backwards=backwards).distinct()


def reached_by(edges: DataFrame, seeds: DataFrame, rounds: int) -> DataFrame:
    """Return (g, k, event): the events and all that steps lead to. Raises InputError."""
    found, front = seeds, seeds.select("g", "k")
    small = front.count() <= _SMALL
    for done in range(rounds + 1):
        known = front.withColumnRenamed("k", "start")
        step = edges.join(F.broadcast(known) if small else known, ["g", "start"])
        step = step.select("g", F.col("end").alias("k")).distinct()
        front = step.join(found, ["g", "k"], "left_anti").localCheckpoint()
        if not (size := front.count()):
            return found
        small = size <= _SMALL
        found = found.unionAll(front.withColumn(EVENT, F.lit(False)))
        if done % 16 == 15:  # plans that grow for ever are slow to make
            found = found.localCheckpoint()
    raise InputError(
        f"causes lead further than rounds={rounds} steps: raise it (a Spark job a step), or stamp "
        "the table by add_causal_labels and ask without after=, which takes none"
    )


def _decided(df: DataFrame, reached: DataFrame, spec: OrderSpec, *, backwards: bool) -> DataFrame:
    """Return the rows reached, and what the engine says of them in the column MADE."""
    group, key = keys_of(df, spec)
    reached = reached.toDF(*HIDDEN, EVENT)
    rows = df.join(reached, (group == F.col(HIDDEN[0])) & (key == F.col(HIDDEN[1])))
    rows = rows.select(*map(column_of, df.columns), EVENT)
    return by_group(rows, spec).withColumn(MADE, _deciding(df, spec, backwards=backwards))


def _deciding(df: DataFrame, spec: OrderSpec, *, backwards: bool) -> Column:
    def antecede_decide(table: pa.Table, digests: Any, sizes: list[int]) -> Iterator[pa.Array]:  # type: ignore[type-arg]
        graph = graph_of(table.select(list(spec.used)), spec, digests)
        events: Any = table.column(EVENT).to_numpy()
        found = pa.array(marked(graph, events, backwards=backwards))
        made = pa.StructArray.from_arrays([found, pa.array(graph.alive)], ["found", "placed"])
        yield from slices(made, sizes)

    kind = t.StructType().add("found", t.BooleanType()).add("placed", t.BooleanType())
    return made_by_worker(df, spec, antecede_decide, kind, {EVENT: F.col(EVENT)})


def wanted_of(df: DataFrame, events: Sequence[object], id: str) -> DataFrame:
    """Return the ids in a column `wanted` of the type of the column, and as text in `said`."""
    if isinstance(events, str | bytes) or not isinstance(events, Sequence):
        raise InputError(
            f"events must be a list of ids or a DataFrame, not {type(events).__name__}"
        )
    if any(event is None for event in events):
        raise InputError("events contain null: give ids")
    kind = df.schema[id].dataType
    schema = t.StructType([t.StructField("wanted", kind), t.StructField("said", t.StringType())])
    if isinstance(kind, t.FractionalType) and not isinstance(kind, t.DecimalType):
        events = [float(one) if isinstance(one, int) else one for one in events]
    try:
        rows = [(event, str(event)) for event in dict.fromkeys(events)]
        if isinstance(kind, t.StringType) and not all(isinstance(one, str) for one in events):
            raise TypeError("not text")  # Spark would make text of anything
        return df.sparkSession.createDataFrame(rows, schema)
    except (PySparkException, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"events do not match column {id} ({kind.simpleString()}): {error}"
        ) from error
