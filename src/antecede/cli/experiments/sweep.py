"""`antecede sweep FILE.toml --over options.r=5..30 --over members=10,30 --seeds 5`.

Exit codes: 0 all runs gave figures, 1 some failed (listed; the rest is written), 2 wrong call or
setup, 130 stopped by the user: the same command goes on from there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from antecede.cli.experiments.reproduce.command import (
    RUN_RULES,
    WRITTEN,
    add_runs,
    add_spark,
    checked_spark,
    report_kept_runs,
    spark_engine_of,
    write_page,
)
from antecede.cli.experiments.reproduce.report import table_text, told_runs, wrapped
from antecede.cli.files.output import check_folder
from antecede.cli.option_rules import check_seeds, excludes, needs
from antecede.cli.text_table import width_of_terminal
from antecede.errors import InputError
from antecede.formatting import counted
from antecede.lab.report import write_whole
from antecede.lab.reproductions import framework, sweeps

SHOWN_ROWS = 40
"""Most settings printed; the page and the CSV file have all."""

OPTION_RULES = (
    *RUN_RULES,
    excludes("jobs", "redraw", why="nothing is run"),
    needs("jobs", engine="local"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede sweep`."""
    add = parser.add_argument
    add("scenario", metavar="FILE.toml", help="a scenario file: docs/simulate.md")
    add(
        "--over",
        metavar="KEY=VALUES",
        action="append",
        default=[],
        required=True,
        help="a key of the file and its values: options.r=5..30, members=10,30, "
        "links.loss=0,0.01, protocol=bss,idr; again for more keys",
    )
    add("--seeds", type=int, default=1, metavar="N", help="runs a setting (1)")
    add("--seed", type=int, default=1, help="the first seed (1)")
    add("-o", "--out", metavar="DIR", help="folder for results, table and page (out/sweeps/NAME)")
    add("--force", action="store_true", help="replace the table and page of another grid in DIR")
    add_runs(parser)
    add("--jobs", type=int, metavar="N", help="processes of --engine local (all cores)")
    add_spark(parser, default="local", local="processes of this machine")


def run(args: argparse.Namespace) -> int:
    """Carry out what is missing, write, print. Raises InputError, ScenarioError, SetupError."""
    check_seeds(args)
    if args.jobs is not None and args.jobs < 1:
        raise InputError(f"--jobs {args.jobs}: 1 or more")
    checked_spark(args)
    sweep = sweeps.read_sweep(args.scenario, args.over, range(args.seed, args.seed + args.seeds))
    folder = Path(args.out or Path("out", "sweeps", sweep.path.stem))
    check_folder(folder, (*WRITTEN, sweeps.TABLE), [args.scenario])
    if not (args.force or args.fresh):  # --fresh says that DIR is to be forgotten
        sweeps.check_same_grid(sweep, folder)
    begin = time.monotonic()
    study = sweeps.sweep_study(sweep)
    with _engine(args) as engine, report_kept_runs(folder):
        done = framework.conduct(
            study, engine, folder, only=args.only, fresh=args.fresh, redraw=args.redraw
        )
    over = "".join(f" --over '{text}'" for text in args.over)
    first = f" --seed {args.seed}" if args.seed != 1 else ""
    command = f"antecede sweep {sweep.path.name}{over} --seeds {args.seeds}{first}"
    write_page(done.findings, folder, command)
    write_whole(folder / sweeps.TABLE, sweeps.table_csv(sweep.over, done.results))
    _report(done, sweep, folder, time.monotonic() - begin, args.redraw)
    return 1 if done.failures else 0


@contextmanager
def _engine(args: argparse.Namespace) -> Iterator[framework.Engine]:
    if args.engine == "local":
        yield framework.Processes(args.jobs or framework.cores())
        return
    with spark_engine_of(args, f"antecede sweep {Path(args.scenario).name}") as engine:
        yield engine


def _report(
    done: framework.Conducted, sweep: sweeps.Sweep, folder: Path, seconds: float, redraw: bool
) -> None:
    width = width_of_terminal()
    print("\n".join(wrapped(done.findings.title, width)))
    print("\n".join(wrapped(done.findings.finding, width)))
    for section in done.findings.sections:
        if section.table:
            print()
            rows = section.table[:SHOWN_ROWS]
            print(table_text(section.columns, rows, width, keep=len(sweep.over)))
            if len(section.table) > len(rows):
                print(f"  and {counted(len(section.table) - len(rows), 'more setting')}")
    for one in sweep.left_out:
        print("\n".join(wrapped(one, width)))
    print()
    told_runs(done, seconds, redraw)
    print(f"table       {folder / sweeps.TABLE}")
    print(f"page        {folder / 'index.html'}")
