"""Arrays and texts as one block of bytes that a browser reads without copying.

    uint32      length of the header in bytes, little-endian
    header      JSON: what is where, and what is not an array
    sections    arrays one after the other, each at a multiple of 8 from the start of the block

A column of texts is a dictionary: `NAME` (int32, number of each row's text, -1: none), and its
texts as `NAME.bytes` (UTF-8, all in one) and `NAME.ends` (uint32, where each ends).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow
import pyarrow.compute

pa: Any = pyarrow
pc: Any = pyarrow.compute
Array = np.ndarray[Any, Any]
TYPES: Final = {
    "uint8": "u8",
    "int32": "i32",
    "uint32": "u32",
    "float64": "f64",
    "float32": "f32",
}
_ALIGNED: Final = 8


def packed(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Return one block. `meta`: what JSON can hold; `arrays`: of the types in `TYPES`."""
    sections, at, where = list[bytes](), 0, {}
    for name, array in arrays.items():
        body = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        where[name] = [TYPES[array.dtype.name], at, len(array)]
        padded = body.tobytes() + bytes(-body.nbytes % _ALIGNED)
        sections.append(padded)
        at += len(padded)
    header = json.dumps({"meta": meta, "arrays": where}, ensure_ascii=True).encode("ascii")
    header += b" " * (-(len(header) + 4) % _ALIGNED)
    return b"".join([len(header).to_bytes(4, "little"), header, *sections])


def texts(name: str, column: Any) -> dict[str, Array]:
    """Return a column of texts as the three arrays that the module describes; null is none."""
    if isinstance(column, pyarrow.ChunkedArray):
        column = column.combine_chunks()
    encoded = column.cast(pa.string()).dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int32)
    return {name: codes, **dictionary(name, encoded.dictionary)}


def dictionary(name: str, values: Any) -> dict[str, Array]:
    """Return texts without a column that names them by number."""
    values = pa.array(values, pa.string()) if isinstance(values, list) else values
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
    body = "".join(values.to_pylist()).encode("utf-8")
    return {
        f"{name}.bytes": np.frombuffer(body, np.uint8),
        f"{name}.ends": np.cumsum(lengths).astype(np.uint32),
    }
