"""`antecede record`: let processes talk over UDP and write what happened as a trace."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from antecede.cli.files.output import check_writable, draft_of
from antecede.cli.files.pages import look
from antecede.formatting import counted, were
from antecede.lab.record import record, summary
from antecede.progress import Progress
from antecede.tables.trace import write_events
from antecede.tables.trace.user_tables import format_of

OUT = "file to write: .parquet, .csv, .jsonl"
ORDER = "causal, fifo, reply, none, or a protocol's name; `antecede protocols` lists them (causal)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede record`."""
    add = parser.add_argument
    add("-o", "--output", type=Path, required=True, help=OUT)
    add("--members", type=int, default=8, help="processes, one a region (8)")
    add("--seconds", type=float, default=5.0, help="how long they talk (5)")
    add("--order", default="causal", help=ORDER)
    add("--seed", type=int, default=1, help="of the workload and the delays (1)")


def run(args: argparse.Namespace) -> int:
    """Record, write, and say what was recorded; 1 when something was not delivered."""
    check_writable(args.output, (), force=False)
    format = format_of(args.output)
    with Progress("recording") as progress:
        recording = record(
            args.members, args.seconds, order=args.order, seed=args.seed, progress=progress
        )
    with draft_of(args.output) as draft:
        write_events(recording.events, draft, format)
    print(summary(recording, args.members))
    print(f"{counted(len(recording.events), 'event')} written to {args.output}")
    print(look(args.output))
    if not recording.complete:
        missing = recording.expected - recording.delivered
        print(
            f"antecede: {counted(missing, 'copy', 'copies')} {were(missing)} not delivered",
            file=sys.stderr,
        )
    return 0 if recording.complete else 1
