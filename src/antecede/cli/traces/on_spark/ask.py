"""`antecede ask --engine spark`: executors read, and find the events of the answer."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from antecede.cli.engines import A_ROW, SHARE, Engine, free_bytes
from antecede.cli.spark_session import events_on_spark
from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.progress import Progress
from antecede.spark import describe_none, source_in, supports_way
from antecede.spark.relations import Part, part, way_of
from antecede.spark.sources import tables_of
from antecede.tables.causality import NO_EVENTS, Whole
from antecede.tables.trace import NONE, ReadOptions, describe_other


def find_on_spark(
    args: argparse.Namespace,
    paths: Sequence[str],
    options: ReadOptions,
    question: str,
    ids: Sequence[str],
    engine: Engine,
) -> Part:
    """Return the part of the trace that answers a question. Raise InputError."""
    if question == "concurrent":
        raise InputError(
            "question concurrent: not available on Spark; give --engine local, or compare labels "
            "in SQL (antecede.spark.add_causal_labels, concurrent)"
        )
    free = free_bytes()
    tables = tables_of(paths, args.format, options)
    with events_on_spark(args, paths, tables, options, engine) as (events, survey, _):
        known = frozenset(name for name, count in survey.known.items() if count)
        whole = Whole("clock_members" in known and not survey.causes, known)
        way = way_of(events, whole, args.causality)
        if not supports_way(events, way):
            source = source_in(events)
            if source != NONE:
                raise InputError(describe_other(way, source))
            raise InputError(describe_none(events, survey.details))
        with Progress("following causes"):
            found = part(
                events,
                ids,
                way,
                whole,
                run=args.run_id,
                backwards=question != "future",
                most=None if free is None else int(SHARE * free / A_ROW),
            )
    if survey.bad:
        found.asked.notes.append(f"{pluralize(survey.bad, 'row')} {NO_EVENTS}")
    return found
