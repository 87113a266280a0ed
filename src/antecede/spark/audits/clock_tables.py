"""Counts of an audit by vector clocks, as joins, windows and aggregations per member.

The rules are those of `tables.kernels.vector_clocks` and `tables.audit.counts`; tests compare both.
The event (g, n) is in the past of e if V(e)[g] >= n (Mattern 1989). So the number of events of g
that an entry covers is a prefix count: the JVM sorts events and entries of one member of a run by
number and counts in one pass.

If a member's clocks never decrease, an unchanged entry is wrong only if it was wrong at the
previous event. So all entries are compared only for members with a decrease, or with a
contradiction at a changed entry.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.window import Window

from antecede.spark.audits.event_columns import ROW_ORDER, RUN_KEY
from antecede.spark.columns import is_blank
from antecede.tables.trace import BAD_CLOCK, DELIVER, NO_CLOCK, NO_ID, ORDERS, RECEIVE

TEXT_COLUMNS = ("run", "member", "text", "source")
NO_OWN_REASON = "__no_own"
"""Placeholder for the reason that names a member; a Python task replaces it."""


class ClockRows(NamedTuple):
    """Rows and events of clock logs."""

    rows: DataFrame
    """All rows, with `first`, `again` and `reason` (why quarantined)."""
    valid: DataFrame
    """Rows with a valid clock and own entry, in the schema's columns."""
    events: DataFrame
    """Distinct events in their members' order (`at`), with values of the previous one (`*_then`).
    """


def read_clock_rows(events: DataFrame) -> ClockRows:
    """Return the rows and events of clock logs; columns as of `event_columns.select_events`."""
    given = [name for name in events.columns if name != "seq"]
    rows = _mark_events(_add_clocks(events))
    good = rows.where(~F.col("__refused")).select(*given, F.col("__own").alias("seq"))
    return ClockRows(rows, good, _order_events(rows.where("first")))


def _add_clocks(events: DataFrame) -> DataFrame:
    """Add `__clock` (map), `__own` (the event's own entry) and `reason`."""
    absent = {
        name: F.lit(None).cast("string") for name in TEXT_COLUMNS if name not in events.columns
    }
    absent |= {"kind": F.lit("event")} if "kind" not in events.columns else {}
    absent |= {"line": F.lit(None).cast("long")} if "line" not in events.columns else {}
    for name, kind in (("clock_members", "string"), ("clock_counts", "long")):
        if name not in events.columns:
            absent[name] = F.lit(None).cast(f"array<{kind}>")
    events = events.withColumns(absent)
    names = F.col("clock_members")
    counts = F.coalesce(F.col("clock_counts"), F.array().cast("array<bigint>"))
    paired = (
        (F.size(names) == F.size(counts))
        & (F.size(F.array_distinct(names)) == F.size(names))
        & ~F.exists(names, is_blank)
        & ~F.exists(counts, lambda count: count.isNull() | (count < 0))
    )
    clock = F.when(names.isNotNull() & paired, F.map_from_arrays(names, counts))
    events = events.withColumn("__clock", clock)
    events = events.withColumn("__own", F.try_element_at("__clock", F.col("member")))
    reason = (
        F.when(names.isNull(), F.lit(NO_CLOCK))
        .when(F.col("__clock").isNull(), F.lit(BAD_CLOCK))
        .when(F.coalesce(F.col("__own"), F.lit(0)) == 0, F.lit(NO_OWN_REASON))
    )
    return events.withColumn("reason", reason).withColumn("__refused", reason.isNotNull())


def _mark_events(rows: DataFrame) -> DataFrame:
    """Add `first` (the row is the event) and `again` (a later row of one)."""
    named = ~F.col("__refused") & ~is_blank(F.col("id"))
    second = F.coalesce(F.col("kind").isin(RECEIVE, DELIVER), F.lit(False))
    rows = rows.withColumns({"__named": named, "__second": second})
    # Spread rows that are no events instead of sorting them in one task.
    spread = F.when(F.col("__named"), F.lit(None)).otherwise(F.col(ROW_ORDER))
    same = Window.partitionBy(RUN_KEY, "id", spread, "clock_members", "clock_counts", "text")
    rows = rows.withColumn("__number", F.row_number().over(same.orderBy("__second", ROW_ORDER)))
    no_id = F.when(~F.col("__refused") & ~F.col("__named"), F.lit(NO_ID))
    return rows.withColumns(
        {
            "first": F.col("__named") & (F.col("__number") == 1),
            "again": F.col("__named") & (F.col("__number") > 1) & ~F.col("__second"),
            "reason": F.coalesce(F.col("reason"), no_id),
        }
    )


