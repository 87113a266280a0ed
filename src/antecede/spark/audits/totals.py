"""Report of `antecede audit` on a whole trace, from the rows that `audit` returns per run.

Vector clocks are counted by the local engine in ONE TASK of at most `MAX_RUN_BYTES`.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.audits import causes as tables
from antecede.spark.audits.audit import COUNT_COLUMNS, DETAIL_COLUMNS, MAP_COLUMNS, audit
from antecede.spark.audits.event_columns import (
    MAX_RUN_BYTES,
    RUN_KEY,
    describe_run_limit,
    partition_by_run,
    read_runs,
    select_events,
)
from antecede.spark.audits.run_graph import MAX_GRAPH_EDGES
from antecede.spark.sources.order_tables import write_part
from antecede.tables.audit import (
    AuditReport,
    Named,
    PairChoice,
    audit_events,
    merge_channels,
    of_parts,
    part_of,
)
from antecede.tables.false_causality import select_observed_runs
from antecede.tables.trace import (
    BLANK,
    CAUSE_COLUMNS,
    CAUSES,
    DELIVER,
    NONE,
    ORDERS,
    RECEIPTS,
    RECEIVE,
    REPEATED,
    SOURCE,
    Causes,
    conform,
    without_columns,
)

pa: Any = pyarrow  # its stubs lack types
TABLE = "table"
REQUIRED_DETAILS = ("rows", "quarantined", "missing_ids", "repeated_causes", "blank_causes")
"""Details that a report contains even if they are 0."""


def total_by_causes(events: DataFrame, *, pairs: bool = True) -> AuditReport:
    """Return the report of events by declared causes, without unreadable rows.

    The details `missing`, `separator_hint` and `clock_skew` are absent.
    """
    runs = audit(events, by="causes", pairs=pairs).persist(StorageLevel.DISK_ONLY)
    try:
        return _add_runs(runs, events)
    finally:
        runs.unpersist()


def _add_runs(runs: DataFrame, events: DataFrame) -> AuditReport:
    sums = [
        name for name in (*COUNT_COLUMNS, *DETAIL_COLUMNS) if name not in ("members", "max_causes")
    ]
    row: Any = runs.agg(
        F.count(F.lit(1)).alias("runs"),
        F.max("members").alias("members"),
        F.max("max_causes").alias("max_causes"),
        *(F.sum(name).alias(name) for name in sums),
    ).first()
    keys = {name: row[name] for name in COUNT_COLUMNS}
    kept = _select_acyclic_events(events, bool(row.events_on_cycles))
    if row.runs > 1 and keys["members"] is not None:
        keys["members"] = kept.select("member").where("member IS NOT NULL").distinct().count()
    maps = {name: _merge_maps(runs, name) for name in MAP_COLUMNS}
    details = {name: row[name] for name in DETAIL_COLUMNS if row[name] or name in REQUIRED_DETAILS}
    if "receipts" in details or "deliveries" in details:
        details |= {name: row[name] for name in ("receipts", "deliveries")} | _summarize_deliveries(
            runs, events
        )
    details |= {name: maps[name] for name in ("compared_edges", "max_inversions", "quarantine")}
    worst = list(maps["max_inversions"])
    details["worst_inversions"] = _find_worst_inversions(kept, worst) if worst else {}
    sources = {row[0] for row in runs.select(SOURCE).distinct().collect()}
    return AuditReport(
        format=TABLE,
        causality_source=next((one for one in (CAUSES, RECEIPTS) if one in sources), NONE),
        inversions=maps["inversions"],
        clock_inconsistencies=None,
        details=details,
        **keys,
    )


def _select_acyclic_events(events: DataFrame, has_cycles: bool) -> DataFrame:
    chosen = tables.select_distinct_events(tables.mark_events(select_events(events)))
    if not has_cycles:
        return chosen
    limits = tables.AuditLimits(PairChoice(pairs=False), MAX_GRAPH_EDGES)
    _, cyclic = tables.find_cycles(chosen, limits)
    return chosen.join(cyclic, [RUN_KEY, "node"], "left_anti")


def _find_worst_inversions(kept: DataFrame, orders: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return, by order, the edge with the largest step back; the first listed of equal ones."""
    columns = list(dict.fromkeys([*orders, "file_order"]))
    effect = kept.select(
        RUN_KEY,
        F.explode(tables.CAUSE_IDS).alias("cause"),
        F.col("id").alias("effect"),
        *(F.col(name).alias(f"effect_{name}") for name in columns),
    )
    cause = kept.select(
        RUN_KEY,
        F.col("id").alias("cause"),
        *(F.col(name).alias(f"cause_{name}") for name in columns),
    )
    edges = effect.join(cause, [RUN_KEY, "cause"])
    first = (-F.col("effect_file_order"), -F.col("cause_file_order"))
    # max_by ranks null steps last: null is the least value in a struct.
    place = {name: F.struct(tables.measure_step_back(name), *first) for name in orders}
    pair = F.struct("cause", "effect")
    row: Any = edges.agg(*(F.max_by(pair, at).alias(name) for name, at in place.items())).first()
    return {name: row[name].asDict() for name in orders}


