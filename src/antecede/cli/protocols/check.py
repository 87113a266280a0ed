"""`antecede check`: verdict on a protocol or snapshot algorithm, as text or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from antecede.cli.files.output import check_apart, check_ending, check_writable, save_text
from antecede.cli.files.pages import check_page, write_page_of
from antecede.cli.option_rules import excludes, needs
from antecede.cli.protocols import check_snapshots
from antecede.core.protocols import ENTRIES
from antecede.core.protocols.options import split_options
from antecede.errors import LocalError
from antecede.lab.check import CaseResult, Verdict, cases, judge_all, run_check
from antecede.lab.check.harness import LIMIT_S
from antecede.lab.check.scenario import format_failure, report, run_of
from antecede.lab.diagram import draw_svg, from_run

NORMAL, LARGE = "normal", "large"
_OF_A_PROTOCOL = "target options variant size output_scenario output_html call_timeout"
OPTION_RULES = (
    needs("jobs quick", "all", is_in_help=False),
    needs("channels max_states runs", "snapshots", is_in_help=False),
    excludes(
        f"{_OF_A_PROTOCOL} members messages seed snapshots output_svg force",
        "all",
        why="all protocols are checked with default sizes",
        is_in_help=False,
    ),
    excludes(_OF_A_PROTOCOL, "snapshots", why="a snapshot algorithm is checked", is_in_help=False),
    needs("force", "output_scenario", "output_svg", "output_html", why="nothing is written"),
)
EPILOG = """\
The checker explores every interleaving of small groups, then runs random
networks. --snapshots checks a global-snapshot algorithm in the same way.
Example: antecede check bss --variant as-published
Exit code: 1 if a promise is broken, else 0.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede check`."""
    add = parser.add_argument
    known = f"{', '.join(ENTRIES)}, or your own FILE.py:CLASS or FILE.py:FUNCTION"
    add("target", nargs="?", metavar="PROTOCOL", help=known)
    add(
        "options",
        nargs="*",
        metavar="NAME=VALUE",
        help="options of the protocol, such as r=10 k=3",
    )
    add(
        "--variant",
        default="",
        metavar="NAME",
        help="variant of a built-in protocol; antecede protocols PROTOCOL lists them",
    )
    add(
        "--size",
        choices=(NORMAL, LARGE),
        default=NORMAL,
        help=f"size of the searches and number of runs (default: {NORMAL})",
    )
    add("--members", type=int, metavar="N", help="members of the largest search")
    add("--messages", type=int, metavar="N", help="messages of the largest search")
    add(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of the random network, or of the first random run (default: 0)",
    )
    add(
        "--call-timeout",
        type=float,
        default=LIMIT_S,
        metavar="SECONDS",
        help=f"time limit of a call into the protocol (default: {LIMIT_S:g})",
    )
    add("--json", action="store_true", help="print the verdict as JSON")
    output = parser.add_argument_group("output of the counterexample")
    output.add_argument("--output-scenario", metavar="FILE", help="scenario file")
    output.add_argument("--output-svg", metavar="FILE", help="space-time diagram")
    output.add_argument("--output-html", metavar="FILE", help="page to explore (.html)")
    output.add_argument("--force", action="store_true", help="overwrite existing output files")
    every = parser.add_argument_group("all protocols (not with PROTOCOL and its options)")
    every.add_argument(
        "--all", action="store_true", help="check all protocols and variants against their promises"
    )
    every.add_argument(
        "--jobs", type=int, metavar="N", help="protocols checked in parallel; with --all"
    )
    every.add_argument(
        "--quick",
        action="store_true",
        help="use smaller searches, without the correct variants; with --all",
    )
    check_snapshots.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Check and print; return 0 if all promises are kept, else 1."""
    for name, least in (("members", 2), ("messages", 1), ("jobs", 1)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise LocalError(f"--{name} {value}: expected {least} or more")
    if not 0 < args.call_timeout < 86_400:
        raise LocalError(f"--call-timeout {args.call_timeout:g}: expected seconds above 0")
    if args.snapshots is not None:
        return check_snapshots.run(args)
    if args.all:
        return _check_all(args)
    if args.target is None:
        raise LocalError(
            "no protocol: expected a name, your own FILE.py:CLASS, --all, or --snapshots ALGORITHM"
        )
    options = split_options(args.options)
    outs = (args.output_scenario, args.output_svg, args.output_html)
    check_apart(*outs)
    check_page(args.output_html)
    for out in filter(None, outs):
        read = [args.target.rpartition(":")[0]] if ":" in args.target else []
        check_writable(Path(out), read, args.force)
    check_ending("--output-svg", args.output_svg, ".svg")
    verdict = run_check(
        args.target,
        variant=args.variant,
        options=options,
        members=args.members,
        messages=args.messages,
        thorough=args.size == LARGE,
        seed=args.seed,
        progress=_progress if sys.stderr.isatty() else None,
        limit_s=args.call_timeout,
    )
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    _write_counterexample(verdict, args)
    if args.json:
        print(json.dumps(verdict.as_dict(), indent=2))
    else:
        print("\n".join(report(verdict, args.variant)))
    return 0 if verdict.ok else 1


def _check_all(args: argparse.Namespace) -> int:
    asked, rows = cases(quick=args.quick), []
    width = max(len(case.name) for case in asked)
    if not args.json:
        print(f"{'protocol':{width}}  {'expected':8}  {'found':8}  {'states':>9}  {'seconds':>7}")
    for row in judge_all(asked, args.jobs, quick=args.quick):
        rows.append(row)
        if not args.json:
            print("\n".join(_format_row(row, width)), flush=True)
    wrong = sum(not row.ok for row in rows)
    if args.json:
        print(json.dumps({"ok": not wrong, "rows": [row.as_dict() for row in rows]}, indent=2))
    else:
        as_expected = "all as expected" if not wrong else f"{wrong} NOT as expected"
        within = ", within small bounds" if args.quick else ""
        print(f"\n{len(rows)} protocols and variants, {as_expected}{within}")
    return 1 if wrong else 0


def _format_row(row: CaseResult, width: int) -> Iterator[str]:
    case = row.case
    extent = "" if row.complete else "  (not every interleaving)"
    figures = f"{row.states:9,}  {row.seconds:7.1f}"
    yield f"{case.name:{width}}  {case.expected:8}  {row.found:8}  {figures}{extent}"
    if not row.ok:
        yield f"    NOT AS EXPECTED: {row.said or 'no broken promise was found'}"


def _write_counterexample(verdict: Verdict, args: argparse.Namespace) -> None:
    """Write the counterexample of the worst failure, and print the file names on stderr."""
    if not (args.output_scenario or args.output_svg or args.output_html):
        return
    shown = [failure for failure in verdict.failures if failure.actions]
    if not shown:
        print("antecede: no file was written: there is no counterexample", file=sys.stderr)
        return
    if args.output_scenario:
        path = Path(args.output_scenario)
        save_text(path, format_failure(shown[-1], path))
        print(f"Counterexample as a scenario: {args.output_scenario}", file=sys.stderr)
    if args.output_svg:
        save_text(Path(args.output_svg), draw_svg(from_run(run_of(shown[-1]))))
        print(f"Counterexample as SVG: {args.output_svg}", file=sys.stderr)
    if args.output_html:
        write_page_of(from_run(run_of(shown[-1])), shown[-1].sentence(), Path(args.output_html))
        print(f"Counterexample as a page: {args.output_html}", file=sys.stderr)


def _progress(phase: str, count: int) -> None:
    print(f"\r\x1b[K{phase}: {count:,}", end="", file=sys.stderr, flush=True)
