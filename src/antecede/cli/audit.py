"""`antecede audit PATH... [--format F] [--json]`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from antecede.audit.engine import audit
from antecede.cli.output import check_free, check_not_read, draft_of
from antecede.errors import InputError
from antecede.trace.arguments import add_read_arguments, read_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede audit`."""
    add_read_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--quarantine", metavar="FILE", help="write bad rows with reasons (.parquet or .csv)"
    )
    parser.add_argument("--force", action="store_true", help="replace that FILE where it exists")


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 when it could be made."""
    aside = None if args.quarantine is None else Path(args.quarantine)
    if aside is not None:
        _check_aside(aside, args.paths, args.force)
    report = audit(args.paths, args.format, read_options(args))
    if aside is not None:
        write_quarantine(report.quarantine, aside)
    if args.json:
        print(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        print(report.summary())
    return 0


def _check_aside(aside: Path, read: Sequence[str], force: bool) -> None:
    """Raise InputError before the work, not after it; what is read is never replaced."""
    if aside.suffix not in (".parquet", ".csv"):
        raise InputError("--quarantine FILE must end in .parquet or .csv", path=str(aside))
    check_not_read(aside, read)
    check_free(aside, force)


def write_quarantine(rows: pa.Table, path: Path) -> None:
    """Write bad rows as Parquet, or as CSV where the name ends so; InputError if impossible."""
    with draft_of(path) as draft:
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(rows, draft)
        else:
            pyarrow.parquet.write_table(rows, draft, compression="zstd")
