"""Quarantine file beside a result: written with a mark, replaced only if it has the mark."""

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
"""Key in the metadata of a quarantine in Parquet."""


def check_quarantine(aside: Path, read: Iterable[str | Path], force: bool) -> None:
    """Raise InputError unless `aside` can be written; only a quarantine is replaced."""
    check_not_read(aside, read)
    check_free(aside, force)
    if (aside.exists() or aside.is_symlink()) and not is_quarantine(aside):
        raise InputError(
            "bad rows are written here, but this file is not a quarantine of an earlier run; move "
            "it or name another --output",
            path=str(aside),
        )


def save_quarantine(rows: pyarrow.Table, path: Path, format: str) -> None:
    """Write bad rows with the mark."""
    marked: Any = rows
    marked = marked.replace_schema_metadata({MARK: b"1"})
    user_tables.write_table(marked, path, format)


def is_quarantine(path: Path) -> bool:
    """Return whether `save_quarantine` wrote the file, as far as its format allows.

    CSV and JSON lines have no mark: their columns must be those of a quarantine.
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
