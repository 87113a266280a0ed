"""Status, id, time, ties and causes of rows as values, row by row.

Where no table holds all rows, ids and causes are (text, count) pairs. Equal text is an equal id,
because every column of keys has the common form of `tables.order.key_types`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.tables.order.keys import RowKeys, code, goes_by_value, keys_of, read_tie_columns
from antecede.tables.order.spec import OrderSpec, Status
from antecede.tables.order.table import times_of

pa: Any = pyarrow
pc: Any = pyarrow.compute


def control(table: pyarrow.Table, spec: OrderSpec) -> Any:
    """Return one struct a row: status, a, n, t, tie0, tie1, ..., causes.

    `a` and `n` are the identity within the group, null where the status is not ORDERED; `t` is the
    time in its own unit, or null; `causes` has (a, n, required), in the order given.
    """
    keys = keys_of(table, spec)
    good = keys.status == code(Status.ORDERED)
    width = len(keys.labels)
    own = np.where(good, keys.actor - keys.group * width, 0)
    time, timed, _ = times_of(table, spec)
    text = keys.labels.cast(pa.string())
    columns = {
        "status": pa.array(keys.status),
        "a": text.take(pa.array(own, mask=~good)),
        "n": pa.array(keys.count, mask=~good),
        "t": pa.array(time, mask=~timed),
        **make_ties(table, spec),
        "causes": _make_causes(keys, text),
    }
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def control_type(table: pyarrow.Table, spec: OrderSpec) -> Any:
    """Return the type of `control` for tables of this shape."""
    return control(table.slice(0, 0), spec).type


def make_ties(table: pyarrow.Table, spec: OrderSpec) -> dict[str, Any]:
    """Return the columns that break ties, by name; empty where `a` itself breaks them."""
    found = read_tie_columns(table, spec)
    if spec.id is not None and not goes_by_value(found[0].type):
        return {}
    return {
        f"tie{k}": column.cast(pa.string()) if pa.types.is_large_string(column.type) else column
        for k, column in enumerate(found)
    }


def tie_names(kind: Any) -> list[str]:
    """Return the fields of the metadata type that order rows of one time."""
    return [field.name for field in kind if field.name.startswith("tie")] or ["a"]


def _make_causes(keys: RowKeys, text: Any) -> Any:
    fields = [text.take(pa.array(keys.label)), pa.array(keys.cause_count), pa.array(keys.required)]
    entries = pa.StructArray.from_arrays(fields, ["a", "n", "required"])
    return pa.ListArray.from_arrays(pa.array(keys.offsets.astype(np.int32)), entries)