def _merge_maps(runs: DataFrame, name: str) -> dict[str, int]:
    """Merge the maps of all runs: maxima of largest steps, sums of counts."""
    each = runs.select(F.explode(name).alias("key", "value")).groupBy("key")
    found = each.agg((F.max if name == "max_inversions" else F.sum)("value").alias("value"))
    values = {row["key"]: row["value"] for row in found.collect()}
    order = [*(one for one in ORDERS if one in values), *sorted(values.keys() - {*ORDERS})]
    return {key: values[key] for key in order}


def _summarize_deliveries(runs: DataFrame, events: DataFrame) -> dict[str, Any]:
    rows = runs.where("details IS NOT NULL").select("details").orderBy("run").collect()
    models = merge_channels(json.loads(row.details).get("channels", {}) for row in rows)
    keyed = select_events(events)
    talking = keyed.where(F.col("kind").isin(RECEIVE, DELIVER)).select(RUN_KEY).distinct()
    whole = partition_by_run(keyed.join(talking, RUN_KEY, "left_semi").select(keyed.columns))
    packed = (
        whole.mapInArrow(_pack_violations, "place long, part binary").orderBy("place").collect()
    )
    found: dict[str, Any] = {"violations": of_parts([pickle.loads(row.part) for row in packed])}
    return found | ({"channels": models} if models else {})


def _pack_violations(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for _, rows in read_runs(
        batches, MAX_RUN_BYTES, describe_run_limit("causal violations", MAX_RUN_BYTES)
    ):
        for run in select_observed_runs(conform(rows)):  # separates null from empty run names
            place: Any = run["file_order"][0].as_py()
            part = pa.array([pickle.dumps(part_of(run))], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([place]), part], ["place", "part"])


def total_by_clocks(
    events: DataFrame, quarantine: Path | None, format: str, *, pairs: bool = True
) -> AuditReport:
    """Return the report of vector clocks, counted by the local engine in one task.

    Quarantined rows are written to `quarantine`. Raises InputError above `MAX_RUN_BYTES`.
    """

    def count(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        parts, size = [], 0
        for batch in batches:
            parts.append(batch)
            size += batch.nbytes
            if size > MAX_RUN_BYTES:
                raise InputError(
                    f"an audit of vector clocks is one task, limited to {MAX_RUN_BYTES:,} bytes of "
                    "rows; this trace has more: audit each run separately with "
                    "antecede.spark.audit()"
                )
        if not parts:
            return
        table = pa.Table.from_batches(parts).combine_chunks()
        choice = PairChoice(pairs)
        report = audit_events(table, TABLE, named=Named(), clocked=True, choice=choice)
        if quarantine is not None:
            write_part(report.quarantine, quarantine / "counted-000000", format)
        plain = AuditReport(**report.to_dict())
        yield pa.RecordBatch.from_pydict({"report": pa.array([pickle.dumps(plain)], pa.binary())})

    rows = events.repartition(1).sortWithinPartitions("file_order")
    packed = rows.mapInArrow(count, "report binary").collect()
    report: AuditReport = pickle.loads(packed[0].report)
    return report


def with_read(
    report: AuditReport, details: Mapping[str, Any], bad_rows: int, reasons: Mapping[str, int]
) -> AuditReport:
    """Return a report with the details of reading, and the rejected rows by reason."""
    found = {**without_columns(details), **without_columns(report.details)}
    if report.causality_source == NONE:
        found[CAUSE_COLUMNS] = details.get(CAUSE_COLUMNS, "")
    causes = Causes(0, found[REPEATED], found[BLANK]).with_read(details)
    found |= {REPEATED: causes.repeated, BLANK: causes.blank}
    counted = dict(report.details["quarantine"])
    for reason, count in reasons.items():
        counted[reason] = counted.get(reason, 0) + count
    found["quarantined"] = report.details["quarantined"] + bad_rows
    found["quarantine"] = dict(sorted(counted.items(), key=lambda one: (-one[1], one[0])))
    plain = report.to_dict() | {"details": found}
    return AuditReport(**plain, paths=report.paths)
