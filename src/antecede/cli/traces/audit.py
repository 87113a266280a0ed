"""`antecede audit PATH...`: causality violations, counts and bad data of a trace."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pyarrow as pa

from antecede.cli.engines import SPARK, add_engine_arguments, choose_engine, warn_shortage
from antecede.cli.files.output import check_apart, check_writable, draft_of
from antecede.cli.files.pages import check_page, write_page_of_files
from antecede.cli.files.quarantine import save_quarantine
from antecede.cli.option_rules import needs, refuse_unused
from antecede.cli.trace_options import add_read_arguments, check_one_source, read_options
from antecede.errors import InputError
from antecede.formatting import harmless
from antecede.tables.audit import PAIR_STEPS, Pairs, audit
from antecede.tables.kernels import RANKS
from antecede.tables.trace import SEQ
from antecede.tables.trace.user_tables import format_of

PAIRS: dict[str, Pairs] = {"exact": True, "estimate": "estimate", "none": False}


def _parse_number(text: str) -> int:
    """Return N of `--list-missing N`; a path may be there by mistake."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number: put the path first, or write --list-missing=20 {text}"
        ) from None


OPTION_RULES = (
    needs("force", "quarantine", "output_html", why="nothing is written"),
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
        help="source of order: each member's sequence numbers (--member, --seq)",
    )
    add("--json", action="store_true", help="print the report as JSON")
    add(
        "--quarantine",
        metavar="FILE",
        help="file for bad rows with reasons: .parquet, .csv, .jsonl; a folder with Spark",
    )
    add(
        "--list-missing",
        nargs="?",
        type=_parse_number,
        const=20,
        default=0,
        metavar="N",
        help="list the N missing causes with the most references (default without N: 20)",
    )
    add("--output-html", metavar="FILE", help="page to write with trace and findings (.html)")
    add("--force", action="store_true", help="overwrite existing output files")
    add(
        "--pairs",
        choices=tuple(PAIRS),
        default="exact",
        help="counts of ordered and concurrent pairs: exact, none, or estimate (an interval, if "
        "exact counts need more than --pair-steps) (default: exact)",
    )
    add(
        "--pair-steps",
        type=int,
        default=PAIR_STEPS,
        metavar="N",
        help=f"limit of exact counts, edges * events / 64 (default: {PAIR_STEPS:,})",
    )
    add(
        "--pair-ranks",
        type=int,
        default=RANKS,
        metavar="N",
        help=f"ranks per event of an estimate; {RANKS:,} give an interval of 8 %% (default: "
        f"{RANKS:,})",
    )


def run(args: argparse.Namespace) -> int:
    """Print the report; return 0."""
    aside = None if args.quarantine is None else Path(args.quarantine)
    if args.list_missing < 0:
        raise InputError(f"--list-missing {args.list_missing}: expected 0 or more")
    options = check_one_source(read_options(args))
    engine = choose_engine(args, args.paths, args.format, options)
    if args.output_html is not None:
        check_page(args.output_html)
        check_apart(args.output_html, args.quarantine)
        check_writable(Path(args.output_html), args.paths, args.force)
    if engine.name == SPARK:
        refuse_unused(
            args,
            "pages need --engine local; for large traces antecede view --tiles DIR --engine spark",
            unused=["output_html"],
        )
        refuse_unused(args, "sequence numbers need --engine local", unused=["by"])
        from antecede.cli.traces.on_spark.audit import run_on_spark

        return run_on_spark(args, options, engine, aside)
    if aside is not None:
        check_writable(aside, args.paths, args.force)
        format_of(aside)
    warn_shortage(engine)
    report = audit(
        args.paths,
        args.format,
        options,
        missing=args.list_missing,
        pairs=PAIRS[args.pairs],
        pair_steps=args.pair_steps,
        pair_ranks=args.pair_ranks,
        by=args.by,
    )
    if aside is not None:
        write_quarantine(report.quarantine, aside)
    if args.output_html is not None:
        write_page_of_files(args.paths, args.format, options, Path(args.output_html), args.by)
    if args.json:
        print(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        print(harmless(report.summary()))
        if args.output_html is not None:
            print(f"\nPage: {args.output_html}")
    if args.list_missing and report.missing_causes is None:
        print(
            "antecede: --list-missing lists declared causes; this trace has vector clocks, so no "
            "ids are listed",
            file=sys.stderr,
        )
    return 0


def write_quarantine(rows: pa.Table, path: Path) -> None:
    """Write bad rows in the format of the file's ending. Raise InputError."""
    with draft_of(path) as draft:
        save_quarantine(rows, draft, format_of(path))
