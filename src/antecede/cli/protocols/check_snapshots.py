"""`antecede snapshot ALGORITHM`: does it record global states that can have been?"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from antecede.cli.files.output import check_writable, save_text
from antecede.cli.option_rules import needs, refuse_unused
from antecede.core.global_snapshots import ALGORITHMS
from antecede.errors import LocalError
from antecede.formatting import counted
from antecede.lab.check import CHANNELS, FIFO, MOST_STATES, StateFailure, explore, play
from antecede.lab.diagram import draw_svg, draw_text, from_failure
from antecede.progress import Progress

RUN_MEMBERS, RUN_MESSAGES = 6, 100

OPTION_RULES = (needs("force", "svg", why="nothing is written"),)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede snapshot`."""
    add = parser.add_argument
    add("algorithm", choices=tuple(ALGORITHMS))
    add(
        "--channels",
        choices=CHANNELS,
        help="fifo: channels keep their order; any: they do not. What the algorithm needs, if not "
        "given",
    )
    add("--members", type=int, default=2, metavar="N", help="in the search (2)")
    add("--messages", type=int, default=3, metavar="N", help="in the search (3)")
    add("--most-states", type=int, default=MOST_STATES, metavar="N", help=f"({MOST_STATES:,})")
    add(
        "--runs",
        type=int,
        default=100,
        metavar="N",
        help=f"random runs of {RUN_MEMBERS} members and {RUN_MESSAGES} messages (100)",
    )
    add("--seed", type=int, default=0, help="of the first random run (0)")
    add("--svg", metavar="F", help="draw the counterexample")
    add("--force", action="store_true", help="replace F where it exists")
    add("--json", action="store_true", help="print the verdict as JSON")


def run(args: argparse.Namespace) -> int:
    """Search, play, and print; 1 where a recorded global state is none."""
    _check(args)
    kind = ALGORITHMS[args.algorithm]
    channels = args.channels or (FIFO if kind.needs_fifo else "any")
    with Progress("every interleaving"):
        found = explore(
            *(kind, channels),
            members=args.members,
            messages=args.messages,
            most_states=args.most_states,
        )
    wrong: list[int] = []
    with Progress("random runs") as progress:
        for k in range(args.runs):
            progress(k / args.runs)
            more = {"members": RUN_MEMBERS, "messages": RUN_MESSAGES, "seed": args.seed + k}
            if play(kind, channels, **more) is not None:
                wrong.append(args.seed + k)
    failure = found.failure
    if args.svg and failure is not None:
        save_text(Path(args.svg), draw_svg(from_failure(failure, kind, channels)))
    if args.json:
        told: dict[str, Any] = {
            "algorithm": args.algorithm,
            "channels": channels,
            "plans": found.plans,
            "states": found.states,
            "ends": found.ends,
            "why": failure.why if failure is not None else None,
            "moves": [_move(one) for one in failure.moves] if failure is not None else None,
            "runs": args.runs,
            "wrong_runs": wrong,
        }
        if args.svg:
            told["svg"] = args.svg if failure is not None else None
        print(json.dumps(told, indent=2))
    else:
        _print(args, channels, found, wrong)
        if failure is not None:
            _draw(failure, args, channels)
        elif args.svg:
            print(f"  no counterexample: nothing is drawn, {args.svg} was not written")
    return 1 if failure is not None or wrong else 0


def _check(args: argparse.Namespace) -> None:
    for name, least, most in (("members", 2, 8), ("messages", 1, 20)):
        value = getattr(args, name)
        if not least <= value <= most:
            raise LocalError(f"--{name} is {value}; it is {least} to {most}")
    if args.runs < 0 or args.most_states < 1:
        raise LocalError("--runs is 0 or more, --most-states 1 or more")
    if not args.runs:
        refuse_unused(args, "no random run is played", unused=["seed"])
    if args.svg is not None:
        check_writable(Path(args.svg), [], args.force)


def _move(move: Any) -> str:
    if move.copy is None:
        return f"{move.member} {'begins a snapshot' if move.kind == 'begin' else 'sends'}"
    return f"{move.copy.name} of {move.copy.sender} arrives at {move.member}"


def _print(args: argparse.Namespace, channels: str, found: Any, wrong: list[int]) -> None:
    order = "keep their order" if channels == FIFO else "keep no order"
    print(f"{args.algorithm}, channels that {order}")
    looked = f"{counted(found.plans, 'plan')}, {counted(found.states, 'state')}"
    if found.failure is None:
        ends = counted(found.ends, "end")
        print(f"  every interleaving: {looked}; the recorded global state of all {ends} is one")
    else:
        print(f"  every interleaving: a recorded global state that is none ({looked} looked at)")
    if args.runs:
        of = counted(args.runs, "random run")
        seeds = f"; the first with --seed {wrong[0]}" if wrong else ""
        print(f"  {of}: {counted(len(wrong), 'wrong global state')}{seeds}")


def _draw(failure: StateFailure, args: argparse.Namespace, channels: str) -> None:
    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = max(40, min(100, shutil.get_terminal_size().columns))
    drawn = from_failure(failure, ALGORITHMS[args.algorithm], channels)
    print(f"\nThe smallest: {failure.why}\n")
    print(draw_text(drawn, width=width, color=color))
    if args.svg:
        print(f"\ndrawn -> {args.svg}")
