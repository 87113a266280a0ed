"""Parquet files of micro-batches."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def put(folder: Path, tables: Iterable[pa.Table], first: int = 0) -> None:
    """Write one file a table; Spark reads them in the order of their times of change."""
    folder.mkdir(exist_ok=True)
    for index, table in enumerate(tables, first):
        path = folder / f"part-{index:03}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + index,) * 2)
