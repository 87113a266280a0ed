"""The identity of an event among others: its id, within its run where there are several."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc


def keys(events: pa.Table) -> pa.Array[Any]:
    """Return the identity of each row: `id`, within its `run` where there are several [n]."""
    return in_run(events, flat(events, "id"), None)


def in_run(events: pa.Table, names: pa.Array[Any], rows: pa.Array[Any] | None) -> pa.Array[Any]:
    """Put the run before each name; `rows` tells the row of each name (None: its position)."""
    if "run" not in events.column_names or events["run"].null_count == len(events):
        return names
    run: Any = cast("Any", pc).fill_null(flat(events, "run"), "")
    run = run if rows is None else run.take(rows)
    length: Any = pc.utf8_length(run).cast(pa.string())  # so that no two pairs look alike
    return cast("pa.Array[Any]", pc.binary_join_element_wise(length, run, names, ":"))


def flat(events: pa.Table, column: str) -> pa.Array[Any]:
    """Return a column of text as one array, also where the table has no chunk at all."""
    chunks = events[column].combine_chunks()
    return pa.array([], pa.string()) if isinstance(chunks, pa.ChunkedArray) else chunks
