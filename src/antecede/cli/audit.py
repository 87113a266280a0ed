"""`antecede audit PATH... [--format F] [--json]`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from antecede.audit.engine import audit
from antecede.errors import InputError
from antecede.trace.arguments import add_read_arguments, read_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `antecede audit`."""
    add_read_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--quarantine", metavar="FILE", help="write bad rows with reasons (.parquet or .csv)"
    )


def run(args: argparse.Namespace) -> int:
    """Print the report; 0 when it could be made."""
    report = audit(args.paths, args.format, read_options(args))
    if args.quarantine:
        write_quarantine(report.quarantine, Path(args.quarantine))
    if args.json:
        print(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        print(report.summary())
    return 0


def write_quarantine(rows: pa.Table, path: Path) -> None:
    """Write bad rows as Parquet or CSV, by the file's ending; InputError if impossible."""
    try:
        if path.suffix == ".parquet":
            pyarrow.parquet.write_table(rows, path, compression="zstd")
        elif path.suffix == ".csv":
            pyarrow.csv.write_csv(rows, path)
        else:
            raise InputError("--quarantine FILE must end in .parquet or .csv", path=str(path))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", path=str(path)) from error
