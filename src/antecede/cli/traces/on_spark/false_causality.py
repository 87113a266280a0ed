"""`antecede meter --engine spark`: executors read and count; what is said is the local engine's."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.cli.engines import Engine, needed_bytes
from antecede.cli.spark_session import session
from antecede.cli.traces.false_causality_text import Asked, Known, report
from antecede.errors import InputError
from antecede.progress import Progress
from antecede.spark import describe_none, source_in
from antecede.spark.audits import meter_report
from antecede.spark.sources import events_of_tables, tables_of, typed_failures, work_of
from antecede.tables.trace import NONE, ReadOptions
from antecede.tables.trace.user_tables import PARQUET


def run_on_spark(
    args: argparse.Namespace, options: ReadOptions, engine: Engine, asked: Asked
) -> int:
    """Carry `antecede meter` out on Spark. Raises as the local engine does."""
    works = work_of(tables_of(args.paths, args.format, options), options)
    print(f"engine      {engine.name} ({engine.why})", file=sys.stderr, flush=True)
    needed = needed_bytes(args.paths, args.format) or 0
    with ExitStack() as open_:
        spark = open_.enter_context(session(args.master, needed))
        open_.enter_context(typed_failures())
        with Progress("reading"):
            given = events_of_tables(spark, works, options, None, PARQUET)
            events, read = open_.enter_context(given)
        if source_in(events) == NONE:
            raise InputError(describe_none(events, read.details))
        asked.check(lambda: _known_in(events))
        with Progress("counting"):
            found = meter_report(
                events,
                rules=asked.rules,
                observers=asked.observers,
                bounds=asked.bounds,
                subscriptions=asked.subscriptions,
                relation=asked.relation,
                truth=asked.against,
                to_everybody=asked.to_everybody,
            )
    report(args, found, read.details, read.bad)
    return 0


def _known_in(events: DataFrame) -> Known:
    def names(of: DataFrame) -> frozenset[str]:
        return frozenset(row[0] for row in of.distinct().collect() if row[0])

    topics = events.select(F.explode("topics"))
    return Known(names(events.select("kind")), names(events.select("member")), names(topics))
