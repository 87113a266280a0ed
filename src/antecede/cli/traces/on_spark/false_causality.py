"""`antecede false-causality --engine spark`: the report of the local engine, counted on Spark."""

from __future__ import annotations

import argparse

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from antecede.cli.engines import Engine
from antecede.cli.spark_session import events_on_spark
from antecede.cli.traces.false_causality_text import FalseCausalityQuery, TraceNames, report
from antecede.errors import InputError
from antecede.progress import Progress
from antecede.spark import describe_none, source_in
from antecede.spark.audits import meter_report
from antecede.spark.sources import tables_of
from antecede.tables.trace import NONE, ReadOptions


def run_on_spark(
    args: argparse.Namespace, options: ReadOptions, engine: Engine, query: FalseCausalityQuery
) -> int:
    """Run `antecede false-causality` on Spark. Raise as the local engine does."""
    tables = tables_of(args.paths, args.format, options)
    with events_on_spark(args, args.paths, tables, options, engine) as (events, read, _):
        if source_in(events) == NONE:
            raise InputError(describe_none(events, read.details))
        query.check(lambda: _read_names(events))
        with Progress("counting"):
            found = meter_report(events, **query.to_arguments())
    report(args, found, read.details, read.bad)
    return 0


def _read_names(events: DataFrame) -> TraceNames:
    def names(of: DataFrame) -> frozenset[str]:
        return frozenset(row[0] for row in of.distinct().collect() if row[0])

    topics = events.select(F.explode("topics"))
    return TraceNames(names(events.select("kind")), names(events.select("member")), names(topics))
