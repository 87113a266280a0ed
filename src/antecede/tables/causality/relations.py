"""Comparison of two causal labels: before, concurrent, or null.

Two distinct events are concurrent when neither happened before the other (Lamport 1978). Events of
different groups are concurrent, because causes never cross groups. The result is null if a label is
null, or if the labels are of several calls (`version` differs, or only one has a group).
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.causality.kernels.chain_decomposition import find_known
from antecede.tables.causality.labels import LABEL_TYPE, read_numbers
from antecede.tables.kernels import Bools
from antecede.tables.order import Array

pa: Any = pyarrow
pc: Any = pyarrow.compute


@overload
def happened_before(a: pyarrow.Scalar, b: pyarrow.Scalar) -> bool | None: ...  # type: ignore[type-arg]
@overload
def happened_before(a: Array, b: Array) -> Any: ...
def happened_before(a: Any, b: Any) -> Any:
    """Return whether event a is a direct or indirect cause of event b.

    `a` and `b` are labels of one call of `add_causal_labels`: two arrays of equal length give a
    boolean array, two scalars give True, False or None. Raises InputError for other types.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import add_causal_labels, happened_before
    >>> events = pa.table({"id": [1, 2, 3], "after": [[], [1], [2]]})
    >>> labels = add_causal_labels(events, id="id", after="after")["causal_label"]
    >>> happened_before(labels.slice(0, 2), labels.slice(1, 2)).to_pylist()
    [True, True]
    """
    left, right, single = _read_pair(a, b)
    comparable, same_group = _find_comparable(left, right)
    before = _find_before(left, right) & same_group
    return _make_answer(before, comparable, single)


def concurrent(a: Any, b: Any) -> Any:
    """Return whether neither of two distinct events happened before the other.

    Arguments, result and errors as for `happened_before`.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import add_causal_labels, concurrent
    >>> events = pa.table({"id": [1, 2, 3], "after": [[], [1], [1]]})
    >>> one, two, three = add_causal_labels(events, id="id", after="after")["causal_label"]
    >>> concurrent(two, three), concurrent(one, two), concurrent(one, one)
    (True, False, False)
    """
    left, right, single = _read_pair(a, b)
    comparable, same_group = _find_comparable(left, right)
    chain = read_numbers(left, "chain") == read_numbers(right, "chain")
    same = chain & (read_numbers(left, "position") == read_numbers(right, "position"))
    related = same | _find_before(left, right) | _find_before(right, left)
    return _make_answer(~(related & same_group), comparable, single)


def past_size(labels: Any) -> Any:
    """Return the number of events that happened before each.

    An array of labels gives an array of numbers, a scalar gives a number; null for null. The sum
    over all events is the number of ordered pairs. Raises InputError for other types.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import add_causal_labels, past_size
    >>> events = pa.table({"id": [1, 2, 3, 4], "after": [[], [1], [1], [2, 3]]})
    >>> past_size(add_causal_labels(events, id="id", after="after")["causal_label"]).to_pylist()
    [0, 1, 1, 3]
    """
    array, _, single = _read_pair(labels, labels)
    lists = pc.struct_field(array, "positions")
    ends = lists.offsets.to_numpy()
    sums = np.concatenate([[0], np.cumsum(_list_values(lists), dtype=np.int64)])
    made = sums[ends[1:]] - sums[ends[:-1]] + read_numbers(array, "position") - 1
    return _make_answer(made, array.is_valid().to_numpy(zero_copy_only=False), single)


def _read_pair(a: Any, b: Any) -> tuple[Array, Array, bool]:
    single = isinstance(a, pyarrow.Scalar) and isinstance(b, pyarrow.Scalar)
    arrays = []
    for label in (a, b):
        kind = getattr(label, "type", None)
        if kind != LABEL_TYPE:
            what = type(label).__name__ if kind is None else str(kind)
            raise InputError(f"expected labels of add_causal_labels, got {what}")
        if isinstance(label, pyarrow.Scalar):
            label = pa.array([label.as_py()], LABEL_TYPE)
        if isinstance(label, pyarrow.ChunkedArray):
            label = pa.concat_arrays(label.chunks) if label.num_chunks else pa.array([], LABEL_TYPE)
        arrays.append(label)
    left, right = arrays
    if len(left) != len(right):
        raise InputError(f"{len(left)} labels and {len(right)}: expected equal numbers")
    return left, right, single


def _find_comparable(left: Array, right: Array) -> tuple[Bools, Bools]:
    there = pc.and_(left.is_valid(), right.is_valid())
    groups = [pc.struct_field(side, "group") for side in (left, right)]
    nulls = [group.is_null().to_numpy(zero_copy_only=False) for group in groups]
    equal = pc.fill_null(pc.equal(*groups), False).to_numpy(zero_copy_only=False)
    same = equal | (nulls[0] & nulls[1])
    versions = read_numbers(left, "version") == read_numbers(right, "version")
    comparable = there.to_numpy(zero_copy_only=False) & (nulls[0] == nulls[1])
    return comparable & (versions | ~same), same


def _find_before(a: Array, b: Array) -> Bools:
    chain, position = (
        np.ascontiguousarray(read_numbers(a, name)) for name in ("chain", "position")
    )
    chains, positions = (pc.struct_field(b, name) for name in ("chains", "positions"))
    offsets = chains.offsets.to_numpy()
    known = find_known(offsets, _list_values(chains), _list_values(positions), chain, position)
    same = chain == read_numbers(b, "chain")
    before: Bools = np.where(same, position < read_numbers(b, "position"), known)
    return before


def _list_values(lists: Array) -> Any:
    return lists.values.to_numpy()


def _make_answer(truth: Any, comparable: Bools, single: bool) -> Any:
    made = pa.array(truth, mask=~comparable)
    return made[0].as_py() if single else made
