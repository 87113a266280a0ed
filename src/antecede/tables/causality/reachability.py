"""Past and future of events: rows of a table that are causally before or after them.

Causal labels and declared causes give the same rows. An event is in its own past only if another
given event follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.causality.kernels.reachability import EventGraph, mark_future, mark_past
from antecede.tables.causality.labels import LABEL_TYPE, read_numbers
from antecede.tables.causality.spec import order_spec
from antecede.tables.kernels import Bools, Ints, encode_column
from antecede.tables.order import Array, graph_of, plain
from antecede.tables.trace import describe_unsupported

pa: Any = pyarrow
pc: Any = pyarrow.compute
Events = Sequence[Any] | pyarrow.Table


def past(
    table: pyarrow.Table,
    events: Events,
    *,
    id: str | None = None,
    causal_label: str = "causal_label",
    after: str | Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
) -> pyarrow.Table:
    """Return the rows that happened before any of the given events.

    `events`: their ids, as values of the column `id` (in any group), or a table of rows with a
    causal label. With `after`, declared causes are followed instead of labels. Raises InputError
    when an event is not in the table or has no position, when labels are of several calls, and when
    a column is absent.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import add_causal_labels, past
    >>> log = pa.table({"id": ["a", "b", "c", "d"], "after": [None, "a", "a", "c"]})
    >>> past(log, ["d"], id="id", after="after")["id"].to_pylist()
    ['a', 'c']
    >>> labelled = add_causal_labels(log, id="id", after="after")
    >>> past(labelled, ["b", "d"], id="id")["id"].to_pylist()
    ['a', 'c']
    """
    if after:
        ways = {"id": id, "after": after, "group": group, "time": time}
        return _follow_edges(table, events, ways, backwards=True)
    rows, edges = _encode_labels(
        _read_labels(table, causal_label), _find_labels(table, events, id, causal_label)
    )
    top: Ints = np.full(edges.width, 0, np.int64)
    np.maximum.at(top, edges.code, edges.position)
    np.maximum.at(top, edges.own, edges.own_position - 1)
    return table.filter(pa.array(rows.there & (rows.own_position <= top[rows.own])))


def future(
    table: pyarrow.Table,
    events: Events,
    *,
    id: str | None = None,
    causal_label: str = "causal_label",
    after: str | Sequence[str] = (),
    group: str | None = None,
    time: str | None = None,
) -> pyarrow.Table:
    """Return the rows that happened after any of the given events; otherwise as `past`.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import future
    >>> log = pa.table({"id": ["a", "b", "c", "d"], "after": [None, "a", "a", "c"]})
    >>> future(log, ["c"], id="id", after="after")["id"].to_pylist()
    ['d']
    """
    if after:
        ways = {"id": id, "after": after, "group": group, "time": time}
        return _follow_edges(table, events, ways, backwards=False)
    rows, edges = _encode_labels(
        _read_labels(table, causal_label), _find_labels(table, events, id, causal_label)
    )
    low: Ints = np.full(edges.width, np.iinfo(np.int64).max, np.int64)
    np.minimum.at(low, edges.own, edges.own_position)
    found = rows.there & (rows.own_position > low[rows.own])
    found[rows.row[rows.position >= low[rows.code]]] = True
    return table.filter(pa.array(found))


def mark_reachable(graph: Any, events: Bools, *, backwards: bool) -> Bools:
    """Return the mask of rows of a graph before (else after) the rows `events`."""
    steps = EventGraph(graph.keys.offsets, graph.causes, graph.alive, graph.order)
    return (mark_past if backwards else mark_future)(steps, events & graph.alive)


def not_there(name: Any) -> str:
    """Return the error text for an unknown event."""
    return f"no row has the id {name}"


NO_PLACE = "has no position: its rows are excluded"
"""Error of an event with a null label; its status has the reason."""
UNLIKE = "labels of the events and of the rows are from different calls of add_causal_labels"


def _follow_edges(
    table: pyarrow.Table, events: Events, ways: Any, *, backwards: bool
) -> pyarrow.Table:
    spec = order_spec(**ways)
    spec.check_columns(table.column_names)
    if isinstance(events, pyarrow.Table):
        raise InputError("with after=, events must be ids: give values of the column id")
    name = str(spec.id)
    given = _find_matching(table, events, name)
    if not table.num_rows:
        return table
    graph = graph_of(table, spec)
    _check_ordered(table, events, name, given, graph.alive)
    if not graph.is_supported(spec):
        raise InputError(describe_unsupported(spec.ways, table.column_names))
    return table.filter(pa.array(mark_reachable(graph, given, backwards=backwards)))


def _find_matching(table: pyarrow.Table, events: Sequence[Any], name: str) -> Bools:
    if isinstance(events, str | bytes) or not isinstance(events, Sequence):
        raise InputError(f"events must be a list of ids or a table, not {type(events).__name__}")
    column, wanted = _read_ids(table, name), _parse_ids(table, events, name)
    if wanted.null_count:
        raise InputError("events contain null: give ids")
    absent = wanted.filter(pc.invert(pc.is_in(wanted, column)))
    if len(absent):
        raise InputError(not_there(absent[0].as_py()))
    mask: Bools = pc.is_in(column, wanted).to_numpy()
    return mask


def _check_ordered(
    table: pyarrow.Table, events: Sequence[Any], name: str, given: Bools, alive: Bools
) -> None:
    placed = _read_ids(table, name).filter(pa.array(given & alive))
    wanted = _parse_ids(table, events, name)
    absent = wanted.filter(pc.invert(pc.is_in(wanted, placed)))
    if len(absent):
        raise InputError(f"the event {absent[0].as_py()} {NO_PLACE}")


def _read_ids(table: pyarrow.Table, name: str) -> Array:
    column: Any = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return plain(column, name) if pa.types.is_floating(column.type) else column


def _parse_ids(table: pyarrow.Table, events: Sequence[Any], name: str) -> Array:
    kind = _read_ids(table.slice(0, 0), name).type
    try:
        wanted = pa.array(list(events), kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise InputError(f"events do not match column {name} ({kind}): {error}") from error
    return plain(wanted, name) if pa.types.is_floating(kind) else wanted


def _read_labels(table: pyarrow.Table, causal_label: str) -> Array:
    if causal_label not in table.column_names:
        raise InputError(
            f"no column {causal_label}: make it by add_causal_labels, or give after= to do without "
            "labels"
        )
    column: Any = table.column(causal_label)
    if column.type != LABEL_TYPE:
        raise InputError(
            f"column {causal_label} has type {column.type}; expected labels of add_causal_labels"
        )
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], LABEL_TYPE)


def _find_labels(table: pyarrow.Table, events: Events, id: str | None, causal_label: str) -> Array:
    if isinstance(events, pyarrow.Table):
        labels = _read_labels(events, causal_label)
        if labels.null_count:
            raise InputError(
                f"{labels.null_count} of the events: an event without a label {NO_PLACE}"
            )
        return labels
    if id is None:
        raise InputError("events are ids: name their column by id=")
    if id not in table.column_names:
        raise InputError(f"no column {id}; there are {', '.join(table.column_names)}")
    labels, given = _read_labels(table, causal_label), _find_matching(table, events, id)
    placed = labels.is_valid().to_numpy(zero_copy_only=False)
    _check_ordered(table, events, id, given, placed)
    return labels.filter(pa.array(given & placed))


class _LabelEntries:
    def __init__(self, labels: Array, groups: Ints, chains: int, width: int) -> None:
        self.width = width
        self.there = labels.is_valid().to_numpy(zero_copy_only=False)
        numbers = [read_numbers(labels, name) for name in ("chain", "position")]
        base = groups * chains
        self.own, self.own_position = base + numbers[0], numbers[1].astype(np.int64)
        lists = pc.struct_field(labels, "chains")
        sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
        self.row = np.repeat(np.arange(len(labels)), sizes)
        entries = (pc.list_flatten(pc.struct_field(labels, f)) for f in ("chains", "positions"))
        chain, position = (part.to_numpy(zero_copy_only=False) for part in entries)
        self.code, self.position = base[self.row] + chain, position.astype(np.int64)


def _encode_labels(labels: Array, given: Array) -> tuple[_LabelEntries, _LabelEntries]:
    both = pa.concat_arrays([labels, given])
    names, groups = encode_column(pc.struct_field(both, "group"), nulls=True)
    _check_same_call(both, groups, len(labels))
    chains = (pc.max(pc.struct_field(both, "chain")).as_py() or 0) + 1
    width = len(names) * chains
    return (
        _LabelEntries(labels, groups[: len(labels)], chains, width),
        _LabelEntries(given, groups[len(labels) :], chains, width),
    )


def _check_same_call(both: Array, groups: Ints, rows: int) -> None:
    there = both.is_valid().to_numpy(zero_copy_only=False)
    version = read_numbers(both, "version")
    of_rows = np.flatnonzero(there[:rows])
    known = np.full(int(groups.max(initial=0)) + 1, -1, np.int64)
    known[groups[of_rows]] = of_rows
    where = known[groups[rows:]]
    if (where < 0).any() or (version[where] != version[rows:]).any():
        raise InputError(UNLIKE)
