"""Exact counts of `antecede audit` over a DataFrame in the event schema, by the local engine.

Causes never cross runs. So with declared causes each partition of runs is counted in a worker, the
reports are added, and the members are united. ONE task counts a trace that cannot be split: a
single run, vector-clock logs, and formats with their own details.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from operator import add
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from antecede.spark.audits.audit import COUNT_COLUMNS, remove_order_counts
from antecede.spark.audits.event_columns import ROW_ORDER, RUN_KEY, select_events
from antecede.spark.workers import check_workers
from antecede.tables.audit import audit_events, by_causes, merge_channels, merge_violations
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

_SUMMED_KEYS = [name for name in COUNT_COLUMNS if name not in ("members", "max_causes")]
ReportPart = dict[str, Any]


def audit_report(df: DataFrame, *, format: str = "table") -> dict[str, Any]:
    """Audit a DataFrame of events and return the keys of `antecede audit --json`.

    Details that name events are only in audits of whole trace files. Columns of `df` as for
    `audit`. `format` chooses between causes and clocks and adds its details. Runs Spark jobs.
    Raises InputError without `id` and for unsupported column types.
    """
    events = select_events(df)
    check_workers(df.sparkSession)
    ordered = "file_order" in events.columns
    one_task = format != "table" or _has_clocks(events)
    by_run = not one_task and "run" in events.columns
    placed = events.repartition(events[RUN_KEY]) if by_run else events.repartition(1)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chunks = list(batches)
        if chunks:
            table = (
                pa.Table.from_batches(chunks).sort_by(ROW_ORDER).drop_columns([RUN_KEY, ROW_ORDER])
            )
            report = remove_order_counts(audit_events(table, format).to_dict(), ordered)
            if not one_task:  # a member may be in several runs
                report["member_names"] = _list_members(table, report["messages"])
            yield pa.RecordBatch.from_pydict({"report": [json.dumps(report)]})

    parts = [json.loads(row[0]) for row in placed.mapInArrow(count, "report string").collect()]
    if not parts:
        return remove_order_counts(audit_events(SCHEMA.empty_table(), format).to_dict(), ordered)
    return _add_reports(parts)


def _has_clocks(events: DataFrame) -> bool:
    if "clock_members" not in events.columns:
        return False
    return not events.where(f.col("clock_members").isNotNull()).isEmpty()


def _list_members(table: pa.Table, messages: int) -> list[str]:
    table = conform(table)
    if messages != len(table):  # exclude receipts, duplicates, cycles
        table = by_causes(distinct(table, by_clock=False).events).events
    return sorted({str(name) for name in table["member"].unique().to_pylist() if name is not None})


def _add_reports(parts: list[ReportPart]) -> ReportPart:
    names = [part.pop("member_names", []) for part in parts]
    if len(parts) == 1:
        return parts[0]
    total = {key: _sum(part[key] for part in parts) for key in _SUMMED_KEYS}
    total["max_causes"] = max(part["max_causes"] for part in parts)
    total["members"] = len({name for some in names for name in some}) or None
    total["inversions"] = _merge_counts([part["inversions"] for part in parts], add)
    total["details"] = _merge_details([part["details"] for part in parts])
    known = [part[SOURCE] for part in parts if part[SOURCE] != NONE]
    total[SOURCE] = CAUSES if CAUSES in known else known[0] if known else NONE
    if not known:
        total["details"] |= {name: parts[0]["details"][name] for name in (CAUSE_COLUMNS, WHY)}
    return parts[0] | total


def _merge_details(parts: list[ReportPart]) -> ReportPart:
    numbers = [{k: v for k, v in part.items() if isinstance(v, int)} for part in parts]
    details: ReportPart = _merge_counts(numbers, add)
    for name, join in (("max_inversions", max), ("compared_edges", add), ("quarantine", add)):
        details[name] = _merge_counts([part[name] for part in parts], join)
    if channels := merge_channels(part.get("channels", {}) for part in parts):
        details["channels"] = channels
    if violations := merge_violations(part["violations"] for part in parts if "violations" in part):
        details["violations"] = violations
    reasons = details["quarantine"].items()
    details["quarantine"] = dict(sorted(reasons, key=lambda pair: (-pair[1], pair[0])))
    return details


def _sum(values: Iterable[int | None]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _merge_counts(parts: list[dict[str, int]], join: Callable[[int, int], int]) -> dict[str, int]:
    merged: dict[str, int] = {}
    for part in parts:
        for key, value in part.items():
            merged[key] = join(merged[key], value) if key in merged else value
    return merged
