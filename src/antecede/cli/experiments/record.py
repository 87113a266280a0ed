"""`antecede record`: a UDP test group, recorded as a trace."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from antecede.cli.files.output import check_writable, draft_of
from antecede.cli.files.pages import suggest_view
from antecede.formatting import pluralize, were
from antecede.lab.record import record, summary
from antecede.progress import Progress
from antecede.tables.trace import write_events
from antecede.tables.trace.user_tables import format_of

ORDER = "causal, fifo, reply, none, or a protocol of antecede protocols (default: causal)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede record`."""
    add = parser.add_argument
    add(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="file for the trace: .parquet, .csv, .jsonl",
    )
    add("--members", type=int, default=8, metavar="N", help="processes (default: 8)")
    add(
        "--seconds",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="duration of sending (default: 5)",
    )
    add("--order", default="causal", metavar="NAME", help=ORDER)
    add("--seed", type=int, default=1, metavar="N", help="seed of workload and delays (default: 1)")


def run(args: argparse.Namespace) -> int:
    """Record, write and print a summary; return 1 if copies were not delivered."""
    check_writable(args.output, (), force=False)
    format = format_of(args.output)
    with Progress("recording") as progress:
        recording = record(
            args.members, args.seconds, order=args.order, seed=args.seed, progress=progress
        )
    with draft_of(args.output) as draft:
        write_events(recording.events, draft, format)
    print(summary(recording, args.members))
    print(f"{pluralize(len(recording.events), 'event')} written to {args.output}")
    print(suggest_view(args.output))
    if not recording.complete:
        missing = recording.expected - recording.delivered
        print(
            f"antecede: {pluralize(missing, 'copy', 'copies')} {were(missing)} not delivered",
            file=sys.stderr,
        )
    return 0 if recording.complete else 1
