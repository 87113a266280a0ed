"""Causal order of oversized groups: a fixpoint over joins, distributed over all tasks.

1. `rows`: read identities and causes, mark duplicates, and number the other rows by (group, time,
   identity).
2. `find_edges`: look up causes by a join. With clocks and sequence numbers a missing cause still
   orders: the row follows the greatest smaller count of that member, found by ranges of (member,
   count).
3. `supersteps`: compute the release times r.
4. `depths`: compute the depths d and cycles. Rows on cycles are excluded, and 3 and 4 start again.
5. Sort rows in ranges of (group, r, d, number). The position is the count of the ranges before plus
   the index within.
6. Join the answer with the rows on everything that `order` reads.

The results equal those of `tables.order.table` row for row. All steps but the last run when
`transform` is called; only counts reach the driver. The input is read twice, and a change in
between raises an error.
"""

from __future__ import annotations

import logging
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as t

from antecede.spark.columns import column_of
from antecede.spark.fixpoint.depths import compute_depths
from antecede.spark.fixpoint.rows import (
    GROUP_NUMBER,
    add_signature,
    deduplicate,
    list_signature_names,
    number_rows,
    rank_rows,
    select_signature,
)
from antecede.spark.fixpoint.supersteps import compute_releases
from antecede.spark.fixpoint.tables import IntermediateTables, TaskLimits, remove_rows, union_tables
from antecede.spark.order_columns import make_empty_table
from antecede.tables.kernels import BEFORE_ALL
from antecede.tables.order import STATUSES, OrderSpec, Status, code, control_type, times_of

EDGE = ("c", "e", "k", "tc", "te", "timed", "lacks")
"""Edge: cause row (null: missing), effect row, index of the cause, times of both, whether the
effect has a time, whether the cause is missing.
"""


def find_edges(
    rows: DataFrame, spec: OrderSpec, tables: IntermediateTables
) -> tuple[DataFrame, int]:
    """Return the edges of the ranked rows, and their number."""
    identity = ["h", "g", "a", "n"]
    parts = tables.limits.count_partitions(tables.rows)
    rows = rows.where("NOT aside")
    there = rows.select(*identity, F.col("row").alias("c"), F.col("t").alias("tc"))
    named = rows.select(
        F.col("row").alias("e"),
        F.col("t").alias("te"),
        (~F.col("u")).alias("timed"),
        "g",
        F.posexplode("causes").alias("k", "cause"),
    )
    named = named.select(
        "e", "te", "timed", "g", "k", F.col("cause.a"), F.col("cause.n"), F.col("cause.required")
    ).withColumn("h", F.xxhash64("g", "a", "n"))
    found = named.repartition(parts, *identity).join(
        there.repartition(parts, *identity), identity, "left"
    )
    if spec.id is None:
        return _add_earlier_causes(found, there, tables)
    found = found.withColumn("lacks", F.isnull("c")).select(*EDGE)
    return tables.persist(found.repartition(parts, "c"))


def _add_earlier_causes(
    found: DataFrame, known: DataFrame, tables: IntermediateTables
) -> tuple[DataFrame, int]:
    """Connect an edge with a missing cause to the greatest smaller count of its member."""
    found, count = tables.persist(found)
    exact = found.where("c IS NOT NULL").withColumn("lacks", F.lit(False)).select(*EDGE)
    without = found.where("c IS NULL").drop("c", "tc")
    if not without.limit(1).count():
        return tables.persist(exact.repartition(tables.limits.count_partitions(count), "c"))
    near = (
        _find_earlier(without, known, tables).withColumn("lacks", F.col("required")).select(*EDGE)
    )
    return tables.persist(
        exact.unionByName(near).repartition(tables.limits.count_partitions(count), "c")
    )


