"""Causal order of groups that fit no task: a fixpoint over joins, nothing of it in one process.

Theory of operation
-------------------
1. `rows`: every row's identity and causes as values, repeats set aside, the others numbered by
   (group, time, identity).
2. `edges`: causes are looked up by a join, and are numbers from there on. A hash finds where to
   look, the identity itself decides. With clocks and numbers an absent cause still orders: the row
   stands after the greatest count of that member below it. Ranges of (member, count) find it, so
   that a member with any number of rows is spread too.
3. `supersteps`: r.
4. `depths`: d, and cycles. Rows on cycles are set aside, and 3 and 4 start again.
5. Rows are sorted in ranges of (group, r, d, number); a position is the count of the ranges before
   plus the place within.
6. The answer meets the rows again by all that `order` reads of them.

The definition is that of `tables.order.table`, and so is the answer, row for row. All steps but the
last run when `transform` is called, because the number of rounds is seen on the way; only counts
come to the driver. The rows are read twice: an input that changes in between raises an error.
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
"""An edge: rows of cause and effect (`c` null: nowhere), the place of the cause among those of the
effect, the times of both, whether the effect has one, and whether the cause is nowhere."""


def find_edges(
    rows: DataFrame, spec: OrderSpec, tables: IntermediateTables
) -> tuple[DataFrame, int]:
    """Return the edges of the ranked rows, and how many there are."""
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
    """Let an edge whose cause is nowhere go to the greatest earlier count of its member."""
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
    """Add `c` and `tc` of the row with the greatest count below the one asked for, or null."""
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
    # The last row of each member in each partition but those where it is the only one: few.
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
"""Says at level INFO what each fixpoint took: rows, rows raised a round, exchanges, equal edges."""
ANSWER = "__antecede_fixpoint"
_ID_LIST = "array<string>"


def order_oversized(
    df: DataFrame, spec: OrderSpec, rows: int, limits: TaskLimits | None = None
) -> DataFrame:
    """Order the rows of giant groups, numbered by the column `fixpoint.rows.GROUP`; `rows`: their
    count.

    Returns the columns of `df`, then those of `spec.added`. Raises InputError when a bound of
    `limits` is passed.
    """
    tables = IntermediateTables(limits or LIMITS, max(rows, 1))
    try:
        answer, repeated = compute_answer(df, spec, tables)
    finally:
        tables.free()
    LOGGER.info(
        "%(rows)d rows of giant groups; raised a round: %(raised)s; exchanges between parts: "
        "%(exchanges)d for times, %(depth_exchanges)d for depths; %(tied)d edges of equal times",
        {"rows": rows, **tables.stats},
    )
    return _join_answer(df, spec, answer, repeated)


def compute_answer(
    df: DataFrame, spec: OrderSpec, tables: IntermediateTables
) -> tuple[DataFrame, bool]:
    """Return what becomes of the rows of each signature, and whether any has several rows."""
    kind = control_type(make_empty_table(df, spec), spec)
    lines, repeated = deduplicate(df, spec, tables)
    rows, count = rank_rows(lines, spec, kind, tables)
    links, found = find_edges(rows, spec, tables)
    said = _solve(links, spec, (count, found), tables)
    placed = _assign_positions(rows, said, spec, tables)
    return tables.checkpoint(_build_answer(placed, rows, df, spec), is_result=True), repeated


def _solve(
    links: DataFrame, spec: OrderSpec, counts: tuple[int, int], tables: IntermediateTables
) -> DataFrame:
    """Return, of each row that has any: released, depth, cycle, causes waited for and missing.

    The causes are their places among those that the row names.
    """
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
    """Gather what is said of each row."""
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
    """Return the edges whose cause does not go before the effect came, with `rc`, its release."""
    of_cause = releases.select(F.col("row").alias("c"), F.col("released").alias("rc"))
    found = links.where("c IS NOT NULL").join(of_cause, "c", "left")
    return tables.checkpoint(found.withColumn("rc", F.coalesce("rc", "tc")).where("rc >= te"))


def _select_tied_edges(waiting: DataFrame, releases: DataFrame | None) -> DataFrame:
    """Return the edges whose two rows go at the same time."""
    if releases is None:
        return waiting.select("c", "e")
    of_effect = releases.select(F.col("row").alias("e"), "released")
    found = waiting.join(of_effect, "e", "left")
    return found.where(F.coalesce("released", "te") == F.col("rc")).select("c", "e")


def _assign_positions(
    rows: DataFrame, facts: DataFrame, spec: OrderSpec, tables: IntermediateTables
) -> DataFrame:
    """Return the rows that have a position, with it and with the names of their causes."""
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
    # One partition of counts: a condition that Spark cannot know to be constant spares a warning.
    all_groups = F.col("count") > 0
    earlier = Window.partitionBy(all_groups).orderBy("g").rowsBetween(Window.unboundedPreceding, -1)
    starts = before.select("g", F.coalesce(F.sum("count").over(earlier), F.lit(0)).alias("start"))
    numbered = numbered.join(F.broadcast(starts), "g")
    numbered = numbered.withColumn("position", F.col("position") - F.col("start")).drop("start")
    return union_tables([numbered, rows.where("cycle")])


def _look_up_ids(indexes: Column, spec: OrderSpec) -> Column:
    """Return the names of the causes at some places."""

    def name(place: Column) -> Column:
        cause = F.get("causes", place)
        return cause["a"] if spec.id is not None else F.concat_ws(":", cause["a"], cause["n"])

    return F.coalesce(F.transform(indexes, name), F.array().cast(_ID_LIST))


def _build_answer(
    positioned: DataFrame, rows: DataFrame, df: DataFrame, spec: OrderSpec
) -> DataFrame:
    """Return the answer for each signature: its first row's, and the status of its others."""
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
    """Return r - time in ms; as numbers with a point where the difference passes 63 bits."""
    if per_ms is None:
        return F.lit(None).cast("double")
    r, t = F.col("r"), F.col("t")
    wait = F.coalesce(F.try_subtract(r, t).cast("double"), r.cast("double") - t.cast("double"))
    return F.when(r != BEFORE_ALL, wait / F.lit(per_ms))


def _compute_released_at(df: DataFrame, spec: OrderSpec) -> Column:
    """Return r as a value of the type of the times."""
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
    """Give each row its answer: of rows that are equal in all that `order` reads, the first one."""
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
    # Spark does not know how large what is cut off is: it must not send it to every task.
    return rows.join(answer.hint("merge"), reduce(and_, meets), "left").select(
        *own, *_select_added(spec)
    )


def _select_added(spec: OrderSpec) -> list[Column]:
    """Return the added columns of a row that has met its answer."""
    first = F.col(f"{ANSWER}_first")
    which = F.when(first, F.col(f"{ANSWER}__first")).otherwise(F.col(f"{ANSWER}__rest"))
    texts = F.array(*(F.lit(str(status)) for status in STATUSES))
    lost = F.raise_error(
        F.lit(
            "antecede: a row was not there, or another one, when the data were read a second time: "
            "order what does not change (write it, or checkpoint it, first)"
        )
    )
    status = F.coalesce(F.get(texts, which.cast("int")), lost.cast("string"))
    made = [
        F.when(first, F.col(f"{ANSWER}__{name}"))
        for name in ("position", "waited", "missing", "wait", "at")
    ]
    return [column.alias(name) for column, name in zip([*made, status], spec.added, strict=True)]
