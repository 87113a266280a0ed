"""`meter` and `violations`: the unnecessary-order meter over a DataFrame in the event schema.

Theory of operation
-------------------
Clocks run over all rows of a run, so each run goes to one task, which hands on one packed row an
observer: the stamps of what it received, as bytes. These rows are spread evenly, and the local
kernels count each of them. So no pair of messages ever is a row, nothing is joined with itself,
and what is moved is each event once, and each copy once in bytes. The task of a run holds one run
at a time, up to a bound; that of an observer, what it received.

Early deliveries come out of the first step alone, a task a run.

Without a column `file_order` rows have no order, and receipts would mean nothing: it is required.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from antecede.core.clocks import Bounds
from antecede.core.protocols.topics import Subscriptions
from antecede.errors import InputError
from antecede.spark.audits.event_columns import RUN_BYTES, events_of, run_by_run, runs_in, whole_run
from antecede.spark.evidence import demand
from antecede.spark.workers import ready_workers
from antecede.tables.false_causality import (
    MEASURE_SCHEMA,
    Observed,
    observed,
    rows_of,
    rule_named,
    runs_of,
    table_of,
)
from antecede.tables.false_causality import VIOLATION_SCHEMA as EARLY
from antecede.tables.false_causality import find_violations as local_violations

Batches = Iterable[pa.RecordBatch]
_PACKED = "run string, observer string, stamps binary"
_COUNTED = (
    "run string, observer string, rule string, truth string, events long, ordered long, "
    "causal long, unnecessary long, missed long, ordered_per_event double, "
    "causal_per_event double, unnecessary_per_event double, missed_per_event double"
)
_EARLY = (
    "run string, member string, message string, file_order long, cause string, cause_order long"
)


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
    """Return what `tables.false_causality.measure.measure` returns of the same events, rows in any
    order.

    An observer that received nothing has no rows. Raises InputError for a rule that is none,
    for columns that are missing or of another type, and for rows without evidence of causality
    (`antecede.spark.evidence`: jobs that end at the first match). What only the rows tell (a rule
    that cannot be measured) ends the job with the same error in a worker.

    Clocks of a run are made in ONE TASK A RUN, of at most `run_bytes` of Arrow data, beyond which
    it fails with InputError naming the run; observers are then counted each in a task.

    >>> from antecede.spark import meter
    >>> events = spark.createDataFrame(
    ...     [("a", [], 0), ("b", ["a"], 1), ("c", [], 2)],
    ...     "id string, parents array<string>, file_order long",
    ... )
    >>> found = meter(events, rules=["arrival"])
    >>> found.select("events", "ordered", "causal", "unnecessary").show()
    +------+-------+------+-----------+
    |events|ordered|causal|unnecessary|
    +------+-------+------+-----------+
    |     3|      3|     1|          2|
    +------+-------+------+-----------+
    <BLANKLINE>
    """
    for name in rules or ():
        rule_named(name)
    by_run = by_runs(df)
    demand(events_of(df))
    packed = by_run.mapInArrow(
        _packer(observers, bounds, subscriptions, relation, run_bytes), _PACKED
    )
    parts = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return packed.repartition(parts).mapInArrow(_counter(rules, truth), _COUNTED)


def violations(
    df: DataFrame, *, relation: str | None = None, run_bytes: int = RUN_BYTES
) -> DataFrame:
    """Return what `tables.false_causality.find_violations` returns of the same events, rows
    in any order.

    One task a run, bounded as in `meter`. Raises as `meter`.

    >>> from antecede.spark import violations
    >>> events = spark.createDataFrame(
    ...     [
    ...         ("send", "a", "P", [], 0),
    ...         ("deliver", "b", "R", [], 3),
    ...         ("deliver", "a", "R", [], 4),
    ...         ("deliver", "a", "Q", [], 1),
    ...         ("send", "b", "Q", ["a"], 2),
    ...     ],
    ...     "kind string, id string, member string, parents array<string>, file_order long",
    ... )
    >>> violations(events).select("member", "message", "cause").show()
    +------+-------+-----+
    |member|message|cause|
    +------+-------+-----+
    |     R|      b|    a|
    +------+-------+-----+
    <BLANKLINE>
    """

    def find(batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in tables_of_runs(batches, run_bytes):
            yield from local_violations(table, relation).cast(_plain(EARLY)).to_batches()

    return by_runs(df).mapInArrow(find, _EARLY)


def by_runs(df: DataFrame) -> DataFrame:
    """Return the events with every run in one partition."""
    if "file_order" not in df.columns:
        raise InputError(f"no column file_order; there are {', '.join(df.columns)}")
    ready_workers(df.sparkSession)
    return run_by_run(events_of(df))


def _packer(
    observers: Collection[str] | None,
    bounds: Bounds[str] | None,
    subscriptions: Subscriptions[str] | None,
    relation: str | None,
    run_bytes: int,
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return what a worker runs on the events of some runs."""

    def pack(batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in tables_of_runs(batches, run_bytes):
            for run in runs_of(table, relation):
                for seen in observed(run, observers, bounds, subscriptions):
                    yield pa.RecordBatch.from_arrays(
                        [
                            pa.array([seen.run], pa.string()),
                            pa.array([seen.observer], pa.string()),
                            pa.array([pickle.dumps(seen, protocol=5)], pa.binary()),
                        ],
                        ["run", "observer", "stamps"],
                    )

    return pack


def _counter(
    rules: Sequence[str] | None, truth: str | None
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return what a worker runs on packed observers."""
    wanted: Any = None if rules is None else [rule_named(name) for name in rules]

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed in batch.column(2):
                seen: Observed = pickle.loads(packed.as_py())
                found = table_of(rows_of(seen, wanted, truth))
                yield from found.cast(_plain(MEASURE_SCHEMA)).to_batches()

    return count


def tables_of_runs(batches: Batches, run_bytes: int) -> Iterator[pa.Table]:
    """Yield the rows of each run of a partition, in the order of the file."""
    for _, table in runs_in(batches, run_bytes, whole_run("the meter", run_bytes)):
        yield table


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema as Spark declares it: everything may be null."""
    fields: list[Any] = [pa.field(field.name, field.type) for field in schema]
    return pa.schema(fields)
