"""Parquet files of micro-batches, and Python subprocesses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write_parts(folder: Path, tables: Iterable[pa.Table], first: int = 0) -> None:
    """Write one file a table; Spark reads them in the order of their times of change."""
    folder.mkdir(exist_ok=True)
    for index, table in enumerate(tables, first):
        path = folder / f"part-{index:03}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + index,) * 2)


def run_python(code: str, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, **options
    )
