"""`antecede check`: the verdict on a protocol, for people or as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from antecede.cli.files.output import check_apart, check_writable, save_text
from antecede.cli.files.pages import check_page, write_page_of
from antecede.cli.option_rules import excludes, needs
from antecede.core.protocols import ENTRIES
from antecede.core.protocols.options import split_options
from antecede.errors import LocalError
from antecede.lab.check import CaseResult, Verdict, cases, judge_all, run_check
from antecede.lab.check.harness import LIMIT_S
from antecede.lab.check.scenario import report, run_of, script_of
from antecede.lab.diagram import draw_svg, from_run

OPTION_RULES = (
    needs("jobs quick", "all"),
    excludes(
        "target options variant members messages thorough seed save svg page force call_limit",
        "all",
        why="all protocols are checked within the default bounds",
    ),
    needs("force", "save", "svg", "page", why="nothing is written"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede check`."""
    add = parser.add_argument
    known = f"{', '.join(ENTRIES)}, or your own FILE.py:CLASS or FILE.py:FUNCTION"
    add("target", nargs="?", help=known)
    add("options", nargs="*", metavar="NAME=VALUE", help="options of its constructor (r=10 k=3)")
    add("--variant", default="", help="a variant of a built-in protocol")
    add("--members", type=int, help="members of the largest group explored")
    add("--messages", type=int, help="messages sent in the largest search")
    add("--thorough", action="store_true", help="larger searches, more runs")
    add("--all", action="store_true", help="every protocol and variant: is each as expected?")
    add("--jobs", type=int, metavar="N", help="how many protocols at a time")
    add(
        "--quick",
        action="store_true",
        help="smaller searches, and no variants that keep their promises",
    )
    add("--seed", type=int, default=0, help="seed of the adversarial network")
    add("--save", metavar="F", help="write the counterexample as a scenario")
    add("--svg", metavar="F", help="draw the counterexample")
    add("--page", metavar="F", help="show the counterexample as a page to explore (.html)")
    add("--force", action="store_true", help="replace these files where they exist")
    add(
        "--call-limit",
        type=float,
        default=LIMIT_S,
        metavar="S",
        help=f"seconds after which a call counts as one that never returns (default {LIMIT_S:g})",
    )
    add("--json", action="store_true", help="print the verdict as JSON")


def run(args: argparse.Namespace) -> int:
    """Judge and print; returns 0 when all promises are kept, 1 when not."""
    for name, least in (("members", 2), ("messages", 1), ("jobs", 1)):
        value = getattr(args, name)
        if value is not None and value < least:
            raise LocalError(f"--{name} is {value}; the least is {least}")
    if not 0 < args.call_limit < 86_400:
        raise LocalError(f"--call-limit is {args.call_limit:g}; it is more than 0 seconds")
    if args.all:
        return _everything(args)
    if args.target is None:
        raise LocalError("name a protocol, or your own FILE.py:CLASS; --all is all built-in ones")
    options = split_options(args.options)
    check_apart(args.save, args.svg, args.page)
    check_page(args.page)
    for out in filter(None, (args.save, args.svg, args.page)):
        read = [args.target.rpartition(":")[0]] if ":" in args.target else []
        check_writable(Path(out), read, args.force)
    verdict = run_check(
        args.target,
        variant=args.variant,
        options=options,
        members=args.members,
        messages=args.messages,
        thorough=args.thorough,
        seed=args.seed,
        progress=_progress if sys.stderr.isatty() else None,
        limit_s=args.call_limit,
    )
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    _keep(verdict, args)
    if args.json:
        print(json.dumps(verdict.as_dict(), indent=2))
    else:
        print("\n".join(report(verdict, args.variant)))
    return 0 if verdict.ok else 1


def _everything(args: argparse.Namespace) -> int:
    asked, rows = cases(quick=args.quick), []
    width = max(len(case.name) for case in asked)
    if not args.json:
        print(f"{'protocol':{width}}  {'expected':8}  {'found':8}  {'states':>9}  {'seconds':>7}")
    for row in judge_all(asked, args.jobs, quick=args.quick):
        rows.append(row)
        if not args.json:
            print("\n".join(_row(row, width)), flush=True)
    wrong = sum(not row.ok for row in rows)
    if args.json:
        print(json.dumps({"ok": not wrong, "rows": [row.as_dict() for row in rows]}, indent=2))
    else:
        as_expected = "all as expected" if not wrong else f"{wrong} NOT as expected"
        within = ", within small bounds" if args.quick else ""
        print(f"\n{len(rows)} protocols and variants, {as_expected}{within}")
    return 1 if wrong else 0


def _row(row: CaseResult, width: int) -> Iterator[str]:
    case = row.case
    extent = "" if row.complete else "  (not every interleaving)"
    figures = f"{row.states:9,}  {row.seconds:7.1f}"
    yield f"{case.name:{width}}  {case.expected:8}  {row.found:8}  {figures}{extent}"
    if not row.ok:
        yield f"    NOT AS EXPECTED: {row.said or 'no broken promise was found'}"


def _keep(verdict: Verdict, args: argparse.Namespace) -> None:
    """Write and draw the counterexample of the worst failure; on stderr, beside the verdict."""
    if not (args.save or args.svg or args.page):
        return
    shown = [failure for failure in verdict.failures if failure.actions]
    if not shown:
        print("antecede: nothing is written: there is no counterexample", file=sys.stderr)
        return
    if args.save:
        path = Path(args.save)
        save_text(path, script_of(shown[-1], path))
        print(f"The counterexample as a scenario: {args.save}", file=sys.stderr)
    if args.svg:
        save_text(Path(args.svg), draw_svg(from_run(run_of(shown[-1]))))
        print(f"The counterexample as SVG: {args.svg}", file=sys.stderr)
    if args.page:
        write_page_of(from_run(run_of(shown[-1])), shown[-1].sentence(), Path(args.page))
        print(f"The counterexample as a page: {args.page}", file=sys.stderr)


def _progress(what: str, count: int) -> None:
    print(f"\r\x1b[K{what}: {count:,}", end="", file=sys.stderr, flush=True)
