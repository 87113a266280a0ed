"""Compiled twin of `antecede.lab.simulate.random_streams` and `delays.pick`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from antecede.tables.kernels import inline

I_FACTOR = np.uint64(0xA0761D6478BD642F)
J_FACTOR = np.uint64(0xE7037ED1A0B428DB)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_CELL, _PART = np.uint64(52), np.uint64(32)
_PART_MASK, _PART_BITS = np.uint64((1 << 20) - 1), np.int64(20)


@inline
def draw(key: np.uint64, i: np.uint64, j: np.uint64) -> np.uint64:
    """Return 64 random bits, like `lab.simulate.random_streams.draw`."""
    word = key + i * I_FACTOR + j * J_FACTOR
    word = (word ^ (word >> _30)) * MIX_1
    word = (word ^ (word >> _27)) * MIX_2
    return word ^ (word >> _31)


@inline
def pick(table: npt.NDArray[np.int64], word: np.uint64) -> np.int64:
    """Return the delay in microseconds for 64 random bits, like `delays.pick`."""
    cell = word >> _CELL
    part = np.int64((word >> _PART) & _PART_MASK)
    low = table[cell]
    return np.int64(low + (((table[cell + np.uint64(1)] - low) * part) >> _PART_BITS))
