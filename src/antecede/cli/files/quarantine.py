"""The file of bad rows beside a result: written with a mark, replaced only where it bears one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from antecede.cli.files.output import check_free, check_not_read
from antecede.errors import InputError
from antecede.tables.trace import QUARANTINE_SCHEMA, user_tables

pa: Any = pyarrow
MARK = b"antecede.quarantine"
"""In the metadata of Parquet: this file holds what a command set aside."""


def check_aside(aside: Path, read: Iterable[str | Path], force: bool) -> None:
    """Raise InputError unless `aside` can be written; nobody else's file is ever replaced."""
    check_not_read(aside, read)
    check_free(aside, force)
    if (aside.exists() or aside.is_symlink()) and not is_quarantine(aside):
        raise InputError(
            "bad rows would be written here, but this file is no quarantine of an earlier run; "
            "move it away or name another OUT",
            path=str(aside),
        )


def save_quarantine(rows: pyarrow.Table, path: Path, format: str) -> None:
    """Write bad rows so that `is_quarantine` knows the file again."""
    marked: Any = rows
    marked = marked.replace_schema_metadata({MARK: b"1"})
    user_tables.write_table(marked, path, format)


def is_quarantine(path: Path) -> bool:
    """Tell whether a file was written by `save_quarantine`, as far as its format allows.

    CSV and JSON lines have no place for a mark: their columns must be the quarantine's.
    """
    if path.is_symlink() or not path.is_file() or path.suffix.lower() not in user_tables.ENDINGS:
        return False
    format = user_tables.format_of(path)
    try:
        if format == user_tables.PARQUET:
            return MARK in (pyarrow.parquet.read_schema(str(path)).metadata or {})
        with path.open(encoding="utf-8") as file:
            first = file.readline(1 << 20)
        if format == user_tables.JSON_LINES:
            return list(json.loads(first)) == QUARANTINE_SCHEMA.names
        return format == user_tables.CSV and first.strip().split(",") == [
            f'"{name}"' for name in QUARANTINE_SCHEMA.names
        ]
    except (OSError, ValueError, TypeError, pa.ArrowException):
        return False
