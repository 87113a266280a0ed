"""The counts of `antecede audit` over a DataFrame of events.

Theory of operation
-------------------
By declared causes everything is joins and aggregations over run and id (`audits.causes`), also
within one run. Two things are ONE TASK A RUN: the graph of causes, in numbers (`run_graph`), and
the rows of runs with receipts or deliveries, whose channels and early deliveries go by the order
of each member's rows. Vector clocks need no graph: prefix counts, windows over one member of a
run and joins (`clock_tables`, `audits.clocks`). Formats with details of their own are one task a
run, counted by the local engine. Each such task holds one run at a time, sorted by Spark, and
refuses one beyond a stated size.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.audits import causes
from antecede.spark.audits.clock_tables import clock_rows
from antecede.spark.audits.clocks import clock_counts, giant_runs
from antecede.spark.audits.event_columns import (
    KEY,
    RUN_BYTES,
    events_of,
    run_by_run,
    runs_in,
    whole_run,
)
from antecede.spark.audits.run_graph import GRAPH_EDGES
from antecede.spark.columns import spark_schema
from antecede.spark.workers import ready_workers
from antecede.tables.audit import (
    CONFIDENCE_NAME,
    ESTIMATED,
    PAIR_KEYS,
    PAIR_STEPS,
    PairChoice,
    Pairs,
    audit_events,
    channel_models,
    chosen,
    early_details,
)
from antecede.tables.kernels import RANKS
from antecede.tables.trace import CAUSE_COLUMNS as READ_COLUMNS
from antecede.tables.trace import (
    CAUSES,
    CLOCKS,
    DELIVER,
    NONE,
    ORDERS,
    RECEIPTS,
    RECEIVE,
    SEND,
    SOURCE,
    WHY,
    conform,
)

By = Literal["auto", "causes", "clocks"]
Giant = Literal["auto", "always", "never"]
Batches = Iterable[pa.RecordBatch]
COUNTED = (
    "messages",
    "members",
    "duplicates",
    "edges",
    "cross_member_edges",
    "immediate_edges",
    "redundant_edges",
    "roots",
    "merges",
    "max_causes",
    "missing_causes",
    "self_causes",
    "ordered_pairs",
    "concurrent_pairs",
)
DETAILED = (
    "rows",
    "quarantined",
    "missing_ids",
    "cycles",
    "events_on_cycles",
    "conflicting_rows",
    "repeated_causes",
    "blank_causes",
    "receipts",
    "deliveries",
)
MAPS = ("inversions", "compared_edges", "max_inversions", "quarantine")
COLUMNS = (*COUNTED, *ESTIMATED, CONFIDENCE_NAME, *DETAILED, *MAPS, SOURCE, "details")
CYCLE = "causes form a cycle"
_FIELDS: list[tuple[str, Any]] = [
    ("run", pa.string()),
    *((name, pa.int64()) for name in (*COUNTED, *ESTIMATED)),
    (CONFIDENCE_NAME, pa.float64()),
    *((name, pa.int64()) for name in DETAILED),
    *((name, pa.map_(pa.string(), pa.int64())) for name in MAPS),
    (SOURCE, pa.string()),
    ("details", pa.string()),
]
_ARROW = pa.schema(_FIELDS)


def audit(
    df: DataFrame,
    *,
    format: str = "table",
    by: By = "auto",
    pairs: Pairs = True,
    run_bytes: int = RUN_BYTES,
    graph_edges: int = GRAPH_EDGES,
    pair_steps: int = PAIR_STEPS,
    pair_ranks: int = RANKS,
    large_groups: Giant = "auto",
) -> DataFrame:
    """Return one row a run, what `antecede audit --json` says of its rows.

    Columns of `df` are those of `antecede.tables.trace.schema`; all but `id` may be absent, others
    are left alone, and timestamps serve as times. Columns of the result:

    - `run`; null: rows without one.
    - The counts (long), null where they do not apply.
    - `inversions`, `compared_edges` (edges of which both ends tell), `max_inversions` by order and
      `quarantine` by reason (maps).
    - `causality_source`: causes, clocks, receipts (only early deliveries were judged) or none.
    - `details`: JSON of the rest: `channels`, `violations`, `clock_inconsistencies`, a format's
      own. Other details that name events (worst inversions, missing ids) are of whole traces read
      from files.

    `by`: causes are declared, or told by vector clocks; "auto" chooses for the whole table as the
    local engine does, by a job where there are clocks. `format` names the origin of the events and
    adds its own details. Otherwise nothing runs before the result is asked for.

    `pairs`: exact (True), none (False: ordered, concurrent and implied ones are null), or exact up
    to `pair_steps` and estimated beyond ("estimate"). Runs with estimates have null in the exact
    columns, and `ordered_pairs_estimated`, `ordered_pairs_low`, `ordered_pairs_high`, the same of
    concurrent ones, and `pairs_confidence` (0.95). The interval holds with that confidence or more
    over the draw of `pair_ranks` ranks an event (1,024: some 7.6 % on both sides; 4,096: 3.7 %).
    Implied edges are not estimated.

    One task a run are: the graph of declared causes, at most `graph_edges` (some 100 bytes of
    memory each), and `pair_steps` (edges times events / 64) where events have several causes and
    pairs are exact; rows of runs with receipts or deliveries, and formats other than "table", at
    most `run_bytes` of Arrow data. Beyond them the task fails with InputError naming the run.

    With vector clocks `pairs` are always exact. Runs of less than half of `run_bytes` are a task
    each, counted by the local engine. Larger ones are counted by joins and windows, at many times
    the cost an event. `large_groups="auto"` runs a job that adds up the bytes of each run; with
    "never" none is large, with "always" all are, and no job runs.

    Without `file_order` the first of repeated rows is that of the least 64-bit digest (`xxhash64`
    of its columns), and what goes by the order of rows is not counted. Raises InputError here when
    there is no `id` or a column's type cannot serve.

    >>> from antecede.spark import audit
    >>> rows = [("a", [], 20), ("b", ["a"], 10), ("c", ["a", "lost"], 30)]
    >>> events = spark.createDataFrame(rows, "id string, parents array<string>, arrival long")
    >>> (row,) = audit(events).collect()
    >>> row.messages, row.edges, row.missing_causes, row.ordered_pairs, row.inversions
    (3, 2, 1, 2, {'arrival': 1})
    """
    events = events_of(df)
    ready_workers(df.sparkSession)
    choice = chosen(pairs, pair_steps, pair_ranks)
    clocks = by_clocks(events, format, by)
    if large_groups not in ("auto", "always", "never"):
        raise InputError(f"large_groups={large_groups!r} is none of auto, always, never")
    if large_groups != "auto" and not (clocks and format == "table"):
        raise InputError(
            f"large_groups={large_groups!r} says how runs of vector clocks are counted, and these "
            "are " + (f"of format {format}" if clocks else "declared causes") + ": leave it out"
        )
    if clocks and format == "table":
        return _by_clock(events, choice, run_bytes, large_groups)
    if clocks or format != "table":
        return _a_run_a_task(events, format, clocks, choice, run_bytes)
    limits = causes.Limits(choice, graph_edges)
    return _by_causes(events, limits, run_bytes)


def by_clocks(events: DataFrame, format: str, by: By) -> bool:
    """Tell how a table is counted, as the local engine tells it of a whole trace; may run a job."""
    if by not in ("auto", "causes", "clocks"):
        raise InputError(f"by={by!r} is none of auto, causes, clocks")
    if format == "shiviz" or by != "auto":
        return format == "shiviz" or by == "clocks"
    if "clock_members" not in events.columns:
        return False
    declared = F.sum(F.size("parents")) if "parents" in events.columns else F.lit(0)
    told = events.agg(
        F.count("clock_members").alias("clocks"), F.coalesce(declared, F.lit(0)).alias("declared")
    ).first()
    return bool(told and told.clocks and not told.declared)


def _a_run_a_task(
    events: DataFrame, format: str, clocks: bool, choice: PairChoice, run_bytes: int
) -> DataFrame:
    """Let the local engine count, a run at a time."""
    refused = whole_run("an audit of clocks or of this format", run_bytes)

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        for key, table in runs_in(batches, run_bytes, refused):
            report = audit_events(table, format, clocked=clocks, choice=choice).to_dict()
            yield _as_batch(key, unordered(report, "file_order" in table.column_names))

    return run_by_run(events).mapInArrow(count, spark_schema(_ARROW))


def _by_clock(
    events: DataFrame, choice: PairChoice, run_bytes: int, large_groups: Giant
) -> DataFrame:
    """Count large runs by columns, all others a run a task, which costs much less for each."""
    if large_groups == "always":
        return _by_clock_columns(events, choice, run_bytes)
    large = giant_runs(events, run_bytes) if large_groups == "auto" else []
    if not large:
        return _a_run_a_task(events, "table", True, choice, run_bytes)
    is_large = F.col(KEY).isin(large)
    small = _a_run_a_task(events.where(~is_large), "table", True, choice, run_bytes)
    return small.unionByName(_by_clock_columns(events.where(is_large), choice, run_bytes))


def _by_clock_columns(events: DataFrame, choice: PairChoice, run_bytes: int) -> DataFrame:
    rows = clock_rows(events)
    total = clock_counts(events, rows, choice.pairs is not False)
    for part in _told(rows.good, run_bytes):
        total = total.join(part, KEY, "left")
    told = (
        F.expr("substring(details, 2, length(details) - 2)")
        if "details" in total.columns
        else F.lit(None)
    )
    total = total.withColumn(
        "details", F.concat(F.lit("{"), F.concat_ws(", ", "__details", told), F.lit("}"))
    )
    made = {name: F.lit(0).cast("long") for name in DETAILED if name not in total.columns}
    made[SOURCE] = F.when(F.col("messages") > 0, CLOCKS).otherwise(NONE)
    return total.withColumns(made).select("run", *COLUMNS)


def _by_causes(events: DataFrame, limits: causes.Limits, run_bytes: int) -> DataFrame:
    rows = causes.judged(events)
    chosen = causes.distinct_events(rows)
    graphs, cyclic = causes.on_cycles(chosen, limits)
    kept = chosen.join(cyclic, [KEY, "node"], "left_anti")
    edges = causes.edges_of(kept, kept)
    total = causes.of_rows(rows)
    parts = [causes.of_causes(chosen), causes.of_events(kept), causes.of_edges(edges), graphs]
    bad = rows.where(F.col("reason").isNotNull()).groupBy(KEY, "reason").count()
    parts += [causes.reasons_of(bad), *_told(events, run_bytes), *_received(events)]
    for part in parts:
        total = total.join(part, KEY, "left")
    orders = [name for name in ORDERS if name in events.columns]
    return _row(total, orders, limits.pairs.pairs is not False)


def _received(events: DataFrame) -> list[DataFrame]:
    """Return the runs in which a receipt or delivery has the id of a send, if rows have kinds."""
    if "kind" not in events.columns:
        return []
    keyed = events.select(KEY, "id", "kind")
    arrived = keyed.where(F.col("kind").isin(RECEIVE, DELIVER)).select(KEY, "id")
    sent = keyed.where(F.col("kind") == SEND).select(KEY, "id")
    runs = arrived.join(sent, [KEY, "id"], "left_semi").select(KEY).distinct()
    return [runs.withColumn("__received", F.lit(True))]


def _told(events: DataFrame, run_bytes: int) -> list[DataFrame]:
    """Return, where rows have an order, the details of runs with receipts or deliveries."""
    if "kind" not in events.columns or "file_order" not in events.columns:
        return []
    named = F.length("id") > 0
    talking = events.where(F.col("kind").isin(RECEIVE, DELIVER) & named).select(KEY).distinct()
    of_runs = run_by_run(events.join(talking, KEY, "left_semi").select(events.columns))
    refused = whole_run("what receipts and deliveries tell", run_bytes)

    def tell(batches: Batches) -> Iterator[pa.RecordBatch]:
        for key, rows in runs_in(batches, run_bytes, refused):
            table = conform(rows)
            found: dict[str, Any] = {"violations": early_details(table)}
            if models := channel_models(table):
                found["channels"] = models
            yield pa.RecordBatch.from_pydict({KEY: [key], "details": [json.dumps(found)]})

    return [of_runs.mapInArrow(tell, f"{KEY} string, details string")]


def _row(total: DataFrame, orders: list[str], pairs: bool) -> DataFrame:
    """Return the columns of a report from the counts of a run side by side."""
    count = causes.count
    made = {name: count(name) for name in (*COUNTED, *DETAILED) if name in total.columns}
    nothing = F.lit(None).cast("long")
    made["members"] = F.col("members").cast("long")
    made["cross_member_edges"] = F.when(F.col("members").isNotNull(), count("cross_member_edges"))
    every = causes.all_pairs(count("messages"))
    implied, ordered = count("redundant"), count("ordered")
    exact = F.col("estimated").isNull()
    values = (count("edges") - implied, implied, ordered, every - ordered)
    for name, value in zip(PAIR_KEYS, values, strict=True):
        made[name] = F.when(exact, value) if pairs else nothing
    ends = ("estimated", "low", "high")
    guesses = (*map(F.col, ends), *(every - F.col(end) for end in ("estimated", "high", "low")))
    made |= dict(zip(ESTIMATED, guesses, strict=True))
    made[CONFIDENCE_NAME] = F.col("confidence")
    made["events_on_cycles"] = count("on_cycles")
    made["quarantined"] = count("quarantined") + count("on_cycles")
    on_cycles = F.when(count("on_cycles") > 0, F.create_map(F.lit(CYCLE), count("on_cycles")))
    aside = (F.coalesce(reasons, causes.no_counts()) for reasons in (F.col("__reasons"), on_cycles))
    made |= causes.maps_by_order(orders)
    made["quarantine"] = F.map_concat(*aside)
    has_causes = (count("edges") > 0) | (count("on_cycles") > 0)
    received = F.col("__received") if "__received" in total.columns else F.lit(False)
    made[SOURCE] = F.when(has_causes, CAUSES).when(received, RECEIPTS).otherwise(NONE)
    made["details"] = F.col("details") if "details" in total.columns else F.lit(None).cast("string")
    return total.select("run", *(made[n].alias(n) for n in COLUMNS))


def unordered(report: dict[str, Any], ordered: bool) -> dict[str, Any]:
    """Take out of a report what goes by the order of rows, where they have none."""
    if not ordered:
        report["inversions"].pop("file_order", None)
        for by_order in ("max_inversions", "compared_edges"):
            report["details"].get(by_order, {}).pop("file_order", None)
        for by_rows in ("channels", "violations"):  # they go by the order of each member's rows
            report["details"].pop(by_rows, None)
    return report


def _as_batch(key: str, report: dict[str, Any]) -> pa.RecordBatch:
    details = dict(report["details"])
    row: dict[str, Any] = {"run": key or None, SOURCE: report[SOURCE]}
    row |= {name: report[name] for name in COUNTED}
    row |= {name: details.pop(name, None) for name in (*ESTIMATED, CONFIDENCE_NAME)}
    row |= {name: details.pop(name, 0) for name in DETAILED}
    for name in MAPS:
        counts = report[name] if name in report else details.pop(name)
        row[name] = list(counts.items())
    for name in (WHY, READ_COLUMNS):  # of a whole trace: a run alone may have none
        details.pop(name, None)
    if report["clock_inconsistencies"] is not None:
        details["clock_inconsistencies"] = report["clock_inconsistencies"]
    row["details"] = json.dumps(details) if details else None
    return pa.RecordBatch.from_pylist([row], _ARROW)