def _order_events(chosen: DataFrame) -> DataFrame:
    """Return events with `at` (from 1) and the previous event's `own_then` and `clock_then`."""
    orders = [name for name in ORDERS if name in chosen.columns]
    events = chosen.select(
        *(RUN_KEY, "id", "run", "member", "source", "line"),
        F.col(ROW_ORDER).alias("place"),
        F.col("__own").alias("own"),
        F.col("__clock").alias("clock"),
        F.struct(F.lit(0).alias("__some"), *orders).alias("orders"),
    )
    member = Window.partitionBy(RUN_KEY, "member")
    again = F.col("own") == F.lag("own").over(member.orderBy("own", "place"))
    events = events.withColumn("__again", F.coalesce(again, F.lit(False)))
    # Events of a member that repeats a number are ordered by their rows.
    own = F.when(F.max("__again").over(member), F.lit(0)).otherwise(F.col("own"))
    events = events.withColumns({"__by": own, "begins": F.min("place").over(member)})
    before = member.orderBy("__by", "place")
    events = events.withColumns(
        {
            "at": F.row_number().over(before),
            "own_then": F.lag("own").over(before),
            "clock_then": F.lag("clock").over(before),
        }
    )
    lowered = F.col("clock_then").isNotNull() & _is_behind(F.col("clock_then"), F.col("clock"))
    return events.withColumn("lowered", lowered).drop("__again", "__by")


def _is_behind(before: Column, after: Column) -> Column:
    less = F.map_zip_with(
        before, after, lambda _, a, b: F.coalesce(b, F.lit(0)) < F.coalesce(a, F.lit(0))
    )
    return F.exists(F.map_values(less), lambda is_less: is_less)


def explode_entries(events: DataFrame) -> DataFrame:
    """Return a row for each entry of a clock, with the logged events that it covers.

    - `other`, `count`, `nth`: member and value of the entry, and its index.
    - `prefix`: number of events that it covers.
    - `known_at`, `known_own`: the last of these events (null: none).
    - `changed`: of another member, and different from the previous event's.
    - `fresh`: a logged event, later than any known here before.
    """
    own = F.struct(F.lit(-1).alias("nth"), F.col("member").alias("other"), F.col("own").alias("n"))
    clock_entries = F.transform(
        F.map_entries("clock"),
        lambda entry, nth: F.struct(
            nth.alias("nth"), entry["key"].alias("other"), entry["value"].alias("n")
        ),
    )
    # One row for the event itself and one for each entry, so events are computed once.
    both = events.select(
        *(RUN_KEY, "member", "at", "own", "own_then", "place"),
        F.explode(F.concat(F.array(own), clock_entries)).alias("one"),
    ).select(
        *(RUN_KEY, "member", "at", "own", "own_then", "place", "one.nth", "one.other"),
        F.col("one.n").alias("count"),
    )
    event = F.col("nth") < 0
    passing = Window.partitionBy(RUN_KEY, "other").orderBy("count", ~event, "at")
    passing = passing.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    known = F.last(F.when(event, F.struct("at", "own")), ignorenulls=True).over(passing)
    both = both.withColumns(
        {"prefix": F.sum(F.when(event, 1).otherwise(0)).over(passing), "known": known}
    )
    entries = both.where("nth >= 0").withColumns(
        {"known_at": F.col("known.at"), "known_own": F.col("known.own")}
    )
    here = Window.partitionBy(RUN_KEY, "member", "other").orderBy("at")
    earlier = here.rowsBetween(Window.unboundedPreceding, -1)
    others = F.col("other") != F.col("member")
    entries = entries.withColumns(
        {"__most": F.max("count").over(earlier), "__then": F.lag("known_at").over(here)}
    )
    higher = F.col("count") > F.coalesce(F.col("__most"), F.lit(0))
    logged = F.col("known_own").eqNullSafe(F.col("count"))
    changed = F.col("known_at").isNotNull() & ~F.col("known_at").eqNullSafe(F.col("__then"))
    return entries.withColumns({"changed": others & changed, "fresh": others & higher & logged})


