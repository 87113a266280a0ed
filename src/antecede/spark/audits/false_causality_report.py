"""`meter_report`: the whole of what `antecede meter` says, counted by executors.

As `metering.meter`, and in the same pass: the task of a run hands on what it tells beside its
counts. Only these parts and the counts come to the driver, in the order of the runs' first rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow
from pyspark.sql import DataFrame

from antecede.core.clocks import Bounds
from antecede.core.protocols.topics import Subscriptions
from antecede.spark.audits.event_columns import RUN_BYTES
from antecede.spark.audits.false_causality import by_runs, tables_of_runs
from antecede.tables.false_causality import (
    Observed,
    Summary,
    by_run,
    observed,
    part_of,
    rows_of,
    rule_named,
    runs_of,
    summary_of,
)

pa: Any = pyarrow  # its stubs know too few of the types that meet here
Batches = Iterable[pyarrow.RecordBatch]
_ROWS = "place long, number long, told binary"
PART = -1
"""The number of a run's own part; its observers count from 0."""


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
    """Return what `tables.false_causality.summary.summarize` returns of the same events; runs a
    Spark job.

    Raises as `metering.meter`; what only the rows tell comes out of a worker.
    """
    for name in rules or ():
        rule_named(name)
    options = (observers, bounds, subscriptions)
    packed = by_runs(df).mapInArrow(_packer(options, relation, to_everybody, run_bytes), _ROWS)
    parts = int(df.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    counted = packed.repartition(parts).mapInArrow(_counter(rules, truth), _ROWS)
    told = sorted(counted.collect(), key=lambda row: (row.place, row.number))
    found = [(row.number, pickle.loads(row.told)) for row in told]
    return summary_of(
        [part for number, part in found if number == PART],
        [row for number, rows in found if number != PART for row in rows],
        observers,
        all_rules=rules is None,
        relation=relation,
        to_everybody=to_everybody,
    )


def _packer(
    options: tuple[Any, Any, Any], relation: str | None, to_everybody: bool, run_bytes: int
) -> Callable[[Batches], Iterator[pyarrow.RecordBatch]]:
    """Return what a worker runs on the events of some runs."""

    def pack(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        for rows in tables_of_runs(batches, run_bytes):
            for _, table in by_run(rows):  # rows without a run and with an empty one are two
                place: int = table["file_order"][0].as_py()
                for run in runs_of(table, relation):
                    part = part_of(run, table, relation, to_everybody=to_everybody)
                    for number, seen in enumerate(observed(run, *options)):
                        part.note(seen)
                        yield _row(place, number, seen)
                    yield _row(place, PART, part)

    return pack


def _row(place: int, number: int, told: Any) -> Any:
    arrays = [pa.array([place]), pa.array([number]), pa.array([pickle.dumps(told, 5)], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, ["place", "number", "told"])


def _counter(
    rules: Sequence[str] | None, truth: str | None
) -> Callable[[Batches], Iterator[pyarrow.RecordBatch]]:
    """Return what a worker runs on packed observers; parts pass through."""
    wanted: Any = None if rules is None else [rule_named(name) for name in rules]

    def count(batches: Batches) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            places: list[Any] = batch.column(0).to_pylist()
            numbers: list[Any] = batch.column(1).to_pylist()
            for place, number, told in zip(places, numbers, batch.column(2), strict=True):
                seen: Observed = pickle.loads(told.as_py())
                rows = seen if number == PART else list(rows_of(seen, wanted, truth))
                yield _row(place, number, rows)

    return count
