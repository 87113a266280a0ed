"""Records of compiled engines: structured arrays with a class's annotations as fields.

Kernels use `rows[k].field`, as fast as numbered columns. Python reads columns, `rows["field"]`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Generic, TypeVar, get_args, get_type_hints, overload

import numpy as np
import numpy.typing as npt

from antecede.tables.kernels import inline_lent as inlined

R = TypeVar("R")
Shapes = dict[str, tuple[tuple[int, ...], Any]]  # Name of an array -> shape and type
CACHE_LINE_BYTES = 64  # Size of a cache line
HalfWord = Annotated[np.uint64, np.uint32]
"""Field of 32 bits. Type checkers see a word, to which arithmetic widens it."""


class Rows(Generic[R]):
    """Type of an array of records, for type checkers."""

    shape: tuple[int, ...]

    def __len__(self) -> int:
        """Return the number of records."""
        raise NotImplementedError

    @overload
    def __getitem__(self, key: str) -> npt.NDArray[Any]: ...

    @overload
    def __getitem__(self, key: np.uint64 | np.uint32 | int | tuple[Any, ...]) -> R: ...

    def __getitem__(self, key: Any) -> Any:
        """Return a column, or a record."""
        raise NotImplementedError

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set a column, or a record."""
        raise NotImplementedError


def make_record_type(record: type, size: int = 0) -> np.dtype[np.void]:
    """Return the record type with a class's annotations as fields, at least `size` bytes long."""
    hints = get_type_hints(record, include_extras=True)
    fields = {name: (get_args(kind) or (kind,))[-1] for name, kind in hints.items()}
    packed = np.dtype(list(fields.items()), align=True)
    assert packed.fields is not None
    spread = {
        "names": list(fields),
        "formats": list(fields.values()),
        "offsets": [packed.fields[name][1] for name in fields],
        "itemsize": max(size, packed.itemsize),
    }
    return np.dtype(spread, align=True)  # type: ignore[call-overload,no-any-return]


def compute_array_bytes(shapes: Shapes) -> int:
    """Return the memory of the arrays of these shapes."""
    return sum(math.prod(shape) * np.dtype(of).itemsize for shape, of in shapes.values())


def make_state(shapes: Shapes, counters: type) -> dict[str, Any]:
    """Return the empty arrays of a state, and its counters."""
    record = make_record(counters)
    record.fresh = 1
    return {"counters": record, **{name: _zeros(shape, of) for name, (shape, of) in shapes.items()}}


def _zeros(shape: tuple[int, ...], of: Any) -> Any:
    """Return zeros that start at a cache line, so a block of 8 words is one line."""
    size = math.prod(shape) * np.dtype(of).itemsize
    raw = np.zeros(size + CACHE_LINE_BYTES, np.uint8)
    start = -raw.ctypes.data % CACHE_LINE_BYTES
    return raw[start : start + size].view(of).reshape(shape)


def make_record(record: type) -> Any:
    """Return a single record, all fields 0."""
    return np.zeros(1, make_record_type(record)).view(np.recarray)[0]


@inlined
def take_node(s: Any) -> np.uint64:
    """Return an unused node of a state's `nodes`."""
    node = s.counters.free
    if node == 0:
        node = s.counters.fresh
        s.counters.fresh += np.uint64(1)
    else:
        s.counters.free = np.uint64(s.nodes[node].after)
    return np.uint64(node)


@inlined
def release_node(s: Any, node: np.uint64) -> None:
    """Add a node to the unused ones."""
    s.nodes[node].after = s.counters.free
    s.counters.free = node