def _find_earlier(unmatched: DataFrame, known: DataFrame, tables: IntermediateTables) -> DataFrame:
    member = ["hm", "g", "a"]
    rows = known.select("g", "a", "n", F.struct("c", "tc").alias("row"))
    both = unmatched.drop("h").unionByName(rows, allowMissingColumns=True)
    both = both.withColumns({"hm": F.xxhash64("g", "a"), "asks": F.isnull("row")})
    both, count = tables.persist(both)
    by = [*member, "n", "asks"]
    spread = both.repartitionByRange(tables.limits.count_partitions(count), *by)
    spread, _ = tables.persist(spread.withColumn("p", F.spark_partition_id()))
    here = Window.partitionBy("p", *member).orderBy("n", "asks")
    local = spread.withColumn("near", F.last("row", ignorenulls=True).over(here)).where("asks")
    # The last row of each partition: few rows.
    ends = spread.where("NOT asks").groupBy("p").agg(F.max(F.struct(*by, "row")).alias("end"))
    ends = ends.select(F.col("p").alias("before"), "end.hm", "end.g", "end.a", "end.row")
    local, _ = tables.persist(local.drop("row"))
    sure = local.where("near IS NOT NULL")
    open_ = local.where("near IS NULL").withColumn("q", F.monotonically_increasing_id())
    ends = ends.withColumnsRenamed({"hm": "hm2", "g": "g2", "a": "a2"})
    meets = (
        (F.col("hm") == F.col("hm2"))
        & (F.col("g") == F.col("g2"))
        & (F.col("a") == F.col("a2"))
        & (F.col("before") < F.col("p"))
    )
    asked_columns = [name for name in local.columns if name != "near"]
    carried = (
        open_.join(F.broadcast(ends), meets, "left")
        .groupBy("q")
        .agg(
            *(F.first(name).alias(name) for name in asked_columns),
            F.max_by("row", "before").alias("near"),
        )
    )
    made = sure.unionByName(carried.drop("q"))
    return made.withColumns({"c": F.col("near.c"), "tc": F.col("near.tc")})


LIMITS = TaskLimits()
LOGGER = logging.getLogger("antecede.spark.fixpoint.ordering")
"""Logger of fixpoint statistics at level INFO: rows, raised rows, exchanges, equal edges."""
ANSWER = "__antecede_fixpoint"
_ID_LIST = "array<string>"


def order_oversized(
    df: DataFrame, spec: OrderSpec, rows: int, limits: TaskLimits | None = None
) -> DataFrame:
    """Add `spec.added` to rows with `GROUP_NUMBER`. Raises InputError beyond `limits`."""
    tables = IntermediateTables(limits or LIMITS, max(rows, 1))
    try:
        answer, repeated = compute_answer(df, spec, tables)
    finally:
        tables.free()
    LOGGER.info(
        "%(rows)d rows of oversized groups; raised per superstep: %(raised)s; exchanges between "
        "ranges: %(exchanges)d for times, %(depth_exchanges)d for depths; %(tied)d edges of equal "
        "times",
        {"rows": rows, **tables.stats},
    )
    return _join_answer(df, spec, answer, repeated)


def compute_answer(
    df: DataFrame, spec: OrderSpec, tables: IntermediateTables
) -> tuple[DataFrame, bool]:
    """Return the outcome of each signature, and whether any signature has several rows."""
    kind = control_type(make_empty_table(df, spec), spec)
    lines, repeated = deduplicate(df, spec, tables)
    rows, count = rank_rows(lines, spec, kind, tables)
    links, found = find_edges(rows, spec, tables)
    facts = _solve(links, spec, (count, found), tables)
    positioned = _assign_positions(rows, facts, spec, tables)
    return tables.checkpoint(_build_answer(positioned, rows, df, spec), is_result=True), repeated


def _solve(
    links: DataFrame, spec: OrderSpec, counts: tuple[int, int], tables: IntermediateTables
) -> DataFrame:
    """Return release, depth, cycle, and indexes of late and missing causes of the rows with any."""
    lacks = F.col("lacks")
    circle: DataFrame | None = None
    while True:
        alive = links if circle is None else remove_rows(links, circle)
        lifted = None if spec.time is None else compute_releases(alive, counts, tables)
        touched = (
            alive.where("c IS NOT NULL")
            if lifted is None
            else _select_waiting_edges(alive, lifted, tables)
        )
        deep, found = compute_depths(_select_tied_edges(touched, lifted), counts[0], tables)
        if found is None:
            break
        circle = found
    says = [deep]
    missing = links.where(lacks)
    if circle is not None:
        says.append(circle.withColumn("cycle", F.lit(True)))
        missing = union_tables(
            [missing, links.join(circle, F.col("c") == F.col("row"), "left_semi")]
        )
    says.append(missing.select(F.col("e").alias("row"), F.col("k").alias("lacking")))
    if lifted is not None:
        says.append(lifted)
        waits = touched.where(F.col("timed") & ~lacks & (F.col("rc") > F.col("te")))
        says.append(waits.select(F.col("e").alias("row"), F.col("k").alias("waiting")))
    return _collect_by_row(union_tables(says), circle is not None, lifted is not None)


