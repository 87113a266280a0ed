"""`antecede demo`: order, compare and explain what a group received over UDP.

`--trace`: the same with a file, mailbox or repository of the user.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow
import pyarrow.parquet

from antecede.cli.files.output import check_folder, draft_of
from antecede.cli.files.pages import look
from antecede.cli.option_rules import excludes, needs
from antecede.errors import InputError
from antecede.formatting import count_and_part, counted, were
from antecede.lab import demo as tour
from antecede.lab.demo import demo
from antecede.lab.record import record, summary
from antecede.progress import Progress
from antecede.tables.trace import read, to_batch

MEMBERS = 8

OPTION_RULES = (
    excludes("seconds seed", "trace", why="nobody talks"),
    needs("format", "trace", why="nothing is read"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede demo`."""
    add = parser.add_argument
    add("--trace", metavar="PATH", nargs="+", help="your own file(s) or repository")
    add("--format", help="format of --trace (found by looking)")
    add("--seconds", type=float, default=5.0, help="how long the group talks (5)")
    add("--seed", type=int, default=1, help="of workload and delays (1)")
    add("--engine", choices=("spark", "local"), default="spark", help="leave Spark out: local")
    add("-o", "--output", type=Path, default=Path("out/demo"), help="folder for trace and page")


def run(args: argparse.Namespace) -> int:
    """Take the tour and write its page."""
    written = ("index.html", "quarantine.parquet" if args.trace else "trace.parquet")
    check_folder(args.output, written, args.trace or ())
    try:
        args.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"no folder can be made: {error.strerror}", path=str(args.output)
        ) from error
    spark = tour.SparkStart() if args.engine == "spark" else None
    events, conditions = _own(args) if args.trace else _recorded(args)
    arrivals = tour.arrivals_of(events)
    rows = tour.events_of(events) if arrivals.by_member else []
    _say_overtaking(arrivals)
    demo.print_heading(
        2, "The same arrivals put in causal order, from what each message says it needs"
    )
    ordered = demo.order_twice(arrivals, rows, spark)
    print()
    outcomes = demo.weigh(arrivals, ordered.table)
    held = None
    if arrivals.by_member:
        demo.print_heading(3, "One message that was held back")
        held = demo.tell_held(rows)
    demo.print_heading(4 if arrivals.by_member else 3, "One published rule, and how it breaks")
    counterexample = demo.break_rule()
    demo.print_heading(
        5 if arrivals.by_member else 4, "A tiny piece of a source's evaluation, simulated"
    )
    evaluation = demo.evaluate_piece()
    page = args.output / "index.html"
    found = demo.DemoFindings(outcomes, held, counterexample, evaluation)
    tour.write_page(page, found, rows, conditions)
    print(f"\nThe page with the drawings: {page}")
    if not args.trace:
        print(look(args.output / "trace.parquet"))
    return 0


def _recorded(args: argparse.Namespace) -> tuple[pyarrow.Table, str]:
    demo.print_heading(1, f"{MEMBERS} processes, as if in {MEMBERS} regions, talk over UDP")
    with Progress(f"recording for {args.seconds:.0f} s") as progress:
        recording = record(MEMBERS, args.seconds, seed=args.seed, progress=progress)
    lines = summary(recording, MEMBERS).splitlines()
    for line in lines:
        demo.say(line)
    events = pyarrow.Table.from_batches([to_batch(recording.events)])
    target = args.output / "trace.parquet"
    with draft_of(target) as draft:
        pyarrow.parquet.write_table(events, draft, compression="zstd")
    return events, f"{lines[0]}. {lines[1].strip('()').capitalize()}. Seed {args.seed}."


def _own(args: argparse.Namespace) -> tuple[pyarrow.Table, str]:
    demo.print_heading(1, "Your trace")
    trace = read(args.trace, format=args.format)
    names = ", ".join(args.trace)
    line = f"{counted(trace.events.num_rows, 'event')} read from {names} as {trace.format}"
    demo.say(line)
    if trace.quarantine.num_rows:
        target = args.output / "quarantine.parquet"
        with draft_of(target) as draft:
            pyarrow.parquet.write_table(trace.quarantine, draft, compression="zstd")
        bad = trace.quarantine.num_rows
        demo.say(f"{counted(bad, 'row')} {were(bad)} not usable: see {target}")
    return tour.with_declared_causes(trace.events), f"{line}."


def _say_overtaking(arrivals: tour.Arrivals) -> None:
    names = ("member", "id", "parents", arrivals.arrived_by)
    columns = [arrivals.table.column(name).to_pylist() for name in names]
    rows = [
        (member if arrivals.by_member else "", name, parents, at)
        for member, name, parents, at in zip(*columns, strict=True)
    ]
    arrived = {(stream, name): at for stream, name, _, at in rows}
    late = [
        sum(arrived.get((stream, parent), at) > at for parent in parents)
        for stream, _, parents, at in rows
    ]
    part = count_and_part(sum(map(bool, late)), len(rows))
    demo.say(
        f"{part} of {len(rows):,} came before a cause that they name: {counted(sum(late), 'pair')}"
    )
