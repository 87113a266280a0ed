"""`antecede order --engine spark`: executors read, order and write; OUT is a folder of parts."""

from __future__ import annotations

import argparse
from pathlib import Path

from antecede.cli.engines import Engine, needed_bytes
from antecede.cli.files.folders import check_new_folder, draft_folder
from antecede.cli.spark_session import session
from antecede.cli.traces.order_text import how_ordered, missing_words, print_no_causes, repeated
from antecede.formatting import counted
from antecede.progress import Progress
from antecede.spark.sources import Done, Survey, order_files, survey, tables_of, work_of
from antecede.tables.kernels import timed
from antecede.tables.order import Status, refuse_empty
from antecede.tables.trace import ReadOptions, describe_cells, time_text
from antecede.tables.trace.user_tables import absent_keys, format_of, guessed_columns


def run_on_spark(
    args: argparse.Namespace, options: ReadOptions, engine: Engine, out: Path, aside: Path
) -> int:
    """Carry `antecede order` out on Spark. Raises as the local engine does."""
    format = format_of(out)
    tables = tables_of(args.paths, args.format, options)
    check_new_folder(out, tables, args.force)
    check_new_folder(aside, tables, args.force)
    works = work_of(tables, options)
    print(f"engine      {engine.name} ({engine.why})", flush=True)
    with (
        session(args.master, needed_bytes(args.paths, args.format) or 0) as spark,
        draft_folder(out) as parts,
        draft_folder(aside) as bad,
        timed() as spent,
    ):
        with Progress("counting"):
            found = survey(spark, works, options, bad, format)
        with Progress("ordering"):
            done = order_files(
                spark,
                works,
                options,
                found,
                parts,
                bad,
                format,
                by=args.by,
                within_topics=bool(args.topic),
            )
    refuse_empty(done.rows, dict(done.reasons.most_common()), aside)
    took = f"{spent.working_s:.2f} s{spent.words()}"
    print(f"ordered     {counted(done.rows, 'event')} in {took} -> {out} (a folder of parts)")
    _report(done, found, aside, format)
    return 0


def _report(done: Done, found: Survey, aside: Path, format: str) -> None:
    for line in how_ordered(done.spec, done.late, done.source):
        print(line)
    if lacking := done.statuses[str(Status.MISSING_CAUSE)]:
        print(missing_words(done.spec, lacking, done.missing))
    if done.cells is not None:
        print_no_causes(describe_cells(done.cells, found.details))
    if said := guessed_columns(found.details):
        print(f"columns     {said}")
    for said in time_text.notes(found.details):
        print(f"times       {said}")
    if done.topics:
        print(
            f"positions   within each of {counted(done.topics, 'topic')}; causes hold across them"
        )
    for name, written in done.renamed.items():
        print(f"renamed     the added column {name} is {written}: the table has a {name}")
    if said := absent_keys(found.details, format):
        print(f"changed     {said}")
    if done.receipts or done.deliveries:
        print(
            f"left out    {counted(done.receipts, 'receipt')} and "
            f"{counted(done.deliveries, 'delivery', 'deliveries')}: "
            "the message itself is one event"
        )
    if done.duplicates:
        print(repeated(done.duplicates, done.spec))
    for what, fate in done.causes.notes():
        print(f"causes      {what}, {fate}")
    if total := sum(done.reasons.values()):
        print(f"set aside   {counted(total, 'row')}, with reasons -> {aside} (a folder of parts)")
        for reason, count in done.reasons.most_common():
            print(f"            {count:,} {reason}")
