"""Cuts of a table of events: consistency, and messages in transit.

Source: Sahai et al. 2020, "Global State of a Distributed System"; Mattern 1989. A cut contains the
first events of each process, up to a position. It is consistent when every cause of an event inside
is inside. A message is in transit when it is sent inside and received outside by another process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.causality.kernels.recovery_lines import (
    CROSSED,
    NO,
    TRANSIT,
    UNCLEAR,
    UNKNOWN,
    YES,
    classify_edges,
    find_immediate,
)
from antecede.tables.causality.labels import make_labels, read_group_names, to_text
from antecede.tables.causality.spec import order_spec, refuse_fixed, refuse_taken
from antecede.tables.kernels import Bools, Bytes, Ints, encode_column
from antecede.tables.order import Array, Digests, OrderSpec, RowGraph, graph_of, normalize_ids
from antecede.tables.trace import describe_unsupported

pa: Any = pyarrow
pc: Any = pyarrow.compute
ADDED = ("inside", "outside_causes", "in_transit", "unknown_causes")
Positions = Mapping[Any, Any]


def check_cut(
    table: pyarrow.Table,
    positions: Positions,
    *,
    process: str | None = None,
    at: str,
    id: str | None = None,
    after: str | Sequence[str] = (),
    clock: str | None = None,
    member: str | None = None,
    group: str | None = None,
    time: str | None = None,
    status: str = "antecede_status",
) -> pyarrow.Table:
    """Return the rows, each with its side of a cut and the causes that contradict the cut.

    `positions`: process -> the last value of the column `at` inside, in every group (a number or
    time that orders the events of a process). Nothing of other processes is inside. `process`: the
    column of processes (with `clock`: default `member`). Adds the status of `order` and

    - `inside`: boolean; null for a row without process, `at` or position
    - `outside_causes`: of a row inside, its causes outside: the cut is inconsistent
    - `in_transit`: of a row outside, its causes inside at other processes (clocks: immediate ones)
    - `unknown_causes`: of a row inside, causes that are nowhere or on no side

    Raises InputError for positions of processes without rows, and as `add_causal_labels`.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import check_cut
    >>> log = pa.table({"id": ["s", "r", "t"], "after": [None, "s", "r"],
    ...                 "host": ["a", "b", "b"], "n": [1, 1, 2]})
    >>> made = check_cut(log, {"b": 1}, process="host", at="n", id="id", after="after")
    >>> made.select(["inside", "outside_causes"]).to_pylist()[1]
    {'inside': True, 'outside_causes': ['s']}
    >>> made = check_cut(log, {"a": 1}, process="host", at="n", id="id", after="after")
    >>> made["in_transit"].to_pylist()
    [[], ['s'], []]
    """
    ways = {"id": id, "after": after, "clock": clock, "member": member, "group": group}
    spec, process = cut_spec({**ways, "time": time}, process, at, status)
    refuse_taken(table.column_names, {"status": status})
    refuse_fixed(table.column_names, ADDED)
    check_columns(table, spec, process, at)
    side = _find_sides(table, positions, process, at)
    codes = process_codes(table, spec, process)
    columns, proven = compute_cut_columns(table, spec, side, codes)
    if not proven:
        raise InputError(describe_unsupported(spec.ways, table.column_names))
    for name, column in zip((*ADDED, status), columns, strict=True):
        table = table.append_column(name, column)
    return table


def summarize_cut(sides: pyarrow.Table, *, group: str | None = None) -> pyarrow.Table:
    """Return the verdict on the rows of `check_cut`: one row, or one a group.

    `consistent` is null if nothing contradicts the cut, but causes of events inside are unknown.
    `violations` is the number of events inside that contradict the cut.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import check_cut, summarize_cut
    >>> log = pa.table({"id": ["s", "r"], "after": [None, "s"], "host": ["a", "b"], "n": [1, 1]})
    >>> made = check_cut(log, {"b": 1}, process="host", at="n", id="id", after="after")
    >>> summarize_cut(made)["consistent"].to_pylist()
    [False]
    """
    inside: Any = sides["inside"]
    lengths = {name: pc.fill_null(pc.list_value_length(sides[name]), 0) for name in ADDED[1:]}
    table: Any = pa.table(
        {
            "inside": pc.fill_null(inside, False).cast(pa.int64()),
            "outside": pc.fill_null(pc.invert(inside), False).cast(pa.int64()),
            "violations": pc.greater(lengths["outside_causes"], 0).cast(pa.int64()),
            "in_transit": lengths["in_transit"].cast(pa.int64()),
            "unknown": lengths["unknown_causes"].cast(pa.int64()),
        }
    )
    names = table.column_names
    if group in ("consistent", *names):
        raise InputError(f"group={group!r}: the verdict adds a column of this name; rename yours")
    keys = [] if group is None else [group]
    for key in keys:
        table = table.append_column(key, sides[key])
    made = table.group_by(keys).aggregate([(name, "sum") for name in names])
    sums = {name: pc.fill_null(made[f"{name}_sum"], 0) for name in names}  # null without rows
    sound = pc.equal(sums["violations"], 0)
    known = pc.or_(pc.invert(sound), pc.equal(sums["unknown"], 0))
    verdict = pc.if_else(known, sound, pa.scalar(None, pa.bool_()))
    verdicts: pyarrow.Table = pa.table(
        {**{key: made[key] for key in keys}, "consistent": verdict, **sums}
    )
    return verdicts


# -- what Spark's workers call, too -------------------------------------------------------------


def cut_spec(
    ways: dict[str, Any], process: str | None, at: str | None, status: str
) -> tuple[OrderSpec, str]:
    """Return the spec, and the column of processes. Raises InputError."""
    spec = order_spec(**ways, status=status)
    process = process if process is not None else spec.member
    for what, name in (("process", process), ("at", at)):
        if not isinstance(name, str) or not name:
            raise InputError(f"{what}= must name a column: a cut needs process and position")
    return spec, str(process)


def compute_cut_columns(
    table: pyarrow.Table, spec: OrderSpec, side: Bytes, process: Ints, digest: Digests | None = None
) -> tuple[list[Array], bool]:
    """Return the added columns and the status, and whether the cells support an answer."""
    if not table.num_rows:
        lists = [pa.array([], pa.list_(pa.string()))] * 3
        return [pa.array([], pa.bool_()), *lists, pa.array([], pa.string())], True
    graph = graph_of(table, spec, digest)
    everything = np.ones(len(graph.causes), np.bool_)
    message = everything if spec.clock is None else find_immediate_edges(graph)
    edges = graph.keys.offsets, graph.causes, graph.kinds
    classes = classify_edges(*edges, graph.alive, side, process, message)
    inside = pa.array(side == YES, mask=(side == UNKNOWN) | ~graph.alive)
    lists = [_format_causes(graph, classes == what) for what in (CROSSED, TRANSIT, UNCLEAR)]
    return [inside, *lists, graph.format_statuses()], graph.is_supported(spec)


def process_codes(table: pyarrow.Table, spec: OrderSpec, process: str) -> Ints:
    """Number the processes of all groups; null has a number."""
    names = to_text(normalize_ids(read_column(table, process), f"column {process}"))
    names, code = encode_column(names)
    group = encode_column(read_group_names(table, spec.group))[1]
    numbers: Ints = np.unique(group * (len(names) + 1) + code, return_inverse=True)[1]
    return numbers.astype(np.int64)


def find_immediate_edges(graph: RowGraph) -> Bools:
    """Return the edges that no other cause implies, by the causal labels of each group."""
    made = make_labels(graph, 2**31 - 1, pa.nulls(len(graph.alive), pa.string()))
    # Edges stay within groups, and so do their chains.
    return find_immediate(graph.keys.offsets, graph.causes, graph.alive, made)


def _format_causes(graph: RowGraph, which: Bools) -> Array:
    keys = graph.keys
    counted = np.concatenate([[0], np.cumsum(which)])
    offsets = pa.array(counted[keys.offsets].astype(np.int32))
    names = keys.format_causes(np.flatnonzero(which))
    return pa.ListArray.from_arrays(offsets, names, mask=pa.array(~graph.alive))


# -- sides ------------------------------------------------------------------------------------


def check_columns(table: pyarrow.Table, spec: OrderSpec, *more: str) -> None:
    """Raise InputError for absent columns, and for a third column that is not boolean."""
    spec.check_columns(table.column_names)
    absent = [name for name in more if name not in table.column_names]
    if absent:
        there = ", ".join(table.column_names)
        raise InputError(f"no column {', '.join(absent)}; there are {there}")
    for name in more[2:]:
        if not pa.types.is_boolean(table.schema.field(name).type):
            kind = table.schema.field(name).type
            raise InputError(f"column {name} must be boolean, true for checkpoints; it is {kind}")


def _find_sides(table: pyarrow.Table, positions: Positions, process: str, at: str) -> Bytes:
    check_positions(positions)
    processes, moments = read_column(table, process), read_column(table, at)
    try:
        names = pa.array(list(positions), processes.type)
        limits = pa.array(list(positions.values()), moments.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise InputError(
            f"positions must map {process} ({processes.type}) to {at} ({moments.type}): {error}"
        ) from error
    strangers = names.filter(pc.invert(pc.is_in(names, processes)))
    if len(strangers):
        raise InputError(stranger(strangers[0].as_py()))
    limit = limits.take(pc.index_in(processes, names))
    inside = pc.fill_null(pc.less_equal(moments, limit), False)
    known = pc.and_(normalize_ids(processes, f"column {process}").is_valid(), moments.is_valid())
    side = pc.if_else(known, pc.if_else(inside, YES, NO), UNKNOWN)
    found: Bytes = side.to_numpy(zero_copy_only=False).astype(np.int8)
    return found


def check_positions(positions: Positions) -> None:
    """Raise InputError unless positions are a mapping without nulls."""
    if not isinstance(positions, Mapping):
        raise InputError(f"positions must be a dict from process to position, not {positions!r}")
    if any(part is None for item in positions.items() for part in item):
        raise InputError("positions contain null: leave out processes without events inside")


def stranger(process: Any) -> str:
    """Return the error text for a process without rows."""
    return f"unknown process {process}: it has a position, but no row"


def read_column(table: pyarrow.Table, name: str) -> Array:
    """Return a column as one array of plain values."""
    column: Any = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
