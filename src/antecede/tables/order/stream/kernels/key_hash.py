"""64 bits of an owner and some bytes, for tables that compare the bytes afterwards.

Indexes by this hash are stored in checkpoints, so it never changes:
`tests/tables/order/stream/test_parts.py` holds values of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import inlined

Bits = NDArray[np.uint8]


@inlined
def hash_bytes(data: Bits, start: int, stop: int, owner: int) -> np.uint64:
    """Return 64 bits of an owner and some bytes: eight at a time, multiply and fold."""
    prime = np.uint64(0x9E3779B97F4A7C15)
    shift = np.uint64(29)
    value = (np.uint64(owner) + np.uint64(stop - start)) * prime
    word = np.uint64(0)
    bits = np.uint64(0)
    for at in range(start, stop):
        word |= np.uint64(data[at]) << bits
        bits += np.uint64(8)
        if bits == np.uint64(64):
            value = (value ^ word) * prime
            value ^= value >> shift
            word = np.uint64(0)
            bits = np.uint64(0)
    value = (value ^ word) * prime
    value ^= value >> shift
    value *= prime
    return value ^ (value >> np.uint64(32))