def _collect_by_row(facts: DataFrame, has_cycles: bool, has_times: bool) -> DataFrame:
    absent = [
        ("cycle", "boolean", has_cycles),
        ("released", "bigint", has_times),
        ("waiting", "int", has_times),
    ]
    for name, kind, there in absent:
        if not there:
            facts = facts.withColumn(name, F.lit(None).cast(kind))
    return facts.groupBy("row").agg(
        F.max("released").alias("released"),
        F.max("depth").alias("depth"),
        F.max("cycle").alias("cycle"),
        F.array_sort(F.collect_set("waiting")).alias("waiting"),
        F.array_sort(F.collect_set("lacking")).alias("lacking"),
    )


def _select_waiting_edges(
    links: DataFrame, releases: DataFrame, tables: IntermediateTables
) -> DataFrame:
    """Return the edges whose cause is released at or after the effect's time, with release `rc`."""
    of_cause = releases.select(F.col("row").alias("c"), F.col("released").alias("rc"))
    found = links.where("c IS NOT NULL").join(of_cause, "c", "left")
    return tables.checkpoint(found.withColumn("rc", F.coalesce("rc", "tc")).where("rc >= te"))


def _select_tied_edges(waiting: DataFrame, releases: DataFrame | None) -> DataFrame:
    if releases is None:
        return waiting.select("c", "e")
    of_effect = releases.select(F.col("row").alias("e"), "released")
    found = waiting.join(of_effect, "e", "left")
    return found.where(F.coalesce("released", "te") == F.col("rc")).select("c", "e")


def _assign_positions(
    rows: DataFrame, facts: DataFrame, spec: OrderSpec, tables: IntermediateTables
) -> DataFrame:
    rows = rows.where("NOT aside").join(facts, "row", "left")
    rows = rows.withColumns(
        {
            "r": F.coalesce("released", "t"),
            "d": F.coalesce("depth", F.lit(0).cast("bigint")),
            "waited": _look_up_ids(F.col("waiting"), spec),
            "missing": _look_up_ids(F.col("lacking"), spec),
        }
    ).drop("released", "depth", "waiting", "lacking", "causes", "h", "n", "a")
    rows, _ = tables.persist(rows)
    by = ["g", "r", "d", "row"]
    going = rows.where("cycle IS NULL")
    spread = going.repartitionByRange(tables.limits.count_partitions(tables.rows), *by)
    spread = spread.sortWithinPartitions(*by)
    spread, _ = tables.persist(spread.withColumn("place", F.monotonically_increasing_id()))
    numbered = spread.withColumn("position", number_rows(spread, "place")).drop("place")
    before = spread.groupBy("g").count()
    # One window partition; a condition that is not a literal avoids Spark's warning.
    all_groups = F.col("count") > 0
    earlier = Window.partitionBy(all_groups).orderBy("g").rowsBetween(Window.unboundedPreceding, -1)
    starts = before.select("g", F.coalesce(F.sum("count").over(earlier), F.lit(0)).alias("start"))
    numbered = numbered.join(F.broadcast(starts), "g")
    numbered = numbered.withColumn("position", F.col("position") - F.col("start")).drop("start")
    return union_tables([numbered, rows.where("cycle")])


def _look_up_ids(indexes: Column, spec: OrderSpec) -> Column:
    def name(place: Column) -> Column:
        cause = F.get("causes", place)
        return cause["a"] if spec.id is not None else F.concat_ws(":", cause["a"], cause["n"])

    return F.coalesce(F.transform(indexes, name), F.array().cast(_ID_LIST))


