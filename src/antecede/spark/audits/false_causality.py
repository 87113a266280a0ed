"""False-causality analysis of a DataFrame in the event schema.

Clocks depend on all rows of a run. So each run is one task, which emits one packed row per
observer: the timestamps of the messages it received. These rows are distributed evenly, and the
local kernels count each of them, without a self-join. Causal violations are found in the first
step. Receipts need an order of rows, so `file_order` is required.
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
from antecede.spark.audits.event_columns import (
    MAX_RUN_BYTES,
    describe_run_limit,
    partition_by_run,
    read_runs,
    select_events,
)
from antecede.spark.columns import spark_schema
from antecede.spark.evidence import require_source
from antecede.spark.workers import check_workers
from antecede.tables.false_causality import (
    MEASURE_SCHEMA,
    Summary,
    part_of,
    rows_of,
    rule_named,
    runs_with_rows,
    select_observed,
    summary_of,
    table_of,
)
from antecede.tables.false_causality import VIOLATION_SCHEMA as EARLY
from antecede.tables.false_causality import find_violations as local_violations

Batches = Iterable[pa.RecordBatch]
_PACKED_SCHEMA = "place long, number long, value binary"
_RUN_PART = -1
"""Number of a run's own part; observers count from 0. `place` is the run's first row."""


def measure_false_causality(
    df: DataFrame,
    *,
    rules: Sequence[str] | None = None,
    observers: Collection[str] | None = None,
    bounds: Bounds[str] | None = None,
    subscriptions: Subscriptions[str] | None = None,
    relation: str | None = None,
    truth: str | None = None,
    max_run_bytes: int = MAX_RUN_BYTES,
) -> DataFrame:
    """Count the pairs that rules order wrongly, as `tables.false_causality.measure.measure`.

    The order of rows is undefined. An observer that received nothing has no rows. Raises InputError
    for an unknown rule, missing or unsupported columns, and rows without evidence of causality. A
    rule that cannot be measured fails the job with InputError in a worker. A run is ONE TASK of at
    most `max_run_bytes` of Arrow data; each observer is one task afterwards.

    >>> from antecede.spark import measure_false_causality
    >>> rows = [("a", [], 0), ("b", ["a"], 1), ("c", [], 2)]
    >>> events = spark.createDataFrame(rows, "id string, causes array<string>, file_order long")
    >>> (row,) = measure_false_causality(events, rules=["arrival"]).collect()
    >>> row.events, row.ordered, row.causal, row.false_pairs
    (3, 3, 1, 2)
    """
    wanted = _parse_rules(rules)
    packed = _pack_observers(df, (observers, bounds, subscriptions), relation, max_run_bytes)
    require_source(select_events(df))

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for packed_row in batch["value"]:
                found = table_of(rows_of(pickle.loads(packed_row.as_py()), wanted, truth))
                yield from found.cast(_make_nullable(MEASURE_SCHEMA)).to_batches()

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
    max_run_bytes: int = MAX_RUN_BYTES,
) -> Summary:
    """Return the summary that `tables.false_causality.summary.summarize` returns.

    Runs a job and raises as `measure_false_causality`; only parts and counts reach the driver.
    """
    wanted = _parse_rules(rules)
    options = (observers, bounds, subscriptions)
    packed = _pack_observers(
        df, options, relation, max_run_bytes, summary=True, to_everybody=to_everybody
    )

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = (column.to_pylist() for column in batch.columns)
            for place, number, value in zip(*columns, strict=True):
                seen = pickle.loads(value)
                rows = seen if number == _RUN_PART else list(rows_of(seen, wanted, truth))
                yield _pack_row(place, number, rows)

    packed_rows = sorted(
        packed.mapInArrow(count, _PACKED_SCHEMA).collect(), key=lambda row: (row[0], row[1])
    )
    found = [(row.number, pickle.loads(row.value)) for row in packed_rows]
    return summary_of(
        [part for number, part in found if number == _RUN_PART],
        [row for number, rows in found if number != _RUN_PART for row in rows],
        observers,
        all_rules=rules is None,
        relation=relation,
        to_everybody=to_everybody,
    )


def find_violations(
    df: DataFrame, *, relation: str | None = None, max_run_bytes: int = MAX_RUN_BYTES
) -> DataFrame:
    """Return the causal violations, as `tables.false_causality.find_violations`, in any order.

    One task per run, limited as in `measure_false_causality`. Raises as `measure_false_causality`.

    >>> from antecede.spark import find_violations
    >>> rows = [("send", "a", "P", [], 0), ("deliver", "a", "Q", [], 1)]
    >>> rows += [("send", "b", "Q", ["a"], 2)]
    >>> rows += [("deliver", "b", "R", [], 3), ("deliver", "a", "R", [], 4)]
    >>> columns = "kind string, id string, member string, causes array<string>, file_order long"
    >>> found = find_violations(spark.createDataFrame(rows, columns))
    >>> [(row.member, row.message, row.cause) for row in found.collect()]
    [('R', 'b', 'a')]
    """

    def find(batches: Batches) -> Iterator[pa.RecordBatch]:
        for table in _read_run_tables(batches, max_run_bytes):
            yield from local_violations(table, relation).cast(_make_nullable(EARLY)).to_batches()

    return _partition_by_run(df).mapInArrow(find, spark_schema(EARLY))


def _partition_by_run(df: DataFrame) -> DataFrame:
    if "file_order" not in df.columns:
        raise InputError(f"no column file_order; there are {', '.join(df.columns)}")
    check_workers(df.sparkSession)
    return partition_by_run(select_events(df))


def _parse_rules(rules: Sequence[str] | None) -> list[Any] | None:
    return None if rules is None else [rule_named(name) for name in rules]


def _pack_observers(
    df: DataFrame,
    options: tuple[Any, ...],
    relation: str | None,
    max_run_bytes: int,
    *,
    summary: bool = False,
    to_everybody: bool = False,
) -> DataFrame:
    """Return a row per observer of each run, and with `summary` a row per run."""

    def pack(batches: Batches) -> Iterator[pa.RecordBatch]:
        for rows in _read_run_tables(batches, max_run_bytes):
            for run, table in runs_with_rows(rows, relation):
                place: int = table["file_order"][0].as_py()
                part = part_of(run, table, relation, to_everybody=to_everybody) if summary else None
                for number, seen in enumerate(select_observed(run, *options)):
                    if part is not None:
                        part.note(seen)
                    yield _pack_row(place, number, seen)
                if part is not None:
                    yield _pack_row(place, _RUN_PART, part)

    parts = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    return _partition_by_run(df).mapInArrow(pack, _PACKED_SCHEMA).repartition(parts)


def _pack_row(place: int, number: int, value: Any) -> pa.RecordBatch:
    packed = pa.array([pickle.dumps(value, 5)], pa.binary())
    columns: list[Any] = [pa.array([place]), pa.array([number]), packed]
    return pa.RecordBatch.from_arrays(columns, ["place", "number", "value"])


def _read_run_tables(batches: Batches, max_run_bytes: int) -> Iterator[pa.Table]:
    for _, table in read_runs(
        batches, max_run_bytes, describe_run_limit("false-causality analysis", max_run_bytes)
    ):
        yield table


def _make_nullable(schema: pa.Schema) -> pa.Schema:
    fields: list[Any] = [pa.field(field.name, field.type) for field in schema]
    return pa.schema(fields)
