"""`antecede record`: let processes talk over UDP and write what happened as a trace."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from antecede.errors import InputError
from antecede.live.recorder import record, summary
from antecede.progress import Progress
from antecede.trace.arrow import write_events


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede record`."""
    parser.add_argument("-o", "--output", type=Path, required=True, help="Parquet file to write")
    parser.add_argument("--members", type=int, default=8, help="processes, one a region (8)")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long they talk (5)")
    parser.add_argument("--order", default="causal", help="causal, fifo, none, bss, idr (causal)")
    parser.add_argument("--seed", type=int, default=1, help="of the workload and the delays (1)")


def run(args: argparse.Namespace) -> int:
    """Record, write, and say what was recorded."""
    if args.output.exists():
        raise InputError("exists already; choose another name or remove it", path=str(args.output))
    folder = args.output.absolute().parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):  # said before they talk, not after
        raise InputError("no file can be made in this folder", path=str(args.output))
    with Progress("recording") as progress:
        recording = record(
            args.members, args.seconds, order=args.order, seed=args.seed, progress=progress
        )
    write_events(recording.events, args.output)
    print(summary(recording, args.members))
    print(f"{len(recording.events):,} events written to {args.output}")
    return 0
