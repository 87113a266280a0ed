"""Tables of events with the extra columns of the user's table.

A user's column with a name of the schema becomes `own_NAME`, because the two may differ. A table in
the schema has no such columns.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow

from antecede.errors import InputError
from antecede.tables.trace.arrow import Trace
from antecede.tables.trace.reader import ReadOptions
from antecede.tables.trace.schema import NAMES
from antecede.tables.trace.user_tables.chosen_columns import further_columns
from antecede.tables.trace.user_tables.extra_columns import is_json
from antecede.tables.trace.user_tables.reader import TableReader
from antecede.tables.trace.user_tables.writing import (
    JSON_LINES,
    PARQUET,
    Write,
    remove_marks,
    table_writer,
)

pa: Any = pyarrow  # its stubs know too few of the types that meet here
OWN = "own_"


class UnlikeError(Exception):
    """A later batch has other columns or types than the file."""


def with_own(events: Any, extra: pyarrow.Table | None) -> tuple[pyarrow.Table, list[str]]:
    """Return events with extra columns, and their names. Raise InputError if names collide."""
    table: Any = pa.Table.from_batches([events]) if hasattr(events, "serialize") else events
    names: list[str] = []
    if extra is None:
        return table, names
    native = set(NAMES) <= set(extra.column_names)
    for name in extra.column_names:
        if name in NAMES and native:
            continue
        written = OWN + name if name in NAMES else name
        if written in table.column_names or (written != name and written in extra.column_names):
            raise InputError(f"the table has columns {name} and {written}; rename one of them")
        column: Any = extra.column(name)
        table = table.append_column(extra.schema.field(name).with_name(written), column)
        names.append(written)
    return table, names


def rename_extra_columns(events: Any, extra: pyarrow.Table) -> pyarrow.Table:
    """Return only the extra columns, with the names of `with_own`."""
    table, names = with_own(events, extra)
    return table.select(names)


def with_further(trace: Trace, options: ReadOptions) -> Trace:
    """Return a trace whose extra columns exclude those read as columns of the schema."""
    if trace.own is None:
        return trace
    if trace.format != TableReader.name:
        return replace(trace, own=rename_extra_columns(trace.events, trace.own))
    return replace(trace, own=trace.own.select(further_columns(trace.own.column_names, options)))


class Appender:
    """Writer of batches of events to a file with the columns of the first batch."""

    def __init__(self, path: Path, format: str) -> None:
        self.rows = 0
        self.own: list[str] = []
        self._path, self._format = path, format
        self._open = ExitStack()
        self._write: Write | None = None
        self._schema: Any = None

    def __enter__(self) -> Appender:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, value, at)

    def add(self, events: Any, extra: pyarrow.Table | None) -> None:
        """Append a batch. Raise UnlikeError if it does not fit."""
        table, names = with_own(events, extra)
        if self._format != JSON_LINES and any(map(is_json, table.schema)):
            raise UnlikeError  # the type depends on later batches
        if self._write is None:
            self._schema, self.own = table.schema, names
            opened = table_writer(self._path, self._format, remove_marks(self._schema))
            self._write = self._open.enter_context(opened)
        fitted = _fit_to_schema(table, self._schema)
        self._write(fitted.cast(remove_marks(self._schema)) if self._format == PARQUET else fitted)
        self.rows += table.num_rows


def _fit_to_schema(table: Any, schema: Any) -> Any:
    if set(table.column_names) - set(schema.names):
        raise UnlikeError
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table.column(field.name)
        if is_json(field) != is_json(table.schema.field(field.name)):
            raise UnlikeError
        if column.type != field.type and not pa.types.is_null(column.type):
            raise UnlikeError
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=schema)
