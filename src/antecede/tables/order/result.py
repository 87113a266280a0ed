"""Output of `antecede order`: the user's columns and the added ones.

A trace from a table keeps its columns; other formats come out in the schema.
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

pa: Any = pyarrow  # its stubs lack some of the types used here
pc: Any = pyarrow.compute

TOPIC = "order_topic"


class OrderResult(NamedTuple):
    """Rows to be written, and the names of added columns that had to be changed."""

    table: pyarrow.Table
    renamed: dict[str, str]


def result_of(
    ordered: pyarrow.Table, user_table: pyarrow.Table | None, spec: OrderSpec
) -> OrderResult:
    """Return events in causal order with the columns that a user expects.

    The user's table is by `file_order`. Raises InputError as `free_names`.
    """
    if user_table is None:
        return OrderResult(ordered.select([*NAMES, *spec.written]), {})
    names = free_names(user_table.column_names, spec)
    rows: Any = user_table.take(ordered["file_order"])
    for name, written in names.items():
        rows = rows.append_column(ordered.schema.field(name).with_name(written), ordered[name])
    return OrderResult(rows, {name: written for name, written in names.items() if name != written})


def free_names(user_columns: Sequence[str], spec: OrderSpec) -> dict[str, str]:
    """Return the name of each added column beside the user's: its own, or `antecede_NAME`.

    Raises InputError when both are taken.
    """
    names = {}
    for name in spec.written:
        other = f"antecede_{name}".replace("antecede_antecede", "antecede_order")
        if name in user_columns and other in user_columns:
            raise InputError(f"the table has columns {name} and {other}; rename one of them")
        names[name] = other if name in user_columns else name
    return names


def within_topics(ordered: pyarrow.Table, spec: OrderSpec) -> tuple[pyarrow.Table, int]:
    """Return the rows numbered within each topic of each run, and the number of topics.

    Causes hold across topics. Raises InputError for an event with several topics.
    """
    table: Any = ordered
    several = table.filter(pc.greater(pc.list_value_length(table["topics"]), 1))
    if several.num_rows:
        row = several.select(["id", "topics", "source", "line"]).slice(0, 1).to_pylist()[0]
        raise InputError(
            f"has {len(row['topics'])} topics, but positions within a topic need one: leave out "
            "--topic, or name one column with the topic",
            path=row["source"],
            line=row["line"],
            record_id=row["id"],
        )
    first = [topics[0] if topics else None for topics in table["topics"].to_pylist()]
    table = table.append_column(TOPIC, pa.array(first, pa.string()))
    by = ("run", TOPIC)
    table = table.sort_by([(name, "ascending") for name in (*by, spec.position)])
    keys = np.stack([_encode_column(table[name]) for name in by])
    new = np.ones(table.num_rows, np.bool_)
    new[1:] = (np.diff(keys) != 0).any(axis=0)
    starts = np.flatnonzero(new)
    place = np.arange(table.num_rows) - np.repeat(starts, np.diff([*starts, table.num_rows]))
    at = table.column_names.index(spec.position)
    table = table.set_column(at, table.schema.field(at), pa.array(place, pa.int64()))
    return table.drop_columns([TOPIC]), len(starts)


def _encode_column(column: Any) -> Any:
    codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices
    return codes.to_numpy(zero_copy_only=False)
