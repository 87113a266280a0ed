"""Tables split into tasks for executors: a file, or row groups of one.

The first rows of a table determine its columns. For Parquet tables of many tasks, the driver reads
them once; a CSV or JSON-lines file is one task, which reads them itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet

from antecede.errors import FormatError
from antecede.tables.trace import (
    Detail,
    EventBatch,
    Reader,
    ReadOptions,
    Waiting,
    all_inputs,
    find_implied_format,
    reader,
)
from antecede.tables.trace.user_tables import (
    Columns,
    Piece,
    TableReader,
    blocks,
    details_of,
    first_blocks,
    kind_of,
    pieces,
)

TASK_BYTES = 64 << 20
"""Approximate uncompressed size of a Parquet task, bytes."""
BATCH_ROWS = 16_384


class TableTask(NamedTuple):
    """Part of a table that one task reads."""

    path: str
    """Path as given by the user."""
    file: str
    row_groups: tuple[int, ...] | None = None
    columns: Columns | None = None
    """Columns by the first rows of the table; None: the task determines them."""
    rows: int = 0
    """Number of rows, Parquet only."""
    reader: Reader | None = None
    """Reader that knows the other files of the trace, if a format has one."""


def tables_of(paths: Sequence[str | Path], format: str | None, options: ReadOptions) -> list[Path]:
    """Return the tables of paths, folders and patterns. Raises InputError and FormatError."""
    name = format or find_implied_format(options)
    found = all_inputs(paths, name)
    for path in found:
        chosen = reader.by_name(name) if name is not None else reader.choose(path, options)
        if chosen.name != TableReader.name:
            message = (
                f"the format {chosen.name} cannot be split: use --engine local, or convert it to a "
                "table with antecede convert --to parquet"
            )
            raise FormatError(message, path=str(path))
    return found


def work_of(tables: Sequence[Path], options: ReadOptions) -> list[TableTask]:
    """Return the tasks of tables, in order. Raises as reading does."""
    return [work for path in tables for work in _plan_table(path, options)]


def _plan_table(path: Path, options: ReadOptions) -> Iterator[TableTask]:
    parquet, _ = kind_of(path)
    if parquet is None:
        yield TableTask(str(path), str(path))
        return
    coming = itertools.chain.from_iterable(map(blocks.parquet, parquet))
    _, sample = first_blocks(coming)
    if not sample:
        return
    columns = Columns(sample, options, str(path))
    for part in parquet:
        for groups, rows in _group_row_groups(part):
            yield TableTask(str(path), str(part), groups, columns, rows)


def _group_row_groups(path: Path) -> Iterator[tuple[tuple[int, ...], int]]:
    file: Any = pyarrow.parquet.ParquetFile(str(path))
    with file:
        groups = [file.metadata.row_group(k) for k in range(file.metadata.num_row_groups)]
        sizes = [(group.total_byte_size, group.num_rows) for group in groups]
    together: list[int] = []
    size = rows = 0
    for number, (more, count) in enumerate(sizes):
        if together and size + more > TASK_BYTES:
            yield tuple(together), rows
            together, size, rows = [], 0, 0
        together.append(number)
        size += more
        rows += count
    if together:
        yield tuple(together), rows


def read_task(task: TableTask, options: ReadOptions) -> Iterator[EventBatch]:
    """Read the events of a task; `file_order` counts from 0 in it. Raises as reading does."""
    waiting = Waiting(BATCH_ROWS)
    for item in _read_items(task, options):
        yield from waiting.take(item)
    yield waiting.batch()


def _read_items(task: TableTask, options: ReadOptions) -> Iterator[Piece | Detail]:
    if task.columns is None:
        yield from TableReader().read_by_columns(Path(task.file), options, True)
        return
    columns = task.columns
    for block in blocks.parquet(Path(task.file), task.row_groups):
        if not columns.known.keys() >= {*block.batch.schema.names}:
            more = sorted({*block.batch.schema.names} - columns.known.keys())
            message = f"{task.file} has a column {more[0]} that the first rows lack"
            raise FormatError(
                f"{message}; use --engine local, or order this file separately", path=task.path
            )
        yield from pieces(block, columns, True)
    yield from details_of(columns, 0)
