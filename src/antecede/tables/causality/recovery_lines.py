"""Recovery line: the latest consistent set of checkpoints of a table of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.causality.cuts import check_columns, cut_spec, process_codes, read_column
from antecede.tables.causality.kernels.recovery_lines import find_recovery_line
from antecede.tables.causality.spec import refuse_fixed
from antecede.tables.kernels import Bools, Ints
from antecede.tables.order import Array, Digests, OrderSpec, RowGraph, graph_of, normalize_ids
from antecede.tables.trace import describe_unsupported

pa: Any = pyarrow
pc: Any = pyarrow.compute
LINE = ("line", "kept", "undone", "discarded")  # columns of `recovery_line`


def recovery_line(
    table: pyarrow.Table,
    checkpoints: str,
    *,
    process: str | None = None,
    at: str,
    id: str | None = None,
    after: str | Sequence[str] = (),
    clock: str | None = None,
    member: str | None = None,
    group: str | None = None,
    time: str | None = None,
) -> pyarrow.Table:
    """Return the latest consistent set of checkpoints, from which each process can continue.

    `checkpoints`: the boolean column that marks them. A checkpoint contains its process's events up
    to its own value of `at`, including itself. The line is the greatest consistent cut made of
    checkpoints alone. Events after the last checkpoints are lost, and so is every checkpoint with a
    lost event in its past (the domino effect, Randell 1975). Missing causes do not affect the line.

    The result has one row a process (and group): `line` (the checkpoint's `at`; null: the
    beginning), `kept` and `undone` (events), and `discarded` (lost checkpoints). Other arguments as
    for `check_cut`. Raises InputError as there, for a null process or `at` of an event, and for a
    column of checkpoints that is not boolean.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import recovery_line
    >>> log = pa.table({"id": ["p", "s", "r", "q"], "after": [None, "p", "s", "r"],
    ...                 "host": ["a", "a", "b", "b"], "n": [1, 2, 1, 2],
    ...                 "saved": [True, False, False, True]})
    >>> line = recovery_line(log, "saved", process="host", at="n", id="id", after="after")
    >>> line.sort_by("host").select(["host", "line", "undone"]).to_pylist()
    [{'host': 'a', 'line': 1, 'undone': 1}, {'host': 'b', 'line': None, 'undone': 2}]
    """
    ways = {"id": id, "after": after, "clock": clock, "member": member, "group": group}
    spec, process = cut_spec({**ways, "time": time}, process, at, "antecede_status")
    check_columns(table, spec, process, at, checkpoints)
    keys = [process] if group is None else [group, process]
    refuse_fixed(keys, LINE)
    kept, proven = is_behind_line(table, spec, process, at, checkpoints)
    if not proven:
        raise InputError(describe_unsupported(spec.ways, table.column_names))
    marked = pc.fill_null(table[checkpoints], False)
    nothing = pa.scalar(None, table.schema.field(at).type)
    number = {
        "line": pc.if_else(pc.and_(marked, pc.fill_null(kept, False)), table[at], nothing),
        "kept": pc.fill_null(kept, False).cast(pa.int64()),
        "undone": pc.fill_null(pc.invert(kept), False).cast(pa.int64()),
        "discarded": pc.and_(marked, pc.fill_null(pc.invert(kept), False)).cast(pa.int64()),
    }
    rows = pa.table({**{key: table[key] for key in keys}, **number})
    rows = rows.filter(kept.is_valid())
    sums = [("line", "max"), ("kept", "sum"), ("undone", "sum"), ("discarded", "sum")]
    made = rows.group_by(keys).aggregate(sums)
    made = made.select([*keys, *(f"{name}_{how}" for name, how in sums)])
    line: pyarrow.Table = made.rename_columns([*keys, *LINE])
    return line


def is_behind_line(
    table: pyarrow.Table,
    spec: OrderSpec,
    process: str,
    at: str,
    checkpoints: str,
    digest: Digests | None = None,
    column_names: tuple[str, str] | None = None,
) -> tuple[Array, bool]:
    """Return whether each row is within the recovery line, and whether cells support an answer."""
    if not table.num_rows:
        return pa.array([], pa.bool_()), True
    graph = graph_of(table, spec, digest)
    _check_no_nulls(table, graph, (process, at), column_names or (process, at))
    codes = process_codes(table, spec, process)
    marks: Bools = pc.fill_null(table[checkpoints], False).to_numpy() & graph.alive
    rank: Ints = pc.rank(read_column(table, at), tiebreaker="dense").to_numpy().astype(np.int64)
    level, counts = _count_levels(codes, rank, marks)
    line = find_recovery_line(graph.keys.offsets, graph.causes, graph.alive, codes, level, counts)
    return pa.array(level < line[codes], mask=~graph.alive), graph.is_supported(spec)


def _count_levels(process: Ints, rank: Ints, marks: Bools) -> tuple[Ints, Ints]:
    width = int(rank.max(initial=0)) + 1
    of_marks = np.unique(process[marks] * width + rank[marks])  # equal points are one checkpoint
    first = np.searchsorted(of_marks, process * width)
    level = np.searchsorted(of_marks, process * width + rank) - first
    counts = np.bincount(of_marks // width, minlength=int(process.max(initial=0)) + 1)
    return level.astype(np.int64), counts.astype(np.int64)


def _check_no_nulls(
    table: pyarrow.Table, graph: RowGraph, names: tuple[str, str], column_names: tuple[str, str]
) -> None:
    columns = [read_column(table, name) for name in names]
    columns[0] = normalize_ids(columns[0], f"column {names[0]}")
    for column, name in zip(columns, column_names, strict=True):
        lacking = np.flatnonzero(column.is_null().to_numpy(False) & graph.alive)
        if len(lacking):
            raise InputError(
                f"{len(lacking)} events have no {name} and so no local state: set it, or leave "
                "them out"
            )
