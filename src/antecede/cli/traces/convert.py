"""`antecede convert PATH... -o FILE`: a trace as ShiViz log, Parquet, CSV or JSON lines.

Tables keep the user's columns (`antecede.tables.trace.user_tables.extra_columns`).
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from antecede.cli.files.output import check_writable, draft_of
from antecede.cli.trace_options import add_read_arguments, read_options
from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.progress import Progress
from antecede.tables.audit import with_clocks
from antecede.tables.trace import ReadOptions, read, read_batches, time_text, user_tables
from antecede.tables.trace.formats import write_log_file

SHIVIZ = "shiviz"
ENDINGS = {**user_tables.writing.ENDINGS, ".log": SHIVIZ, ".shiviz": SHIVIZ}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede convert`."""
    add = parser.add_argument
    add_read_arguments(parser, text=True)
    add("-o", "--output", required=True, metavar="FILE", help="file for the converted trace")
    add(
        "--to",
        choices=(
            SHIVIZ,
            user_tables.writing.PARQUET,
            user_tables.writing.CSV,
            user_tables.writing.JSON_LINES,
        ),
        help="format of FILE (default: by its ending .log, .parquet, .csv, .jsonl)",
    )
    add("--force", action="store_true", help="overwrite an existing FILE")


def run(args: argparse.Namespace) -> int:
    """Read, write and print counts. Raise InputError for unusable input or output."""
    out = Path(args.output)
    check_writable(out, args.paths, args.force)
    format, options = args.to or ENDINGS.get(out.suffix.lower()), read_options(args)
    if format is None:
        message = f"--output: unknown ending; use {', '.join(ENDINGS)}, or give --to"
        raise InputError(message, path=str(out))
    with draft_of(out) as draft, Progress("converting"):
        if format == SHIVIZ:
            lines = _write_shiviz(args.paths, args.format, options, draft)
        else:
            lines = _write_table(args.paths, args.format, options, draft, format)
    print(f"{lines[0]} -> {out}")
    for line in lines[1:]:
        print(f"  {line}")
    return 0


def _write_shiviz(
    paths: Sequence[str], format: str | None, options: ReadOptions, out: Path
) -> list[str]:
    trace = read(paths, format, options)
    log = with_clocks(trace.events, trace.format)
    written = write_log_file(log.entries, out, log.several_runs)
    lines = [f"{pluralize(written, 'event')} as a log for ShiViz"]
    if any(trace.events[name].null_count < trace.events.num_rows for name in user_tables.TIMES):
        lines.append("times are excluded: a log contains hosts, clocks and texts")
    if log.computed:
        lines.append("vector clocks are computed from causes and the order of each member's events")
    lines += [f"excluded: {count:,} x {reason}" for reason, count in log.left_out.items()]
    lines += _list_times(trace.details)
    return lines + _list_quarantined(
        Counter(_short(r) for r in trace.quarantine["reason"].to_pylist())
    )


def _write_table(
    paths: Sequence[str], format: str | None, options: ReadOptions, out: Path, to: str
) -> list[str]:
    """Write batch by batch, or at once if the types of the user's columns change."""
    try:
        return _write_batches(paths, format, options, out, to)
    except user_tables.UnlikeError:
        trace = read(paths, format, options, own=True)
    table, own = user_tables.with_own(trace.events, trace.own)
    changed = user_tables.writing.write_table(table, out, to)
    reasons = Counter(map(_short, trace.quarantine["reason"].to_pylist()))
    lines = [f"changed: {one.words()}" for one in changed]
    return _describe(table.num_rows, own, reasons, lines, trace.details, to)


def _write_batches(
    paths: Sequence[str], format: str | None, options: ReadOptions, out: Path, to: str
) -> list[str]:
    reasons: Counter[str] = Counter()
    details: Mapping[str, Any] = {}
    with user_tables.Appender(out, to) as appender:
        for batch in read_batches(paths, format, options, own=True):
            if batch.events.num_rows:
                appender.add(batch.events, batch.own)
            reasons.update(_short(r) for r in batch.quarantine["reason"].to_pylist())
            details = batch.details  # the last one has those of all
    if not appender.rows:
        raise InputError(
            "no event could be read; `antecede audit` lists the reasons", path=paths[0]
        )
    return _describe(appender.rows, appender.own, reasons, (), details, to)


def _list_times(details: Mapping[str, Any]) -> list[str]:
    return [f"times: {text}" for text in time_text.notes(details)]


def _describe(
    rows: int,
    own: Sequence[str],
    reasons: Counter[str],
    changed: Sequence[str],
    details: Mapping[str, Any],
    to: str,
) -> list[str]:
    lines = [f"{pluralize(rows, 'event')} in the event schema"]
    if own:
        lines.append(f"further columns: {', '.join(own)}")
    lines += [*_list_quarantined(reasons), *changed]
    if text := user_tables.absent_keys(details, to):
        lines.append(f"changed: {text}")
    return lines + _list_times(details)


def _short(reason: object) -> str:
    return str(reason).partition(":")[0]


def _list_quarantined(reasons: Counter[str]) -> list[str]:
    return [f"quarantined: {count:,} x {reason}" for reason, count in reasons.most_common()]
