"""Reader of the binary block of `antecede.tables.view.binary_block`, for tests."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np

TYPES = {"u8": "<u1", "i32": "<i4", "u32": "<u4", "f32": "<f4", "f64": "<f8"}


def unpacked(block: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and arrays; dictionary texts as NAME.texts."""
    length = int.from_bytes(block[:4], "little")
    header = json.loads(block[4 : 4 + length])
    arrays: dict[str, Any] = {}
    for name, (kind, at, size) in header["arrays"].items():
        assert (4 + length + at) % 8 == 0
        arrays[name] = np.frombuffer(block, TYPES[kind], size, 4 + length + at)
    for name in [name for name in arrays if name.endswith(".ends")]:
        column = name.removesuffix(".ends")
        body = arrays[f"{column}.bytes"].tobytes()
        ends = [0, *arrays[name].tolist()]
        arrays[f"{column}.texts"] = [body[a:b].decode() for a, b in pairwise(ends)]
    return header["meta"], arrays
