"""Duration and largest task of Spark batches of many shapes (`make bench-scale`).

    python -m bench.scale [--scale 0.01] [--only NAME ...] [--cores 2] [--memory 9g] [--folder DIR]

Every case runs in its own Spark (`local[cores]`, 16 GiB for Java and Python workers together) over
Parquet that is written before. `--scale` multiplies all row counts. Values come from Spark's event
log: the maximum rows that one task read from storage, the maximum bytes that one read from
shuffles, and the maximum resident memory of all Python workers at one time. `rounds` are raised
rows per superstep of the fixpoint, `+ n parts` exchanges of the kernel over ranges of rows.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from antecede.formatting import table
from antecede.spark import local_session, order_with
from antecede.spark.fixpoint import ordering as fixpoint
from antecede.spark.fixpoint import oversized
from antecede.tables.order import OrderSpec

MILLION = 1_000_000
WIDE = 18
"""Columns besides id, after, g and at."""


@dataclass(frozen=True)
class Case:
    """Shape of data: rows and groups at full size, and special properties."""

    rows: int
    groups: int = 0
    half: bool = False
    twice: bool = False
    chain: bool = False
    timed: bool = True
    wide: bool = False
    ordered: bool = True


CASES = {
    "a million groups": Case(100 * MILLION, MILLION),
    "one group": Case(20 * MILLION, 1),
    "no group": Case(20 * MILLION),
    "half of all in one group": Case(20 * MILLION, 10_000, half=True),
    "a chain, times inverted": Case(MILLION, chain=True),
    "a chain, no times": Case(MILLION, chain=True, timed=False),
    "every row twice, in groups": Case(20 * MILLION, 100_000, twice=True),
    "every row twice, no group": Case(20 * MILLION, twice=True),
    "22 columns, order": Case(5 * MILLION, 50_000, wide=True),
    "22 columns, no operator": Case(5 * MILLION, 50_000, wide=True, ordered=False),
}


def make_rows(spark: SparkSession, case: Case, scale: float) -> DataFrame:
    """Return the rows of a case, the same at every call.

    One row per millisecond, clocks wrong by up to 20 ms, a cause up to 200 rows earlier in its
    group: 5 % of causes are later than their effects. A chain has the first row last.
    """
    count = max(int(case.rows * scale) // (2 if case.twice else 1), 100)
    groups = max(1, int(case.groups * min(1.0, scale * 10)))
    key = f.lit(0) if groups == 1 else f.pmod(f.xxhash64(f.lit(2), "id"), f.lit(groups))
    if case.half:
        key = f.when(f.col("id") < count // 2, 0).otherwise(key + 1)
    back = f.lit(1) if case.chain else 1 + f.pmod(f.xxhash64(f.lit(3), "id"), f.lit(200))
    if groups > 1:
        # Rows are sorted by group, so a cause is in the group of its effect.
        each = f.lit(max(count // groups, 1))
        key = (f.col("id") / each).cast("bigint")
        if case.half:
            key = f.when(f.col("id") < count // 2, 0).otherwise(key)
        back = 1 + f.pmod(f.xxhash64(f.lit(3), "id"), f.least(each, f.lit(200)))
    cause = f.col("id") - back
    at = f.col("id") * 1000 + f.pmod(f.xxhash64(f.lit(4), "id"), f.lit(40_000)) - 20_000
    if case.chain:
        at = -f.col("id")
    made = spark.range(count).select(
        _make_name(f.col("id")).alias("id"),
        f.when(cause >= 0, _make_name(cause)).alias("after"),
        key.cast("bigint").alias("g"),
        f.timestamp_micros(at + f.lit(1_700_000_000_000_000)).alias("at"),
        *(
            f.hex(f.xxhash64(f.lit(k), "id")).alias(f"c{k}")
            for k in range(WIDE if case.wide else 0)
        ),
    )
    return made.unionAll(made) if case.twice else made


def _make_name(number: Any) -> Any:
    return f.concat(f.hex(f.xxhash64(number)), f.lpad(number.cast("string"), 10, "0"))


def run(name: str, scale: float, cores: int, memory: str, folder: Path) -> None:
    case = CASES[name]
    log = folder / "log"
    log.mkdir(parents=True)
    spark = local_session(
        cores,
        memory=memory,
        settings={
            "spark.sql.shuffle.partitions": "200",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.dir": log.as_uri(),
            "spark.executor.processTreeMetrics.enabled": "true",
            "spark.executor.metrics.pollingInterval": "200ms",
        },
    )
    # Groups that are small at full size stay small.
    oversized.SMALL_BYTES = int(oversized.SMALL_BYTES * scale)
    once = int(fixpoint.LIMITS.small_edges * scale)
    fixpoint.LIMITS = replace(fixpoint.LIMITS, small_edges=once)
    rows = str(folder / "rows")
    make_rows(spark, case, scale).write.parquet(rows)
    notes: list[dict[str, Any]] = []
    fixpoint.LOGGER.addHandler(_LogCollector(notes))
    fixpoint.LOGGER.setLevel(logging.INFO)
    begin, begin_ms, seen = time.perf_counter(), time.time() * 1000, Observation()
    df = spark.read.parquet(rows)
    if case.ordered:
        spec = OrderSpec(
            id="id",
            after=("after",),
            group="g" if case.groups else None,
            time="at" if case.timed else None,
            max_rows_per_task=max(int(4_000_000 * scale), 10_000),
            large_groups="always" if case.chain else "auto",
        )
        df = df.transform(order_with(spec))
    elif case.groups:
        df = df.repartition("g")
    placed = f.count("position") if case.ordered else f.count(f.lit(1))
    df = df.observe(seen, f.count(f.lit(1)).alias("rows"), placed.alias("placed"))
    df.write.format("noop").mode("overwrite").save()
    spent = time.perf_counter() - begin
    got = dict(seen.get)
    spark.stop()
    wanted = got["rows"] // (2 if case.twice else 1)
    if got["placed"] != wanted:
        raise SystemExit(f"{name}: {got['placed']:,} of {wanted:,} rows have a position")
    made = {"seconds": spent, "rows": got["rows"], "notes": notes[-1] if notes else {}}
    print(json.dumps({**made, **find_task_maxima(log, begin_ms)}), flush=True)


class _LogCollector(logging.Handler):
    def __init__(self, kept: list[dict[str, Any]]) -> None:
        super().__init__()
        self.kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append(dict(record.args))  # type: ignore[arg-type]


def find_task_maxima(log: Path, begin_ms: float) -> dict[str, float]:
    """Return the maxima of all tasks after a time: rows read, bytes shuffled, Python memory."""
    most = {"read": 0, "shuffled": 0, "python": 0, "tasks": 0}
    for task in _read_tasks(log):
        if task["Task Info"]["Launch Time"] < begin_ms:
            continue
        metrics = task.get("Task Metrics") or {}
        shuffle = metrics.get("Shuffle Read Metrics", {})
        shuffled = shuffle.get("Local Bytes Read", 0) + shuffle.get("Remote Bytes Read", 0)
        read = metrics.get("Input Metrics", {}).get("Records Read", 0)
        most["read"] = max(most["read"], read)
        most["shuffled"] = max(most["shuffled"], shuffled)
        python = task.get("Task Executor Metrics", {}).get("ProcessTreePythonRSSMemory", 0)
        most["python"] = max(most["python"], python)
        most["tasks"] += 1
    return {name: float(number) for name, number in most.items()}


def _read_tasks(log: Path) -> Iterator[dict[str, Any]]:
    for path in log.iterdir():
        with path.open() as lines:
            for line in lines:
                if line.startswith('{"Event":"SparkListenerTaskEnd"'):
                    yield json.loads(line)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="9g")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.case:
        run(given.case, given.scale, given.cores, given.memory, given.folder)
        return
    print(f"{given.cores} cores, {given.memory} for Java, {given.scale:g} of the full size\n")
    lines = []
    for name in given.only:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            lines.append(_format_line(name, _run_case(name, given, folder)))
        print("  ".join(lines[-1]), file=sys.stderr, flush=True)
    head = ("case", "rows", "s", "k rows/s", "read", "shuffled", "Python", "rounds")
    print(table(head, lines))
    print(
        "\nread: k rows, shuffled: MiB, the most of one task; Python: MiB, all workers at one time"
    )


def _run_case(name: str, given: argparse.Namespace, folder: str) -> dict[str, Any] | None:
    places = {**os.environ, "SPARK_LOCAL_DIRS": f"{folder}/local"}
    command = [sys.executable, "-m", "bench.scale", "--case", name, "--folder", folder]
    command += ["--scale", str(given.scale), "--cores", str(given.cores), "--memory", given.memory]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=places, check=False)
    last = done.stdout.strip().splitlines()[-1:]
    made: dict[str, Any] | None = json.loads(last[0]) if done.returncode == 0 and last else None
    return made


def _format_line(name: str, made: dict[str, Any] | None) -> tuple[str, ...]:
    if made is None:
        return (name, *["failed"] * 7)
    notes, mib = made["notes"], 1 << 20
    rounds = ", ".join(f"{n:,}" for n in notes.get("raised", []))
    for what in ("exchanges", "depth_exchanges"):
        rounds += f" + {notes[what]} parts" if notes.get(what) else ""
    sizes = [f"{made['read'] / 1000:,.0f}"]
    sizes += [f"{made[key] / mib:,.0f}" for key in ("shuffled", "python")]
    rate = made["rows"] / made["seconds"] / 1000
    return (
        name,
        f"{made['rows']:,}",
        f"{made['seconds']:.0f}",
        f"{rate:.0f}",
        *sizes,
        rounds or "-",
    )


if __name__ == "__main__":
    main()
