"""Arrays by their address, for kernels over any number of separate arrays.

Numba fixes the number and types of a function's arrays at compile time, but every segment of held
rows has arrays of its own. The caller must keep the arrays alive.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from antecede.tables.kernels import inline

_intrinsic: Any = intrinsic
_numba: Any = numba


@_intrinsic  # type: ignore[untyped-decorator]
def _pointer(_context: Any, source: Any) -> Any:
    def generate(_codegen: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(source), generate


@inline
def longs_at(address: int, size: int) -> NDArray[np.int64]:
    """Return the array of 64-bit integers at an address."""
    return _numba.carray(_pointer(address), (size,), np.int64)  # type: ignore[no-any-return]


@inline
def ints_at(address: int, size: int) -> NDArray[np.int32]:
    """Return the array of 32-bit integers at an address."""
    return _numba.carray(_pointer(address), (size,), np.int32)  # type: ignore[no-any-return]


@inline
def words_at(address: int, size: int) -> NDArray[np.uint32]:
    """Return the array of 32-bit words at an address."""
    return _numba.carray(_pointer(address), (size,), np.uint32)  # type: ignore[no-any-return]


@inline
def bytes_at(address: int, size: int) -> NDArray[np.uint8]:
    """Return the bytes at an address."""
    return _numba.carray(_pointer(address), (size,), np.uint8)  # type: ignore[no-any-return]
