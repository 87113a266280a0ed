"""`antecede check --snapshots ALGORITHM`: consistency of the global states that it records."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from antecede.cli.files.output import check_ending, check_writable, save_text
from antecede.cli.option_rules import refuse_unused
from antecede.core.global_snapshots import ALGORITHMS
from antecede.errors import LocalError
from antecede.formatting import pluralize
from antecede.lab.check import CHANNELS, FIFO, MOST_STATES, StateFailure, explore, play
from antecede.lab.diagram import draw_svg, draw_text, from_failure
from antecede.progress import Progress

MEMBERS, MESSAGES = 2, 3
RUN_MEMBERS, RUN_MESSAGES = 6, 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of snapshot algorithms."""
    add = parser.add_argument_group(
        "global-snapshot algorithms (with --members, --messages, --seed, --output-svg)"
    ).add_argument
    add(
        "--snapshots",
        metavar="ALGORITHM",
        choices=tuple(ALGORITHMS),
        help=f"{' or '.join(ALGORITHMS)}, in place of PROTOCOL; {MEMBERS} members and {MESSAGES} "
        "messages by default",
    )
    add(
        "--channels",
        choices=CHANNELS,
        help="order of channels; any: messages overtake (default: as the algorithm requires)",
    )
    add(
        "--max-states",
        type=int,
        default=MOST_STATES,
        metavar="N",
        help=f"limit of the search, states (default: {MOST_STATES:,})",
    )
    add(
        "--runs",
        type=int,
        default=100,
        metavar="N",
        help=f"random runs of {RUN_MEMBERS} members and {RUN_MESSAGES} messages (default: 100)",
    )


def run(args: argparse.Namespace) -> int:
    """Search, run and print; return 1 if a recorded global state is inconsistent."""
    args.members = MEMBERS if args.members is None else args.members
    args.messages = MESSAGES if args.messages is None else args.messages
    _check(args)
    kind = ALGORITHMS[args.snapshots]
    channels = args.channels or (FIFO if kind.needs_fifo else "any")
    with Progress("every interleaving"):
        found = explore(
            *(kind, channels),
            members=args.members,
            messages=args.messages,
            most_states=args.max_states,
        )
    wrong: list[int] = []
    with Progress("random runs") as progress:
        for k in range(args.runs):
            progress(k / args.runs)
            more = {"members": RUN_MEMBERS, "messages": RUN_MESSAGES, "seed": args.seed + k}
            if play(kind, channels, **more) is not None:
                wrong.append(args.seed + k)
    failure = found.failure
    if args.output_svg and failure is not None:
        save_text(Path(args.output_svg), draw_svg(from_failure(failure, kind, channels)))
    if args.json:
        values: dict[str, Any] = {
            "algorithm": args.snapshots,
            "channels": channels,
            "plans": found.plans,
            "states": found.states,
            "ends": found.ends,
            "why": failure.why if failure is not None else None,
            "moves": [_describe_move(one) for one in failure.moves]
            if failure is not None
            else None,
            "runs": args.runs,
            "wrong_runs": wrong,
        }
        if args.output_svg:
            values["svg"] = args.output_svg if failure is not None else None
        print(json.dumps(values, indent=2))
    else:
        _print(args, channels, found, wrong)
        if failure is not None:
            _print_diagram(failure, args, channels)
        elif args.output_svg:
            print(f"  no counterexample: {args.output_svg} was not written")
    return 1 if failure is not None or wrong else 0


def _check(args: argparse.Namespace) -> None:
    for name, least, most in (("members", 2, 8), ("messages", 1, 20)):
        value = getattr(args, name)
        if not least <= value <= most:
            raise LocalError(f"--{name} {value}: expected {least} to {most} with --snapshots")
    for name, value, least in (("runs", args.runs, 0), ("max-states", args.max_states, 1)):
        if value < least:
            raise LocalError(f"--{name} {value}: expected {least} or more")
    if not args.runs:
        refuse_unused(args, "--runs 0: there is no random run", unused=["seed"])
    if args.output_svg is not None:
        check_writable(Path(args.output_svg), [], args.force)
        check_ending("--output-svg", args.output_svg, ".svg")


def _describe_move(move: Any) -> str:
    if move.copy is None:
        return f"{move.member} {'begins a snapshot' if move.kind == 'begin' else 'sends'}"
    return f"{move.copy.name} of {move.copy.sender} arrives at {move.member}"


def _print(args: argparse.Namespace, channels: str, found: Any, wrong: list[int]) -> None:
    order = "FIFO channels" if channels == FIFO else "channels without order"
    print(f"{args.snapshots}, {order}")
    explored = f"{pluralize(found.plans, 'plan')}, {pluralize(found.states, 'state')}"
    if found.failure is None:
        ends = pluralize(found.ends, "end")
        print(f"  every interleaving: {explored}; all recorded states consistent ({ends})")
    else:
        print(f"  every interleaving: an inconsistent recorded state ({explored} explored)")
    if args.runs:
        of = pluralize(args.runs, "random run")
        seeds = f", first with --seed {wrong[0]}" if wrong else ""
        print(f"  {of}: {pluralize(len(wrong), 'inconsistent state')}{seeds}")


def _print_diagram(failure: StateFailure, args: argparse.Namespace, channels: str) -> None:
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = max(40, min(100, shutil.get_terminal_size().columns))
    drawn = from_failure(failure, ALGORITHMS[args.snapshots], channels)
    print(f"\nSmallest counterexample: {failure.why}\n")
    print(draw_text(drawn, width=width, color=color))
    if args.output_svg:
        print(f"\nCounterexample as SVG: {args.output_svg}")