def join_known_clocks(entries: DataFrame, events: DataFrame) -> DataFrame:
    """Add to entries of other members `circle`, `ignorant`, the sender's clock, and both `orders`.

    Circle: the last event that the entry covers knows this event. Ignorant: it knows more.
    """
    mine = events.select(RUN_KEY, "member", "at", "clock", F.col("orders").alias("effect"))
    theirs = events.select(
        RUN_KEY,
        F.col("member").alias("other"),
        F.col("at").alias("known_at"),
        F.col("clock").alias("known_clock"),
        F.col("orders").alias("cause"),
    )
    kept = (RUN_KEY, "member", "at", "own", "own_then", "other", "known_at", "known_own", "fresh")
    both = entries.select(*kept).join(mine, [RUN_KEY, "member", "at"])
    both = both.join(theirs, [RUN_KEY, "other", "known_at"])
    of_me = F.coalesce(F.try_element_at("known_clock", F.col("member")), F.lit(0))
    rest = F.map_filter("known_clock", lambda name, _: name != F.col("member"))
    return both.withColumns(
        {"circle": of_me >= F.col("own"), "ignorant": _is_behind(rest, F.col("clock"))}
    ).drop("clock")


def count_contradictions(entries: DataFrame, events: DataFrame, changed: DataFrame) -> DataFrame:
    """Count the events that precede themselves, and those that know too little."""
    wrong = changed.where("circle OR ignorant").select(RUN_KEY, "member")
    doubtful = wrong.unionByName(events.where("lowered").select(RUN_KEY, "member")).distinct()
    looked_at = entries.where("known_at IS NOT NULL AND other != member")
    found = join_known_clocks(looked_at.join(doubtful, [RUN_KEY, "member"], "left_semi"), events)
    each = found.groupBy(RUN_KEY, "member", "at").agg(
        F.max("circle").alias("circle"), F.max("ignorant").alias("ignorant")
    )
    return each.groupBy(RUN_KEY).agg(
        F.count_if("circle").alias("mutual"), F.count_if("ignorant").alias("unmerged")
    )


def find_message_edges(changed: DataFrame, orders: list[str]) -> tuple[DataFrame, DataFrame]:
    """Return edges from fresh events unknown to other fresh events, and redundant steps per run."""
    fresh_event = F.struct("other", "known_own", "known_clock", "cause")
    fresh = (
        changed.where("fresh")
        .groupBy(RUN_KEY, "member", "at")
        .agg(
            F.collect_list(fresh_event).alias("fresh"),
            F.first("own_then").alias("own_then"),
            F.first("effect").alias("effect"),
        )
    )

    def is_implied(one: Column) -> Column:
        return F.exists(
            F.col("fresh"),
            lambda two: (
                (two["other"] != one["other"]) & _knows(two, one["other"], one["known_own"])
            ),
        )

    direct = fresh.withColumn("edges", F.filter("fresh", lambda one: ~is_implied(one)))
    steps = direct.where(
        F.exists("edges", lambda edge: _knows(edge, F.col("member"), F.col("own_then")))
    )
    edges = direct.select(
        RUN_KEY, F.col("member").alias("effect_member"), "effect", F.explode("edges").alias("edge")
    ).select(
        RUN_KEY,
        F.lit(0).alias("cause"),
        F.lit(None).cast("string").alias("name"),
        "effect_member",
        F.col("edge.other").alias("cause_member"),
        *(F.col(f"effect.{name}").alias(f"effect_{name}") for name in orders),
        *(F.col(f"edge.cause.{name}").alias(f"cause_{name}") for name in orders),
    )
    return edges, steps.groupBy(RUN_KEY).agg(F.count(F.lit(1)).alias("implied_steps"))


def _knows(event: Column, member: Column, own: Column) -> Column:
    """Return whether a fresh event knows event number `own` of a member; False if it is null."""
    known = F.coalesce(F.try_element_at(event["known_clock"], member), F.lit(0)) >= own
    return F.coalesce(known, F.lit(False))
