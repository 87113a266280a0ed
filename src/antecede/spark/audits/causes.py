"""Counts of an audit by declared causes, as joins and aggregations.

Rows are grouped by run and id, and causes are joined by run and id. The rules are those of
`tables.trace.rows` and `tables.audit.counts`; tests compare both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.window import Window

from antecede.spark.audits.event_columns import ROW, ROW_ORDER, RUN_KEY
from antecede.spark.audits.run_graph import count_graphs
from antecede.spark.columns import is_blank
from antecede.tables.audit import PairChoice
from antecede.tables.trace import CONTENT, DELIVER, NO_ID, ORDERS, RECEIVE

CAUSE_IDS, REASON = "__antecede_names", "reason"
MAX_LONG = (1 << 63) - 1


class AuditLimits(NamedTuple):
    """Limits of the task of one run; beyond them the query fails."""

    pairs: PairChoice
    max_graph_edges: int


def mark_events(events: DataFrame) -> DataFrame:
    """Add `first` (the row is the event), `again` (a later row of one) and `reason` (invalid)."""
    events = events.withColumn("__named", ~is_blank(F.col("id")))
    second = F.coalesce(_get_kind(events).isin(RECEIVE, DELIVER), F.lit(False))
    events = events.withColumn("__second", second)
    # Rows without an id are no events: spread them instead of sorting them in one task.
    spread = F.when(F.col("__named"), F.lit(None)).otherwise(F.col(ROW_ORDER))
    own = Window.partitionBy(RUN_KEY, "id", spread).orderBy("__second", ROW_ORDER)
    content = [name for name in CONTENT if name in events.columns]
    events = events.withColumn("__number", F.row_number().over(own))
    first = F.first(F.struct(*content, F.lit(0).alias("__some"))).over(own)
    events = events.withColumn("__of_first", first)
    again = F.col("__named") & (F.col("__number") > 1) & ~F.col("__second")
    differ = [
        F.when(~_to_set(F.col(name)).eqNullSafe(_to_set(F.col("__of_first")[name])), F.lit(name))
        if name != "member"
        else F.when(~F.col(name).eqNullSafe(F.col("__of_first")[name]), F.lit(name))
        for name in content
    ]
    named = F.concat_ws(", ", *differ) if differ else F.lit("")
    conflict = F.concat(
        F.lit("an earlier row of this id differs in "), named, F.lit("; that one counts")
    )
    reason = F.when(~F.col("__named"), F.lit(NO_ID)).when(again & (named != ""), conflict)
    return events.withColumns(
        {
            "first": F.col("__named") & (F.col("__number") == 1),
            "again": again,
            REASON: reason,
        }
    ).drop("__of_first", "__number")


def select_distinct_events(rows: DataFrame) -> DataFrame:
    """Return the events with distinct causes in `CAUSE_IDS` and the hashes `node`, `check`."""
    events = rows.where("first")
    given = F.col("causes") if "causes" in rows.columns else F.array().cast("array<string>")
    given = F.coalesce(given, F.array().cast("array<string>"))
    blank = F.filter(given, is_blank)
    kept = F.filter(given, lambda name: ~is_blank(name) & (name != F.col("id")))
    return events.withColumns(
        {
            CAUSE_IDS: F.array_distinct(kept),
            "__selfish": F.coalesce(F.array_contains(given, F.col("id")), F.lit(False)),
            "__repeated": F.size(kept) - F.size(F.array_distinct(kept)),
            "__blank": F.size(blank),
            "node": F.xxhash64("id"),
            "check": F.hash("id"),
        }
    ).drop(ROW)


def join_causes(effects: DataFrame, causes: DataFrame) -> DataFrame:
    """Return a row per declared cause: columns of the effect, and of the cause (null: missing)."""
    orders = [name for name in ORDERS if name in effects.columns]
    member = ["member"] if "member" in effects.columns else []
    effect = effects.select(
        RUN_KEY,
        F.explode(CAUSE_IDS).alias("name"),
        F.col("node").alias("effect"),
        F.col("check").alias("check_of_effect"),
        *(F.col(name).alias(f"effect_{name}") for name in [*member, *orders]),
    )
    cause = causes.select(
        F.col(RUN_KEY).alias("__cause_run"),
        F.col("id").alias("__cause_id"),
        F.col("node").alias("cause"),
        F.col("check").alias("check_of_cause"),
        *(F.col(name).alias(f"cause_{name}") for name in [*member, *orders]),
    )
    same = (effect[RUN_KEY] == cause["__cause_run"]) & (effect["name"] == cause["__cause_id"])
    return effect.join(cause, same, "left").drop("__cause_run", "__cause_id")


def find_cycles(events: DataFrame, limits: AuditLimits) -> tuple[DataFrame, DataFrame]:
    """Return the graph's counts, one row per run, and the hashes of events on cycles."""
    present = join_causes(events, events).where(F.col("cause").isNotNull())
    found = count_graphs(present, limits.pairs, limits.max_graph_edges)
    return found.where("node IS NULL").drop("node"), found.where("node IS NOT NULL").select(
        RUN_KEY, "node"
    )


