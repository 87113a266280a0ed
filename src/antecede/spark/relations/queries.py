"""Part of a large trace that answers a query about some events, collected to the driver.

Spark finds the events and everything before (or after) them, and only that part goes through
`antecede.tables.causality.Causality`. The part is closed, so duplicates, cycles and first rows are
decided as in the whole trace.

- causes: declared causes, one join per superstep (`edge_traversal`).
- events, clocks: the rows of a member are a sequence, so a part is one position per member. A
  superstep raises positions along all messages at once, at most as many supersteps as members.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.spark.evidence import has_receipts
from antecede.spark.relations.edge_traversal import find_edges, find_reachable
from antecede.spark.relations.reachability import MAX_SUPERSTEPS
from antecede.tables.causality import (
    CAUSES,
    CLOCKS,
    EVENTS,
    LOOK_ALIKE,
    Causality,
    EventRef,
    Whole,
    check_not_blank,
    order_spec,
)
from antecede.tables.trace import DELIVER, RECEIVE, SEND

RUN: Final = "__antecede_run"
_MEMBER_KEY: Final = (RUN, "m")
_CAUSES_NOT_CHECKED: Final = "missing causes of these events were not checked (use --engine local)"


class Part(NamedTuple):
    """Part of a trace that a query depends on, and the named events."""

    asked: Causality
    events: list[EventRef]


def way_of(df: DataFrame, whole: Whole, by: str | None) -> str:
    """Return the causality source of an event table. Raises InputError as `Causality`."""
    kinds = {row[0] for row in df.select("kind").distinct().collect()}
    arrivals = SEND in kinds and bool({RECEIVE, DELIVER} & kinds)
    if by == EVENTS and not arrivals:
        raise InputError("by events: the trace lacks rows of sends, or of receipts and deliveries")
    if by == EVENTS or (by is None and arrivals and has_receipts(df)):
        return EVENTS
    found = CLOCKS if whole.clocked else CAUSES
    if by not in (None, found):
        raise InputError(f"by {by}: the source of causality of this trace is {found}")
    return found


def part(
    df: DataFrame,
    names: Sequence[str],
    source: str,
    whole: Whole,
    *,
    run: str | None = None,
    backwards: bool,
    most: int | None = None,
    max_supersteps: int = MAX_SUPERSTEPS,
) -> Part:
    """Return the part of a trace before some events, or after them.

    `df`: rows in the event schema with `file_order`. `names`: ids, or ID@MEMBER for the arrival of
    a message, in `run` or any run. `source`: from `way_of`. `whole`: facts about the
    whole trace. Runs some jobs. Raises InputError for unknown events, after `max_supersteps`,
    and for more than `most` rows; `Causality` raises the rest.
    """
    df = df.withColumn(RUN, F.coalesce("run", F.lit("")))
    events, seeds = _find_events(df, names, source, run)
    if source == CAUSES:
        rows = _traverse_causes(df, seeds, max_supersteps, backwards=backwards)
    else:
        rows = _traverse_members(df, seeds, source, max_supersteps, backwards=backwards)
    rows = rows.drop(RUN).persist()
    try:
        size = rows.count()
        if most is not None and size > most:
            what = "past" if backwards else "future"
            raise InputError(
                f"the {what} of these events may have {size:,} rows; the memory limit is "
                f"{most:,}: query an event nearer to the " + ("beginning" if backwards else "end")
            )
        table: Any = rows.toArrow()
    finally:
        rows.unpersist()
    asked = Causality(table.sort_by("file_order"), by=source, whole=whole)
    if not backwards:
        # Causes outside the part are not missing.
        asked.notes = [_CAUSES_NOT_CHECKED] if source != EVENTS else []
    return Part(asked, events)


# -- named events --------------------------------------------------------------------------------


def _find_events(
    df: DataFrame, names: Sequence[str], source: str, run: str | None
) -> tuple[list[EventRef], DataFrame]:
    ids = {name for text in names for name in (text, text.rpartition("@")[0]) if name}
    found = df.where(F.col("id").isin(sorted(ids)))
    there: Any = found.select("id", "member", "kind", "run", "file_order").toArrow()
    known = {*there["id"].to_pylist()}
    rows = there.to_pylist()
    events, chosen = [], set[int]()
    for text in names:
        name, at, member = text.rpartition("@")
        event = EventRef(text, None, run)
        if at and text not in known:
            event = EventRef(name, member, run)
        check_not_blank(event.id)
        if event.id not in known:
            raise InputError(_describe_unknown_id(df, event.id))
        mine = [row for row in rows if row["id"] == event.id and run in (None, row["run"])]
        mine = _match_rows(mine, event, source)
        if not mine:
            raise InputError(f"{event} is not in the trace; the id {event.id} is")
        events.append(event)
        chosen |= {row["file_order"] for row in mine}
    return events, found.where(F.col("file_order").isin(sorted(chosen)))


def _match_rows(rows: list[dict[str, Any]], event: EventRef, source: str) -> list[dict[str, Any]]:
    if event.member is not None:
        return [row for row in rows if row["member"] == event.member]
    if source != EVENTS:
        return rows
    return [row for row in rows if row["kind"] not in (RECEIVE, DELIVER)] or rows


def _describe_unknown_id(df: DataFrame, name: str) -> str:
    alike = df.where(F.col("id").contains(name)).select("id").distinct().limit(LOOK_ALIKE)
    shown = ", ".join(sorted(row[0] for row in alike.collect()))
    return f"no event has the id {name}" + (f"; ids that contain it: {shown}" if shown else "")


# -- by declared causes ------------------------------------------------------------------------


def _traverse_causes(
    df: DataFrame, seeds: DataFrame, max_supersteps: int, *, backwards: bool
) -> DataFrame:
    spec = order_spec(id="id", after="causes", group=RUN)
    edges = find_edges(df, spec, backwards=backwards).persist()
    begin = seeds.select(F.col(RUN).alias("g"), F.col("id").alias("k")).distinct()
    try:
        reached = find_reachable(edges, begin.withColumn("event", F.lit(True)), max_supersteps)
        reached = reached.select("g", "k").distinct().localCheckpoint()
    finally:
        edges.unpersist()
    keys = reached.toDF(RUN, "id")
    return df.join(keys, [RUN, "id"], "left_semi")


# -- by positions in members' sequences ----------------------------------------------------------


def _traverse_members(
    df: DataFrame, seeds: DataFrame, source: str, max_supersteps: int, *, backwards: bool
) -> DataFrame:
    make = _number_member_events if source == EVENTS else _number_clock_events
    nodes, steps = make(df)
    nodes, steps = nodes.persist(), steps.persist()
    try:
        begin = nodes.join(F.broadcast(seeds.select("file_order")), "file_order", "left_semi")
        places = _find_bounds(begin, steps, max_supersteps, backwards=backwards)
        inside = F.col("pos") <= F.col("at") if backwards else F.col("pos") >= F.col("at")
        found = nodes.join(F.broadcast(places), list(_MEMBER_KEY)).where(inside)
        # The first send of a message counts, and the first row of an event with a clock,
        # of any member: so include all of them.
        named = found.select(RUN, "id").distinct()
        alike = nodes.where(F.col("kind") == SEND) if source == EVENTS else df
        alike = alike.join(named, [RUN, "id"], "left_semi")
        # A named row without a clock is in no member's sequence.
        every = found.select("file_order").union(alike.select("file_order"))
        every = every.union(seeds.select("file_order")).distinct().localCheckpoint()
    finally:
        nodes.unpersist()
        steps.unpersist()
    return df.join(every, "file_order", "left_semi")


def _number_member_events(df: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return rows with their positions (RUN, m, pos), and steps from an arrival to its send."""
    alone = F.concat(F.lit("row "), F.col("file_order").cast("string"))
    line = F.coalesce(F.concat(F.lit("member "), F.col("member")), alone)
    place = F.row_number().over(Window.partitionBy(*_MEMBER_KEY).orderBy("file_order"))
    nodes = df.select(RUN, "id", "kind", "file_order", line.alias("m")).withColumn("pos", place)
    sent = nodes.where(F.col("kind") == SEND)
    sent = sent.select(RUN, "id", F.col("m").alias("of"), F.col("pos").alias("to"))
    arrived = nodes.where(F.col("kind").isin(RECEIVE, DELIVER)).select(RUN, "id", "m", "pos")
    return nodes, arrived.join(sent, [RUN, "id"]).drop("id")


