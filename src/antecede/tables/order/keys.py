"""Ids and causes of the user's columns as integers.

A row has an identity (actor, count), and its causes are such pairs. A declared id is an actor with
the count 1; otherwise the member or the sender is the actor. The actor includes the group, so rows
of different groups never match.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.kernels import Bools, Bytes, Ints, first_mention
from antecede.tables.order.key_types import cast_to_common, normalize_causes, normalize_ids, plain
from antecede.tables.order.spec import OrderSpec, Status

Array: TypeAlias = Any
pa: Any = pyarrow
pc: Any = pyarrow.compute

_LONGEST = 2**31 - 1
STATUSES = tuple(Status)
_CODE = {status: np.int8(code) for code, status in enumerate(STATUSES)}


def code(status: Status) -> np.int8:
    """Return the integer that represents a status in arrays."""
    return _CODE[status]


@dataclass(slots=True)
class RowKeys:
    """Rows and their causes as integers; edges are sorted by row.

    `required` is false for an edge whose cause need not exist (the number before a sender's first).
    `label` and `labels` give a cause's name, to which the count may be added.
    """

    status: Bytes
    group: Ints
    group_count: int
    actor: Ints
    count: Ints
    offsets: Ints
    cause_actor: Ints
    cause_count: Ints
    required: Bools
    label: Ints
    labels: Array
    has_counts: bool

    def format_causes(self, edges: Ints) -> Array:
        """Return the causes of the given edges as text."""
        try:
            text = self.labels.take(pa.array(self.label[edges])).cast(pa.string())
            if not self.has_counts:
                return text
            counts = pa.array(self.cause_count[edges]).cast(pa.string())
            return pc.binary_join_element_wise(text, counts, ":")
        except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
            raise InputError(
                f"the names of {len(edges):,} late or missing causes exceed 2 GiB, the limit of an "
                "Arrow array: use shorter ids, or fewer rows a task (Spark: a higher shards=, or a "
                "lower max_rows_per_task=)"
            ) from error


def goes_by_value(kind: Array) -> bool:
    """Return whether ties between ids of an Arrow type are broken by value.

    Numbers of any type are (2 before 10); other types go by the code points of their text.
    """
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def read_tie_columns(table: pyarrow.Table, spec: OrderSpec) -> list[Array]:
    """Return the columns that break ties: id, or member, or sender and seq."""
    columns = []
    for name in (spec.id, spec.member, spec.sender, spec.seq):
        if name is None:
            continue
        column = _read_ids(table, name)
        if not goes_by_value(column.type):
            column = column.cast(pa.large_string())
        columns.append(column)
    return columns


class _Edges(NamedTuple):
    """Identities of rows, and their causes; a name is an index into `labels`."""

    name: Ints
    number: Ints
    row: Ints
    cause: Ints
    cause_count: Ints
    labels: Array
    required: Bools | None = None


def keys_of(table: pyarrow.Table, spec: OrderSpec) -> RowKeys:
    """Read ids and causes of a table. Raises InputError for columns of unusable types."""
    status = np.full(table.num_rows, code(Status.ORDERED), np.int8)
    group, groups = _read_groups(table, spec, status)
    read = (
        _edges_from_clocks
        if spec.clock is not None
        else _edges_from_numbers
        if spec.sender
        else _edges_from_ids
    )
    edges = read(table, spec, status)
    width, row = len(edges.labels), edges.row
    return RowKeys(
        status=status,
        group=group,
        group_count=groups,
        actor=group * width + edges.name,
        count=edges.number,
        offsets=_compute_offsets(row, table.num_rows),
        cause_actor=group[row] * width + edges.cause,
        cause_count=edges.cause_count,
        required=np.ones(len(row), np.bool_) if edges.required is None else edges.required,
        label=edges.cause,
        labels=edges.labels,
        has_counts=spec.id is None,
    )


def _edges_from_ids(table: pyarrow.Table, spec: OrderSpec, status: Bytes) -> _Edges:
    rows_of, values = [], []
    given = [table.schema.field(str(spec.id)).type]
    for name in spec.after:
        rows, named = _flatten(_read_column(table, name))
        rows_of.append(rows)
        given.append(named.type)
        values.append(normalize_causes(named, f"column {name}"))
    names = [str(spec.id), *spec.after]
    ids, *values = cast_to_common([_read_ids(table, names[0]), *values], names, given)
    cause_row = np.concatenate(rows_of)
    by_row = np.argsort(cause_row, kind="stable")
    codes, labels = _encode(pa.chunked_array([ids, *values], type=ids.type))
    own, causes_code = codes[: len(ids)], codes[len(ids) :][by_row]
    cause_row = cause_row[by_row]
    status[own < 0] = code(Status.NULL_KEY)
    known = (causes_code >= 0) & (own[cause_row] >= 0)
    names_itself = known & (own[cause_row] == causes_code)
    status[cause_row[names_itself]] = code(Status.SELF_CAUSE)
    cause_row, causes_code = cause_row[known], causes_code[known]
    first = first_mention(_compute_offsets(cause_row, len(ids)), causes_code, len(labels))
    cause_row, causes_code = cause_row[first], causes_code[first]
    counts = np.ones(len(ids), np.int64), np.ones(len(causes_code), np.int64)
    return _Edges(own, counts[0], cause_row, causes_code, counts[1], labels)


def _edges_from_clocks(table: pyarrow.Table, spec: OrderSpec, status: Bytes) -> _Edges:
    rows, names, counts, broken = _read_entries(_read_column(table, str(spec.clock)))
    given = [table.schema.field(str(spec.member)).type, names.type]
    names = normalize_ids(names, f"the members in {spec.clock}")
    members, names = cast_to_common(
        [_read_ids(table, str(spec.member)), names],
        [str(spec.member), f"members in {spec.clock}"],
        given,
    )
    codes, labels = _encode(pa.chunked_array([members, names], type=members.type))
    member, entry = codes[: len(members)], codes[len(members) :]
    bad = (entry < 0) | (counts < 0)
    status[rows[bad]] = code(Status.BAD_CLOCK)
    status[broken] = code(Status.BAD_CLOCK)
    is_own = entry == member[rows]
    own = np.zeros(len(members), np.int64)
    own[rows[is_own]] = counts[is_own]
    status[(own <= 0) & (status == code(Status.ORDERED))] = code(Status.BAD_CLOCK)
    status[member < 0] = code(Status.NULL_KEY)
    cause_count = np.where(is_own, counts - 1, counts)
    cause = (cause_count > 0) & ~bad & (status[rows] == code(Status.ORDERED))
    return _Edges(member, own, rows[cause], entry[cause], cause_count[cause], labels)


def _edges_from_numbers(table: pyarrow.Table, spec: OrderSpec, status: Bytes) -> _Edges:
    sender, labels = _encode(_to_chunked(_read_ids(table, str(spec.sender))))
    numbers = _read_column(table, str(spec.seq))
    seq = _to_int64(numbers, f"column {spec.seq}")
    status[seq < 0] = code(Status.BAD_CLOCK)
    status[(sender < 0) | numbers.is_null().to_numpy(zero_copy_only=False)] = code(Status.NULL_KEY)
    rows = np.flatnonzero(status == code(Status.ORDERED))
    required = seq[rows] > spec.first_seq
    return _Edges(sender, seq, rows, sender[rows], seq[rows] - 1, labels, required)


def _read_groups(table: pyarrow.Table, spec: OrderSpec, status: Bytes) -> tuple[Ints, int]:
    if spec.group is None:
        return np.zeros(table.num_rows, np.int64), 1
    codes, values = _encode(
        _to_chunked(plain(_read_column(table, spec.group), f"column {spec.group}"))
    )
    status[codes < 0] = code(Status.NULL_KEY)
    return np.maximum(codes, 0), max(len(values), 1)


def _read_entries(clock: Array) -> tuple[Ints, Array, Ints, Ints]:
    """Return (row, member, count) of all entries of a clock column, and malformed rows."""
    kind = clock.type
    if pa.types.is_map(kind):
        pair = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
        rows, entries = _flatten(clock.cast(pa.list_(pair)))
        names, counts = (pc.struct_field(entries, k) for k in (0, 1))
        return rows, names, _read_counts(counts), np.zeros(0, np.int64)
    if _is_list(kind):
        rows, counts = _flatten(clock)
        number = pa.array(np.arange(len(rows)) - _compute_offsets(rows, len(clock))[rows])
        return rows, number, _read_counts(counts), np.zeros(0, np.int64)
    if pa.types.is_struct(kind) and kind.num_fields == 2 and all(_is_list(f.type) for f in kind):
        fields = [pc.struct_field(clock, k) for k in (0, 1)]
        lengths = [pc.fill_null(pc.list_value_length(f), -1) for f in fields]
        uneven = pc.not_equal(*lengths).to_numpy(zero_copy_only=False)
        even = pa.array(~uneven)
        fields = [pc.if_else(even, f, pa.scalar(None, f.type)) for f in fields]
        (rows, names), (_, counts) = (_flatten(f) for f in fields)
        return rows, names, _read_counts(counts), np.flatnonzero(uneven)
    raise InputError(
        f"a clock column must be a map from member to number, a struct of two arrays (members, "
        f"numbers), or an array of numbers by member number; it is {kind}"
    )


def _read_column(table: pyarrow.Table, name: str) -> Array:
    column: Array = table.column(name)
    if column.nbytes > _LONGEST:
        column = column.cast(_to_large_type(column.type))
    if column.num_chunks == 0:
        column = pa.array([], column.type)
    else:
        column = column.combine_chunks()
        if isinstance(column, pyarrow.ChunkedArray):  # too long for one array
            column = pa.concat_arrays(column.chunks)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _to_large_type(kind: Array) -> Array:
    types = pa.types
    if types.is_string(kind):
        return pa.large_string()
    if types.is_binary(kind):
        return pa.large_binary()
    if types.is_list(kind):
        return pa.large_list(_to_large_type(kind.value_type))
    if types.is_struct(kind):
        return pa.struct([(field.name, _to_large_type(field.type)) for field in kind])
    return kind


def _read_ids(table: pyarrow.Table, name: str) -> Array:
    return normalize_ids(_read_column(table, name), f"column {name}")


def _to_chunked(array: Array) -> Array:
    return pa.chunked_array([array], type=array.type)


def _is_list(kind: Array) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _flatten(column: Array) -> tuple[Ints, Array]:
    if not _is_list(column.type):
        return np.arange(len(column), dtype=np.int64), column
    rows = pc.list_parent_indices(column).cast(pa.int64())
    return rows.to_numpy(zero_copy_only=False), pc.list_flatten(column)


def _encode(column: Array) -> tuple[Ints, Array]:
    if column.nbytes > _LONGEST:
        column = column.cast(_to_large_type(column.type))
    try:
        encoded = column.combine_chunks().dictionary_encode()
    except pa.ArrowNotImplementedError as error:
        raise InputError(
            f"unsupported type {column.type} of a key column: cast it to text or numbers"
        ) from error
    codes = pc.fill_null(encoded.indices.cast(pa.int64()), -1)
    return codes.to_numpy(zero_copy_only=False).copy(), encoded.dictionary


def _read_counts(counts: Array) -> Ints:
    """Return the counts of clock entries; -1 for null, which no clock holds."""
    return _to_int64(counts, "a clock's numbers", null=-1)


def _to_int64(array: Array, what: str, null: int = 0) -> Ints:
    if not (pa.types.is_integer(array.type) or pa.types.is_null(array.type)):
        raise InputError(f"{what} must be whole numbers, not {array.type}")
    try:
        numbers = pc.fill_null(array.cast(pa.int64()), null)
    except pa.ArrowInvalid as error:
        raise InputError(f"{what} must fit in 63 bits: {error}") from error
    whole: Ints = numbers.to_numpy(zero_copy_only=False)
    return whole


def _compute_offsets(rows: Ints, n: int) -> Ints:
    offsets = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=n), out=offsets[1:])
    return offsets
