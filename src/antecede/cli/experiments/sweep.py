"""`antecede sweep CONFIG --over KEY=VALUES`: a simulation over a parameter grid."""

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
    check_spark,
    open_spark_engine,
    report_kept_runs,
    write_page,
)
from antecede.cli.experiments.reproduce.report import print_runs, table_text, wrap
from antecede.cli.files.output import check_folder
from antecede.cli.option_rules import check_seeds, excludes, needs
from antecede.cli.text_table import width_of_terminal
from antecede.errors import InputError
from antecede.formatting import pluralize
from antecede.lab.report import write_whole
from antecede.lab.reproductions import framework, sweeps

SHOWN_ROWS = 40
"""Limit of printed settings; the page and the CSV file have all."""

OPTION_RULES = (
    *RUN_RULES,
    excludes("jobs", "report_only", why="there is no run"),
    needs("jobs", engine="local"),
)
EPILOG = """\
Results are cached in FOLDER, so an interrupted command continues.
Example: antecede sweep mesh.toml --over members=10,30 --seeds 5
Exit code: 1 if runs failed, else 0.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede sweep`."""
    add = parser.add_argument
    add(
        "config",
        metavar="CONFIG",
        help="simulation config (.toml), as in docs/reference/simulation.md",
    )
    add(
        "--over",
        metavar="KEY=VALUES",
        action="append",
        default=[],
        required=True,
        help="key of CONFIG and its values, such as members=10,30 or links.loss=0,0.01; repeat for "
        "more keys",
    )
    add("--seeds", type=int, default=1, metavar="N", help="runs per setting (default: 1)")
    add("--seed", type=int, default=1, metavar="N", help="first seed (default: 1)")
    add(
        "-o",
        "--output",
        metavar="FOLDER",
        help="folder of results, table and page (default: out/sweeps/NAME)",
    )
    add("--force", action="store_true", help="overwrite the table and page of another grid")
    add_runs(parser)
    add("--jobs", type=int, metavar="N", help="processes of --engine local (default: all cores)")
    add_spark(parser, default="local", local="processes of this machine")


def run(args: argparse.Namespace) -> int:
    """Run, write and print; return 1 if runs failed. Raise InputError, SetupError."""
    check_seeds(args)
    if args.jobs is not None and args.jobs < 1:
        raise InputError(f"--jobs {args.jobs}: expected 1 or more")
    check_spark(args)
    sweep = sweeps.read_sweep(args.config, args.over, range(args.seed, args.seed + args.seeds))
    folder = Path(args.output or Path("out", "sweeps", sweep.path.stem))
    check_folder(folder, (*WRITTEN, sweeps.TABLE), [args.config])
    if not (args.force or args.no_cache):  # --no-cache ignores the folder
        sweeps.check_same_grid(sweep, folder)
    begin = time.monotonic()
    study = sweeps.sweep_study(sweep)
    with _open_engine(args) as engine, report_kept_runs(folder):
        done = framework.conduct(
            study, engine, folder, only=args.filter, fresh=args.no_cache, redraw=args.report_only
        )
    over = "".join(f" --over '{text}'" for text in args.over)
    first = f" --seed {args.seed}" if args.seed != 1 else ""
    command = f"antecede sweep {sweep.path.name}{over} --seeds {args.seeds}{first}"
    write_page(done.findings, folder, command)
    write_whole(folder / sweeps.TABLE, sweeps.table_csv(sweep.over, done.results))
    _report(done, sweep, folder, time.monotonic() - begin, args.report_only)
    return 1 if done.failures else 0


@contextmanager
def _open_engine(args: argparse.Namespace) -> Iterator[framework.Engine]:
    if args.engine == "local":
        yield framework.Processes(args.jobs or framework.cores())
        return
    with open_spark_engine(args, f"antecede sweep {Path(args.config).name}") as engine:
        yield engine


def _report(
    done: framework.Conducted, sweep: sweeps.Sweep, folder: Path, seconds: float, report_only: bool
) -> None:
    width = width_of_terminal()
    print("\n".join(wrap(done.findings.title, width)))
    print("\n".join(wrap(done.findings.finding, width)))
    for section in done.findings.sections:
        if section.table:
            print()
            rows = section.table[:SHOWN_ROWS]
            print(table_text(section.columns, rows, width, keep=len(sweep.over)))
            if len(section.table) > len(rows):
                print(f"  and {pluralize(len(section.table) - len(rows), 'more setting')}")
    for one in sweep.left_out:
        print("\n".join(wrap(one, width)))
    print()
    print_runs(done, seconds, report_only)
    print(f"table       {folder / sweeps.TABLE}")
    print(f"page        {folder / 'index.html'}")
