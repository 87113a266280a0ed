"""The packed state of a shard: named NumPy arrays in one bytes value.

Layout: magic, version, number of entries; for each entry its name, type and number of
elements; then the data of all entries, each begun at a multiple of eight bytes. Nothing is
pickled: what does not fit this layout raises InputError. Reading copies once as a whole, as
kernels take arrays that may be written only (numba compiles again for read-only ones).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from antecede.errors import InputError

_MAGIC = b"antecede"
_VERSION = 1
_HEAD = struct.Struct("<8sII")
_ENTRY = struct.Struct("<16s4sQ")
_TYPES = {b"u1", b"i4", b"u4", b"i8"}


def pack(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return one bytes value of one-dimensional arrays (uint8, int32, uint32, int64)."""
    heads = [_HEAD.pack(_MAGIC, _VERSION, len(arrays))]
    parts: list[bytes] = []
    for name, array in arrays.items():
        kind = array.dtype.str[1:].encode()
        heads.append(_ENTRY.pack(name.encode(), kind, len(array)))
        parts.append(array.tobytes() + bytes(-array.nbytes % 8))
    head = b"".join(heads)
    return b"".join([head, bytes(-len(head) % 8), *parts])


def opened(data: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays that `pack` wrote, where they stand in a writable buffer.

    Raises InputError on other bytes.
    """
    if len(data) < _HEAD.size:
        raise InputError(f"the state of a shard is cut short at {len(data)} bytes")
    magic, version, count = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != _VERSION:
        raise InputError(
            f"the state of a shard was written by another version (format {version}, this is "
            f"{_VERSION}); start from a new checkpoint"
        )
    end = _HEAD.size + count * _ENTRY.size
    offset = end + -end % 8
    arrays: dict[str, NDArray[Any]] = {}
    for index in range(count):
        if end > len(data):
            raise InputError("the state of a shard is cut short in its table of contents")
        name, kind, size = _ENTRY.unpack_from(data, _HEAD.size + index * _ENTRY.size)
        kind = kind.rstrip(b"\0")
        nbytes = size * int(kind[1:]) if kind in _TYPES else -1
        if nbytes < 0 or offset + nbytes > len(data):
            raise InputError(f"the state of a shard is damaged at entry {index}")
        dtype = np.dtype("<" + kind.decode())
        arrays[name.rstrip(b"\0").decode()] = np.frombuffer(data, dtype, size, offset)
        offset += nbytes + -nbytes % 8
    return arrays
