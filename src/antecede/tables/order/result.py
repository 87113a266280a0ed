"""What `antecede order` writes: the user's own columns and what ordering adds to them.

A trace from a table comes out with all of its columns, names and types; other formats have none
of their own and come out in the schema. A column of the user's that is called like one of the
added ones keeps its name: the added one becomes `antecede_NAME`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.order.spec import OrderSpec
from antecede.tables.trace import NAMES

pa: Any = pyarrow  # its stubs know too few of the types that meet here
pc: Any = pyarrow.compute

TOPIC = "order_topic"
"""Column made for numbering within topics, dropped afterwards."""


class Result(NamedTuple):
    """Rows to be written, and the names of added columns that had to be changed."""

    table: pyarrow.Table
    renamed: dict[str, str]


def result_of(ordered: pyarrow.Table, own: pyarrow.Table | None, spec: OrderSpec) -> Result:
    """Return events in causal order with the columns that a user expects.

    `ordered` has the schema's columns and those of `spec.added`; `own` the user's columns by
    `file_order`. Raises InputError when a column is called like both names of an added one.
    """
    if own is None:
        return Result(ordered.select([*NAMES, *spec.written]), {})
    names = free_names(own.column_names, spec)
    rows: Any = own.take(ordered["file_order"])
    for name, written in names.items():
        rows = rows.append_column(ordered.schema.field(name).with_name(written), ordered[name])
    return Result(rows, {name: written for name, written in names.items() if name != written})


def free_names(taken: Sequence[str], spec: OrderSpec) -> dict[str, str]:
    """Return under which name each added column is written beside the user's.

    Raises InputError when a column is called like both names of an added one.
    """
    return {name: _free(name, taken) for name in spec.written}


def _free(name: str, taken: Sequence[str]) -> str:
    for candidate in (name, f"antecede_{name}".replace("antecede_antecede", "antecede_order")):
        if candidate not in taken:
            return candidate
    raise InputError(f"the table has columns {name} and {candidate}; rename one of them")


def within_topics(ordered: pyarrow.Table, spec: OrderSpec) -> tuple[pyarrow.Table, int]:
    """Return the rows with positions that count within each topic of each run, by topic.

    Causes hold across topics; only the numbering is apart. Also returns the number of topics.
    Raises InputError where an event has several topics: no one position could be right.
    """
    table: Any = ordered
    several = table.filter(pc.greater(pc.list_value_length(table["topics"]), 1))
    if several.num_rows:
        row = several.select(["id", "topics", "source", "line"]).slice(0, 1).to_pylist()[0]
        raise InputError(
            f"has {len(row['topics'])} topics, so no one position within a topic; leave out "
            "--topic, or name the one column that tells an event's topic",
            path=row["source"],
            line=row["line"],
            record_id=row["id"],
        )
    first = [topics[0] if topics else None for topics in table["topics"].to_pylist()]
    table = table.append_column(TOPIC, pa.array(first, pa.string()))
    order = [(name, "ascending") for name in ("run", TOPIC, spec.position)]
    table = table.sort_by(order)
    keys = [_codes(table[name]) for name in ("run", TOPIC)]
    new = np.ones(table.num_rows, np.bool_)
    new[1:] = (keys[0][1:] != keys[0][:-1]) | (keys[1][1:] != keys[1][:-1])
    starts = np.flatnonzero(new)
    place = np.arange(table.num_rows) - np.repeat(starts, np.diff([*starts, table.num_rows]))
    at = table.column_names.index(spec.position)
    table = table.set_column(at, table.schema.field(at), pa.array(place, pa.int64()))
    return table.drop_columns([TOPIC]), len(starts)


def _codes(column: Any) -> Any:
    codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices
    return codes.to_numpy(zero_copy_only=False)
