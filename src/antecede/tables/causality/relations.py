"""Comparison of two stamps: before, concurrent, or null.

a happened before b when a chain of causes leads from a to b. Two distinct events are concurrent
when neither happened before the other (Lamport 1978); an event is not concurrent with itself.
Events of different groups are concurrent: causes never cross groups. Null: a stamp is null, or the
two were not made together (`version` differs, or one has a group and the other has none).
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import pyarrow
import pyarrow.compute

from antecede.errors import InputError
from antecede.tables.causality.kernels.chain_decomposition import knows
from antecede.tables.causality.labels import LABEL_TYPE, numbers_of
from antecede.tables.kernels import Bools
from antecede.tables.order import Array

pa: Any = pyarrow
pc: Any = pyarrow.compute


@overload
def happened_before(a: pyarrow.Scalar, b: pyarrow.Scalar) -> bool | None: ...  # type: ignore[type-arg]
@overload
def happened_before(a: Array, b: Array) -> Any: ...
def happened_before(a: Any, b: Any) -> Any:
    """Tell whether event a is among the causes, direct or indirect, of event b.

    `a` and `b` are stamps of one call of `add_causal_labels`: two arrays of equal length give a
    boolean array, two scalars give True, False or None. Null: see above. Raises InputError for
    other types.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import happened_before, add_causal_labels
    >>> events = pa.table({"id": [1, 2, 3], "after": [[], [1], [2]]})
    >>> stamps = add_causal_labels(events, id="id", after="after")["causal_label"]
    >>> happened_before(stamps.slice(0, 2), stamps.slice(1, 2)).to_pylist()
    [True, True]
    """
    left, right, single = _both(a, b)
    comparable, same_group = _comparable(left, right)
    before = _before(left, right) & same_group
    return _answer(before, comparable, single)


def concurrent(a: Any, b: Any) -> Any:
    """Tell whether neither of two distinct events happened before the other.

    Arguments, result and errors as for `happened_before`.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import concurrent, add_causal_labels
    >>> events = pa.table({"id": [1, 2, 3], "after": [[], [1], [1]]})
    >>> one, two, three = add_causal_labels(events, id="id", after="after")["causal_label"]
    >>> concurrent(two, three), concurrent(one, two), concurrent(one, one)
    (True, False, False)
    """
    left, right, single = _both(a, b)
    comparable, same_group = _comparable(left, right)
    chain = numbers_of(left, "chain") == numbers_of(right, "chain")
    same = chain & (numbers_of(left, "position") == numbers_of(right, "position"))
    related = same | _before(left, right) | _before(right, left)
    return _answer(~(related & same_group), comparable, single)


def past_size(labels: Any) -> Any:
    """Return how many events happened before each: positions count the rows of a chain.

    An array of labels gives an array of numbers, a scalar gives a number; null for null. The sum
    over all events is the number of ordered pairs. Raises InputError for other types.

    >>> import pyarrow as pa
    >>> from antecede.tables.causality import past_size, add_causal_labels
    >>> events = pa.table({"id": [1, 2, 3, 4], "after": [[], [1], [1], [2, 3]]})
    >>> past_size(add_causal_labels(events, id="id", after="after")["causal_label"]).to_pylist()
    [0, 1, 1, 3]
    """
    array, _, single = _both(labels, labels)
    lists = pc.struct_field(array, "positions")
    ends = lists.offsets.to_numpy()
    sums = np.concatenate([[0], np.cumsum(_values(lists), dtype=np.int64)])
    made = sums[ends[1:]] - sums[ends[:-1]] + numbers_of(array, "position") - 1
    return _answer(made, array.is_valid().to_numpy(zero_copy_only=False), single)


def _both(a: Any, b: Any) -> tuple[Array, Array, bool]:
    single = isinstance(a, pyarrow.Scalar) and isinstance(b, pyarrow.Scalar)
    arrays = []
    for stamp in (a, b):
        kind = getattr(stamp, "type", None)
        if kind != LABEL_TYPE:
            what = type(stamp).__name__ if kind is None else str(kind)
            raise InputError(f"this is no stamp of add_causal_labels: {what}")
        if isinstance(stamp, pyarrow.Scalar):
            stamp = pa.array([stamp.as_py()], LABEL_TYPE)
        if isinstance(stamp, pyarrow.ChunkedArray):
            stamp = pa.concat_arrays(stamp.chunks) if stamp.num_chunks else pa.array([], LABEL_TYPE)
        arrays.append(stamp)
    left, right = arrays
    if len(left) != len(right):
        raise InputError(f"{len(left)} stamps and {len(right)}: pairs need as many of each")
    return left, right, single


def _comparable(left: Array, right: Array) -> tuple[Bools, Bools]:
    """Tell of each pair whether its stamps say anything, and whether its groups are the same."""
    there = pc.and_(left.is_valid(), right.is_valid())
    groups = [pc.struct_field(side, "group") for side in (left, right)]
    nulls = [group.is_null().to_numpy(zero_copy_only=False) for group in groups]
    equal = pc.fill_null(pc.equal(*groups), False).to_numpy(zero_copy_only=False)
    same = equal | (nulls[0] & nulls[1])
    versions = numbers_of(left, "version") == numbers_of(right, "version")
    comparable = there.to_numpy(zero_copy_only=False) & (nulls[0] == nulls[1])
    return comparable & (versions | ~same), same


def _before(a: Array, b: Array) -> Bools:
    chain, position = (np.ascontiguousarray(numbers_of(a, name)) for name in ("chain", "position"))
    chains, positions = (pc.struct_field(b, name) for name in ("chains", "positions"))
    offsets = chains.offsets.to_numpy()
    known = knows(offsets, _values(chains), _values(positions), chain, position)
    same = chain == numbers_of(b, "chain")
    before: Bools = np.where(same, position < numbers_of(b, "position"), known)
    return before


def _values(lists: Array) -> Any:
    return lists.values.to_numpy()


def _answer(truth: Any, comparable: Bools, single: bool) -> Any:
    made = pa.array(truth, mask=~comparable)
    return made[0].as_py() if single else made
