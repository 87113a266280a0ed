"""`quarantined`: the rows that an audit by declared causes sets aside, with their reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.audits import causes
from antecede.spark.audits.audit import Batches, By, by_clocks
from antecede.spark.audits.event_columns import (
    KEY,
    PLACE,
    ROW,
    RUN_BYTES,
    events_of,
    run_by_run,
    runs_in,
    whole_run,
)
from antecede.spark.audits.run_graph import GRAPH_EDGES
from antecede.spark.workers import ready_workers
from antecede.tables.audit import PairChoice, by_causes
from antecede.tables.trace import conform


def quarantined(
    df: DataFrame, *, by: By = "auto", graph_edges: int = GRAPH_EDGES, run_bytes: int = RUN_BYTES
) -> DataFrame:
    """Return the rows that an audit by declared causes sets aside: `reason`, and the `row`.

    `row` is a struct of all columns of `df`. Reasons are those that `audit` counts in `quarantine`:
    no id, a row that contradicts an earlier one of its id, an event on a cycle of causes (the
    reason names the cycle after a colon). Arguments as for `audit`; the events on cycles of a run
    are one task. Raises InputError as `audit`, and for logs with vector clocks, whose rows
    `antecede audit` hands out.

    >>> from antecede.spark import quarantined
    >>> rows = [("a", ["b"]), ("b", ["a"]), ("", []), ("c", [])]
    >>> events = spark.createDataFrame(rows, "id string, parents array<string>")
    >>> sorted((found.row.id, found.reason) for found in quarantined(events).collect())[:2]
    [('', 'no id'), ('a', 'causes form a cycle: a <- b <- a')]
    """
    events = events_of(df, rows=True)
    ready_workers(df.sparkSession)
    if by_clocks(events, "table", by):
        raise InputError(
            "quarantined goes by declared causes, and this is a log of vector clocks: see the "
            "counts of audit, and for the rows antecede audit --quarantine; by='causes' leaves "
            "the clocks alone"
        )
    rows = causes.judged(events)
    bad = rows.where(F.col("reason").isNotNull()).select("reason", F.col(ROW).alias("row"))
    chosen = causes.distinct_events(rows)
    _, cyclic = causes.on_cycles(chosen, causes.Limits(PairChoice(pairs=False), graph_edges))
    whole = chosen.join(cyclic, [KEY, "node"], "left_semi").select(
        KEY, PLACE, "id", F.col(causes.NAMES).alias("parents")
    )
    refused = whole_run("naming the events on cycles", run_bytes)

    def name(batches: Batches) -> Iterator[pa.RecordBatch]:
        for key, rows in runs_in(batches, run_bytes, refused):
            aside: Any = by_causes(conform(rows)).quarantine
            if aside is not None:
                keys = pa.array([key] * len(aside), pa.string())
                table = pa.table({KEY: keys, "id": aside["id"], "why": aside["reason"]})
                yield from table.to_batches()

    named = run_by_run(whole).mapInArrow(name, f"{KEY} string, id string, why string")
    named = named.toDF("__run", "__id", "reason")
    first = rows.where("first").select(KEY, "id", ROW)
    same = (first[KEY] == named["__run"]) & (first["id"] == named["__id"])
    return bad.unionByName(first.join(named, same).select("reason", F.col(ROW).alias("row")))
