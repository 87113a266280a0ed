"""The columns that a user's table has, beside the events that are made of them.

Parquet keeps its types. CSV knows text alone. JSON values get the Arrow type that gives each of
them back as it was; a column whose values have none (text here, a number there; records of
different keys; whole numbers beside broken ones) is kept as the JSON that it was, and marked
(`is_json`). JSON lines write its values as they came. For a format in which a column has one type
`settled` finds the nearest and tells what it changes.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow

from antecede.formatting import counted

pa: Any = pyarrow  # its stubs know too few of the types that meet here


MARK = b"antecede.own"
"""In the metadata of a column that was read from JSON or CSV: what it holds."""
VALUES, JSON = b"values", b"json"
_EXACT = {str, bool, int, float}
"""Types of JSON that Arrow gives back as they were, each in a column of its own."""
_NO_ARRAY = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""What Arrow raises for values that have no type in common."""


Own = Mapping[str, Any] | pyarrow.RecordBatch
"""Rows as the user has them: a record of CSV or JSON, or a batch of Parquet."""


def as_table(rows: Sequence[Own]) -> pyarrow.Table:
    """Return rows as a table of their own columns, in their order [n]."""
    parts: list[pyarrow.Table] = []
    for is_batch, run in itertools.groupby(rows, lambda row: isinstance(row, pyarrow.RecordBatch)):
        if is_batch:
            parts += [pa.Table.from_batches([batch]) for batch in run]
        else:
            parts.append(_of_records([row for row in run if isinstance(row, Mapping)]))
    return together(parts)


def marked(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Return a batch of text cells with its columns marked as what was read from CSV."""
    made: pyarrow.RecordBatch = pa.RecordBatch.from_arrays(
        batch.columns,
        schema=pa.schema([field.with_metadata({MARK: VALUES}) for field in batch.schema]),
    )
    return made


def is_json(field: Any) -> bool:
    """Tell whether a column holds the JSON text of its values."""
    return (field.metadata or {}).get(MARK) == JSON


class Changed(NamedTuple):
    """Values of one column that a format cannot hold as they are."""

    column: str
    values: int
    of: int
    """Values of the column that are not null."""
    into: str
    """What they become."""

    def words(self) -> str:
        """Return what happened as a sentence."""
        return (
            f"column {self.column}: {counted(self.values, 'value')} of {self.of:,} became "
            f"{self.into}, as the values of a column have one type there (JSON lines keep them)"
        )


def settled(table: pyarrow.Table, keeps_json: bool) -> tuple[pyarrow.Table, list[Changed]]:
    """Return a table for a format, and what of its columns that changes.

    `keeps_json`: values of one column may differ in type. Else columns of JSON get the Arrow type
    that holds all of their values, where there is one (records get all keys, whole numbers become
    broken ones), and are text otherwise.
    """
    found: list[Changed] = []
    if keeps_json:
        return table, found
    for at, field in enumerate(table.schema):
        if not is_json(field):
            continue
        column: Any = table.column(at)
        values = [None if text is None else json.loads(text) for text in column.to_pylist()]
        array, into = _nearest(values)
        changed = sum(
            not _same(value, now) for value, now in zip(values, array.to_pylist(), strict=True)
        )
        if changed:
            known = sum(value is not None for value in values)
            found.append(Changed(field.name, changed, known, into))
        table = table.set_column(at, field.name, array)
    return table, found


def _nearest(values: list[Any]) -> tuple[Any, str]:
    """Return values of JSON as one Arrow type, and what is made of those that had another."""
    try:
        array: Any = _array(values)
    except _NO_ARRAY:
        return pa.array([_text(value) for value in values], pa.string()), "text"
    kind = "records with keys added" if pa.types.is_nested(array.type) else str(array.type)
    return array, kind


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON: 1, 1.0 and true are not."""
    return json.dumps(one) == json.dumps(other)


def _of_records(records: Sequence[Mapping[str, Any]]) -> pyarrow.Table:
    names = list(dict.fromkeys(name for record in records for name in record))
    made = [_column([record.get(name) for record in records]) for name in names]
    fields = [
        pa.field(name, array.type, metadata={MARK: mark})
        for name, (array, mark) in zip(names, made, strict=True)
    ]
    table: pyarrow.Table = pa.Table.from_arrays(
        [array for array, _ in made], schema=pa.schema(fields)
    )
    return table


def _column(values: list[Any]) -> tuple[Any, bytes]:
    """Return values of JSON or CSV as an array, and whether it holds them or their JSON text."""
    kinds = {type(value) for value in values} - {type(None)}
    try:
        if len(kinds) > 1:
            return as_json(values), JSON
        array = _array(values)
        if kinds <= _EXACT or json.dumps(array.to_pylist()) == json.dumps(values):
            return array, VALUES
    except _NO_ARRAY:
        pass
    return as_json(values), JSON


def _array(values: list[Any]) -> Any:
    """Return values as an array. Raises one of `_NO_ARRAY` where no type can be stored."""
    array = pa.array(values)
    if _has_empty_record(array.type):
        raise ValueError("Parquet has no record without a field")
    return array


def _has_empty_record(kind: Any) -> bool:
    if pa.types.is_struct(kind):
        return not kind.num_fields or any(_has_empty_record(field.type) for field in kind)
    return pa.types.is_list(kind) and _has_empty_record(kind.value_type)


def as_json(values: Iterable[Any]) -> Any:
    """Return the JSON text of each value, null for null."""
    texts = (None if value is None else json.dumps(value, default=str) for value in values)
    return pa.array(texts, pa.string())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else value.encode(errors="backslashreplace").decode()
    return json.dumps(value, ensure_ascii=False, default=str)


def together(tables: Iterable[pyarrow.Table]) -> pyarrow.Table:
    """Return tables below each other; a column that one lacks is null there."""
    parts = [part for part in tables if part.num_columns]
    if not parts:
        nothing: pyarrow.Table = pa.table({})
        return nothing
    names = list(dict.fromkeys(name for part in parts for name in part.column_names))
    joined = [_joined(parts, name) for name in names]
    fields = [
        pa.field(name, column.type, metadata=None if mark is None else {MARK: mark})
        for name, (column, mark) in zip(names, joined, strict=True)
    ]
    table: pyarrow.Table = pa.Table.from_arrays(
        [column for column, _ in joined], schema=pa.schema(fields)
    )
    return table


def _joined(parts: Sequence[Any], name: str) -> tuple[Any, bytes | None]:
    """Return one column of all parts, and its mark: none where its values are those of Parquet."""
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
    arrays = [
        piece.column(0).cast(pa.string())
        if is_json(field)
        else as_json(piece.column(0).to_pylist())
        for piece, field in zip(pieces, fields, strict=True)
    ]
    chunks = [
        chunk
        for array in arrays
        for chunk in (array.chunks if isinstance(array, pa.ChunkedArray) else [array])
    ]
    return pa.chunked_array(chunks, pa.string()), JSON
