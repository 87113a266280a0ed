"""`antecede compare bss idr sb --members 10,30 --delay 50-250`: several protocols, same messages.

Draws go by the name of the message (`lab.simulate.random_streams`), so all protocols of a topology
see the same arrivals.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from antecede.cli.experiments.compare.measures import Compared, Ran, compared
from antecede.cli.experiments.compare.scenarios import (
    Asked,
    as_option,
    protocols_of,
    scenario_of,
    sizes_of,
)
from antecede.cli.experiments.compare.table import csv_lines, markdown, plain_values, report
from antecede.cli.files.output import check_writable, save_text
from antecede.cli.option_rules import check_seeds, needs, refuse_unused
from antecede.cli.text_table import width_of_terminal
from antecede.core.protocols import Protocol
from antecede.errors import InputError, ScenarioError
from antecede.lab.check import is_file_target
from antecede.lab.simulate import Reached, kind_of, make_members, run_readable, within_memory
from antecede.lab.simulate.config import Scenario
from antecede.lab.simulate.outputs import delivery_waits, half_widths
from antecede.progress import Progress

RATE_HZ = 12.5
LOOSEN = {"topology": "--members", "workload": "--rate", "run": "--seconds"}
"""Options to lower, in place of a scenario file's keys."""

OPTION_RULES = (needs("force", "csv", why="nothing is written"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede compare`."""
    add = parser.add_argument
    add(
        "protocols",
        nargs="+",
        metavar="PROTOCOL",
        help="NAME or NAME/VARIANT of antecede protocols, or FILE.py:CLASS; options after it: r=10",
    )
    add("--members", default="10", metavar="N[,N]", help="with an application, a sweep (10)")
    add("--delay", default="50-250", help='in ms, or with a unit: "uniform 1-2 s" (default 50-250)')
    add("--topology", choices=("mesh", "hierarchy", "pubsub"), default="mesh")
    add(
        "--rate",
        type=float,
        default=RATE_HZ,
        metavar="HZ",
        help="a peer's messages a second (12.5)",
    )
    add("--fifo", action="store_true", help="channels do not reorder")
    add("--loss", type=float, default=0.0, help="probability of a copy (default 0)")
    add("--answers", type=float, metavar="P", help="messages that answer one (0.5 with sb, else 0)")
    add(
        "--accuracy",
        default="1 ms",
        metavar="MS",
        help="of clocks, for protocols that use them (1)",
    )
    add("--seconds", type=float, help="of sending (default: until steady, and up to 4 more)")
    add("--seed", type=int, default=0, help="the first (default 0)")
    add("--seeds", type=int, default=1, metavar="N", help="runs (default 1)")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="every figure of every run, as JSON")
    shown.add_argument("--markdown", action="store_true", help="the table as Markdown")
    add("--csv", metavar="F", help="write the table, with intervals, to a file too")
    add("--force", action="store_true", help="replace F where it exists")


def run(args: argparse.Namespace) -> int:
    """Run every protocol at every size with every seed and print the table; returns 0."""
    check_seeds(args)
    asked, sizes = protocols_of(args.protocols), sizes_of(args.members)
    if args.csv is not None:
        read = [one.target.rpartition(":")[0] for one in asked if is_file_target(one.target)]
        check_writable(Path(args.csv), read, args.force)
        if Path(args.csv).suffix.lower() != ".csv":
            raise InputError("--csv: name a file that ends in .csv", path=args.csv)
    scenarios = {(one, size): scenario_of(one, args, size) for size in sizes for one in asked}
    seeds = range(args.seed, args.seed + args.seeds)
    done = _all_cells(scenarios, args, seeds)
    if args.csv is not None:
        save_text(Path(args.csv), "\n".join(csv_lines(done, seeds)) + "\n")
    if args.json:
        print(json.dumps(plain_values(done, seeds), indent=2, ensure_ascii=False))
    elif args.markdown:
        print("\n".join(markdown(done, args)))
    else:
        print("\n".join(report(done, args, width_of_terminal())))
    sys.stdout.flush()
    return 0


def _all_cells(
    scenarios: Mapping[tuple[Asked, int], Scenario], args: argparse.Namespace, seeds: range
) -> list[Compared]:
    """Run every cell; what members refuse is met before the first of them runs."""
    members = {cell: _members(scenario, args.seed) for cell, scenario in scenarios.items()}
    _check_used(args, scenarios, members)
    done: list[Compared] = []
    with Progress("simulating") as progress:
        for cell, scenario in scenarios.items():
            one, size = cell
            runs: list[Ran] = []
            for place, seed in enumerate(seeds, len(done) * len(seeds) + 1):
                progress.label = f"{one.name}, {size:,}: {place} of {len(scenarios) * len(seeds)}"
                runs.append(_ran(scenario, seed, progress))
            done.append(compared(one.name, scenario, members[cell], runs, args.topology))
    return done


def _check_used(
    args: argparse.Namespace,
    scenarios: Mapping[tuple[Asked, int], Scenario],
    members: Mapping[tuple[Asked, int], Mapping[int, Protocol]],
) -> None:
    """Refuse options that no protocol looks at; a protocol of the user's may look at all."""
    if not any(
        is_file_target(cell[0].target) or any(one.needs_ticks for one in made.values())
        for cell, made in members.items()
    ):
        refuse_unused(args, "none of these protocols goes by clocks", unused=["accuracy"])
    if all(kind_of(one.topology) != args.topology for one in scenarios.values()):
        why = f"none of these protocols runs on a {args.topology}"
        refuse_unused(args, why, unused=["topology"])


def _members(scenario: Scenario, seed: int) -> Mapping[int, Protocol]:
    """Make the members once before anything runs: they may refuse delays and clocks."""
    try:
        with within_memory(scenario, loosen=LOOSEN, name=_name(scenario)):
            return make_members(scenario, seed).members
    except ScenarioError as error:
        raise InputError(as_option(error.message)) from error


def _name(scenario: Scenario) -> str:
    return f"{scenario.protocol} with {len(scenario.topology.senders()):,} members"


def _ran(scenario: Scenario, seed: int, progress: Progress) -> Ran:
    reached = Reached(progress)
    with within_memory(scenario, loosen=LOOSEN, reached=reached, name=_name(scenario)):
        result, recording = run_readable(scenario, seed, True, reached)
        seen = delivery_waits(recording)
        more = {} if seen is None else seen.counts().figures()
        halves = half_widths(result, recording, seen)
    return Ran(seed, {**result.figures, **more}, halves, result.caveats)
