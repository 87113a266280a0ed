"""Spark session of a command, and events that it reads on Spark."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from antecede.cli.engines import Engine, estimate_bytes, free_bytes
from antecede.cli.files.folders import draft_folder
from antecede.progress import Progress
from antecede.spark import cluster_session, local_session, quiet_failures
from antecede.spark.sources import Survey, events_of_tables, unwrap_failures, work_of
from antecede.tables.trace import ReadOptions
from antecede.tables.trace.user_tables import PARQUET

SHUFFLE_BYTES = 32 << 20
"""Size of a task's rows after a shuffle, bytes, about."""


@contextmanager
def session(master: str | None, needed: int) -> Iterator[SparkSession]:
    """Yield the active session, or a new one, which is stopped at the end."""
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    shuffle = max(2, min(10_000, needed // (5 * SHUFFLE_BYTES)))
    # Without it Spark warns that it shortens the plan of a wide table.
    settings = {"spark.sql.debug.maxToStringFields": "10000"}
    if master is None:
        gigabytes = max(1, min(8, (free_bytes() or 0) // (4 << 30)))
        made = local_session(memory=f"{gigabytes}g", partitions=shuffle, settings=settings)
    else:
        settings["spark.sql.shuffle.partitions"] = str(shuffle)
        made = cluster_session(master, settings=settings)
    try:
        quiet_failures(made)
        yield made
    finally:
        made.stop()


@contextmanager
def events_on_spark(
    args: argparse.Namespace,
    paths: Sequence[str],
    tables: Sequence[Path],
    options: ReadOptions,
    engine: Engine,
    aside: Path | None = None,
    format: str = PARQUET,
) -> Iterator[tuple[DataFrame, Survey, Path | None]]:
    """Yield the events of tables, their counts, and the draft of the folder `aside`, or None."""
    works = work_of(tables, options)
    print(f"engine      {engine.name} ({engine.why})", file=sys.stderr, flush=True)
    with ExitStack() as opened:
        spark = opened.enter_context(session(args.master, estimate_bytes(paths, args.format) or 0))
        bad = None if aside is None else opened.enter_context(draft_folder(aside))
        opened.enter_context(unwrap_failures())
        with Progress("reading"):
            given = events_of_tables(spark, works, options, bad, format)
            events, survey = opened.enter_context(given)
        yield events, survey, bad
