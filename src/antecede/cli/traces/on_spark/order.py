"""`antecede order --engine spark`: executors read, order and write a folder of part files."""

from __future__ import annotations

import argparse
from pathlib import Path

from antecede.cli.engines import Engine, estimate_bytes
from antecede.cli.files.folders import check_new_folder, draft_folder
from antecede.cli.spark_session import session
from antecede.cli.traces import order_text
from antecede.formatting import pluralize
from antecede.progress import Progress
from antecede.spark.sources import MISSING_SAMPLE, order_files, survey, tables_of, work_of
from antecede.tables.kernels import measure_compile_time
from antecede.tables.order import Status, refuse_empty
from antecede.tables.trace import ReadOptions, describe_cells
from antecede.tables.trace.user_tables import absent_keys, format_of


def run_on_spark(
    args: argparse.Namespace, options: ReadOptions, engine: Engine, out: Path, aside: Path
) -> int:
    """Run `antecede order` on Spark. Raise as the local engine does."""
    format = format_of(out)
    tables = tables_of(args.paths, args.format, options)
    check_new_folder(out, tables, args.force)
    check_new_folder(aside, tables, args.force)
    works = work_of(tables, options)
    print(f"engine      {engine.name} ({engine.why})", flush=True)
    with (
        session(args.master, estimate_bytes(args.paths, args.format) or 0) as spark,
        draft_folder(out) as parts,
        draft_folder(aside) as bad,
        measure_compile_time() as spent,
    ):
        with Progress("counting"):
            found = survey(spark, works, options, bad, format)
        with Progress("ordering"):
            how = {"by": args.by, "within_topics": bool(args.topic)}
            done = order_files(spark, works, options, found, parts, bad, format, **how)
    refuse_empty(done.rows, dict(done.reasons.most_common()), aside)
    took = f"{spent.working_s:.2f} s{spent.words()}"
    print(f"ordered     {pluralize(done.rows, 'event')} in {took} -> {out} (a folder)")
    lacking = done.statuses[str(Status.MISSING_CAUSE)]
    order_text.print_ordered(done.spec, done.late, done.source, lacking, done.missing)
    if done.joined_ids:
        sample = f"of {MISSING_SAMPLE:,} references: " if done.missing > MISSING_SAMPLE else ""
        order_text.print_joined_ids(done.joined_ids, sample)
    if done.cells is not None:
        order_text.print_no_causes(describe_cells(done.cells, found.details))
    order_text.print_columns(found.details, done.topics, done.renamed)
    if text := absent_keys(found.details, format):
        print(f"changed     {text}")
    order_text.print_excluded(done)
    order_text.print_quarantined(dict(done.reasons.most_common()), f"{aside} (a folder)")
    return 0