def _number_clock_events(df: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return positions and steps of vector clocks; the position is the member's own entry."""
    entries = F.arrays_zip("clock_members", "clock_counts")
    rows = df.where("member IS NOT NULL AND clock_members IS NOT NULL").select(
        RUN, "id", "kind", "file_order", F.col("member").alias("m"), entries.alias("entries")
    )
    exploded = rows.select(RUN, "file_order", "m", F.explode("entries").alias("entry")).select(
        RUN,
        "file_order",
        "m",
        F.col("entry.clock_members").alias("of"),
        F.col("entry.clock_counts").cast("long").alias("to"),
    )
    own = exploded.where(F.col("of") == F.col("m")).groupBy("file_order")
    nodes = rows.drop("entries").join(own.agg(F.max("to").alias("pos")), "file_order")
    others = exploded.where((F.col("of") != F.col("m")) & (F.col("to") > 0))
    steps = others.join(nodes.select("file_order", "pos"), "file_order").drop("file_order")
    return nodes, steps


def _find_bounds(
    begin: DataFrame, steps: DataFrame, max_supersteps: int, *, backwards: bool
) -> DataFrame:
    """Return the last (else first) position of every member in the part: (RUN, m, at)."""
    furthest = F.max if backwards else F.min
    all_of = begin.groupBy(*_MEMBER_KEY).agg(furthest("pos").alias("at")).localCheckpoint()
    front = all_of
    for _ in range(max_supersteps + 1):
        if backwards:
            hit = steps.join(F.broadcast(front), list(_MEMBER_KEY)).where("pos <= at")
            hit = hit.groupBy(RUN, F.col("of").alias("m")).agg(F.max("to").alias("at"))
        else:
            known = front.withColumnRenamed("m", "of")
            hit = steps.join(F.broadcast(known), [RUN, "of"]).where("to >= at").drop("at")
            hit = hit.groupBy(*_MEMBER_KEY).agg(F.min("pos").alias("at"))
        merged = all_of.unionByName(hit).groupBy(*_MEMBER_KEY).agg(furthest("at").alias("at"))
        merged = merged.localCheckpoint()
        front = merged.join(all_of, [*_MEMBER_KEY, "at"], "left_anti").localCheckpoint()
        if front.isEmpty():
            return merged
        all_of = merged
    over = pluralize(max_supersteps, "member")
    raise InputError(
        f"message chains cross more than {over}: raise max_supersteps= (some jobs each)"
    )
