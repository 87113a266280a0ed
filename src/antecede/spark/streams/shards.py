"""Grouping keys of shards that Spark distributes evenly over its tasks.

Spark assigns a key to the task `pmod(murmur3(key), tasks)`. The keys below are the least numbers
that use each of n tasks once, and so every divisor of n evenly.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_BATCH = 1 << 16
MIN_SHARDS = 32
"""Default minimum of shards; more do not slow a micro-batch (`docs/design/streaming.md`)."""


def choose_shard_count(tasks: int) -> int:
    """Return the shards of a new stream: the tasks, doubled until they reach MIN_SHARDS."""
    shards = tasks
    while shards < MIN_SHARDS:
        shards *= 2
    return shards


@lru_cache(maxsize=8)
def find_shard_keys(shards: int) -> NDArray[np.int32]:
    """Return the grouping key of each shard, shape (shards,): the k-th is in task k of n."""
    keys = np.full(shards, -1, np.int64)
    start, lacking = 0, shards
    while lacking:
        words = np.arange(start, start + _BATCH, dtype=np.int64)
        task, first = np.unique(murmur3(words).astype(np.int64) % shards, return_index=True)
        new = keys[task] < 0
        keys[task[new]] = words[first[new]]
        lacking -= int(new.sum())
        start += _BATCH
    return keys.astype(np.int32)


def murmur3(words: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return Spark's hash of 32-bit integers (Murmur3_x86_32 of four bytes, seed 42)."""
    with np.errstate(over="ignore"):
        k = words.astype(np.uint32) * np.uint32(0xCC9E2D51)
        k = _rotate(k, 15) * np.uint32(0x1B873593)
        h = _rotate(np.uint32(42) ^ k, 13) * np.uint32(5) + np.uint32(0xE6546B64)
        h ^= np.uint32(4)
        h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        return (h ^ (h >> np.uint32(16))).view(np.int32)


def _rotate(word: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
    return (word << np.uint32(by)) | (word >> np.uint32(32 - by))
