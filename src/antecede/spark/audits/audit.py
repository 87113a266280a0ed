"""The counts of `antecede audit` over a DataFrame of events.

Audits by declared causes are joins and aggregations over run and id (`audits.causes`). Audits by
vector clocks are prefix counts, windows over one member of a run, and joins (`clock_tables`,
`audits.clocks`). ONE TASK PER RUN is needed for the graph of causes (`run_graph`), for rows of runs
with receipts or deliveries, whose analysis needs each member's row order, and for formats with
their own details. Such a task holds one run at a time, sorted by Spark, and rejects runs above a
limit.
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
from antecede.spark.audits.clock_tables import read_clock_rows
from antecede.spark.audits.clocks import count_by_clocks, find_large_runs
from antecede.spark.audits.event_columns import (
    MAX_RUN_BYTES,
    RUN_KEY,
    describe_run_limit,
    partition_by_run,
    read_runs,
    select_events,
)
from antecede.spark.audits.run_graph import MAX_GRAPH_EDGES
from antecede.spark.columns import spark_schema
from antecede.spark.workers import check_workers
from antecede.tables.audit import (
    CONFIDENCE_NAME,
    ESTIMATED,
    PAIR_KEYS,
    PAIR_STEPS,
    PairChoice,
    Pairs,
    audit_events,
    channel_models,
    choose_pairs,
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
LargeRunPolicy = Literal["auto", "always", "never"]
Batches = Iterable[pa.RecordBatch]
COUNT_COLUMNS = (
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
DETAIL_COLUMNS = (
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
MAP_COLUMNS = ("inversions", "compared_edges", "max_inversions", "quarantine")
COLUMNS = (
    *COUNT_COLUMNS,
    *ESTIMATED,
    CONFIDENCE_NAME,
    *DETAIL_COLUMNS,
    *MAP_COLUMNS,
    SOURCE,
    "details",
)
CYCLE_REASON = "causes form a cycle"
_FIELDS: list[tuple[str, Any]] = [
    ("run", pa.string()),
    *((name, pa.int64()) for name in (*COUNT_COLUMNS, *ESTIMATED)),
    (CONFIDENCE_NAME, pa.float64()),
    *((name, pa.int64()) for name in DETAIL_COLUMNS),
    *((name, pa.map_(pa.string(), pa.int64())) for name in MAP_COLUMNS),
    (SOURCE, pa.string()),
    ("details", pa.string()),
]
_ARROW_SCHEMA = pa.schema(_FIELDS)


def audit(
    df: DataFrame,
    *,
    format: str = "table",
    by: By = "auto",
    pairs: Pairs = True,
    max_run_bytes: int = MAX_RUN_BYTES,
    max_graph_edges: int = MAX_GRAPH_EDGES,
    pair_steps: int = PAIR_STEPS,
    pair_ranks: int = RANKS,
    large_groups: LargeRunPolicy = "auto",
) -> DataFrame:
    """Return one row per run with the counts of `antecede audit --json`.

    `df` has the columns of `antecede.tables.trace.schema`; all but `id` are optional, others are
    ignored, and timestamps are accepted as times. Columns of the result are `run` (null: none), the
    counts (null where they do not apply), and

    - `inversions`, `compared_edges` (edges with both values), `max_inversions` by order, and
      `quarantine` by reason (maps).
    - `causality_source`: causes, clocks, receipts (only causal violations were checked) or none.
    - `details`: JSON with `channels`, `early`, `clock_inconsistencies` and details of a format.
      Details that name events are only in audits of whole trace files.

    `by`: "causes" or "clocks"; "auto" decides for the whole table as the local engine does, with
    one job if there are clocks. `format` names the origin of the events and adds its details.

    `pairs`: True (exact), False (pairs and redundant edges are null), or "estimate" (exact up to
    `pair_steps`, else null with estimates). Estimates are `ordered_pairs_estimated`,
    `ordered_pairs_low`, `ordered_pairs_high`, the same of concurrent pairs, and `pairs_confidence`
    (0.95) over the draw of `pair_ranks` ranks per event (1,024: about 7.6 % on both sides; 4,096:
    3.7 %).

    Limits of a run's task, beyond which it fails with InputError naming the run: `max_graph_edges`
    declared causes (about 100 bytes of memory each), `pair_steps` (edges times events / 64) for
    exact pairs of events with several causes, and `max_run_bytes` of Arrow data for all other
    tasks. With vector clocks pairs are always exact, and runs above half of `max_run_bytes` are
    counted by joins, at a much higher cost per event. `large_groups="auto"` runs a job to find
    them; "never" and "always" run none.

    Without `file_order`, the first of repeated rows is the one with the least `xxhash64`, and
    counts that depend on the row order are null. Raises InputError without `id` and for unsupported
    column types.

    >>> from antecede.spark import audit
    >>> rows = [("a", [], 20), ("b", ["a"], 10), ("c", ["a", "lost"], 30)]
    >>> events = spark.createDataFrame(rows, "id string, causes array<string>, arrival long")
    >>> (row,) = audit(events).collect()
    >>> row.messages, row.edges, row.missing_causes, row.ordered_pairs, row.inversions
    (3, 2, 1, 2, {'arrival': 1})
    """
    events = select_events(df)
    check_workers(df.sparkSession)
    choice = choose_pairs(pairs, pair_steps, pair_ranks)
    clocks = is_clocked(events, format, by)
    if large_groups not in ("auto", "always", "never"):
        raise InputError(f"unknown large_groups={large_groups!r}; choose from auto, always, never")
    if large_groups != "auto" and not (clocks and format == "table"):
        raise InputError(
            f"large_groups={large_groups!r} applies to audits by vector clocks only; this audit is "
            + (f"of format {format}" if clocks else "by declared causes")
            + ": remove the argument"
        )
    if clocks and format == "table":
        return _audit_by_clocks(events, choice, max_run_bytes, large_groups)
    if clocks or format != "table":
        return _audit_runs_locally(events, format, clocks, choice, max_run_bytes)
    limits = causes.AuditLimits(choice, max_graph_edges)
    return _audit_by_causes(events, limits, max_run_bytes)


def is_clocked(events: DataFrame, format: str, by: By) -> bool:
    """Return whether a table is audited by vector clocks; may run a job."""
    if by not in ("auto", "causes", "clocks"):
        raise InputError(f"unknown by={by!r}; choose from auto, causes, clocks")
    if format == "shiviz" or by != "auto":
        return format == "shiviz" or by == "clocks"
    if "clock_members" not in events.columns:
        return False
    declared = F.sum(F.size("causes")) if "causes" in events.columns else F.lit(0)
    counts = events.agg(
        F.count("clock_members").alias("clocks"), F.coalesce(declared, F.lit(0)).alias("declared")
    ).first()
    return bool(counts and counts.clocks and not counts.declared)


def _audit_runs_locally(
    events: DataFrame, format: str, clocks: bool, choice: PairChoice, max_run_bytes: int
) -> DataFrame:
    refused = describe_run_limit("an audit of clocks or of this format", max_run_bytes)

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        for key, table in read_runs(batches, max_run_bytes, refused):
            report = audit_events(table, format, clocked=clocks, choice=choice).to_dict()
            yield _report_to_batch(
                key, remove_order_counts(report, "file_order" in table.column_names)
            )

    return partition_by_run(events).mapInArrow(count, spark_schema(_ARROW_SCHEMA))


def _audit_by_clocks(
    events: DataFrame, choice: PairChoice, max_run_bytes: int, large_groups: LargeRunPolicy
) -> DataFrame:
    """Count large runs by joins, and all others with one task per run, which is much cheaper."""
    if large_groups == "always":
        return _audit_clock_columns(events, choice, max_run_bytes)
    large = find_large_runs(events, max_run_bytes) if large_groups == "auto" else []
    if not large:
        return _audit_runs_locally(events, "table", True, choice, max_run_bytes)
    is_large = F.col(RUN_KEY).isin(large)
    small = _audit_runs_locally(events.where(~is_large), "table", True, choice, max_run_bytes)
    return small.unionByName(_audit_clock_columns(events.where(is_large), choice, max_run_bytes))


def _audit_clock_columns(events: DataFrame, choice: PairChoice, max_run_bytes: int) -> DataFrame:
    rows = read_clock_rows(events)
    total = count_by_clocks(events, rows, choice.pairs is not False)
    for part in _summarize_deliveries(rows.valid, max_run_bytes):
        total = total.join(part, RUN_KEY, "left")
    inner_json = (
        F.expr("substring(details, 2, length(details) - 2)")
        if "details" in total.columns
        else F.lit(None)
    )
    total = total.withColumn(
        "details", F.concat(F.lit("{"), F.concat_ws(", ", "__details", inner_json), F.lit("}"))
    )
    made = {name: F.lit(0).cast("long") for name in DETAIL_COLUMNS if name not in total.columns}
    made[SOURCE] = F.when(F.col("messages") > 0, CLOCKS).otherwise(NONE)
    return total.withColumns(made).select("run", *COLUMNS)


def _audit_by_causes(
    events: DataFrame, limits: causes.AuditLimits, max_run_bytes: int
) -> DataFrame:
    rows = causes.mark_events(events)
    chosen = causes.select_distinct_events(rows)
    graphs, cyclic = causes.find_cycles(chosen, limits)
    kept = chosen.join(cyclic, [RUN_KEY, "node"], "left_anti")
    edges = causes.join_causes(kept, kept)
    total = causes.count_rows(rows)
    parts = [
        causes.count_declared_causes(chosen),
        causes.count_events(kept),
        causes.count_edges(edges),
        graphs,
    ]
    bad = rows.where(F.col("reason").isNotNull()).groupBy(RUN_KEY, "reason").count()
    parts += [
        causes.collect_reasons(bad),
        *_summarize_deliveries(events, max_run_bytes),
        *_find_received_runs(events),
    ]
    for part in parts:
        total = total.join(part, RUN_KEY, "left")
    orders = [name for name in ORDERS if name in events.columns]
    return _build_report_row(total, orders, limits.pairs.pairs is not False)


def _find_received_runs(events: DataFrame) -> list[DataFrame]:
    """Return the runs in which a receipt or delivery has the id of a send, if rows have kinds."""
    if "kind" not in events.columns:
        return []
    keyed = events.select(RUN_KEY, "id", "kind")
    arrived = keyed.where(F.col("kind").isin(RECEIVE, DELIVER)).select(RUN_KEY, "id")
    sent = keyed.where(F.col("kind") == SEND).select(RUN_KEY, "id")
    runs = arrived.join(sent, [RUN_KEY, "id"], "left_semi").select(RUN_KEY).distinct()
    return [runs.withColumn("__received", F.lit(True))]


def _summarize_deliveries(events: DataFrame, max_run_bytes: int) -> list[DataFrame]:
    """Return the details of runs with receipts or deliveries, if rows have an order."""
    if "kind" not in events.columns or "file_order" not in events.columns:
        return []
    named = F.length("id") > 0
    talking = events.where(F.col("kind").isin(RECEIVE, DELIVER) & named).select(RUN_KEY).distinct()
    of_runs = partition_by_run(events.join(talking, RUN_KEY, "left_semi").select(events.columns))
    refused = describe_run_limit("the analysis of receipts and deliveries", max_run_bytes)

    def tell(batches: Batches) -> Iterator[pa.RecordBatch]:
        for key, rows in read_runs(batches, max_run_bytes, refused):
            table = conform(rows)
            found: dict[str, Any] = {"violations": early_details(table)}
            if models := channel_models(table):
                found["channels"] = models
            yield pa.RecordBatch.from_pydict({RUN_KEY: [key], "details": [json.dumps(found)]})

    return [of_runs.mapInArrow(tell, f"{RUN_KEY} string, details string")]


def _build_report_row(total: DataFrame, orders: list[str], pairs: bool) -> DataFrame:
    count = causes.count_or_zero
    made = {
        name: count(name) for name in (*COUNT_COLUMNS, *DETAIL_COLUMNS) if name in total.columns
    }
    nothing = F.lit(None).cast("long")
    made["members"] = F.col("members").cast("long")
    made["cross_member_edges"] = F.when(F.col("members").isNotNull(), count("cross_member_edges"))
    every = causes.count_all_pairs(count("messages"))
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
    on_cycles = F.when(
        count("on_cycles") > 0, F.create_map(F.lit(CYCLE_REASON), count("on_cycles"))
    )
    aside = (
        F.coalesce(reasons, causes.make_empty_counts())
        for reasons in (F.col("__reasons"), on_cycles)
    )
    made |= causes.build_order_maps(orders)
    made["quarantine"] = F.map_concat(*aside)
    has_causes = (count("edges") > 0) | (count("on_cycles") > 0)
    received = F.col("__received") if "__received" in total.columns else F.lit(False)
    made[SOURCE] = F.when(has_causes, CAUSES).when(received, RECEIPTS).otherwise(NONE)
    made["details"] = F.col("details") if "details" in total.columns else F.lit(None).cast("string")
    return total.select("run", *(made[n].alias(n) for n in COLUMNS))


def remove_order_counts(report: dict[str, Any], is_ordered: bool) -> dict[str, Any]:
    """Remove from a report the counts that depend on the row order, if rows have none."""
    if not is_ordered:
        report["inversions"].pop("file_order", None)
        for by_order in ("max_inversions", "compared_edges"):
            report["details"].get(by_order, {}).pop("file_order", None)
        for by_rows in ("channels", "violations"):  # they go by the order of each member's rows
            report["details"].pop(by_rows, None)
    return report


def _report_to_batch(key: str, report: dict[str, Any]) -> pa.RecordBatch:
    details = dict(report["details"])
    row: dict[str, Any] = {"run": key or None, SOURCE: report[SOURCE]}
    row |= {name: report[name] for name in COUNT_COLUMNS}
    row |= {name: details.pop(name, None) for name in (*ESTIMATED, CONFIDENCE_NAME)}
    row |= {name: details.pop(name, 0) for name in DETAIL_COLUMNS}
    for name in MAP_COLUMNS:
        counts = report[name] if name in report else details.pop(name)
        row[name] = list(counts.items())
    for name in (WHY, READ_COLUMNS):  # apply to whole traces only
        details.pop(name, None)
    if report["clock_inconsistencies"] is not None:
        details["clock_inconsistencies"] = report["clock_inconsistencies"]
    row["details"] = json.dumps(details) if details else None
    return pa.RecordBatch.from_pylist([row], _ARROW_SCHEMA)
