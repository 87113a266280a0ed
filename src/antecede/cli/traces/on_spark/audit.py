"""`antecede audit --engine spark`: the report of the local engine, counted on Spark."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

from antecede.cli.engines import Engine
from antecede.cli.files.folders import check_new_folder
from antecede.cli.option_rules import refuse_unused
from antecede.cli.spark_session import events_on_spark
from antecede.errors import InputError
from antecede.formatting import harmless
from antecede.progress import Progress
from antecede.spark import describe_none, sources
from antecede.spark.audits import find_quarantined, total_by_causes, total_by_clocks, with_read
from antecede.tables.audit import AuditReport
from antecede.tables.trace import NONE, WHY, ReadOptions
from antecede.tables.trace.user_tables import PARQUET, format_of

SKIPPED_DETAILS = "skipped_details"
"""Name of a detail: details that only the local engine computes."""


def run_on_spark(
    args: argparse.Namespace, options: ReadOptions, engine: Engine, aside: Path | None
) -> int:
    """Run `antecede audit` on Spark. Raise as the local engine does."""
    refuse_unused(args, "lists of ids need --engine local", unused=["list_missing"])
    if args.pairs == "estimate":
        raise InputError(
            "--pairs estimate needs --engine local; on Spark give --pairs exact or none, or call "
            'antecede.spark.audit(df, pairs="estimate"), which estimates per run'
        )
    pairs = args.pairs == "exact"
    tables = sources.tables_of(args.paths, args.format, options)
    format = PARQUET
    if aside is not None:
        format = format_of(aside)
        check_new_folder(aside, tables, args.force)
    given = events_on_spark(args, args.paths, tables, options, engine, aside, format)
    with given as (events, found, bad), Progress("counting"):
        if clocked := bool(found.known["clock_members"]) and not found.causes:
            report = total_by_clocks(events, bad, format, pairs=pairs)
        else:
            report = total_by_causes(events, pairs=pairs)
            if bad is not None and report.details["quarantined"]:
                sources.write_bad(find_quarantined(events, by="causes"), bad, format)
        why = ""
        if report.causality_source == NONE:
            why = describe_none(events, found.details)
    report = with_read(report, found.details, found.bad, found.reasons)
    if why:
        report.details[WHY] = why
    _print(args, report, found, clocked)
    return 0


_TEXTS = {
    "separator_hint": "several ids in one cell",
    "clock_skew": "clock skew of the members",
}


def _print(
    args: argparse.Namespace, report: AuditReport, found: sources.Survey, clocked: bool
) -> None:
    """Print the report, and the names of details that only the local engine computes."""
    names: list[str] = []
    known = found.known
    if report.missing_causes and not clocked:
        names.append("separator_hint")
    if known["member"] and known["send_time"] and not (known["start_time"] or clocked):
        names.append("clock_skew")
    details: dict[str, Any] = {**report.details, SKIPPED_DETAILS: names}
    report = dataclasses.replace(report, details=details, paths=tuple(args.paths))
    if args.json:
        print(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
        return
    print(harmless(report.summary()))
    if names:
        text = "; ".join(_TEXTS[name] for name in names)
        print(f"\nNot computed on Spark (--engine local does): {text}")
