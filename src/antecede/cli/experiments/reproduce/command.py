"""`antecede study NAME`: run a source's evaluation on Spark and write its page.

Exit codes: 0 all runs gave figures, 1 some failed (listed; the rest is written), 2 wrong call or
setup, 130 stopped by the user: the same command goes on from there.
"""

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
"""Instead of a name: every study, in one session of Spark."""

RUN_RULES = (
    excludes("fresh only engine master py_files conf", "redraw", why="nothing is run"),
    excludes("master py_files conf", engine="local", why="it runs without Spark"),
)
OPTION_RULES = RUN_RULES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede study`."""
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", help="which study, or all; without: list them")
    add("--quick", action="store_true", help="a smaller grid, under a minute")
    add("-o", "--out", metavar="DIR", help="folder for results and page (out/studies/NAME)")
    add_runs(parser)
    add(
        "--traces",
        metavar="FILE",
        nargs="+",
        default=[],
        help="real traces for a study that takes some: semantic",
    )
    add_spark(parser, default="spark", local="here, without Spark")


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Declare which runs are carried out, and whether earlier results count."""
    add = parser.add_argument
    add(
        "--only",
        metavar="PATTERN",
        action="append",
        default=[],
        help="only runs whose key matches, with * and ?; again for more",
    )
    add("--fresh", action="store_true", help="forget the results that DIR has and start over")
    add("--redraw", action="store_true", help="run nothing: the page again, from what DIR has")


def add_spark(parser: argparse.ArgumentParser, default: str, local: str) -> None:
    """Declare where runs are carried out; `local` says what --engine local is."""
    spark = parser.add_argument_group("where it runs")
    spark.add_argument(
        "--engine",
        choices=("spark", "local"),
        default=default,
        help=f"local: {local} (default {default})",
    )
    spark.add_argument(
        "--master", metavar="MASTER", help="any Spark master (default: all cores of this machine)"
    )
    spark.add_argument(
        "--py-files", metavar="FILE,...", default="", help="zip or .py files that workers import"
    )
    spark.add_argument(
        "--conf", metavar="KEY=VALUE", action="append", default=[], help="setting of Spark"
    )


def run(args: argparse.Namespace) -> int:
    """Carry out what is missing, write, print. Raises InputError, SetupError."""
    if args.name is None:
        refuse_unused(args, "without NAME the studies are listed", but=[""])
        width = max(map(len, framework.STUDIES))
        print("\n".join(f"{name:<{width}}  {line}" for name, line in framework.STUDIES.items()))
        return 0
    checked_spark(args)
    folder = Path(args.out or Path("out", "studies", "" if args.name == ALL else args.name))
    read = [*args.traces, args.name.rpartition(":")[0]]
    for name in framework.STUDIES if args.name == ALL else [""]:
        check_folder(folder / name, WRITTEN, filter(None, read))
    with _engine(args) as engine:
        if args.name == ALL:
            return _run_all(args, engine)
        study = _studied(args.name, args.traces)
        folder = Path(args.out or Path("out", "studies", study.name))
        return _run_one(args.name, study, folder, engine, args)[0]


WRITTEN = ("index.html", "summary.json", "results", "figures", ".lock")


def check_same_study(folder: Path, name: str) -> None:
    """Raise InputError where a folder has the page of another study, or of a sweep."""
    there = [one for one in ("index.html", "summary.json") if (folder / one).exists()]
    if not there:
        return
    try:
        found = framework.read_summary(folder / "summary.json").study
    except (InputError, OSError):
        found = "something else"
    if found != name:
        raise InputError(
            f"{' and '.join(there)} there would be replaced: they are of {found}, not of {name}; "
            "name another folder with -o",
            path=str(folder),
        )


def checked_spark(args: argparse.Namespace) -> None:
    """Raise InputError for options of `add_spark` that Spark cannot take."""
    _settings(args.conf)
    _files(args)
    if args.master is not None and _MASTERS.fullmatch(args.master) is None:
        # Spark would refuse it in twenty lines of Java.
        raise InputError(
            f"--master {args.master!r}: write spark://HOST:PORT, yarn, k8s://..., or local[N] for "
            "N cores of this machine"
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
            only=args.only,
            fresh=args.fresh,
            redraw=args.redraw,
        )
    # Names alone: a page may be published, and paths reveal the folders of its author.
    traces = " ".join(Path(path).name for path in args.traces)
    command = f"antecede study {name}{' --quick' if args.quick else ''}"
    write_page(done.findings, folder, f"{command} --traces {traces}" if traces else command)
    report(done, folder, time.monotonic() - begin, args.redraw, width_of_terminal())
    return (1 if done.failures else 0), done.findings


@contextmanager
def report_kept_runs(folder: Path) -> Iterator[None]:
    """Say on stderr what is kept of a study that the user stops."""
    try:
        yield
    except framework.Interrupted as stopped:
        kept = f"{stopped} are kept in {folder / 'results'}"
        print(f"antecede: {kept}; the same command goes on from there", file=sys.stderr)
        raise


def _run_all(args: argparse.Namespace, engine: framework.Engine) -> int:
    """Run every study, whatever becomes of the others, and write the page in front of them."""
    from antecede.lab.report import write_overview

    if args.only:
        raise InputError("--only goes with one study")
    folder, code, cards = Path(args.out or Path("out", "studies")), 0, []
    for name in framework.STUDIES:
        try:
            study = framework.load(name)
            traces = args.traces if study.with_traces else ()
            ended, found = _run_one(name, _studied(name, traces), folder / name, engine, args)
        except SetupError:
            raise  # none of the others could run
        except AntecedeError as error:
            print(f"antecede: {name}: {error}", file=sys.stderr)
            code = 2
            continue
        code = max(code, ended)
        cards.append((found.study, found.title, found.finding, folder / name / "index.html"))
        print(flush=True)
    print(f"all pages   {write_overview(folder, cards)}")
    return code


def _studied(name: str, traces: Sequence[str]) -> framework.Study:
    study = framework.load(name)
    if not traces:
        return study
    if study.with_traces is None:
        raise InputError(f"study {name!r} takes no traces; leave --traces out")
    return study.with_traces([Path(path) for path in traces])


def _settings(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise InputError(f"--conf {text!r}: write KEY=VALUE, e.g. spark.executor.cores=2")
        found[key] = value
    return found


_MASTERS = re.compile(
    r"local|local\[(\*|0*[1-9]\d*)(, *\d+)?\]|local-cluster\[.+\]|yarn|spark://.+|k8s://.+"
)


def _files(args: argparse.Namespace) -> list[str]:
    """Return the files to be shipped. Raises InputError."""
    files = [path for path in args.py_files.split(",") if path]
    if files and args.master is None:
        raise InputError("--py-files goes with --master: here, workers have the package")
    for path in files:
        if not Path(path).is_file():
            raise InputError("is no file", path=path)
    return files


@contextmanager
def _engine(args: argparse.Namespace) -> Iterator[framework.Engine]:
    if args.engine == "local":
        yield framework.run_locally
        return
    with spark_engine_of(args, f"antecede study {args.name}") as engine:
        yield engine


@contextmanager
def spark_engine_of(args: argparse.Namespace, name: str) -> Iterator[framework.Engine]:
    """Give the engine of Spark, which starts when there are runs for it, and stops again."""
    from antecede.lab.reproductions.framework import spark_engine

    settings, files = _settings(args.conf), _files(args)
    with ExitStack() as stack:

        def engine(
            study: framework.Study, runs: Sequence[framework.Run]
        ) -> Iterator[pyarrow.Table]:
            session = stack.enter_context(_session(args, name, settings, files))
            return spark_engine(session)(study, runs)

        yield engine


@contextmanager
def _session(
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
    """Write `summary.json`, the page and its plots; `command` makes them again."""
    from antecede.lab.report import write_study

    framework.write_summary(findings, folder)
    write_study(findings, folder, command=command)