def count_rows(rows: DataFrame) -> DataFrame:
    """Count the rows of each run."""
    run = F.max("run") if "run" in rows.columns else F.lit(None).cast("string")
    named = F.col("__named")
    return rows.groupBy(RUN_KEY).agg(
        F.nullif(run, F.lit("")).alias("run"),
        F.count(F.lit(1)).alias("rows"),
        F.count_if("again").alias("duplicates"),
        F.count_if(F.col(REASON).isNotNull() & named).alias("conflicting_rows"),
        F.count_if(F.col(REASON).isNotNull()).alias("quarantined"),
        F.count_if(named & (_get_kind(rows) == RECEIVE)).alias("receipts"),
        F.count_if(named & (_get_kind(rows) == DELIVER)).alias("deliveries"),
    )


def count_declared_causes(events: DataFrame) -> DataFrame:
    """Count self-causes, repeated and blank causes, including those of events on cycles."""
    return events.groupBy(RUN_KEY).agg(
        F.count_if("__selfish").alias("self_causes"),
        F.sum("__repeated").alias("repeated_causes"),
        F.sum("__blank").alias("blank_causes"),
    )


def count_events(events: DataFrame) -> DataFrame:
    """Count the events that are on no cycle."""
    size = F.size(CAUSE_IDS)
    orders = [name for name in ORDERS if name in events.columns]
    member = F.col("member") if "member" in events.columns else F.lit(None).cast("string")
    return events.groupBy(RUN_KEY).agg(
        F.count(F.lit(1)).alias("messages"),
        F.nullif(F.count_distinct(member), F.lit(0)).alias("members"),
        F.count_if(size == 0).alias("roots"),
        F.count_if(size > 1).alias("merges"),
        F.max(size).cast("long").alias("max_causes"),
        *(F.count(name).alias(f"known_{name}") for name in orders),
    )


def count_edges(edges: DataFrame) -> DataFrame:
    """Count the causes of events that are on no cycle."""
    there = F.col("cause").isNotNull()
    orders = [name.removeprefix("effect_") for name in edges.columns if name.startswith("effect_")]
    cross = F.lit(None).cast("boolean")
    if "member" in orders:
        orders.remove("member")
        cross = F.col("effect_member") != F.col("cause_member")
    steps = {name: measure_step_back(name) for name in orders}
    return edges.groupBy(RUN_KEY).agg(
        F.count_if(there).alias("edges"),
        F.count_if(~there).alias("missing_causes"),
        F.count_distinct(F.when(~there, F.col("name"))).alias("missing_ids"),
        F.count_if(cross).alias("cross_member_edges"),
        *(F.count_if(has_both_ends(name)).alias(f"both_{name}") for name in orders),
        *(F.count_if(back > 0).alias(f"back_{name}") for name, back in steps.items()),
        *(F.max(back).alias(f"most_{name}") for name, back in steps.items()),
    )


def count_or_zero(name: str) -> Column:
    """Return a count of a run, 0 if no row contributed."""
    return F.coalesce(F.col(name), F.lit(0)).cast("long")


def count_all_pairs(events: Column) -> Column:
    """Return n (n - 1) / 2 without overflow of 64 bits."""
    return F.shiftright(events, 1) * (events - 1).bitwiseOR(F.lit(1))


def make_empty_counts() -> Column:
    """Return an empty map of names to counts."""
    return F.create_map().cast("map<string, bigint>")


def collect_reasons(counted: DataFrame) -> DataFrame:
    """Return the reason counts of each run as a map, `__reasons`."""
    pairs = F.collect_list(F.struct("reason", "count"))
    return counted.groupBy(RUN_KEY).agg(F.map_from_entries(pairs).alias("__reasons"))


def build_order_maps(orders: Sequence[str]) -> dict[str, Column]:
    """Return the maps of a report from the columns of `count_edges` and `count_events`."""

    def map_of(value: Callable[[str], Column]) -> Column:
        pairs = [part for name in orders for part in (F.lit(name), value(name))]
        found = F.map_filter(F.create_map(*pairs), lambda _, count: count.isNotNull())
        return found if orders else make_empty_counts()

    def where_known(kind: str) -> Callable[[str], Column]:
        return lambda name: F.when(F.col(f"known_{name}") > 0, count_or_zero(f"{kind}_{name}"))

    return {
        "inversions": map_of(where_known("back")),
        "compared_edges": map_of(where_known("both")),
        "max_inversions": map_of(lambda name: F.col(f"most_{name}")),
    }


def has_both_ends(order: str) -> Column:
    """Return whether both ends of an edge have a value in an order."""
    return F.col(f"cause_{order}").isNotNull() & F.col(f"effect_{order}").isNotNull()


def measure_step_back(order: str) -> Column:
    """Return how far an edge goes backward; null if it does not, or is unknown."""
    cause, effect = F.col(f"cause_{order}"), F.col(f"effect_{order}")
    exact = F.coalesce(F.try_subtract(cause, effect), F.lit(MAX_LONG))
    return F.when(cause > effect, exact)


def _to_set(values: Column) -> Column:
    return F.sort_array(F.array_distinct(values))


def _get_kind(rows: DataFrame) -> Column:
    return F.col("kind") if "kind" in rows.columns else F.lit("event")
