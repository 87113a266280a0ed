"""`antecede compare PROTOCOL...`: protocols on the same messages and delays.

Random numbers depend on the name of the message (`lab.simulate.random_streams`), so all protocols
of a topology see the same arrivals.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from antecede.cli.experiments.compare.configs import (
    ProtocolChoice,
    build_config,
    name_option,
    parse_protocols,
    parse_sizes,
)
from antecede.cli.experiments.compare.measures import ProtocolRuns, SeedRun, summarize_runs
from antecede.cli.experiments.compare.table import csv_lines, markdown, plain_values, report
from antecede.cli.files.output import check_writable, save_text
from antecede.cli.option_rules import check_seeds, needs, refuse_unused
from antecede.cli.text_table import width_of_terminal
from antecede.core.protocols import Protocol
from antecede.errors import ConfigError, InputError
from antecede.lab.check import is_file_target
from antecede.lab.simulate import Reached, kind_of, make_members, run_readable, within_memory
from antecede.lab.simulate.config import SimulationConfig
from antecede.lab.simulate.outputs import delivery_waits, half_widths
from antecede.progress import Progress

RATE_HZ = 12.5
LOOSEN = {"topology": "--members", "workload": "--rate", "run": "--seconds"}
"""Options to lower, in place of the keys of a config."""

OPTION_RULES = (needs("force", "output_csv", why="nothing is written"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede compare`."""
    add = parser.add_argument
    add(
        "protocols",
        nargs="+",
        metavar="PROTOCOL",
        help="NAME, NAME/VARIANT or FILE.py:CLASS, followed by its options, such as r=10",
    )
    add("--members", default="10", metavar="N,...", help="group sizes (default: 10)")
    add(
        "--delay",
        default="50-250",
        metavar="MS",
        help='delays, ms, or with a unit, such as "uniform 1-2 s" (default: 50-250)',
    )
    add(
        "--topology",
        choices=("mesh", "hierarchy", "pubsub"),
        default="mesh",
        help="topology of protocols that support it (default: mesh)",
    )
    add(
        "--rate",
        type=float,
        default=RATE_HZ,
        metavar="HZ",
        help=f"messages of a peer per second (default: {RATE_HZ})",
    )
    add("--fifo", action="store_true", help="use FIFO channels (default: channels reorder)")
    add(
        "--loss",
        type=float,
        default=0.0,
        metavar="FRACTION",
        help="fraction of copies that are lost, 0 to 1 (default: 0)",
    )
    add(
        "--reply-fraction",
        type=float,
        metavar="FRACTION",
        help="fraction of messages that are replies, 0 to 1 (default: 0.5 with sb, else 0)",
    )
    add("--accuracy", default="1 ms", metavar="MS", help="accuracy of clocks, ms (default: 1)")
    add(
        "--seconds",
        type=float,
        metavar="SECONDS",
        help="duration of sending (default: a warm-up and up to 4 s)",
    )
    add("--seed", type=int, default=0, metavar="N", help="first seed (default: 0)")
    add("--seeds", type=int, default=1, metavar="N", help="runs per protocol (default: 1)")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print all metrics of all runs as JSON")
    shown.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    add("--output-csv", metavar="FILE", help="file for the table with intervals (.csv)")
    add("--force", action="store_true", help="overwrite an existing FILE")


def run(args: argparse.Namespace) -> int:
    """Run all protocols, sizes and seeds, and print the table; return 0."""
    check_seeds(args)
    chosen, sizes = parse_protocols(args.protocols), parse_sizes(args.members)
    if args.output_csv is not None:
        read = [one.target.rpartition(":")[0] for one in chosen if is_file_target(one.target)]
        check_writable(Path(args.output_csv), read, args.force)
        if Path(args.output_csv).suffix.lower() != ".csv":
            raise InputError(
                "--output-csv: expected a file name that ends in .csv", path=args.output_csv
            )
    configs = {(one, size): build_config(one, args, size) for size in sizes for one in chosen}
    seeds = range(args.seed, args.seed + args.seeds)
    done = _all_cells(configs, args, seeds)
    if args.output_csv is not None:
        save_text(Path(args.output_csv), "\n".join(csv_lines(done, seeds)) + "\n")
    if args.json:
        print(json.dumps(plain_values(done, seeds), indent=2, ensure_ascii=False))
    elif args.markdown:
        print("\n".join(markdown(done, args)))
    else:
        print("\n".join(report(done, args, width_of_terminal())))
    sys.stdout.flush()
    return 0


def _all_cells(
    configs: Mapping[tuple[ProtocolChoice, int], SimulationConfig],
    args: argparse.Namespace,
    seeds: range,
) -> list[ProtocolRuns]:
    """Run all cells; errors of members are raised before the first run."""
    members = {cell: _make_members(config, args.seed) for cell, config in configs.items()}
    _check_used(args, configs, members)
    done: list[ProtocolRuns] = []
    with Progress("simulating") as progress:
        for cell, config in configs.items():
            one, size = cell
            runs: list[SeedRun] = []
            for place, seed in enumerate(seeds, len(done) * len(seeds) + 1):
                progress.label = f"{one.name}, {size:,}: {place} of {len(configs) * len(seeds)}"
                runs.append(_run_seed(config, seed, progress))
            done.append(summarize_runs(one.name, config, members[cell], runs, args.topology))
    return done


def _check_used(
    args: argparse.Namespace,
    configs: Mapping[tuple[ProtocolChoice, int], SimulationConfig],
    members: Mapping[tuple[ProtocolChoice, int], Mapping[int, Protocol]],
) -> None:
    """Raise InputError for options that no protocol uses; a user's protocol may use all."""
    if not any(
        is_file_target(cell[0].target) or any(one.needs_ticks for one in made.values())
        for cell, made in members.items()
    ):
        refuse_unused(args, "no protocol in this call uses clocks", unused=["accuracy"])
    if all(kind_of(one.topology) != args.topology for one in configs.values()):
        why = f"no protocol in this call supports --topology {args.topology}"
        refuse_unused(args, why, unused=["topology"])


def _make_members(config: SimulationConfig, seed: int) -> Mapping[int, Protocol]:
    """Return members made before the first run; they may reject delays and clocks."""
    try:
        with within_memory(config, loosen=LOOSEN, name=_describe(config)):
            return make_members(config, seed).members
    except ConfigError as error:
        raise InputError(name_option(error.message)) from error


def _describe(config: SimulationConfig) -> str:
    return f"{config.protocol} with {len(config.topology.senders()):,} members"


def _run_seed(config: SimulationConfig, seed: int, progress: Progress) -> SeedRun:
    reached = Reached(progress)
    with within_memory(config, loosen=LOOSEN, reached=reached, name=_describe(config)):
        result, recording = run_readable(config, seed, True, reached)
        seen = delivery_waits(recording)
        more = {} if seen is None else seen.counts().figures()
        halves = half_widths(result, recording, seen)
    return SeedRun(seed, {**result.figures, **more}, halves, result.caveats)
