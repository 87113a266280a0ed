"""Speed of the order and audit engines, as ratios to a sort by timestamp.

    python -m bench.engines

A log of `ROWS` messages in `GROUPS` groups, each with up to two causes; one in ten rows is late.
The reference is a sort with pyarrow, which inverts edges.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import DataFrame

from antecede.formatting import table
from antecede.spark import local_session, order_with
from antecede.tables.audit import audit_events
from antecede.tables.order import OrderSpec, order_table
from antecede.tables.trace import Event, to_batch

ROWS = 300_000
GROUPS = 1_000
LATE = 0.1
REPEATS = 3
SPEC = OrderSpec(id="id", after=("causes",), group="run", time="arrival", time_unit="ns")


def make_log(rows: int, groups: int, seed: int = 1) -> pa.Table:
    rng = random.Random(seed)
    events = []
    last: dict[int, list[str]] = {}
    for k in range(rows):
        group = rng.randrange(groups)
        recent = last.setdefault(group, [])
        causes = tuple(rng.sample(recent, min(len(recent), rng.randrange(3))))
        late = rng.randrange(2_000) if rng.random() < LATE else 0
        name = f"{group}-{k}"
        when = (k + late) * 1_000_000
        member = str(k % 7)
        events.append(
            Event(
                run=str(group),
                id=name,
                member=member,
                causes=causes,
                arrival=when,
                send_time=k * 1_000_000,
            )
        )
        recent.append(name)
        del recent[:-5]
    events.sort(key=lambda event: event.arrival or 0)
    return pa.Table.from_batches([to_batch(events)])


def measure_best_s(work: Callable[[], Any]) -> float:
    work()
    spent = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begin)
    return min(spent)


def main() -> None:
    events = make_log(ROWS, GROUPS)
    yardstick = measure_best_s(lambda: events.sort_by("send_time"))
    spark = local_session(cores=2)
    with tempfile.TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(events, f"{folder}/log.parquet", compression="zstd")
        frame = spark.read.parquet(folder)
        narrow = frame.select(*SPEC.used)
        through = frame.repartition(frame["run"]).mapInArrow(_pass_through, frame.schema)
        works: list[tuple[str, Callable[[], Any]]] = [
            ("order, local engine", lambda: order_table(events, SPEC)),
            ("audit, local engine", lambda: audit_events(events)),
            ("Spark local[2], no operator", lambda: _run(frame)),
            ("Spark local[2], 20 columns to Python and back", lambda: _run(through)),
            ("order, Spark local[2], 20 columns", lambda: _run(frame.transform(order_with(SPEC)))),
            ("order, Spark local[2], 4 columns", lambda: _run(narrow.transform(order_with(SPEC)))),
        ]
        lines = [["pyarrow sort by timestamp", f"{ROWS / yardstick / 1e6:.2f}", "1.0"]]
        for name, work in works:
            spent = measure_best_s(work)
            lines.append([name, f"{ROWS / spent / 1e6:.2f}", f"{spent / yardstick:.1f}"])
    spark.stop()
    print(table(["", "M rows/s", "times the sort"], lines))


def _pass_through(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _run(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    main()
