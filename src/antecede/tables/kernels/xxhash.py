"""XXH64 of numbers and bytes with a seed for each value, as Spark's `xxhash64` chains columns.

Spark hashes a 32-bit number as its four bytes and a 64-bit one as its eight, little-endian.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels.jit import njit

Hashes = NDArray[np.uint64]
ByteArray = NDArray[np.uint8]
Longs = NDArray[np.int64]

P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
P5 = np.uint64(0x27D4EB2F165667C5)


@njit
def _rotl(x: np.uint64, by: int) -> np.uint64:
    return (x << np.uint64(by)) | (x >> np.uint64(64 - by))


@njit
def _mix(h: np.uint64) -> np.uint64:
    h ^= h >> np.uint64(33)
    h *= P2
    h ^= h >> np.uint64(29)
    h *= P3
    return h ^ (h >> np.uint64(32))


@njit
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return _rotl(lane + word * P2, 31) * P1


@njit
def _read_word(data: ByteArray, at: int, size: int) -> np.uint64:
    word = np.uint64(0)
    for k in range(size):
        word |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return word


@njit
def hash_ints(h: Hashes, values: NDArray[np.uint64], valid: NDArray[np.bool_]) -> None:
    """Fold 32-bit numbers (in the low halves) into `h`; nulls leave it unchanged."""
    for row in range(len(h)):
        if valid[row]:
            low = values[row] & np.uint64(0xFFFFFFFF)
            one = (h[row] + P5 + np.uint64(4)) ^ (low * P1)
            h[row] = _mix(_rotl(one, 23) * P2 + P3)


@njit
def hash_longs(h: Hashes, values: NDArray[np.uint64], valid: NDArray[np.bool_]) -> None:
    """Fold 64-bit numbers into `h`; nulls leave it unchanged."""
    for row in range(len(h)):
        if valid[row]:
            one = (h[row] + P5 + np.uint64(8)) ^ _round(np.uint64(0), values[row])
            h[row] = _mix(_rotl(one, 27) * P1 + P4)


@njit
def hash_bytes(h: Hashes, data: ByteArray, ends: Longs, valid: NDArray[np.bool_]) -> None:
    """Fold byte strings, `data[ends[row]:ends[row + 1]]`, into `h`; nulls leave it unchanged."""
    for row in range(len(h)):
        if valid[row]:
            h[row] = _hash(data, ends[row], ends[row + 1], h[row])


@njit
def _hash(data: ByteArray, at: int, end: int, seed: np.uint64) -> np.uint64:
    size = np.uint64(end - at)
    if end - at >= 32:
        a, b, c, d = seed + P1 + P2, seed + P2, seed, seed - P1
        while end - at >= 32:
            a = _round(a, _read_word(data, at, 8))
            b = _round(b, _read_word(data, at + 8, 8))
            c = _round(c, _read_word(data, at + 16, 8))
            d = _round(d, _read_word(data, at + 24, 8))
            at += 32
        h = _rotl(a, 1) + _rotl(b, 7) + _rotl(c, 12) + _rotl(d, 18)
        for lane in (a, b, c, d):
            h = (h ^ _round(np.uint64(0), lane)) * P1 + P4
    else:
        h = seed + P5
    h += size
    while end - at >= 8:
        h = _rotl(h ^ _round(np.uint64(0), _read_word(data, at, 8)), 27) * P1 + P4
        at += 8
    if end - at >= 4:
        h = _rotl(h ^ (_read_word(data, at, 4) * P1), 23) * P2 + P3
        at += 4
    while at < end:
        h = _rotl(h ^ (np.uint64(data[at]) * P5), 11) * P1
        at += 1
    return _mix(h)
