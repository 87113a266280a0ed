"""`antecede reproduce NAME`: evaluation of a paper on Spark, and its page."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow

from antecede.cli.experiments.reproduce.report import report
from antecede.cli.files.output import check_folder
from antecede.cli.option_rules import excludes, refuse_unused
from antecede.cli.text_table import width_of_terminal
from antecede.errors import AntecedeError, InputError, SetupError
from antecede.lab.report import Findings
from antecede.lab.reproductions import framework

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = "all"
"""Name for all papers, in one Spark session."""

RUN_RULES = (
    excludes("no_cache filter engine", "report_only", why="there is no run"),
    excludes("master py_files conf", "report_only", engine="local", why="Spark is not used"),
)
OPTION_RULES = RUN_RULES
OUTPUT = Path("out", "reproductions")
EPILOG = """\
Results are cached in FOLDER, so an interrupted command continues.
Example: antecede reproduce hierarchy --quick
One figure point: antecede reproduce hierarchy --filter 'grid/*/peers 900/*'
Exit code: 1 if runs failed, else 0.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede reproduce`."""
    add = parser.add_argument
    add(
        "name",
        nargs="?",
        metavar="NAME",
        help="name of a paper's evaluation, or all (default: a list)",
    )
    add("--quick", action="store_true", help="use a smaller grid (under a minute)")
    add(
        "-o",
        "--output",
        metavar="FOLDER",
        help="folder of results and page (default: out/reproductions/NAME)",
    )
    add_runs(parser)
    add(
        "--traces",
        metavar="FILE",
        nargs="+",
        default=[],
        help="your own traces, for semantic",
    )
    add_spark(parser, default="spark", local="this process")


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Declare the options of runs and cached results."""
    add = parser.add_argument
    add(
        "--filter",
        metavar="PATTERN",
        action="append",
        default=[],
        help="pattern of run keys, with * and ?; repeat for more (default: all runs)",
    )
    add("--no-cache", action="store_true", help="repeat all runs, and ignore the results in FOLDER")
    add(
        "--report-only",
        action="store_true",
        help="write the page from the results in FOLDER, without runs",
    )


def add_spark(parser: argparse.ArgumentParser, default: str, local: str) -> None:
    """Declare the options of the engine; `local`: text for --engine local."""
    spark = parser.add_argument_group("engine")
    spark.add_argument(
        "--engine",
        choices=("spark", "local"),
        default=default,
        help=f"Spark, or local: {local} (default: {default})",
    )
    spark.add_argument(
        "--master", metavar="MASTER", help="Spark master (default: all cores of this machine)"
    )
    spark.add_argument(
        "--py-files", metavar="FILE,...", default="", help=".zip or .py files for the workers"
    )
    spark.add_argument(
        "--conf", metavar="KEY=VALUE", action="append", default=[], help="Spark setting"
    )


def run(args: argparse.Namespace) -> int:
    """Run, write and print; return 1 if runs failed. Raise InputError and SetupError."""
    if args.name is None:
        refuse_unused(args, "without NAME the command lists the papers", but=[""])
        width = max(map(len, framework.STUDIES))
        print("\n".join(f"{name:<{width}}  {line}" for name, line in framework.STUDIES.items()))
        return 0
    check_spark(args)
    folder = Path(args.output or OUTPUT / ("" if args.name == ALL else args.name))
    read = [*args.traces, args.name.rpartition(":")[0]]
    for name in framework.STUDIES if args.name == ALL else [""]:
        check_folder(folder / name, WRITTEN, filter(None, read))
    with _open_engine(args) as engine:
        if args.name == ALL:
            return _run_all(args, engine)
        study = _load_study(args.name, args.traces)
        folder = Path(args.output or OUTPUT / study.name)
        return _run_one(args.name, study, folder, engine, args)[0]


WRITTEN = ("index.html", "summary.json", "results", "figures", ".lock")


def check_same_study(folder: Path, name: str) -> None:
    """Raise InputError if a folder has the page of another paper, or of a sweep."""
    there = [one for one in ("index.html", "summary.json") if (folder / one).exists()]
    if not there:
        return
    try:
        found = framework.read_summary(folder / "summary.json").study
    except (InputError, OSError):
        found = "another program"
    if found != name:
        raise InputError(
            f"contains {' and '.join(there)} of {found}, not of {name}; name another folder with "
            "--output",
            path=str(folder),
        )


def check_spark(args: argparse.Namespace) -> None:
    """Raise InputError for invalid options of `add_spark`."""
    _parse_settings(args.conf)
    _list_files(args)
    if args.master is not None and _MASTERS.fullmatch(args.master) is None:
        # The error of Spark would be twenty lines of Java.
        raise InputError(
            f"--master {args.master!r}: expected spark://HOST:PORT, yarn, k8s://..., or "
            "local[N] for N cores"
        )


def _run_one(
    name: str,
    study: framework.Study,
    folder: Path,
    engine: framework.Engine,
    args: argparse.Namespace,
) -> tuple[int, Findings]:
    begin = time.monotonic()
    check_same_study(folder, study.name)
    with report_kept_runs(folder):
        done = framework.conduct(
            study,
            engine,
            folder,
            quick=args.quick,
            only=args.filter,
            fresh=args.no_cache,
            redraw=args.report_only,
        )
    # Names without folders: a page may be published.
    traces = " ".join(Path(path).name for path in args.traces)
    command = f"antecede reproduce {name}{' --quick' if args.quick else ''}"
    write_page(done.findings, folder, f"{command} --traces {traces}" if traces else command)
    report(done, folder, time.monotonic() - begin, args.report_only, width_of_terminal())
    return (1 if done.failures else 0), done.findings


@contextmanager
def report_kept_runs(folder: Path) -> Iterator[None]:
    """Print on stderr which results a user's interruption keeps."""
    try:
        yield
    except framework.Interrupted as stopped:
        kept = f"{stopped} are kept in {folder / 'results'}"
        print(f"antecede: {kept}; the same command continues", file=sys.stderr)
        raise


def _run_all(args: argparse.Namespace, engine: framework.Engine) -> int:
    """Run all reproductions, also after errors, and write their overview page."""
    from antecede.lab.report import write_overview

    if args.filter:
        raise InputError("--filter has no effect with all: name one paper")
    folder, code, cards = Path(args.output or OUTPUT), 0, []
    for name in framework.STUDIES:
        try:
            study = framework.load(name)
            traces = args.traces if study.with_traces else ()
            ended, found = _run_one(name, _load_study(name, traces), folder / name, engine, args)
        except SetupError:
            raise  # the others would fail too
        except AntecedeError as error:
            print(f"antecede: {name}: {error}", file=sys.stderr)
            code = 2
            continue
        code = max(code, ended)
        cards.append((found.study, found.title, found.finding, folder / name / "index.html"))
        print(flush=True)
    print(f"all pages   {write_overview(folder, cards)}")
    return code


def _load_study(name: str, traces: Sequence[str]) -> framework.Study:
    study = framework.load(name)
    if not traces:
        return study
    if study.with_traces is None:
        raise InputError(f"--traces: {name} takes no traces; omit it")
    return study.with_traces([Path(path) for path in traces])


def _parse_settings(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise InputError(f"--conf {text!r}: expected KEY=VALUE, such as spark.executor.cores=2")
        found[key] = value
    return found


_MASTERS = re.compile(
    r"local|local\[(\*|0*[1-9]\d*)(, *\d+)?\]|local-cluster\[.+\]|yarn|spark://.+|k8s://.+"
)


def _list_files(args: argparse.Namespace) -> list[str]:
    """Return the files for the workers. Raise InputError."""
    files = [path for path in args.py_files.split(",") if path]
    if files and args.master is None:
        raise InputError("--py-files has no effect without --master: omit it")
    for path in files:
        if not Path(path).is_file():
            raise InputError("--py-files: no such file", path=path)
    return files


@contextmanager
def _open_engine(args: argparse.Namespace) -> Iterator[framework.Engine]:
    if args.engine == "local":
        yield framework.run_locally
        return
    with open_spark_engine(args, f"antecede reproduce {args.name}") as engine:
        yield engine


@contextmanager
def open_spark_engine(args: argparse.Namespace, name: str) -> Iterator[framework.Engine]:
    """Yield the Spark engine, which starts with the first run and stops at the end."""
    from antecede.lab.reproductions.framework import spark_engine

    settings, files = _parse_settings(args.conf), _list_files(args)
    with ExitStack() as stack:

        def engine(
            study: framework.Study, runs: Sequence[framework.Run]
        ) -> Iterator[pyarrow.Table]:
            session = stack.enter_context(_open_session(args, name, settings, files))
            return spark_engine(session)(study, runs)

        yield engine


@contextmanager
def _open_session(
    args: argparse.Namespace, name: str, settings: Mapping[str, str], files: Sequence[str]
) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    from antecede.spark import cluster_session, local_session, quiet_failures

    active = SparkSession.getActiveSession()
    if active is not None:
        session = active
    elif args.master is None:
        session = local_session(name=name, settings=settings)
    else:
        session = cluster_session(args.master, py_files=files, name=name, settings=settings)
    try:
        quiet_failures(session)
        yield session
    finally:
        if active is None:
            session.stop()


def write_page(findings: Findings, folder: Path, command: str) -> None:
    """Write `summary.json`, the page and its plots; `command`: the call that repeats it."""
    from antecede.lab.report import write_study

    framework.write_summary(findings, folder)
    write_study(findings, folder, command=command)
