"""Columns of a trace as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.tables.false_causality.kernels.rule_terms import Words
from antecede.tables.false_causality.timestamps import MAX_TOPICS
from antecede.tables.kernels import Bools, Ints, encode_column

pc: Any = pyarrow.compute  # its stubs know too few kinds of arrays

TIMES = ("send_time", "commit_time", "author_time", "start_time")
"""Columns that can be the time of sending; the first that has any value is."""


def is_kind(table: pa.Table, kind: str) -> Bools:
    """Tell which rows are of a kind [rows]."""
    found: Bools = pc.fill_null(pc.equal(table["kind"], kind), False).to_numpy()
    return found


def note(notes: dict[str, int], reason: str, rows: Any) -> None:
    """Note how many rows, or which, are left out for a reason."""
    count = int(rows) if isinstance(rows, int) else int(np.count_nonzero(np.asarray(rows)))
    if count:
        notes[reason] = count


def by_name(column: Any) -> tuple[list[str], Ints]:
    """Return distinct values as text, sorted, and the number of each row's [rows]."""
    names, codes = encode_column(column, nulls=True)
    texts = [str(name) for name in names]
    order = sorted(range(len(texts)), key=texts.__getitem__)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return [texts[one] for one in order], place[codes]


def whole(column: Any) -> Ints:
    """Return a column without nulls as 64-bit integers."""
    found: Ints = column.to_numpy().astype(np.int64)
    return found


def times(table: pa.Table) -> Ints | None:
    """Return the times of sending in microseconds; None where one is missing."""
    for name in TIMES:
        if name in table.column_names and table[name].null_count < len(table):
            if table[name].null_count:
                return None
            return whole(table[name]) // 1000
    return None


def topic_bits(table: pa.Table) -> tuple[list[str], Words | None]:
    """Return the names of the topics, and those of each row as bits; None where there are none."""
    if "topics" not in table.column_names:
        return [], None
    lists = table["topics"].combine_chunks()
    if isinstance(lists, pa.ChunkedArray):
        return [], None
    names, code = encode_column(pc.list_flatten(lists), nulls=True)
    if not names or len(names) > MAX_TOPICS:
        return [], None
    bits = np.zeros(len(lists), np.uint64)
    owner = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    np.bitwise_or.at(bits, owner, np.uint64(1) << code.astype(np.uint64))
    return [str(name) for name in names], bits
