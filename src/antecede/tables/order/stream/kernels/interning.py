"""Interning of names: a hash table from (namespace, bytes) to 0, 1, 2, ... in flat arrays.

The names are concatenated in `pool`; `ends[i]` is the end of name i. `namespace[i]` distinguishes
equal names (ids of different groups). `slots` is an open-addressing table, at most half full.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from antecede.tables.kernels import inline, njit
from antecede.tables.order.stream.kernels.rows import Bits, Ints, Longs


class Text(NamedTuple):
    """Sequence of n byte strings: string i is `data[ends[i]:ends[i + 1]]`."""

    data: Bits
    ends: Longs

    @property
    def size(self) -> int:
        """Number of strings."""
        return len(self.ends) - 1

    def get(self, index: int) -> bytes:
        """Return one of the strings."""
        return self.data[self.ends[index] : self.ends[index + 1]].tobytes()

    def take(self, pick: Ints) -> Text:
        """Return the picked strings, in the order of `pick`."""
        return Text(*_take(self.data, self.ends, pick))


@inline
def hash_bytes(data: Bits, start: int, stop: int, namespace: int) -> np.uint64:
    """Return a 64-bit hash of a namespace and some bytes; checkpoints store it, so it is fixed."""
    prime = np.uint64(0x9E3779B97F4A7C15)
    shift = np.uint64(29)
    value = (np.uint64(namespace) + np.uint64(stop - start)) * prime
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


@inline
def is_equal(a: Bits, start: int, stop: int, b: Bits, other: int, end: int) -> bool:
    """Return whether a[start:stop] and b[other:end] are equal."""
    if stop - start != end - other:
        return False
    for offset in range(stop - start):  # noqa: SIM110 (numba takes no generators)
        if a[start + offset] != b[other + offset]:
            return False
    return True


@njit
def _refill(slots: Ints, size: int, namespace: Ints, ends: Longs, pool: Bits) -> None:
    mask = np.uint64(len(slots) - 1)
    slots[:] = -1
    for name in range(size):
        at = hash_bytes(pool, ends[name], ends[name + 1], namespace[name]) & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = name


@njit
def _intern(
    slots: Ints,
    size: int,
    namespace: Ints,
    ends: Longs,
    pool: Bits,
    namespaces: Ints,
    data: Bits,
    starts: Longs,
    out: Ints,
) -> int:
    mask = np.uint64(len(slots) - 1)
    for item in range(len(out)):
        start, stop = starts[item], starts[item + 1]
        at = hash_bytes(data, start, stop, namespaces[item]) & mask
        found = -1
        while slots[at] >= 0:
            name = slots[at]
            base, end = ends[name], ends[name + 1]
            if namespace[name] == namespaces[item] and is_equal(pool, base, end, data, start, stop):
                found = name
                break
            at = (at + np.uint64(1)) & mask
        if found < 0:
            found = size
            slots[at] = found
            namespace[found] = namespaces[item]
            base = ends[found]
            for offset in range(stop - start):
                pool[base + offset] = data[start + offset]
            ends[found + 1] = base + stop - start
            size += 1
        out[item] = found
    return size


@njit
def _take(data: Bits, ends: Longs, pick: Ints) -> tuple[Bits, Longs]:
    new_ends = np.zeros(len(pick) + 1, np.int64)
    for item in range(len(pick)):
        name = pick[item]
        new_ends[item + 1] = new_ends[item] + ends[name + 1] - ends[name]
    out = np.empty(new_ends[len(pick)], np.uint8)
    for item in range(len(pick)):
        start = ends[pick[item]]
        base = new_ends[item]
        for offset in range(new_ends[item + 1] - base):
            out[base + offset] = data[start + offset]
    return out, new_ends


class NameTable:
    """Growing set of numbered names."""

    def __init__(self) -> None:
        self.size = 0
        self.namespace = np.empty(0, np.int32)
        self.ends = np.zeros(1, np.int64)
        self.pool = np.empty(0, np.uint8)
        self.slots = np.empty(0, np.int32)

    def intern(self, namespaces: Ints, text: Text) -> Ints:
        """Return the number of each (namespace, name); new ones get the next numbers."""
        out = np.empty(text.size, np.int32)
        self._reserve(text.size, int(text.ends[-1] - text.ends[0]))
        self.size = _intern(
            self.slots, self.size, self.namespace, self.ends, self.pool, namespaces, *text, out
        )
        return out

    def get_all(self) -> Text:
        """Return all names in the order of their numbers."""
        return Text(self.pool[: self.ends[self.size]], self.ends[: self.size + 1])

    def take(self, pick: Ints) -> Text:
        """Return the names of these numbers."""
        return Text(self.pool, self.ends).take(pick)

    def _reserve(self, names: int, room: int) -> None:
        need = self.size + names
        used = int(self.ends[self.size])
        if need > len(self.namespace):
            self.namespace = _grow(self.namespace, self.size, need)
            self.ends = _grow(self.ends, self.size + 1, need + 1)
        if used + room > len(self.pool):
            self.pool = _grow(self.pool, used, used + room)
        if 2 * need > len(self.slots):
            self.slots = np.empty(1 << (2 * need).bit_length(), np.int32)
            _refill(self.slots, self.size, self.namespace, self.ends, self.pool)


def _grow(array: NDArray[Any], used: int, need: int) -> NDArray[Any]:
    grown = np.empty(need + need // 2, array.dtype)
    grown[:used] = array[:used]
    return grown
