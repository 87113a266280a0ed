"""`antecede demo`: record a UDP group, order its messages, compare the results.

`--trace`: the same with a file, mailbox or repository of the user.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow
import pyarrow.parquet

from antecede.cli.files.output import check_folder, draft_of
from antecede.cli.files.pages import suggest_view
from antecede.cli.option_rules import excludes, needs
from antecede.errors import InputError
from antecede.formatting import count_and_part, pluralize, were
from antecede.lab import demo as tour
from antecede.lab.demo import demo
from antecede.lab.record import record, summary
from antecede.progress import Progress
from antecede.tables.trace import read, to_batch

MEMBERS = 8

OPTION_RULES = (
    excludes("seconds seed", "trace", why="nothing is recorded"),
    needs("format", "trace", why="nothing is read"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede demo`."""
    add = parser.add_argument
    add("--trace", metavar="PATH", nargs="+", help="your own files or git repository")
    add("--format", metavar="FORMAT", help="format of --trace (default: auto-detected)")
    add(
        "--seconds",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="duration of the recording (default: 5)",
    )
    add("--seed", type=int, default=1, metavar="N", help="seed of workload and delays (default: 1)")
    add(
        "--engine",
        choices=("spark", "local"),
        default="spark",
        help="Spark, or only this process (default: spark)",
    )
    add(
        "-o",
        "--output",
        type=Path,
        default=Path("out/demo"),
        metavar="FOLDER",
        help="folder of trace and page (default: out/demo)",
    )


def run(args: argparse.Namespace) -> int:
    """Run the demo and write its page."""
    written = ("index.html", "quarantine.parquet" if args.trace else "trace.parquet")
    check_folder(args.output, written, args.trace or ())
    try:
        args.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--output: the folder cannot be created: {error.strerror}", path=str(args.output)
        ) from error
    spark = tour.SparkStart() if args.engine == "spark" else None
    events, conditions = _read_own(args) if args.trace else _record_group(args)
    arrivals = tour.arrivals_of(events)
    rows = tour.events_of(events) if arrivals.by_member else []
    _print_overtaking(arrivals)
    demo.print_heading(2, "The same arrivals in causal order, by the causes in each message")
    ordered = demo.order_twice(arrivals, rows, spark)
    print()
    outcomes = demo.weigh(arrivals, ordered.table)
    held = None
    if arrivals.by_member:
        demo.print_heading(3, "One message that was held back")
        held = demo.tell_held(rows)
    demo.print_heading(4 if arrivals.by_member else 3, "A published rule with a defect")
    counterexample = demo.break_rule()
    demo.print_heading(
        5 if arrivals.by_member else 4, "A small part of a paper's evaluation, simulated"
    )
    evaluation = demo.evaluate_piece()
    page = args.output / "index.html"
    found = demo.DemoFindings(outcomes, held, counterexample, evaluation)
    tour.write_page(page, found, rows, conditions)
    print(f"\nPage with the diagrams: {page}")
    if not args.trace:
        print(suggest_view(args.output / "trace.parquet"))
    return 0


def _record_group(args: argparse.Namespace) -> tuple[pyarrow.Table, str]:
    demo.print_heading(
        1, f"{MEMBERS} processes, with the delays of {MEMBERS} regions, send messages over UDP"
    )
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


def _read_own(args: argparse.Namespace) -> tuple[pyarrow.Table, str]:
    demo.print_heading(1, "Your trace")
    trace = read(args.trace, format=args.format)
    names = ", ".join(args.trace)
    line = f"{pluralize(trace.events.num_rows, 'event')} read from {names} as {trace.format}"
    demo.say(line)
    if trace.quarantine.num_rows:
        target = args.output / "quarantine.parquet"
        with draft_of(target) as draft:
            pyarrow.parquet.write_table(trace.quarantine, draft, compression="zstd")
        bad = trace.quarantine.num_rows
        demo.say(f"{pluralize(bad, 'row')} {were(bad)} quarantined in {target}")
    return tour.with_declared_causes(trace.events), f"{line}."


def _print_overtaking(arrivals: tour.Arrivals) -> None:
    names = ("member", "id", "causes", arrivals.arrived_by)
    columns = [arrivals.table.column(name).to_pylist() for name in names]
    rows = [
        (member if arrivals.by_member else "", name, causes, at)
        for member, name, causes, at in zip(*columns, strict=True)
    ]
    arrived = {(stream, name): at for stream, name, _, at in rows}
    late = [
        sum(arrived.get((stream, cause), at) > at for cause in causes)
        for stream, _, causes, at in rows
    ]
    part = count_and_part(sum(map(bool, late)), len(rows))
    demo.say(
        f"{part} of {len(rows):,} arrived before a declared cause: {pluralize(sum(late), 'pair')}"
    )
