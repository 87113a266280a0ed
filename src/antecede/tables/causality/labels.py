"""Causal labels of the rows of an Arrow table, also for Spark's workers.

Theory: `antecede.tables.causality.kernels.chain_decomposition`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.causality.kernels.chain_decomposition import (
    Labels,
    build_labels,
    choose_preferred_causes,
    choose_successors,
    gather_entries,
)
from antecede.tables.causality.spec import MAX_ENTRIES, LabelSpec, make_label_spec, refuse_taken
from antecede.tables.kernels import MISSING
from antecede.tables.order import Array, Digests, RowGraph, digests, graph_of, plain
from antecede.tables.trace import warn_none

pa: Any = pyarrow
pc: Any = pyarrow.compute

LABEL_TYPE: Any = pa.struct(
    [
        ("group", pa.string()),
        ("version", pa.int64()),
        ("chain", pa.int32()),
        ("position", pa.int32()),
        ("chains", pa.list_(pa.int32())),
        ("positions", pa.list_(pa.int32())),
        ("complete", pa.bool_()),
    ]
)
_MAX_TABLE_ENTRIES = 2**27
"""Entries of all labels of one table or partition, shared ones counted once: 1 GiB."""
_MAX_ARRAY_ENTRIES = 2**26  # entries of one array


def add_causal_labels(
    table: pyarrow.Table,
    *,
    id: str | None = None,
    after: str | Sequence[str] = (),
    group: str | None = None,
    clock: str | None = None,
    member: str | None = None,
    sender: str | None = None,
    seq: str | None = None,
    first_seq: int = 1,
    time: str | None = None,
    content: Sequence[str] | None = None,
    causal_label: str = "causal_label",
    status: str = "antecede_status",
    max_entries: int = MAX_ENTRIES,
) -> pyarrow.Table:
    """Return the table, rows in their order, with a causal label and a status for each row.

    The label answers `happened_before` and `concurrent` exactly, without the table. The arguments
    are those of `antecede.tables.order.spec.OrderSpec`; `time` only decides which of repeated rows
    takes part. The status is that of `order`; a row without a position (a repeat, on a cycle,
    without a key) has a null label. Labels are comparable only within one call.

    `max_entries` limits the entries of a label. Raises InputError when a column is absent or of an
    unusable type, and when a row's past has more chains than `max_entries`. Warns as
    `antecede.tables.order.table.order_table`.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import add_causal_labels, concurrent, happened_before
    >>> events = pa.table({"id": ["a", "b", "c"], "after": [None, "a", "a"]})
    >>> made = add_causal_labels(events, id="id", after="after")
    >>> a, b, c = made["causal_label"]
    >>> happened_before(a, b), happened_before(b, a), concurrent(b, c)
    (True, False, True)
    """
    ways: dict[str, Any] = {
        "id": id,
        "after": after,
        "group": group,
        "clock": clock,
        "member": member,
    }
    ways |= {"sender": sender, "seq": seq, "first_seq": first_seq, "time": time, "content": content}
    spec = make_label_spec(
        causal_label=causal_label, status=status, max_entries=max_entries, **ways
    )
    refuse_taken(table.column_names, {"causal_label": causal_label, "status": status})
    spec.order.check_columns(table.column_names)
    made = Stamped(table, spec)
    if not made.is_supported():
        warn_none(spec.order.ways)
    columns = (pa.chunked_array(list(made.pieces()), LABEL_TYPE), made.statuses())
    for name, column in zip(spec.added, columns, strict=True):
        table = table.append_column(name, column)
    return table


class Stamped:
    """Labels of a table, as arrays on demand; until then rows share common entries."""

    def __init__(
        self, table: pyarrow.Table, spec: LabelSpec, digest: Digests | None = None
    ) -> None:
        self._rows, self._spec = table.num_rows, spec.order
        if not self._rows:
            return
        self._graph = graph_of(table, spec.order, digest)
        self._groups = read_group_names(table, spec.order.group)
        self._labels = make_labels(self._graph, spec.max_entries, self._groups)
        self._version = self._labels.version.view(np.int64)[self._graph.keys.group]

    def is_supported(self) -> bool:
        """Return whether a cell supports an order; True without rows."""
        return not self._rows or self._graph.is_supported(self._spec)

    def statuses(self) -> Array:
        """Return the status of each row as text."""
        return self._graph.format_statuses() if self._rows else pa.array([], pa.string())

    def pieces(self, sizes: Sequence[int] | None = None) -> Iterator[Array]:
        """Yield the labels in arrays of these lengths, which add up to the number of rows."""
        if sizes is None:
            sizes = self._choose_sizes() if self._rows else []
        first = 0
        for size in sizes:
            yield self._make_array(first, first + size)
            first += size

    def _choose_sizes(self) -> list[int]:
        """Split the rows into arrays within the limit of entries; a single row may exceed it."""
        ends = np.cumsum(self._labels.size, dtype=np.int64)
        sizes, first = [], 0
        while first < self._rows:
            before = ends[first - 1] if first else 0
            end = int(np.searchsorted(ends, before + _MAX_ARRAY_ENTRIES, side="right"))
            sizes.append(max(end, first + 1) - first)
            first += sizes[-1]
        return sizes

    def _make_array(self, first: int, end: int) -> Array:
        if first == end:
            return pa.array([], LABEL_TYPE)
        made = self._labels
        entries = int(made.size[first:end].sum(dtype=np.int64))
        if entries >= 2**31:  # the offsets of an Arrow list
            raise InputError(
                f"{end - first} labels have {entries} entries, more than fit a batch: lower "
                "spark.sql.execution.arrow.maxRecordsPerBatch or max_entries="
            )
        alive = made.position[first:end] > 0
        offsets, chains, positions = gather_entries(made, first, end)
        at = pa.array(offsets)
        return pa.StructArray.from_arrays(
            [
                self._groups.slice(first, end - first),
                pa.array(self._version[first:end]),
                pa.array(made.chain[first:end]),
                pa.array(made.position[first:end]),
                pa.ListArray.from_arrays(at, pa.array(chains)),
                pa.ListArray.from_arrays(at, pa.array(positions)),
                pa.array(made.is_complete[first:end]),
            ],
            fields=list(LABEL_TYPE),
            mask=pa.array(~alive),
        )


def read_group_names(table: pyarrow.Table, group: str | None) -> Array:
    """Return the group of each row as text, null without groups; equal only for equal groups."""
    if group is None:
        return pa.nulls(table.num_rows, pa.string())
    column = table.column(group)
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([])
    return to_text(plain(array, f"column {group}"))


def read_numbers(labels: Array, name: str) -> Any:
    """Return a number of each label; 0 for null."""
    return pc.fill_null(pc.struct_field(labels, name), 0).to_numpy(zero_copy_only=False)


def to_text(column: Array) -> Array:
    """Return values in their common form as text; timestamps in UTC."""
    if pa.types.is_timestamp(column.type) and column.type.tz:
        column = column.cast(pa.timestamp(column.type.unit))
    return column.cast(pa.string())


def make_labels(graph: RowGraph, max_entries: int, groups: Array) -> Labels:
    """Return the labels of a graph's rows. Raises InputError for a past with too many chains."""
    keys = graph.keys
    order = graph.order[np.argsort(keys.group[graph.order], kind="stable")]
    favourite = choose_preferred_causes(order, keys.offsets, graph.causes, graph.alive, keys.actor)
    lacks = np.zeros(len(graph.alive), np.bool_)
    edge_row = np.repeat(np.arange(len(graph.alive)), np.diff(keys.offsets))
    lacks[edge_row[graph.kinds == MISSING]] = True
    made = build_labels(
        order,
        keys.offsets,
        graph.causes,
        graph.alive,
        lacks,
        keys.group,
        keys.group_count,
        favourite,
        choose_successors(order, favourite, keys.actor),
        _hash_ids(graph),
        max_entries,
        _MAX_TABLE_ENTRIES,
    )
    if made.stopped_at >= 0:
        raise _make_width_error(graph, groups, made.stopped_at, max_entries)
    if made.stopped_at == -2:
        raise InputError(
            f"the labels of {len(order)} rows in one task exceed {_MAX_TABLE_ENTRIES} entries "
            f"({_MAX_TABLE_ENTRIES >> 27} GiB): give a group= that causes never cross, or a lower "
            "max_entries= to find rows with so many"
        )
    return made


def _hash_ids(graph: RowGraph) -> Any:
    keys = graph.keys
    labels = max(len(keys.labels), 1)
    names = np.append(digests(pa.table([to_text(keys.labels)], ["label"])).view(np.uint64), 0)
    named = names[np.where(keys.actor >= 0, keys.actor, 0) % labels]
    return named.astype(np.uint64) + keys.count.astype(np.uint64)


def _make_width_error(graph: RowGraph, groups: Array, row: int, max_entries: int) -> InputError:
    keys = graph.keys
    name = str(keys.labels[int(keys.actor[row]) % len(keys.labels)])
    name = f"{name}:{keys.count[row]}" if keys.has_counts else name
    where = "" if groups[row].as_py() is None else f" of group {groups[row].as_py()}"
    return InputError(
        f"the past of this event{where} meets more than {max_entries} chains of events, and a "
        "label has one entry for each: raise max_entries= (8 bytes an entry), give a finer "
        "group=, or call past() and future() with after=, which need no labels",
        record_id=name,
    )
