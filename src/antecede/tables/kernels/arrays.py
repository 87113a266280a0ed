"""Array types of the kernels, and dictionary encoding of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.int8]


def encode_column(column: Any, *, nulls: bool = False) -> tuple[list[Any], Ints]:
    """Return the distinct values in order of first occurrence, and the code of each row [n].

    A null has the code -1; with `nulls` it is a value like any other.
    """
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks or [pa.array([], column.type)])
    encoded = column.dictionary_encode(null_encoding="encode" if nulls else "mask")
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return encoded.dictionary.to_pylist(), codes.astype(np.int64)
