"""`audit_report`: the exact counts of `antecede audit` over a DataFrame in the event schema.

Theory of operation
-------------------
Every count comes from `antecede.tables.audit.engine.audit_events`, the local engine, run inside
Python workers. Causes never cross from one `run` to another, so where traces are counted by
declared parents each partition of runs is counted by itself and the reports are added up;
concurrent pairs follow from the totals, members are united.

What does not split is counted in ONE task: a single run (a chain may pass through any of its
rows), vector-clock logs (which way of counting applies depends on all rows), and formats with
details of their own. That task's worker must hold the trace.

A DataFrame has no order of rows: see `event_columns` for what is done without `file_order`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from antecede.spark.audits.audit import unordered
from antecede.spark.audits.event_columns import KEY, PLACE, events_of
from antecede.spark.workers import ready_workers
from antecede.tables.audit import audit_events, by_causes
from antecede.tables.audit import merge_channels as merged_channels
from antecede.tables.audit import merge_violations as merged_early
from antecede.tables.trace import (
    CAUSE_COLUMNS,
    CAUSES,
    NONE,
    SCHEMA,
    SOURCE,
    WHY,
    conform,
    distinct,
)

_ADDED = (
    "messages",
    "duplicates",
    "edges",
    "cross_member_edges",
    "immediate_edges",
    "redundant_edges",
    "roots",
    "merges",
    "missing_parents",
    "self_parents",
    "ordered_pairs",
)
Part = dict[str, Any]


def audit_report(df: DataFrame, *, format: str = "table") -> dict[str, Any]:
    """Count over a DataFrame of events and return the keys of `antecede audit --json`.

    Without the details that name events (`worst_inversions`, `missing`, and the skew of clocks
    that are told by times of sending): those are of whole traces, read from files.
    Columns are those of `antecede.tables.trace.schema`; all but `id` may be absent, others are left
    alone, and timestamps serve as times. `format` says where the events came from; it chooses
    between parents and clocks and adds the format's own details. Runs Spark jobs.
    Raises InputError when there is no `id` or a column is not of the schema's type.
    """
    events = events_of(df)
    ready_workers(df.sparkSession)
    ordered = "file_order" in events.columns
    one_task = format != "table" or _has_clocks(events)
    placed = events.repartition(1) if one_task else _by_run(events)
    rows = placed.mapInArrow(_counter(format, ordered, not one_task), "report string").collect()
    parts = [json.loads(row.report) for row in rows]
    if not parts:
        parts = [_report(SCHEMA.empty_table(), format, ordered)]
    return _added_up(parts)


def _has_clocks(events: DataFrame) -> bool:
    if "clock_members" not in events.columns:
        return False
    return not events.where(f.col("clock_members").isNotNull()).isEmpty()


def _by_run(events: DataFrame) -> DataFrame:
    return events.repartition(events[KEY]) if "run" in events.columns else events.repartition(1)


def _counter(
    format: str, ordered: bool, split: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a worker runs: the chunks of a partition become one row, a report as JSON.

    A `split` report has the key `member_names` too, since members may be in many runs.
    """

    def run(chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batches = list(chunks)
        if batches:
            table = _in_order(pa.Table.from_batches(batches))
            report = _report(table, format, ordered)
            if split:
                report["member_names"] = _members(table, report["messages"])
            yield pa.RecordBatch.from_pydict({"report": [json.dumps(report)]})

    return run


def _in_order(table: pa.Table) -> pa.Table:
    """Return the rows in the order of `event_columns`."""
    return table.sort_by(PLACE).drop_columns([KEY, PLACE])


def _report(table: pa.Table, format: str, ordered: bool) -> Part:
    """Count the rows of one partition, which are in order."""
    report: Part = audit_events(table, format).to_dict()
    return unordered(report, ordered)


def _members(table: pa.Table, messages: int) -> list[str]:
    """Return the names of the members of the counted events."""
    table = conform(table)
    if messages != len(table):  # some rows are no events: receipts, repetitions, cycles
        table = by_causes(distinct(table, by_clock=False).events).events
    return sorted({str(name) for name in table["member"].unique().to_pylist() if name is not None})


def _added_up(parts: list[Part]) -> Part:
    """Return one report of the reports of disjoint sets of runs."""
    if len(parts) == 1:
        return {key: value for key, value in parts[0].items() if key != "member_names"}
    total: Part = {key: _sum(part[key] for part in parts) for key in _ADDED}
    total["max_parents"] = max(part["max_parents"] for part in parts)
    total["members"] = len({name for part in parts for name in part["member_names"]}) or None
    total["concurrent_pairs"] = _sum(part["concurrent_pairs"] for part in parts)
    total["inversions"] = _merged([part["inversions"] for part in parts], lambda a, b: a + b)
    total["details"] = _details([part["details"] for part in parts])
    known = [part[SOURCE] for part in parts if part[SOURCE] != NONE]
    total[SOURCE] = CAUSES if CAUSES in known else known[0] if known else NONE
    if not known:
        total["details"] |= {name: parts[0]["details"][name] for name in (CAUSE_COLUMNS, WHY)}
    return {key: total.get(key, parts[0][key]) for key in parts[0] if key != "member_names"}


def _details(parts: list[Part]) -> Part:
    maxima = _merged([part["max_inversions"] for part in parts], max)
    reasons = _merged([part["quarantine"] for part in parts], lambda a, b: a + b)
    rest = [{k: v for k, v in p.items() if isinstance(v, int)} for p in parts]
    details: Part = _merged(rest, lambda a, b: a + b)
    details["max_inversions"] = maxima
    details["compared_edges"] = _merged(
        [part["compared_edges"] for part in parts], lambda a, b: a + b
    )
    if channels := merged_channels(part.get("channels", {}) for part in parts):
        details["channels"] = channels
    if early := merged_early(part["early"] for part in parts if "early" in part):
        details["early"] = early
    details["quarantine"] = dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])))
    return details


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _merged(parts: list[dict[str, int]], join: Callable[[int, int], int]) -> dict[str, int]:
    merged: dict[str, int] = {}
    for part in parts:
        for key, value in part.items():
            merged[key] = join(merged[key], value) if key in merged else value
    return merged
