"""The unnecessary-order meter over a DataFrame in the event schema.

Theory of operation
-------------------
Clocks run over all rows of a run. So each run goes to one task, which hands on one packed row an
observer: the stamps of what it received, as bytes. These rows are spread evenly, and the local
kernels count each of them. No pair of messages ever is a row, and nothing is joined with itself.
The task of a run holds one run at a time, up to a bound; that of an observer, what it received.

Early deliveries come out of the first step alone. Receipts mean nothing without an order of rows:
`file_order` is required.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from antecede.core.clocks import Bounds
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import InputError
from antecede.spark.audits.event_columns import RUN_BYTES, events_of, run_by_run, runs_in, whole_run
from antecede.spark.columns import spark_schema
from antecede.spark.evidence import demand
from antecede.spark.workers import ready_workers
from antecede.tables.false_causality import (
    MEASURE_SCHEMA,
    Summary,
    observed,
    part_of,
    rows_of,
    rule_named,
    runs_with_rows,
    summary_of,
    table_of,
)
from antecede.tables.false_causality import VIOLATION_SCHEMA as EARLY
from antecede.tables.false_causality import find_violations as local_violations

Batches = Iterable[pa.RecordBatch]
_PACKED = "place long, number long, told binary"
_PART = -1
"""The number of a run's own part; its observers count from 0. `place`: of the run's first row."""


def meter(
    df: DataFrame,
    *,
    rules: Sequence[str] | None = None,
    observers: Collection[str] | None = None,
    bounds: Bounds[str] | None = None,
    subscriptions: Subscriptions[str] | None = None,
    relation: str | None = None,
    truth: str | None = None,
    run_bytes: int = RUN_BYTES,
) -> DataFrame:
    """Return what `tables.false_causality.measure.measure` returns of the same events, in any
    order.

    An observer that received nothing has no rows. Raises InputError for an unknown rule, for
    columns that are missing or of another type, and for rows without evidence of causality
    (`antecede.spark.evidence`: jobs that end at the first match). A rule that cannot be measured
    ends the job with InputError in a worker.

    Clocks of a run are made in ONE TASK A RUN, of at most `run_bytes` of Arrow data, beyond which
    it fails with InputError naming the run; observers are then counted each in a task.

    >>> from antecede.spark import meter
    >>> rows = [("a", [], 0), ("b", ["a"], 1), ("c", [], 2)]
    >>> events = spark.createDataFrame(rows, "id string, parents array<string>, file_order long")
    >>> (row,) = meter(events, rules=["arrival"]).collect()
    >>> row.events, row.ordered, row.causal, row.false_pairs
    (3, 3, 1, 2)
    """
    wanted = _rules_named(rules)
    packed = _packed(df, (observers, bounds, subscriptions), relation, run_bytes)
    demand(events_of(df))

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for told in batch["told"]:
                found = table_of(rows_of(pickle.loads(told.as_py()), wanted, truth))
                yield from found.cast(_plain(MEASURE_SCHEMA)).to_batches()

    return packed.mapInArrow(count, spark_schema(MEASURE_SCHEMA))


def meter_report(
    df: DataFrame,
    *,
    rules: Sequence[str] | None = None,
    observers: Collection[str] | None = None,
    bounds: Bounds[str] | None = None,
    subscriptions: Subscriptions[str] | None = None,
    relation: str | None = None,
    truth: str | None = None,
    to_everybody: bool = False,
    run_bytes: int = RUN_BYTES,
) -> Summary:
    """Return what `tables.false_causality.summary.summarize` returns of the same events.

    Runs a Spark job like that of `meter`: the task of a run hands on a part of the summary beside
    its observers. Parts and counts alone come to the driver. Raises as `meter`; what only the rows
    tell comes out of a worker.
    """
    wanted = _rules_named(rules)
    options = (observers, bounds, subscriptions)
    packed = _packed(df, options, relation, run_bytes, summary=True, to_everybody=to_everybody)

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = (column.to_pylist() for column in batch.columns)
            for place, number, told in zip(*columns, strict=True):
                seen = pickle.loads(told)
                rows = seen if number == _PART else list(rows_of(seen, wanted, truth))
                yield _row(place, number, rows)

    told = sorted(packed.mapInArrow(count, _PACKED).collect(), key=lambda row: (row[0], row[1]))
    found = [(row.number, pickle.loads(row.told)) for row in told]
    return summary_of(
        [part for number, part in found if number == _PART],
        [row for number, rows in found if number != _PART for row in rows],
        observers,
        all_rules=rules is None,
        relation=relation,
        to_everybody=to_everybody,
    )


def violations(
    df: DataFrame, *, relation: str | None = None, run_bytes: int = RUN_BYTES
) -> DataFrame:
    """Return what `tables.false_causality.find_violations` returns of the same events, in any
    order.

    One task a run, bounded as in `meter`. Raises as `meter`.

    >>> from antecede.spark import violations
    >>> rows = [("send", "a", "P", [], 0), ("deliver", "a", "Q", [], 1)]
    >>> rows += [("send", "b", "Q", ["a"], 2)]
    >>> rows += [("deliver", "b", "R", [], 3), ("deliver", "a", "R", [], 4)]
    >>> columns = "kind string, id string, member string, parents array<string>, file_order long"
    >>> found = violations(spark.createDataFrame(rows, columns))
    >>> [(row.member, row.message, row.cause) for row in found.collect()]
    [('R', 'b', 'a')]
    """

    def find(batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in _tables_of_runs(batches, run_bytes):
            yield from local_violations(table, relation).cast(_plain(EARLY)).to_batches()

    return _by_runs(df).mapInArrow(find, spark_schema(EARLY))


def _by_runs(df: DataFrame) -> DataFrame:
    """Return the events with every run in one partition."""
    if "file_order" not in df.columns:
        raise InputError(f"no column file_order; there are {', '.join(df.columns)}")
    ready_workers(df.sparkSession)
    return run_by_run(events_of(df))


def _rules_named(rules: Sequence[str] | None) -> list[Any] | None:
    return None if rules is None else [rule_named(name) for name in rules]


def _packed(
    df: DataFrame,
    options: tuple[Any, ...],
    relation: str | None,
    run_bytes: int,
    *,
    summary: bool = False,
    to_everybody: bool = False,
) -> DataFrame:
    """Return a row for each observer of each run, spread evenly, in the columns `_PACKED`.

    `summary`: also a row for each run, its part of the summary.
    """

    def pack(batches: Batches) -> Iterator[pa.RecordBatch]:
        for rows in _tables_of_runs(batches, run_bytes):
            for run, table in runs_with_rows(rows, relation):
                place: int = table["file_order"][0].as_py()
                part = part_of(run, table, relation, to_everybody=to_everybody) if summary else None
                for number, seen in enumerate(observed(run, *options)):
                    if part is not None:
                        part.note(seen)
                    yield _row(place, number, seen)
                if part is not None:
                    yield _row(place, _PART, part)

    parts = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return _by_runs(df).mapInArrow(pack, _PACKED).repartition(parts)


def _row(place: int, number: int, told: Any) -> pa.RecordBatch:
    packed = pa.array([pickle.dumps(told, 5)], pa.binary())
    columns: list[Any] = [pa.array([place]), pa.array([number]), packed]
    return pa.RecordBatch.from_arrays(columns, ["place", "number", "told"])


def _tables_of_runs(batches: Batches, run_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows of each run of a partition, in the order of the file."""
    for _, table in runs_in(batches, run_bytes, whole_run("the meter", run_bytes)):
        yield table


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema as Spark declares it: everything may be null."""
    fields: list[Any] = [pa.field(field.name, field.type) for field in schema]
    return pa.schema(fields)
