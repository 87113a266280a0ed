"""Rows per second of `replay`, and of passing the same rows through, local and on Spark.

    python -m bench.replay_rate

Groups of four send messages; the table holds every member's log. On Spark the reference is the same
shuffle through Arrow and Python, without the protocol.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow
import pyarrow.parquet
from pyspark.sql import DataFrame

from antecede.formatting import table
from antecede.lab.record import Talk, record_log
from antecede.spark import local_session
from antecede.spark.replay import replay_log
from antecede.tables.order.replay import DeliverSpec, deliver_table
from bench.engines import measure_best_s

pa: Any = pyarrow
GROUPS = 10
MESSAGES = 100
NAMES = ("ann", "bob", "cat", "dan")
ORDERS: dict[str, dict[str, Any]] = {
    "unordered": {},
    "bss": {},
    "idr": {},
    "sb": {},
    "linear": {"heartbeat_s": 0.5},
}


def make_spec(order: str) -> DeliverSpec:
    return DeliverSpec(
        order=order,
        members=NAMES,
        options=ORDERS[order],
        group="run",
        tiebreak="number",
        sent="sent",
    )


def make_logs(spec: DeliverSpec) -> pyarrow.Table:
    tables = []
    for run in range(GROUPS):
        groups = {name: spec.group_of(name, None) for name in NAMES}
        made: Any = record_log(groups, Talk(messages=MESSAGES), seed=run)
        tables.append(made.append_column("run", pa.array([str(run)] * len(made))))
    whole: pyarrow.Table = pa.concat_tables(tables).sort_by("time")
    return whole


def main() -> None:
    spark = local_session(cores=2)
    lines = []
    for order in ORDERS:
        spec = make_spec(order)
        rows = make_logs(spec)
        with tempfile.TemporaryDirectory() as folder:
            pyarrow.parquet.write_table(rows, f"{folder}/log.parquet", compression="zstd")
            frame = spark.read.parquet(folder)
            placed = frame.repartition(frame["run"], frame["observer"])
            through = placed.mapInArrow(_pass_through, frame.schema)
            works: list[Callable[[], Any]] = [
                lambda: deliver_table(rows, spec),  # noqa: B023
                lambda: _run(frame.transform(replay_log, spec)),  # noqa: B023
                lambda: _run(through),  # noqa: B023
            ]
            rates = [rows.num_rows / measure_best_s(work) for work in works]
        per_row = 1e6 / rates[0]
        lines.append([order, f"{rows.num_rows:,}", *(f"{rate:,.0f}" for rate in rates)])
        lines[-1] += [f"{per_row:.0f}", f"{rates[1] / rates[2]:.2f}"]
    spark.stop()
    heads = ["", "rows", "local rows/s", "Spark rows/s", "unchanged rows/s", "local us", "of it"]
    print(table(heads, lines))


def _pass_through(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    yield from batches


def _run(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main()