def _build_answer(
    positioned: DataFrame, rows: DataFrame, df: DataFrame, spec: OrderSpec
) -> DataFrame:
    """Return the outcome of each signature: that of its first row, and the status of the others."""
    lacks = F.size("missing") > 0
    status = F.when(F.col("cycle"), int(code(Status.CYCLE)))
    status = status.when(lacks, int(code(Status.MISSING_CAUSE))).otherwise(F.col("first"))
    alive = F.isnull("cycle")
    positioned = positioned.withColumns(
        {
            "first": status.cast("tinyint"),
            "waited": F.when(
                alive, F.when(F.col("u"), F.array().cast(_ID_LIST)).otherwise(F.col("waited"))
            ),
            "missing": F.when(alive, F.col("missing")),
            "wait": F.when(
                alive & ~F.col("u"), _compute_wait(times_of(make_empty_table(df, spec), spec)[2])
            ),
            "at": F.when(alive, _compute_released_at(df, spec)),
        }
    )
    names = list_signature_names(spec)
    whole = union_tables([positioned, rows.where("aside").select(*names, "first", "rest")])
    return whole.select(*names, "first", "rest", "position", "waited", "missing", "wait", "at")


def _compute_wait(per_ms: float | None) -> Column:
    """Return r - time in ms; as floating point if the difference exceeds 63 bits."""
    if per_ms is None:
        return F.lit(None).cast("double")
    r, t = F.col("r"), F.col("t")
    wait = F.coalesce(F.try_subtract(r, t).cast("double"), r.cast("double") - t.cast("double"))
    return F.when(r != BEFORE_ALL, wait / F.lit(per_ms))


def _compute_released_at(df: DataFrame, spec: OrderSpec) -> Column:
    kind = None if spec.time is None else df.schema[spec.time].dataType
    if kind is None:
        return F.lit(None).cast("timestamp")
    known = F.when(F.col("r") != BEFORE_ALL, F.col("r"))
    if isinstance(kind, t.IntegralType):
        return F.lit(None).cast("bigint") if spec.time_unit is None else known
    if isinstance(kind, t.TimestampType):
        return F.timestamp_micros(known)
    seconds = known.cast("decimal(20,0)") / (1000 if isinstance(kind, t.DateType) else 1_000_000)
    since = F.make_dt_interval(F.lit(0), F.lit(0), F.lit(0), seconds.cast("decimal(18,6)"))
    return F.to_timestamp_ntz(F.lit("1970-01-01 00:00:00")) + since


def _join_answer(df: DataFrame, spec: OrderSpec, answer: DataFrame, has_repeats: bool) -> DataFrame:
    """Join each row with its outcome; of rows that `order` cannot distinguish, one is the first."""
    names = list_signature_names(spec)
    keys = [f"{ANSWER}_{name}" for name in names]
    given = add_signature(df, spec)
    own = [column_of(name) for name in df.columns if name != GROUP_NUMBER]
    sign = [
        column.alias(key) for column, key in zip(select_signature(given, spec), keys, strict=True)
    ]
    rows = given.select(*own, *sign)
    first: Any = F.lit(True)
    if has_repeats:
        first = F.row_number().over(Window.partitionBy(*keys).orderBy(keys[1])) == 1
    rows = rows.withColumn(f"{ANSWER}_first", first)
    answer = answer.withColumnsRenamed({name: f"{ANSWER}__{name}" for name in answer.columns})
    meets = [F.col(f"{ANSWER}_{name}").eqNullSafe(F.col(f"{ANSWER}__{name}")) for name in names]
    # Spark does not know the size of a checkpoint and must not broadcast it.
    return rows.join(answer.hint("merge"), reduce(and_, meets), "left").select(
        *own, *_select_added(spec)
    )


def _select_added(spec: OrderSpec) -> list[Column]:
    first = F.col(f"{ANSWER}_first")
    which = F.when(first, F.col(f"{ANSWER}__first")).otherwise(F.col(f"{ANSWER}__rest"))
    texts = F.array(*(F.lit(str(status)) for status in STATUSES))
    lost = F.raise_error(
        F.lit(
            "antecede: the input changed between two reads: write or checkpoint it before ordering"
        )
    )
    status = F.coalesce(F.get(texts, which.cast("int")), lost.cast("string"))
    made = [
        F.when(first, F.col(f"{ANSWER}__{name}"))
        for name in ("position", "waited", "missing", "wait", "at")
    ]
    return [column.alias(name) for column, name in zip([*made, status], spec.added, strict=True)]
