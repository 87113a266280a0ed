"""Zipkin's spans in a DataFrame to events, trace by trace.

The rule is `antecede.trace.formats.zipkin_table`.
Spark brings the rows of each trace together and sorts them, so that a task holds one trace at a
time. Rows without ids are no part of a trace and are spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.errors import InputError
from antecede.spark.audits.event_columns import KEY, PLACE, RUN_BYTES, run_by_run, runs_in
from antecede.spark.columns import column_of
from antecede.spark.sources.span_ids import Id, steps, with_ids
from antecede.spark.workers import ready_workers
from antecede.trace.formats.spans_ids import DIGITS, SPAN_BYTES, TRACE_BYTES
from antecede.trace.formats.spans_table import table_of
from antecede.trace.formats.zipkin_table import rows_of, used

MADE = (
    "kind string, id string, member string, parents array<string>, topics array<string>, "
    "start_time long, end_time long, role string, text string, reason string, "
    "unreadable_times long, time_unit string, unreadable_causes long"
)
_NO_TRACE = "\0"
_SPREAD = 1000


def events_of_zipkin(df: DataFrame) -> DataFrame:
    """Return the events of Zipkin's spans, for `events_of_spans`.

    Raises InputError for a stream, for columns that cannot serve, and in the worker for a trace of
    more than 1 GiB.
    """
    if df.isStreaming:
        raise InputError(
            "Zipkin's spans are events only with all rows of their trace, and a stream never has "
            "them: call this on the table that the stream writes, or in foreachBatch"
        )
    of = used(df.columns)
    for name in (of[what] for what in ("traceId", "id", "parentId") if what in of):
        steps(name, df.schema[name].dataType, SPAN_BYTES)  # raises for types that hold no ids
    ready_workers(df.sparkSession)
    # A trace may have an id of 128 bits in some rows, and the right half of it in others.
    key = F.right(column_of(KEY), F.lit(DIGITS))
    spread = F.concat(F.lit(_NO_TRACE), (F.monotonically_increasing_id() % _SPREAD).cast("string"))
    rows = with_ids(df, {KEY: Id(of["traceId"], TRACE_BYTES)}).select(
        *(column_of(name) for name in of.values()),
        F.coalesce(key, spread).alias(KEY),
        F.lit(0).alias(PLACE),
    )
    return run_by_run(rows).mapInArrow(_made, MADE)


def _made(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    refusal = f"the rows of a trace are one task, of {RUN_BYTES:,} bytes at most"
    for _, rows in runs_in(batches, RUN_BYTES, refusal):
        yield from table_of(list(rows_of(rows))).to_batches()
