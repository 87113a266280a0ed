"""Time of `order` with wide rows: a Spark batch, and parts of its own plan.

    python -m bench.wide_rows [--rows 400000] [--times 3]

Rows have the 21 columns of the event schema and a payload of 400 letters. All plans run in one
session, in turns; the best time of each counts.

- "shuffled": the same plan without Python.
- "with a digest": also hashes all columns.
- "a function that counts": passes two columns through an Arrow function that reads a whole
  partition, as `order` does.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.formatting import table
from antecede.spark import local_session, order
from antecede.spark.columns import hash_columns
from antecede.tables.trace import SCHEMA

pa: Any = pyarrow
GROUPS = 1_000
COLUMNS = ("id", "causes", "run", "send_time")


def write_rows(path: str, count: int) -> None:
    rng = np.random.default_rng(1)
    number = np.arange(count)
    ids = [f"{k:036d}" for k in number]
    columns: dict[str, Any] = {}
    for field in SCHEMA:
        kind = str(field.type)
        if kind == "int64":
            columns[field.name] = pa.array(number * 1000 + rng.integers(0, 20_000, count))
        elif "list" in kind:
            few = ["t", "x"] if "string" in kind else [1, 2]
            columns[field.name] = pa.array([few] * count, field.type)
        else:
            columns[field.name] = pa.array([f"v{k % 99}" for k in number])
    columns["id"] = pa.array(ids)
    columns["causes"] = pa.array([[ids[k - GROUPS]] if k >= GROUPS else [] for k in number])
    columns["run"] = pa.array([f"g{k % GROUPS}" for k in number])
    columns["payload"] = pa.array([os.urandom(200).hex() for _ in number])
    rows = pa.table(columns).take(pa.array(rng.permutation(count)))
    pq.write_table(rows, f"{path}/rows.parquet", row_group_size=50_000)


def make_counting_function() -> Any:
    # Spark evaluates these hints, and pa.Array takes no parameters at run time.
    def count(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        for columns in list(batches):
            yield pa.array(range(len(columns[0])))

    functions: Any = F  # the stubs lack arrow_udf
    return functions.arrow_udf(count, "long").asNondeterministic()


def order_rows(df: DataFrame) -> DataFrame:
    made: DataFrame = order(
        df, id="id", after="causes", group="run", time="send_time", time_unit="ns"
    )
    return made


def make_plans() -> dict[str, Callable[[DataFrame], DataFrame]]:
    count = make_counting_function()
    return {
        "shuffled": lambda df: df.repartition("run"),
        "with a digest": lambda df: df.repartition("run").withColumn(
            "x", hash_columns(df, df.columns)
        ),
        "a function that counts": lambda df: df.repartition("run").withColumn(
            "x", count("id", "causes")
        ),
        "order": order_rows,
        "order of four columns alone": lambda df: order_rows(df.select(*COLUMNS)),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.wide_rows")
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args(arguments)
    spark = local_session(2, partitions=16, memory="4g")
    best: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_rows(folder, given.rows)
        for _ in range(given.times):
            for name, plan in make_plans().items():
                begin = time.perf_counter()
                plan(spark.read.parquet(folder)).write.format("noop").mode("overwrite").save()
                took = time.perf_counter() - begin
                best[name] = min(best.get(name, took), took)
    spark.stop()
    lines = [
        (name, f"{given.rows / took / 1000:,.0f}", f"{best['shuffled'] / took:.2f}")
        for name, took in best.items()
    ]
    print(table(("plan", "k rows/s", "of shuffled"), lines))


if __name__ == "__main__":
    main()
