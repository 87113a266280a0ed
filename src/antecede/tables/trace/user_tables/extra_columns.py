"""Extra columns of the user's table, kept beside the events.

Parquet keeps its types; CSV has text. JSON values get the Arrow type that returns them unchanged.
Values without such a type (text and numbers; records of different keys) are kept as JSON text and
marked (`is_json`). `convert_json_columns` converts them for formats with one type per column.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow

from antecede.formatting import pluralize

pa: Any = pyarrow  # its stubs know too few of the types that meet here

MARK = b"antecede.own"
"""Metadata key of columns from JSON or CSV, with the value `VALUES` or `JSON`."""
VALUES, JSON = b"values", b"json"
_EXACT = {str, bool, int, float}
"""Types of JSON that Arrow returns unchanged."""
_ARROW_ERRORS = (pa.ArrowException, OverflowError, TypeError, ValueError)

ExtraRows = Mapping[str, Any] | pyarrow.RecordBatch
"""Rows of the user: a record of CSV or JSON, or a batch of Parquet."""


def rows_to_table(rows: Sequence[ExtraRows]) -> pyarrow.Table:
    """Return rows as a table of extra columns [n]."""
    parts: list[pyarrow.Table] = []
    for is_batch, run in itertools.groupby(rows, lambda row: isinstance(row, pyarrow.RecordBatch)):
        if is_batch:
            parts += [pa.Table.from_batches([batch]) for batch in run]
        else:
            parts.append(_records_to_table([row for row in run if isinstance(row, Mapping)]))
    return together(parts)


def mark_csv_columns(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Return a batch of CSV cells with marked columns."""
    made: pyarrow.RecordBatch = pa.RecordBatch.from_arrays(
        batch.columns,
        schema=pa.schema([field.with_metadata({MARK: VALUES}) for field in batch.schema]),
    )
    return made


def is_json(field: Any) -> bool:
    """Return whether a column has the JSON text of its values."""
    return (field.metadata or {}).get(MARK) == JSON


class Changed(NamedTuple):
    """Number of values of a column that a format changes."""

    column: str
    changed: int
    non_null: int
    """Number of values that are not null."""
    result: str
    """Type of the result."""

    def words(self) -> str:
        """Return the change as a text."""
        return (
            f"column {self.column}: {pluralize(self.changed, 'value')} of {self.non_null:,} became "
            f"{self.result}, because a column has one type (JSON lines keep the values)"
        )


def convert_json_columns(
    table: pyarrow.Table, keeps_json: bool
) -> tuple[pyarrow.Table, list[Changed]]:
    """Return a table for a format, and the changes of its columns.

    `keeps_json`: the format allows several types in a column. Otherwise columns of JSON get a
    common Arrow type if possible (records get all keys, integers become floats), else text.
    """
    found: list[Changed] = []
    if keeps_json:
        return table, found
    for at, field in enumerate(table.schema):
        if not is_json(field):
            continue
        column: Any = table.column(at)
        values = [None if text is None else json.loads(text) for text in column.to_pylist()]
        array, into = _find_nearest_type(values)
        changed = sum(
            not _is_same_json(value, now)
            for value, now in zip(values, array.to_pylist(), strict=True)
        )
        if changed:
            known = sum(value is not None for value in values)
            found.append(Changed(field.name, changed, known, into))
        table = table.set_column(at, field.name, array)
    return table, found


def _find_nearest_type(values: list[Any]) -> tuple[Any, str]:
    """Return JSON values as an Arrow array, and the name of their new type."""
    try:
        array: Any = _make_array(values)
    except _ARROW_ERRORS:
        return pa.array([_to_text(value) for value in values], pa.string()), "text"
    kind = "records with keys added" if pa.types.is_nested(array.type) else str(array.type)
    return array, kind


def _is_same_json(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON; 1, 1.0 and true differ."""
    return json.dumps(one) == json.dumps(other)


def _records_to_table(records: Sequence[Mapping[str, Any]]) -> pyarrow.Table:
    names = list(dict.fromkeys(name for record in records for name in record))
    return _make_marked_table(
        {name: _make_column([record.get(name) for record in records]) for name in names}
    )


def _make_marked_table(columns: Mapping[str, tuple[Any, bytes | None]]) -> pyarrow.Table:
    fields = [
        pa.field(name, column.type, metadata=None if mark is None else {MARK: mark})
        for name, (column, mark) in columns.items()
    ]
    arrays = [column for column, _ in columns.values()]
    table: pyarrow.Table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    return table


def _make_column(values: list[Any]) -> tuple[Any, bytes]:
    """Return an array of values and `VALUES`, or of their JSON text and `JSON`."""
    kinds = {type(value) for value in values} - {type(None)}
    try:
        if len(kinds) > 1:
            return as_json(values), JSON
        array = _make_array(values)
        if kinds <= _EXACT or json.dumps(array.to_pylist()) == json.dumps(values):
            return array, VALUES
    except _ARROW_ERRORS:
        pass
    return as_json(values), JSON


def _make_array(values: list[Any]) -> Any:
    """Return values as an array. Raise one of `_ARROW_ERRORS` without a common type."""
    array = pa.array(values)
    if _has_empty_record(array.type):
        raise ValueError("Parquet does not support records without a field")
    return array


def _has_empty_record(kind: Any) -> bool:
    if pa.types.is_struct(kind):
        return not kind.num_fields or any(_has_empty_record(field.type) for field in kind)
    return pa.types.is_list(kind) and _has_empty_record(kind.value_type)


def as_json(values: Iterable[Any]) -> Any:
    """Return the JSON text of each value, null for null."""
    texts = (None if value is None else json.dumps(value, default=str) for value in values)
    return pa.array(texts, pa.string())


def _to_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.encode(errors="backslashreplace").decode()
    return json.dumps(value, ensure_ascii=False, default=str)


def together(tables: Iterable[pyarrow.Table]) -> pyarrow.Table:
    """Return concatenated tables; absent columns are null."""
    parts = [part for part in tables if part.num_columns]
    names = dict.fromkeys(name for part in parts for name in part.column_names)
    return _make_marked_table({name: _concat_column(parts, name) for name in names})


def _concat_column(parts: Sequence[Any], name: str) -> tuple[Any, bytes | None]:
    """Return a column of all parts, and its mark (None: Parquet)."""
    pieces = [
        part.select([name])
        if name in part.column_names
        else pa.table({name: pa.nulls(part.num_rows)})
        for part in parts
    ]
    fields = [piece.schema.field(0) for piece in pieces]
    marks = {
        (field.metadata or {}).get(MARK) for field in fields if not pa.types.is_null(field.type)
    }
    types = {str(field.type) for field in fields if not pa.types.is_null(field.type)}
    if JSON not in marks and (len(types) < 2 or VALUES not in marks):
        try:
            whole = pa.concat_tables(pieces, promote_options="permissive").column(0)
        except pa.ArrowException:
            pass
        else:
            return whole, VALUES if marks == {VALUES} else None
    chunks: list[Any] = []
    for piece, field in zip(pieces, fields, strict=True):
        column = piece.column(0)
        texts = column.cast(pa.string()).chunks if is_json(field) else None
        chunks += texts or [as_json(column.to_pylist())]
    return pa.chunked_array(chunks, pa.string()), JSON
