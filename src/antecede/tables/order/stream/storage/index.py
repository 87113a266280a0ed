"""Index of n entries by key: buckets by the top bits of a hash, 32 bits an entry."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import inline, njit
from antecede.tables.order.stream.kernels.interning import hash_bytes
from antecede.tables.order.stream.kernels.rows import Bits, Ints, Longs

Hashes = NDArray[np.uint64]
Words = NDArray[np.uint32]

ENTRIES_PER_BUCKET = 4


class HashIndex(NamedTuple):
    """Entries by hash: those of bucket b are `item[bucket[b]:bucket[b + 1]]`, with low 32 bits."""

    bucket: Ints
    finger: Words
    item: Ints


@inline
def mix_number(value: np.uint64, number: int) -> np.uint64:
    """Return the hash of a name's hash and a number."""
    value = (value ^ np.uint64(number)) * np.uint64(0xD6E8FEB86659FD93)
    value ^= value >> np.uint64(32)
    value *= np.uint64(0xD6E8FEB86659FD93)
    return value ^ (value >> np.uint64(32))


@njit
def hash_keys(namespace: Longs, data: Bits, ends: Longs) -> Hashes:
    """Return the hash of each of n keys: namespace i and data[ends[i]:ends[i + 1]]."""
    out = np.empty(len(namespace), np.uint64)
    for key in range(len(namespace)):
        out[key] = hash_bytes(data, ends[key], ends[key + 1], namespace[key])
    return out


@njit
def mix_numbers(value: Hashes, number: Longs) -> Hashes:
    """Return the hashes of names and numbers."""
    out = np.empty(len(value), np.uint64)
    for key in range(len(value)):
        out[key] = mix_number(value[key], number[key])
    return out


@inline
def find_bucket(value: np.uint64, buckets: int) -> int:
    """Return the bucket of a hash; `buckets` is a power of two."""
    high = np.int64(value >> np.uint64(32))
    return int(high * buckets >> 32)


@njit
def build_index(value: Hashes) -> HashIndex:
    """Index n hashes; entries of one bucket keep their order."""
    buckets = 1
    while buckets * ENTRIES_PER_BUCKET < len(value):
        buckets *= 2
    bucket = np.zeros(buckets + 1, np.int32)
    for entry in range(len(value)):
        bucket[find_bucket(value[entry], buckets) + 1] += 1
    for at in range(buckets):
        bucket[at + 1] += bucket[at]
    fill = bucket[:-1].copy()
    finger = np.empty(len(value), np.uint32)
    item = np.empty(len(value), np.int32)
    for entry in range(len(value)):
        at = find_bucket(value[entry], buckets)
        finger[fill[at]] = np.uint32(value[entry] & np.uint64(0xFFFFFFFF))
        item[fill[at]] = entry
        fill[at] += 1
    return HashIndex(bucket, finger, item)


@njit
def count_candidates(bucket: Ints, finger: Words, value: Hashes, pending: Bits) -> int:
    """Return the number of pending keys with an entry of the same finger (few by chance)."""
    found = 0
    buckets = len(bucket) - 1
    for key in range(len(value)):
        if pending[key]:
            at = find_bucket(value[key], buckets)
            low = np.uint32(value[key] & np.uint64(0xFFFFFFFF))
            for entry in range(bucket[at], bucket[at + 1]):
                if finger[entry] == low:
                    found += 1
                    break
    return found
