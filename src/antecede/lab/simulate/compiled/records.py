"""Records of compiled engines: an array of structures whose fields are the annotations of a class.

Kernels read and write `rows[k].field`; numba takes that at the speed of numbered columns. Python
reads a whole column, `rows["field"]`.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar, get_args, get_type_hints, overload

import numpy as np
import numpy.typing as npt

R = TypeVar("R")
Half = Annotated[np.uint64, np.uint32]
"""A field of 32 bits; type checkers take it for a word, which it is widened to in arithmetic."""


class Rows(Generic[R]):
    """What type checkers believe an array of records to be."""

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


def layout(of: type, size: int = 0) -> np.dtype[np.void]:
    """Return the record type with a class's annotations as fields, `size` bytes long or longer."""
    hints = get_type_hints(of, include_extras=True)
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


def one(of: type) -> Any:
    """Return a single record, all fields 0."""
    return np.zeros(1, layout(of)).view(np.recarray)[0]
