"""Rows that an audit by declared causes quarantines, with reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.audits import causes
from antecede.spark.audits.audit import Batches, By, is_clocked
from antecede.spark.audits.event_columns import (
    MAX_RUN_BYTES,
    ROW,
    ROW_ORDER,
    RUN_KEY,
    describe_run_limit,
    partition_by_run,
    read_runs,
    select_events,
)
from antecede.spark.audits.run_graph import MAX_GRAPH_EDGES
from antecede.spark.workers import check_workers
from antecede.tables.audit import PairChoice, by_causes
from antecede.tables.trace import conform


def find_quarantined(
    df: DataFrame,
    *,
    by: By = "auto",
    max_graph_edges: int = MAX_GRAPH_EDGES,
    max_run_bytes: int = MAX_RUN_BYTES,
) -> DataFrame:
    """Return the rows that an audit by declared causes quarantines: `reason`, and the `row`.

    `row` is a struct of all columns of `df`. Reasons are those that `audit` counts in `quarantine`:
    no id, a conflict with an earlier row of the id, or a cycle of causes (named after a colon).
    Arguments are those of `audit`; events on cycles of a run are one task. Raises InputError as
    `audit`, and for vector-clock logs (use `antecede audit --quarantine`).

    >>> from antecede.spark import find_quarantined
    >>> rows = [("a", ["b"]), ("b", ["a"]), ("", []), ("c", [])]
    >>> events = spark.createDataFrame(rows, "id string, causes array<string>")
    >>> sorted((found.row.id, found.reason) for found in find_quarantined(events).collect())[:2]
    [('', 'no id'), ('a', 'causes form a cycle: a <- b <- a')]
    """
    events = select_events(df, with_row=True)
    check_workers(df.sparkSession)
    if is_clocked(events, "table", by):
        raise InputError(
            "find_quarantined needs declared causes, and this is a log of vector clocks: use the "
            "counts of audit, antecede audit --quarantine for the rows, or by='causes' to ignore "
            "the clocks"
        )
    rows = causes.mark_events(events)
    bad = rows.where(F.col("reason").isNotNull()).select("reason", F.col(ROW).alias("row"))
    chosen = causes.select_distinct_events(rows)
    _, cyclic = causes.find_cycles(
        chosen, causes.AuditLimits(PairChoice(pairs=False), max_graph_edges)
    )
    whole = chosen.join(cyclic, [RUN_KEY, "node"], "left_semi").select(
        RUN_KEY, ROW_ORDER, "id", F.col(causes.CAUSE_IDS).alias("causes")
    )
    refused = describe_run_limit("naming the events on cycles", max_run_bytes)

    def name(batches: Batches) -> Iterator[pa.RecordBatch]:
        for key, rows in read_runs(batches, max_run_bytes, refused):
            aside: Any = by_causes(conform(rows)).quarantine
            if aside is not None:
                keys = pa.array([key] * len(aside), pa.string())
                table = pa.table({RUN_KEY: keys, "id": aside["id"], "why": aside["reason"]})
                yield from table.to_batches()

    named = partition_by_run(whole).mapInArrow(name, f"{RUN_KEY} string, id string, why string")
    named = named.toDF("__run", "__id", "reason")
    first = rows.where("first").select(RUN_KEY, "id", ROW)
    same = (first[RUN_KEY] == named["__run"]) & (first["id"] == named["__id"])
    return bad.unionByName(first.join(named, same).select("reason", F.col(ROW).alias("row")))
