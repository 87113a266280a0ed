"""Columns of a stream over its restarts: additions, rejections, digests of earlier contents.

A restart may add columns, or fields inside structs, and change their order and nullability. A
removed or retyped column is rejected; time zones of timestamps and widths of offsets do not count.
Rows held from before get null in added columns. A row's digest covers the content columns of its
own time, so an apparent conflict is compared again, by the columns that both rows have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow
from numpy.typing import NDArray

from antecede.errors import InputError
from antecede.tables.order.row_hash import content_digests, digests
from antecede.tables.order.stream.storage.blobs import Arrays, ShardParts

pa: Any = pyarrow
PART = "columns"
_SQL_NAMES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.timestamp("us", "UTC"): "timestamp",
}


class StreamColumns(NamedTuple):
    """Columns of the rows of a stream, as started now; `content` in the order of the digest."""

    rows: pyarrow.Schema
    content: tuple[str, ...]
    has_null_marks: bool = True


class ColumnHistory:
    """Columns of the last start of a stream, and of each time at which digests were computed."""

    def __init__(self, now: StreamColumns | None) -> None:
        self.now = now
        self.last: pyarrow.Schema | None = None
        self.contents: list[pyarrow.Schema] = []
        self._digest = b""

    def load(
        self, parts: ShardParts, head: Arrays, held: Callable[[], pyarrow.Schema | None]
    ) -> None:
        """Read the history, and compare the current columns. Raises InputError for removed ones."""
        if PART in head:
            self._digest = head[PART].tobytes()
            self.last, *self.contents = unpack_schemas(parts.open(PART, self._digest))
        elif self.now is not None and (schema := held()) is not None:
            self.last = schema
            known = [name for name in self.now.content if name in schema.names]
            self.contents = [_normalize_schema(schema, known)]
        if self.now is not None and self.last is not None:
            check_columns(self.last, self.now.rows)
            check_nulls(self.last, self.now.rows)

    @property
    def has_changed(self) -> bool:
        """Return whether the state lacks the current columns."""
        return self.now is not None and self.last != self.now.rows

    def dump(self, parts: ShardParts) -> dict[str, NDArray[Any]]:
        """Write the history if it changed; return its entry for the head of the shard."""
        if self.now is not None:
            content = _normalize_schema(self.now.rows, self.now.content)
            is_new = content not in self.contents
            if is_new or self.last != self.now.rows:
                self.contents += [content] if is_new else []
                self.last = self.now.rows
                schemas = enumerate([self.last, *self.contents])
                arrays = {
                    str(k): np.frombuffer(s.serialize().to_pybytes(), np.uint8) for k, s in schemas
                }
                self._digest, _ = parts.save(PART, arrays)
        return {PART: np.frombuffer(self._digest, np.uint8)} if self._digest else {}

    def compute_earlier_digests(self, rows: pyarrow.Table) -> list[NDArray[np.int64]]:
        """Return the digests of rows by the content columns of each earlier time."""
        if self.now is None:
            return []
        present = _normalize_schema(self.now.rows, self.now.content)
        digests_of = content_digests if self.now.has_null_marks else digests
        return [
            digests_of(_cast_table(rows.select(content.names), content))
            for content in self.contents
            if content != present
        ]


def unpack_schemas(arrays: Arrays) -> list[pyarrow.Schema]:
    """Return the schemas in the blob of columns: all columns, then the contents."""
    return [pa.ipc.read_schema(pa.py_buffer(arrays[str(k)])) for k in range(len(arrays))]


def concat_rows(tables: list[pyarrow.Table], now: StreamColumns | None) -> pyarrow.Table:
    """Return the rows of tables as one, null in absent columns; raise as `check_columns`."""
    wanted = tables[-1].schema if now is None else now.rows
    is_same = all(table.schema == tables[0].schema for table in tables)
    if not (is_same and _has_same_columns(tables[0].schema, wanted)):
        for table in tables:
            check_columns(table.schema, wanted)
        tables = [_cast_table(table, wanted) for table in tables]
    whole: pyarrow.Table = pa.concat_tables(tables)
    return whole


def _has_same_columns(left: pyarrow.Schema, right: pyarrow.Schema) -> bool:
    return left.names == right.names and _normalize_schema(left) == _normalize_schema(right)


def check_columns(before: pyarrow.Schema, now: pyarrow.Schema) -> None:
    """Raise InputError that names each removed or retyped column and field."""
    found = _find_changes(_get_fields(before), _get_fields(now), "")
    if found:
        raise InputError(
            f"the rows in this checkpoint have other columns than the stream: {'; '.join(found)}; "
            "or start from a new checkpoint. Columns may be added, not removed or retyped"
        )


def check_nulls(before: pyarrow.Schema, now: pyarrow.Schema) -> None:
    """Raise InputError where earlier rows may have null and the stream has NOT NULL."""
    found = _find_not_null(pa.struct(list(before)), pa.struct(list(now)), "")
    if found:
        raise InputError(
            f"column {', '.join(found)} is NOT NULL, and rows in this checkpoint may have null "
            "there: give order(checkpoint=) the folder of the checkpoint, which makes it "
            "nullable, or make it nullable yourself"
        )


def normalize_type(kind: Any) -> Any:
    """Return a type without time zones, widths of offsets, nullability and metadata."""
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([(field.name, normalize_type(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(normalize_type(kind.key_type), normalize_type(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(normalize_type(kind.value_type))
    if types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if types.is_large_string(kind):
        return pa.string()
    return pa.binary() if types.is_large_binary(kind) else kind


def type_to_sql(kind: Any) -> str:
    """Return Spark's name of a type."""
    kind = normalize_type(kind)
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{type_to_sql(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{type_to_sql(kind.key_type)},{type_to_sql(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{type_to_sql(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _SQL_NAMES.get(kind, str(kind))


def _normalize_schema(schema: pyarrow.Schema, names: Any = None) -> pyarrow.Schema:
    chosen = schema.names if names is None else names
    made: pyarrow.Schema = pa.schema(
        [(name, normalize_type(schema.field(name).type)) for name in chosen]
    )
    return made


def _cast_table(table: pyarrow.Table, schema: pyarrow.Schema) -> pyarrow.Table:
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            column: Any = table.column(field.name)
            columns.append(column if column.type == field.type else column.cast(field.type))
    whole: pyarrow.Table = pa.table(columns, schema=schema)
    return whole


def _get_fields(schema: Any) -> dict[str, Any]:
    return {field.name: field.type for field in schema}


def _find_changes(before: dict[str, Any], now: dict[str, Any], inside: str) -> list[str]:
    found = []
    alike = {name.lower(): name for name in now if name not in before}
    for name, kind in before.items():
        path = f"{inside}{name}"
        if name in now:
            found += _find_type_changes(kind, now[name], path)
        elif name.lower() in alike:
            found.append(f"{path} is now {inside}{alike[name.lower()]}: rename it back")
        elif inside:
            found.append(
                f"field {path} ({type_to_sql(kind)}) is gone: add it back, null if unknown"
            )
        else:
            remedy = f'withColumn("{name}", lit(None).cast("{type_to_sql(kind)}"))'
            found.append(f"column {path} ({type_to_sql(kind)}) is gone: add {remedy}")
    return found


def _find_type_changes(before: Any, now: Any, path: str) -> list[str]:
    types = pa.types
    before, now = normalize_type(before), normalize_type(now)
    if before == now:
        return []
    if types.is_struct(before) and types.is_struct(now):
        return _find_changes(_get_fields(before), _get_fields(now), f"{path}.")
    if types.is_map(before) and types.is_map(now) and before.key_type == now.key_type:
        return _find_type_changes(before.item_type, now.item_type, f"{path}.value")
    if types.is_list(before) and types.is_list(now):
        return _find_type_changes(before.value_type, now.value_type, f"{path}.element")
    return [f"{path} was {type_to_sql(before)}, is {type_to_sql(now)}: cast it back"]


def _find_not_null(before: Any, now: Any, path: str) -> list[str]:
    """Return the paths that are NOT NULL now, and were nullable or absent before."""
    types = pa.types
    if types.is_struct(before) and types.is_struct(now):
        old = {field.name: field for field in before}
        found = []
        for field in now:
            place = f"{path}.{field.name}" if path else field.name
            was = old.get(field.name)
            if not field.nullable and (was is None or was.nullable):
                found.append(place)
            elif was is not None:
                found += _find_not_null(was.type, field.type, place)
        return found
    if types.is_map(before) and types.is_map(now):
        return _find_not_null(pa.struct([before.item_field]), pa.struct([now.item_field]), path)
    if types.is_list(before) and types.is_list(now):
        was, field = before.value_field, now.value_field.with_name(before.value_field.name)
        return _find_not_null(pa.struct([was]), pa.struct([field]), path)
    return []
