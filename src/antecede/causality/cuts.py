"""Global states of a table of events: is a cut consistent, and which checkpoints make one.

Source: Sahai et al. 2020, "Global State of a Distributed System"; Mattern 1989. A cut holds the
first events of each process, up to a position. It is consistent when every cause of an event inside
is inside. What is caused inside by one process, and happens outside at another, is in transit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.causality.spec import order_spec, refuse_fixed, refuse_taken
from antecede.causality.stamps import group_names, stamped, text
from antecede.errors import InputError
from antecede.kernels.lines import (
    CROSSED,
    NO,
    TRANSIT,
    UNCLEAR,
    UNKNOWN,
    YES,
    crossing,
    immediate,
    recovery,
)
from antecede.kernels.order import MISSING, Bools, Bytes, Ints
from antecede.order.key_types import plain
from antecede.order.keys import Array
from antecede.order.spec import OrderSpec
from antecede.order.table import Digests, Graph, graph_of

pa: Any = pyarrow
pc: Any = pyarrow.compute
ADDED = ("inside", "outside_causes", "in_transit", "unknown_causes")
"""The columns that `cut` adds, before the status."""
LINE = ("line", "kept", "undone", "discarded")
"""The columns of `recovery_line`, after the process."""
Positions = Mapping[Any, Any]


def cut(
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
    """Return the rows, each with its side of a cut and with what contradicts the cut there.

    `positions`: process -> the last value of the column `at` inside (a number, a time: whatever
    orders a process's events), in every group. A process that is not named has nothing inside.
    `process`: the column of processes (with `clock`: `member` unless given). Adds

    `inside`          boolean; null for a row without process or `at`, and without a place;
    `outside_causes`  of a row inside, its causes that are outside: the cut is inconsistent;
    `in_transit`      of a row outside, its causes inside at other processes: what is under way to
                      it (with `clock`: those that no other cause implies);
    `unknown_causes`  of a row inside, causes that are nowhere or on no side;

    three arrays of text, and the status of `order`. See `cut_verdict`. Raises InputError for
    positions of processes that have no rows, and as `with_clocks` does.

    >>> import pyarrow as pa
    >>> from antecede.causality import cut
    >>> log = pa.table({"id": ["s", "r", "t"], "after": [None, "s", "r"],
    ...                 "host": ["a", "b", "b"], "n": [1, 1, 2]})
    >>> made = cut(log, {"b": 1}, process="host", at="n", id="id", after="after")
    >>> made.select(["inside", "outside_causes"]).to_pylist()[1]
    {'inside': True, 'outside_causes': ['s']}
    >>> made = cut(log, {"a": 1}, process="host", at="n", id="id", after="after")
    >>> made["in_transit"].to_pylist()
    [[], ['s'], []]
    """
    ways = {"id": id, "after": after, "clock": clock, "member": member, "group": group}
    spec, process = cut_spec({**ways, "time": time}, process, at, status)
    refuse_taken(table.column_names, {"status": status})
    refuse_fixed(table.column_names, ADDED)
    _check_columns(table, spec, process, at)
    side = _sides(table, positions, process, at)
    codes = process_codes(table, spec, process)
    for name, column in zip((*ADDED, status), judged(table, spec, side, codes), strict=True):
        table = table.append_column(name, column)
    return table


def cut_verdict(cut: pyarrow.Table, *, group: str | None = None) -> pyarrow.Table:
    """Return what the rows of `cut` say together: one row, or one a group.

    `consistent` (true; false; null: nothing contradicts, but causes of events inside are unknown),
    and how many events are `inside` and `outside`, how many inside contradict the cut
    (`violations`), how many causes are `in_transit`, and how many are `unknown`.

    >>> import pyarrow as pa
    >>> from antecede.causality import cut, cut_verdict
    >>> log = pa.table({"id": ["s", "r"], "after": [None, "s"], "host": ["a", "b"], "n": [1, 1]})
    >>> made = cut(log, {"b": 1}, process="host", at="n", id="id", after="after")
    >>> cut_verdict(made)["consistent"].to_pylist()
    [False]
    """
    inside: Any = cut["inside"]
    lengths = {name: pc.fill_null(pc.list_value_length(cut[name]), 0) for name in ADDED[1:]}
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
    keys = [] if group is None else [group]
    for key in keys:
        table = table.append_column(key, cut[key])
    made = table.group_by(keys).aggregate([(name, "sum") for name in names])
    made = made.rename_columns([name.removesuffix("_sum") for name in made.column_names])
    made = made.select([*keys, *names])
    counted = [pc.fill_null(made[name], 0) for name in names]  # of no rows at all
    violations, unknown = counted[2], counted[4]
    known = pc.or_(pc.greater(violations, 0), pc.equal(unknown, 0))
    verdict = pc.if_else(known, pc.equal(violations, 0), pa.scalar(None, pa.bool_()))
    columns = [*(made[key] for key in keys), verdict, *counted]
    told: pyarrow.Table = pa.table(columns, names=[*keys, "consistent", *names])
    return told


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
    """Return the latest consistent set of checkpoints: where each process can go on from.

    `checkpoints`: the boolean column that marks them; a checkpoint holds its process's events up
    to its own value of `at`, itself too. The line is the greatest consistent cut made of
    checkpoints alone: what lies after the last checkpoints is lost, and so is every checkpoint
    that knows of something lost (the domino effect, Randell 1975). One row a process (and group):
    `line` (the checkpoint's `at`; null: back to the beginning), `kept` and `undone` (events), and
    `discarded` (checkpoints that are lost). Causes that are nowhere hold nothing up.

    Other arguments as for `cut`. Raises InputError as there, for a process or `at` that is null in
    an event, and for a column of checkpoints that is not boolean.

    >>> import pyarrow as pa
    >>> from antecede.causality import recovery_line
    >>> log = pa.table({"id": ["p", "s", "r", "q"], "after": [None, "p", "s", "r"],
    ...                 "host": ["a", "a", "b", "b"], "n": [1, 2, 1, 2],
    ...                 "saved": [True, False, False, True]})
    >>> line = recovery_line(log, "saved", process="host", at="n", id="id", after="after")
    >>> line.sort_by("host").select(["host", "line", "undone"]).to_pylist()
    [{'host': 'a', 'line': 1, 'undone': 1}, {'host': 'b', 'line': None, 'undone': 2}]
    """
    ways = {"id": id, "after": after, "clock": clock, "member": member, "group": group}
    spec, process = cut_spec({**ways, "time": time}, process, at, "antecede_status")
    _check_columns(table, spec, process, at, checkpoints)
    keys = [process] if group is None else [group, process]
    refuse_fixed(keys, LINE)
    kept = held(table, spec, process, at, checkpoints)
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


# -- what Spark's workers call, too -------------------------------------------------------------


def cut_spec(
    ways: dict[str, Any], process: str | None, at: str | None, status: str
) -> tuple[OrderSpec, str]:
    """Return the spec, and the column of processes. Raises InputError."""
    spec = order_spec(**ways, status=status)
    process = process if process is not None else spec.member
    for what, name in (("process", process), ("at", at)):
        if not isinstance(name, str) or not name:
            raise InputError(f"{what}= names the column: a cut goes by process and position there")
    return spec, str(process)


def judged(
    table: pyarrow.Table, spec: OrderSpec, side: Bytes, process: Ints, digest: Digests | None = None
) -> list[Array]:
    """Return the columns ADDED and the status; `side` is NO, YES or UNKNOWN for each row."""
    if not table.num_rows:
        lists = [pa.array([], pa.list_(pa.string()))] * 3
        return [pa.array([], pa.bool_()), *lists, pa.array([], pa.string())]
    graph = graph_of(table, spec, digest)
    keys, message = graph.keys, np.ones(len(graph.causes), np.bool_)
    if spec.clock is not None:
        message = _immediate(graph)
    told = crossing(
        keys.offsets, graph.causes, graph.kinds, MISSING, graph.alive, side, process, message
    )
    inside = pa.array(side == YES, mask=(side == UNKNOWN) | ~graph.alive)
    lists = [_named(graph, told == what) for what in (CROSSED, TRANSIT, UNCLEAR)]
    return [inside, *lists, graph.statuses()]


def held(
    table: pyarrow.Table,
    spec: OrderSpec,
    process: str,
    at: str,
    checkpoints: str,
    digest: Digests | None = None,
    said: tuple[str, str] | None = None,
) -> Array:
    """Return of each row whether the recovery line holds it; null without a place.

    `said`: what the columns of processes and positions are called where they came from.
    """
    if not table.num_rows:
        return pa.array([], pa.bool_())
    graph = graph_of(table, spec, digest)
    _refuse_nulls(table, graph, (process, at), said or (process, at))
    codes = process_codes(table, spec, process)
    marks: Bools = pc.fill_null(table[checkpoints], False).to_numpy() & graph.alive
    level, counts = _levels(codes, _ranks(table, at), marks, graph.alive)
    line = recovery(graph.keys.offsets, graph.causes, graph.alive, codes, level, counts)
    return pa.array(level < line[codes], mask=~graph.alive)


def process_codes(table: pyarrow.Table, spec: OrderSpec, process: str) -> Ints:
    """Number the processes of all groups; a null is a number of its own."""
    columns = {"process": _plain(table, process)}
    columns["group"] = group_names(table, spec.group)
    codes = np.zeros(table.num_rows, np.int64)
    for column in columns.values():
        encoded = column.dictionary_encode()
        more = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False) + 1
        codes = codes * (len(encoded.dictionary) + 1) + more
    numbers: Ints = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return numbers


def _levels(process: Ints, rank: Ints, marks: Bools, alive: Bools) -> tuple[Ints, Ints]:
    """Return how many checkpoints are before each row, and how many each process has."""
    counts = np.bincount(process[marks], minlength=int(process.max(initial=0)) + 1)
    width = int(rank.max(initial=0)) + 1
    of_marks = np.unique(process[marks] * width + rank[marks])  # checkpoints at one point are one
    first = np.searchsorted(of_marks, process * width)
    level = np.searchsorted(of_marks, process * width + rank) - first
    counts = np.bincount(of_marks // width, minlength=len(counts))
    return level.astype(np.int64), counts.astype(np.int64)


def _ranks(table: pyarrow.Table, at: str) -> Ints:
    column = _combined(table, at)
    ranks: Ints = pc.rank(column, tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks


def _refuse_nulls(
    table: pyarrow.Table, graph: Graph, names: tuple[str, str], said: tuple[str, str]
) -> None:
    for name, called in zip(names, said, strict=True):
        lacking = np.flatnonzero(_combined(table, name).is_null().to_numpy(False) & graph.alive)
        if len(lacking):
            raise InputError(
                f"{len(lacking)} events have no {called}: they are in no local state, and a line "
                "without them would be none; give it, or leave them out"
            )


def _immediate(graph: Graph) -> Bools:
    """Return the edges that no other cause implies, group by group of the stamps."""
    made = stamped(graph, 2**31 - 1, pa.nulls(len(graph.alive), pa.string()))
    # Edges stay within groups, and so do the chains that an edge can meet.
    return immediate(
        graph.keys.offsets,
        graph.causes,
        graph.alive,
        made.chain,
        made.position,
        made.start,
        made.size,
        made.chains,
        made.positions,
    )


def _named(graph: Graph, which: Bools) -> Array:
    keys = graph.keys
    counted = np.concatenate([[0], np.cumsum(which)])
    offsets = pa.array(counted[keys.offsets].astype(np.int32))
    names = keys.names(np.flatnonzero(which))
    return pa.ListArray.from_arrays(offsets, names, mask=pa.array(~graph.alive))


# -- sides ------------------------------------------------------------------------------------


def _check_columns(table: pyarrow.Table, spec: OrderSpec, *more: str) -> None:
    spec.check_columns(table.column_names)
    absent = [name for name in more if name not in table.column_names]
    if absent:
        there = ", ".join(table.column_names)
        raise InputError(f"no column {', '.join(absent)}; there are {there}")
    for name in more[2:]:
        if not pa.types.is_boolean(table.schema.field(name).type):
            kind = table.schema.field(name).type
            raise InputError(f"column {name} must be boolean, true for checkpoints; it is {kind}")


def _sides(table: pyarrow.Table, positions: Positions, process: str, at: str) -> Bytes:
    """Return NO, YES or UNKNOWN for each row. Raises InputError for impossible positions."""
    check_positions(positions)
    processes, moments = _combined(table, process), _combined(table, at)
    try:
        names = pa.array(list(positions), processes.type)
        limits = pa.array(list(positions.values()), moments.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise InputError(
            f"positions go from {process}, {processes.type}, to {at}, {moments.type}: {error}"
        ) from error
    strangers = names.filter(pc.invert(pc.is_in(names, processes)))
    if len(strangers):
        raise InputError(stranger(strangers[0].as_py()))
    limit = limits.take(pc.index_in(processes, names))
    inside = pc.fill_null(pc.less_equal(moments, limit), False).to_numpy(False)
    known = pc.and_(processes.is_valid(), moments.is_valid()).to_numpy(False)
    side: Bytes = np.where(known, np.where(inside, YES, NO), UNKNOWN).astype(np.int8)
    return side


def check_positions(positions: Positions) -> None:
    """Raise InputError unless positions are a mapping without nulls."""
    if not isinstance(positions, Mapping):
        raise InputError(f"positions go from process to position: a dict, not {positions!r}")
    if any(part is None for item in positions.items() for part in item):
        raise InputError("a process or position that is null; leave out what has nothing inside")


def stranger(process: Any) -> str:
    """Say that a process has no rows."""
    return f"{process} has a position and no row in the table"


def _combined(table: pyarrow.Table, name: str) -> Array:
    column: Any = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _plain(table: pyarrow.Table, name: str) -> Array:
    return text(plain(_combined(table, name), f"column {name}"))
