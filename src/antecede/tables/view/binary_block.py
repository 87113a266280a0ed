"""Binary block of arrays and texts, which a browser reads without copying.

    uint32      length of the header in bytes, little-endian
    header      JSON: offsets of the arrays, and all other data
    sections    arrays one after the other, each at a multiple of 8 from the start of the block

A text column is dictionary-encoded: `NAME` (int32, code of each row, -1: null), `NAME.bytes`
(UTF-8, concatenated texts) and `NAME.ends` (uint32, end of each text).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow

from antecede.tables.kernels import encode_column

Array = np.ndarray[Any, Any]
TYPE_NAMES: Final = {
    "uint8": "u8",
    "int32": "i32",
    "uint32": "u32",
    "float64": "f64",
    "float32": "f32",
}
_ALIGNED: Final = 8


def pack_block(meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Return one block. `meta`: JSON values; `arrays`: of the types in `TYPE_NAMES`."""
    sections, at, where = list[bytes](), 0, {}
    for name, array in arrays.items():
        body = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        where[name] = [TYPE_NAMES[array.dtype.name], at, len(array)]
        padded = body.tobytes() + bytes(-body.nbytes % _ALIGNED)
        sections.append(padded)
        at += len(padded)
    header = json.dumps({"meta": meta, "arrays": where}, ensure_ascii=True).encode("ascii")
    header += b" " * (-(len(header) + 4) % _ALIGNED)
    return b"".join([len(header).to_bytes(4, "little"), header, *sections])


def encode_texts(name: str, column: Any) -> dict[str, Array]:
    """Return a text column as the three arrays described in the module."""
    values, codes = encode_column(column.cast(pyarrow.string()))
    return {name: codes.astype(np.int32), **encode_dictionary(name, values)}


def encode_dictionary(name: str, values: Sequence[str]) -> dict[str, Array]:
    """Return texts without codes of rows."""
    encoded = [value.encode() for value in values]
    return {
        f"{name}.bytes": np.frombuffer(b"".join(encoded), np.uint8),
        f"{name}.ends": np.cumsum([len(text) for text in encoded]).astype(np.uint32),
    }
