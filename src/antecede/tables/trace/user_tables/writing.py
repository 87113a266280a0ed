"""Writers of tables: Parquet, CSV, JSON lines.

Parquet keeps every type. CSV has lists, maps and records as JSON, which the reader of tables
parses. In both text formats times are ISO 8601 and bytes are base64. NaN and infinities are null in
JSON.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from antecede.errors import InputError
from antecede.tables.trace.user_tables.extra_columns import MARK as OWN_MARK
from antecede.tables.trace.user_tables.extra_columns import Changed, convert_json_columns, is_json

pa: Any = pyarrow  # its stubs know too few of the types that meet here
pc: Any = pyarrow.compute

PARQUET, CSV, JSON_LINES = "parquet", "csv", "jsonl"
ENDINGS = {".parquet": PARQUET, ".csv": CSV, ".jsonl": JSON_LINES, ".ndjson": JSON_LINES}
ROWS_AT_ONCE = 16_384

Write = Callable[[Any], None]
"""Function that writes a table or a batch of the declared columns."""


def format_of(out: str | Path) -> str:
    """Return the format of a file's ending. Raise InputError if it is unknown."""
    found = ENDINGS.get(Path(out).suffix.lower())
    if found is None:
        message = f"unknown file ending; choose from {', '.join(ENDINGS)}"
        raise InputError(message, path=str(out))
    return found


def write_table(table: pyarrow.Table, path: Path, format: str) -> list[Changed]:
    """Write a table; return changes of extra columns. Raise OSError on failure."""
    table, changed = convert_json_columns(table, format == JSON_LINES)
    if format == PARQUET:
        table = table.cast(remove_marks(table.schema))
    with table_writer(path, format, table.schema) as write:
        write(table)
    return changed


def remove_marks(schema: Any) -> Any:
    """Return a schema without the marks of extra columns."""
    fields = [
        field.with_metadata({k: v for k, v in (field.metadata or {}).items() if k != OWN_MARK})
        for field in schema
    ]
    return pa.schema(fields, schema.metadata)


@contextmanager
def table_writer(path: Path, format: str, schema: pyarrow.Schema) -> Iterator[Write]:
    """Yield a function that appends tables of a schema to a new file."""
    if format == PARQUET:
        with pyarrow.parquet.ParquetWriter(str(path), schema, compression="zstd") as parquet:
            yield lambda rows: parquet.write(_to_table(rows))
    elif format == CSV:
        flat = _flatten(schema.empty_table())
        with pyarrow.csv.CSVWriter(str(path), flat.schema) as writer:
            yield lambda rows: writer.write_table(_flatten(_to_table(rows)).cast(flat.schema))
    else:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            yield lambda rows: file.writelines(_to_json_lines(_to_table(rows)))


def _to_table(rows: Any) -> Any:
    return pa.Table.from_batches([rows]) if isinstance(rows, pyarrow.RecordBatch) else rows


def _to_json_lines(table: Any) -> Iterator[str]:
    as_json = [field.name for field in table.schema if is_json(field)]
    table = _map_columns(table, _times_to_text)
    simple = all(_is_simple(field.type) for field in table.schema)
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        for row in batch.to_pylist():
            row = row if simple else _to_json_value(row)
            for name in as_json:
                row[name] = None if row[name] is None else json.loads(row[name])
            line = _to_json(row) + "\n"
            # A lone surrogate is not UTF-8; Python's escape for it is also the escape of JSON.
            yield line.encode(errors="backslashreplace").decode() if as_json else line


def _flatten(table: Any) -> Any:
    return _map_columns(table, lambda column: _to_csv_cells(_times_to_text(column)))


def _map_columns(table: Any, change: Callable[[Any], Any]) -> Any:
    columns = [change(column) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _times_to_text(column: Any) -> Any:
    """Return times and categories as text, other columns unchanged."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        return column.cast(pa.string())
    return column


def _to_csv_cells(column: Any) -> Any:
    kind = column.type
    if pa.types.is_nested(kind):
        return _map_values(
            column, _to_json if _is_simple(kind) else lambda value: _to_json(_to_json_value(value))
        )
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _map_values(column, _to_json_value)
    if pa.types.is_duration(kind) or pa.types.is_fixed_size_binary(kind):
        return _map_values(column, lambda value: str(_to_json_value(value)))
    return column


def _map_values(column: Any, change: Callable[[Any], Any]) -> Any:
    texts = [None if value is None else change(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def _is_simple(kind: Any) -> bool:
    """Return whether `json` encodes all values of a type."""
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind):
        return _is_simple(kind.value_type)
    if types.is_struct(kind):
        return all(_is_simple(field.type) for field in kind)
    plain = (types.is_string, types.is_large_string, types.is_integer, types.is_boolean)
    return any(test(kind) for test in (*plain, types.is_floating, types.is_null))


def _to_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:  # NaN or infinity
        return json.dumps(_to_json_value(value), ensure_ascii=False, allow_nan=False)


def _to_json_value(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {str(key): _to_json_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        if value and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
            return {str(key): _to_json_value(one) for key, one in value}  # a map of Arrow
        return [_to_json_value(one) for one in value]
    return str(value)
