"""`antecede audit PATH... [--format F] [--json]`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pyarrow as pa

from antecede.cli.engines import SPARK, add_engine_arguments, chosen_engine, say_shortage
from antecede.cli.files.output import check_apart, check_writable, draft_of
from antecede.cli.files.pages import check_page, write_page_of_files
from antecede.cli.files.quarantine import save_quarantine
from antecede.cli.option_rules import needs, refuse_unused
from antecede.cli.trace_options import add_read_arguments, one_way, read_options
from antecede.errors import InputError
from antecede.formatting import harmless
from antecede.tables.audit import PAIR_STEPS, Pairs, audit
from antecede.tables.kernels import RANKS
from antecede.tables.trace import SEQ
from antecede.tables.trace.user_tables import format_of

PAIRS: dict[str, Pairs] = {"exact": True, "estimate": "estimate", "none": False}


def _number(text: str) -> int:
    """Read N of `--missing N`; the path may stand there by mistake."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number: give the path first, or --missing=20 {text}"
        ) from None


OPTION_RULES = (
    needs("force", "quarantine", "page", why="nothing is written"),
    needs("pair_steps pair_ranks", pairs="estimate"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede audit`."""
    add = parser.add_argument
    add_read_arguments(parser, group=True)
    add_engine_arguments(parser)
    add(
        "--by",
        choices=(SEQ,),
        help="count the program order of each member, told by its own numbers (--member, --seq)",
    )
    add("--json", action="store_true", help="print the report as JSON")
    add(
        "--quarantine",
        metavar="FILE",
        help="write bad rows with reasons (.parquet, .csv or .jsonl); with Spark a folder of parts",
    )
    add(
        "--missing",
        nargs="?",
        type=_number,
        const=20,
        default=0,
        metavar="N",
        help="list ids that are named as causes and are nowhere, the N most named (20)",
    )
    add("--page", metavar="FILE", help="write it and its findings as a page to explore (.html)")
    add("--force", action="store_true", help="replace a FILE where it exists")
    add(
        "--pairs",
        choices=tuple(PAIRS),
        default="exact",
        help="ordered and concurrent pairs: exact (default); estimate them, with an interval, "
        "where declared causes make exact counts take more than --pair-steps; or none",
    )
    add(
        "--pair-steps",
        type=int,
        default=PAIR_STEPS,
        metavar="N",
        help=f"steps, edges times events / 64, up to which pairs are exact ({PAIR_STEPS:,})",
    )
    add(
        "--pair-ranks",
        type=int,
        default=RANKS,
        metavar="K",
        help=f"ranks an event of an estimate: the interval shrinks with their root ({RANKS:,}: 8 "
        "percent)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 when it could be made."""
    aside = None if args.quarantine is None else Path(args.quarantine)
    if args.missing < 0:
        raise InputError(f"--missing {args.missing}: a number of ids, 0 or more")
    options = one_way(read_options(args))
    engine = chosen_engine(args, args.paths, args.format, options)
    if args.page is not None:
        check_page(args.page)
        check_apart(args.page, args.quarantine)
        check_writable(Path(args.page), args.paths, args.force)
    if engine.name == SPARK:
        refuse_unused(
            args, "Spark makes pieces: antecede view --tiles DIR --engine spark", unused=["page"]
        )
        refuse_unused(
            args, "with Spark no numbers are gone by (--engine local does)", unused=["by"]
        )
        from antecede.cli.traces.on_spark.audit import run_on_spark

        return run_on_spark(args, options, engine, aside)
    if aside is not None:
        check_writable(aside, args.paths, args.force)
        format_of(aside)
    say_shortage(engine)
    report = audit(
        args.paths,
        args.format,
        options,
        missing=args.missing,
        pairs=PAIRS[args.pairs],
        pair_steps=args.pair_steps,
        pair_ranks=args.pair_ranks,
        by=args.by,
    )
    if aside is not None:
        write_quarantine(report.quarantine, aside)
    if args.page is not None:
        write_page_of_files(args.paths, args.format, options, Path(args.page), args.by)
    if args.json:
        print(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        print(harmless(report.summary()))
        if args.page is not None:
            print(f"\nThe page: {args.page}")
    if args.missing and report.missing_causes is None:
        print(
            "antecede: --missing lists declared causes; this trace has vector clocks, so no ids "
            "are listed",
            file=sys.stderr,
        )
    return 0


def write_quarantine(rows: pa.Table, path: Path) -> None:
    """Write bad rows in the format that the name tells; InputError if impossible."""
    with draft_of(path) as draft:
        save_quarantine(rows, draft, format_of(path))
