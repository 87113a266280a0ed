"""The columns that a user's table has, beside the events that are made of them.

Parquet keeps its types. CSV knows text alone. JSON values get the Arrow type that holds them;
where values of one column have none in common (text here, a number there), the column becomes
text, what is no text as JSON.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow

pa: Any = pyarrow  # its stubs know too few of the types that meet here


class Place(NamedTuple):
    """A row of a batch of Parquet."""

    batch: pyarrow.RecordBatch
    row: int


Own = Mapping[str, Any] | Place
"""A row as the user has it: a record of CSV or JSON, or a place in Parquet."""


def as_table(rows: Sequence[Own]) -> pyarrow.Table:
    """Return rows as a table of their own columns, in their order [n]."""
    parts = []
    for batch, run in itertools.groupby(rows, _batch_of):
        if batch is None:
            parts.append(_of_records([row for row in run if not isinstance(row, Place)]))
        else:
            where = [row.row for row in run if isinstance(row, Place)]
            parts.append(pa.table(batch.to_batch()).take(pa.array(where, pa.int64())))
    return together(parts)


class _Same:
    """A batch that is compared by what it is, not by what it holds."""

    def __init__(self, batch: pyarrow.RecordBatch) -> None:
        self._batch = batch

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other._batch is self._batch

    __hash__ = None  # type: ignore[assignment]

    def to_batch(self) -> pyarrow.RecordBatch:
        return self._batch


def _batch_of(row: Own) -> _Same | None:
    return _Same(row.batch) if isinstance(row, Place) else None


def _of_records(records: Sequence[Mapping[str, Any]]) -> pyarrow.Table:
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = [_column([record.get(name) for record in records]) for name in names]
    return _table(columns, names)


def _table(columns: list[Any], names: list[str]) -> pyarrow.Table:
    table: pyarrow.Table = pa.Table.from_arrays(columns, names=names)
    return table


def _column(values: list[Any]) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.encode(errors="backslashreplace").decode()
    return json.dumps(value, ensure_ascii=False, default=str)


def together(tables: Iterable[pyarrow.Table]) -> pyarrow.Table:
    """Return tables below each other; a column that one lacks is null there."""
    parts = [part for part in tables if part.num_columns]
    if not parts:
        return _table([], [])
    names = list(dict.fromkeys(name for part in parts for name in part.column_names))
    return _table([_joined(parts, name) for name in names], names)


def _joined(parts: Sequence[Any], name: str) -> Any:
    pieces = [
        part.select([name])
        if name in part.column_names
        else pa.table({name: pa.nulls(part.num_rows)})
        for part in parts
    ]
    try:
        return pa.concat_tables(pieces, promote_options="permissive").column(0)
    except pa.ArrowException:
        texts = [_text(value) for piece in pieces for value in piece.column(0).to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
