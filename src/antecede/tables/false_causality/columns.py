"""Columns of a trace as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from antecede.tables.false_causality.kernels.rule_terms import Words
from antecede.tables.false_causality.timestamps import MAX_TOPICS
from antecede.tables.kernels import Bools, Ints, encode_column

pc: Any = pyarrow.compute  # incomplete stubs

TIMES = ("send_time", "commit_time", "author_time", "start_time")
"""Columns of send times; the first one with a value is used."""


def mask_kind(table: pa.Table, kind: str) -> Bools:
    """Mask the rows of a kind [rows]."""
    found: Bools = pc.fill_null(pc.equal(table["kind"], kind), False).to_numpy()
    return found


def count_excluded(excluded: dict[str, int], reason: str, rows: Any) -> None:
    """Count rows, or a mask of rows, as excluded for a reason."""
    count = int(rows) if isinstance(rows, int) else int(np.count_nonzero(np.asarray(rows)))
    if count:
        excluded[reason] = count


def encode_sorted(column: Any) -> tuple[list[str], Ints]:
    """Return distinct values as sorted texts, and the code of each row [rows]."""
    names, codes = encode_column(column, nulls=True)
    texts = [str(name) for name in names]
    order = sorted(range(len(texts)), key=texts.__getitem__)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return [texts[one] for one in order], place[codes]


def to_integers(column: Any) -> Ints:
    """Return a column without nulls as 64-bit integers."""
    found: Ints = column.to_numpy().astype(np.int64)
    return found


def read_send_times(table: pa.Table) -> Ints | None:
    """Return the send times in microseconds; None if one is missing."""
    for name in TIMES:
        if name in table.column_names and table[name].null_count < len(table):
            if table[name].null_count:
                return None
            return to_integers(table[name]) // 1000
    return None


def encode_topics(table: pa.Table) -> tuple[list[str], Words | None]:
    """Return the names of the topics, and the topics of each row as bits; None without topics."""
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
