"""Conversion between Arrow tables and the inputs and outputs of the release kernel.

Rows are transported and stored as Arrow IPC streams. Identities are compared as text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from antecede.spark.order_columns import ROW_HASH
from antecede.tables.order import (
    STATUSES,
    OrderSpec,
    Status,
    code,
    keys_of,
    kind_of,
    list_added_fields,
    make_release_column,
    plain,
    times_of,
)
from antecede.tables.order.stream import (
    BAD,
    NO_TIME,
    NULL,
    ControlColumns,
    ReleasedCauses,
    ShardOutput,
    Text,
    make_empty_columns,
)

pa: Any = pyarrow
pc: Any = pyarrow.compute

_MAX_TIME = 2**62
_INVALID = {Status.NULL_KEY: NULL, Status.BAD_CLOCK: BAD}


def read_batch(table: pyarrow.Table, spec: OrderSpec) -> ControlColumns:
    """Read the control columns of new rows. Raises InputError for unsupported types."""
    if table.num_rows == 0:
        return make_empty_columns()
    keys = keys_of(table, spec)
    status = np.zeros(table.num_rows, np.uint8)
    for reason, outcome in _INVALID.items():
        status[keys.status == code(reason)] = outcome
    labels = keys.labels.cast(pa.string())
    name = keys.actor - keys.group * len(labels)
    row = np.repeat(np.arange(table.num_rows), np.diff(keys.offsets))
    edge = np.flatnonzero(keys.required & (status[row] == 0))
    first = np.zeros(table.num_rows + 1, np.int64)
    np.cumsum(np.bincount(row[edge], minlength=table.num_rows), out=first[1:])
    time, timed, _ = times_of(table, spec)
    counted = spec.id is None
    return ControlColumns(
        group=_read_group(table, spec),
        name=to_text(labels.take(pa.array(name, mask=status != 0))),
        number=keys.count if counted else np.zeros(table.num_rows, np.int64),
        time=np.where(timed, np.clip(time, -_MAX_TIME, _MAX_TIME), NO_TIME),
        digest=table.column(ROW_HASH).to_numpy(),
        status=status,
        first=first,
        cause_name=to_text(labels.take(pa.array(keys.label[edge]))),
        cause_count=keys.cause_count[edge] if counted else np.zeros(len(edge), np.int64),
    )


def _read_group(table: pyarrow.Table, spec: OrderSpec) -> Text:
    if spec.group is None:
        return Text(np.zeros(0, np.uint8), np.zeros(table.num_rows + 1, np.int64))
    column: Any = table.column(spec.group).combine_chunks()
    if isinstance(column, pyarrow.ChunkedArray):  # too long for one chunk
        column = pa.concat_arrays(column.chunks)
    return to_text(pc.fill_null(plain(column, f"column {spec.group}").cast(pa.string()), ""))


def to_text(array: Any) -> Text:
    """Return the bytes of an Arrow string array; null is empty."""
    if isinstance(array, pyarrow.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], pa.string())
    _, ends, data = array.buffers()
    where = np.frombuffer(ends, np.int32)[array.offset : array.offset + len(array) + 1]
    return Text(np.frombuffer(data or b"", np.uint8), where.astype(np.int64))


def append_added(
    rows: pyarrow.Table, out: ShardOutput, spec: OrderSpec, units_per_ms: float
) -> pyarrow.Table:
    """Append the columns of `spec.added` to the released rows."""
    aside = out.position < 0
    unknown = out.waited_units < 0
    waited: NDArray[np.float64] = out.waited_units / units_per_ms
    columns = [
        pa.array(out.position, mask=aside),
        _list_causes(out.waited, aside, spec),
        _list_causes(out.missing_causes, aside, spec),
        pa.array(waited, mask=unknown),
        make_release_column(out.released, out.released != NO_TIME, kind_of(rows, spec)),
        pa.array([str(status) for status in STATUSES]).take(pa.array(out.status - 1)),
    ]
    for field, column in zip(list_added_fields(spec, kind_of(rows, spec)), columns, strict=True):
        rows = rows.append_column(field, column)
    return rows


def _list_causes(
    causes: ReleasedCauses, has_no_position: NDArray[np.bool_], spec: OrderSpec
) -> Any:
    names = pa.StringArray.from_buffers(
        causes.name.size,
        pa.py_buffer(causes.name.ends.astype(np.int32)),
        pa.py_buffer(causes.name.data),
    )
    if spec.id is None:
        counts = pa.array(causes.number).cast(pa.string())
        names = pc.binary_join_element_wise(names, counts, ":")
    ends = pa.array(causes.first.astype(np.int32))
    return pa.ListArray.from_arrays(ends, names, mask=pa.array(has_no_position))


def to_bytes(table: pyarrow.Table) -> bytes:
    """Return a table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_bytes(parts: list[bytes]) -> pyarrow.Table:
    """Return Arrow IPC streams with equal columns as one table."""
    tables = [pa.ipc.open_stream(part).read_all() for part in parts]
    whole: pyarrow.Table = pa.concat_tables(tables)
    return whole
