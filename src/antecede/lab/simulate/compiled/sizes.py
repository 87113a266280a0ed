"""Encoded sizes of control information in bytes, without encoding it.

Compiled twins of `core.protocols.vector.base.encode_with_pairs` (BSS, IDR, DS) and of
`core.protocols.hierarchical.messages.encode`: exactly `len(encode(message))`. Formats:
`core.clocks.encoding.rice`, `.windows` and `.counters`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from antecede.tables.kernels import inline, njit

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

MAX_LOW = 7  # Highest Rice parameter of ranges, as in `windows`
ANY_LOW = 64

_0, _1, _2, _4 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4)
_01, _56 = np.uint64(0x0101010101010101), np.uint64(56)
_55, _33, _0F = (np.uint64(0x0101010101010101 * byte) for byte in (0x55, 0x33, 0x0F))


@njit
def pairs_message_size(sender: int, seq: int, members: Ints, counters: Ints, count: int) -> int:
    """Return the bytes of an IDR, DS or BSS message with `count` pairs; members ascend."""
    head = varint_size(sender) + varint_size(seq)
    return head + counters_size(members, counters, count)


@njit
def vector_message_size(sender: int, seq: int, causes: Ints) -> int:
    """Return the bytes of an IDR, DS or BSS message. `causes[k]` is of member k, 0: none."""
    members = np.empty(len(causes), np.int64)
    counters = np.empty(len(causes), np.int64)
    count = 0
    for member in range(len(causes)):
        if causes[member]:
            members[count], counters[count] = member, causes[member]
            count += 1
    return pairs_message_size(sender, seq, members, counters, count)


@njit
def internal_size(sender: int, seq: int, announced: int, near: int, base: int, words: Words) -> int:
    """Return the bytes of a Downward or Upward message. DV need not be trimmed.

    Bit 0 of `words[0]` is position base + 1 of DV. `announced`: Last or the lower bound. `near`:
    the number (Downward) or the lower bound (Upward) that DV is encoded relative to.
    """
    head = 1 + varint_size(sender) + varint_size(seq) + varint_size(announced)
    return head + near_window_size(base, words, near)


@njit
def external_size(
    sender: int, seq: int, ci_counters: int, ci_vectors: int, vectors: int, translated: int
) -> int:
    """Return the bytes of an External message from the sizes of its parts.

    `ci_counters`: `counters_size` of CI's integers. `vectors`, `ci_vectors`: number of CI's bit
    vectors, sum of their `vector_entry_size`. `translated`: `window_size` of I.
    """
    head = 1 + varint_size(sender) + varint_size(seq)
    ci = varint_size(ci_counters) + ci_counters + varint_size(vectors) + ci_vectors
    return head + ci + translated


@njit
def vector_entry_size(super_peer: int, base: int, words: Words) -> int:
    """Return the bytes of a super peer's number and bit vector in CI (0: empty, no entry)."""
    size = window_size(base, words)
    return 0 if size == 1 else varint_size(super_peer) + varint_size(size) + size


@njit
def counters_size(members: Ints, counters: Ints, count: int) -> int:
    """Return `len(counters.encode(members, counters))` of the first `count`."""
    if count == 0:
        return 1
    total = 0
    for k in range(count):
        total += counters[k]
    mean = (2 * total + count) // (2 * count)
    bits, head = _measure_runs(members, count)
    size = head + varint_size(members[0]) + varint_size(mean)
    if count == 1:
        return size
    apart = np.empty(count, np.int64)
    for k in range(count):
        apart[k] = zigzag(counters[k] - mean)
    return size + 1 + (bits + rice_bits(apart, count, ANY_LOW) + 7) // 8


@njit
def window_size(base: int, words: Words) -> int:
    """Return `len(windows.encode(base, bits))` after trimming (1: nothing is set)."""
    positions = set_positions(base, words)
    if len(positions) == 0:
        return 1
    bits, head = _measure_runs(positions, len(positions))
    return head + varint_size(positions[0] - 1) + (bits + 7) // 8


@njit
def near_window_size(base: int, words: Words, near: int) -> int:
    """Return `len(windows.encode(base, bits, near))` after trimming (1: nothing is set)."""
    positions = set_positions(base, words)
    if len(positions) == 0:
        return 1
    bits, head = _measure_runs(positions, len(positions))
    return head + varint_size(zigzag(positions[0] - 1 - near)) + (bits + 7) // 8


@njit
def set_positions(base: int, words: Words) -> Ints:
    """Return the positions that are set, ascending."""
    count = 0
    for word in words:
        count += int(ones(word))
    positions = np.empty(count, np.int64)
    count = 0
    for k in range(len(words)):
        word = words[k]
        while word != _0:
            lowest = word & (~word + _1)
            positions[count] = base + 1 + 64 * k + int(ones(lowest - _1))
            count += 1
            word ^= lowest
    return positions


@njit
def _measure_runs(members: Ints, count: int) -> tuple[int, int]:
    span = members[count - 1] - members[0] + 1
    if span + 2 < 2 * count:
        runs = _list_runs_of_ones(members, count, span - count + 1)
        return rice_bits(runs, len(runs), MAX_LOW), varint_size(len(runs) << 4)
    runs = np.empty(count - 1, np.int64)
    for k in range(count - 1):
        runs[k] = members[k + 1] - members[k] - 1
    return rice_bits(runs, count - 1, MAX_LOW), varint_size(count << 4)


@njit
def _list_runs_of_ones(members: Ints, count: int, runs: int) -> Ints:
    lengths = np.zeros(runs, np.int64)
    at = 0
    lengths[0] = 1
    for k in range(1, count):
        at += members[k] - members[k - 1] - 1
        lengths[at] += 1
    return lengths


@njit
def rice_bits(numbers: Ints, count: int, max_low: int) -> int:
    """Return the bits of numbers with the best Rice parameter up to `max_low` (`encoding.rice`)."""
    total = 0
    for k in range(count):
        total += numbers[k]
    low = 0
    while low < max_low and total > count << low:
        if total <= 3 * count << low:
            halves = 0
            for k in range(count):
                halves += ((numbers[k] >> low) + 1) >> 1
            if halves <= count:
                break
        low += 1
    bits = count * (low + 1)
    for k in range(count):
        bits += numbers[k] >> low
    return bits


@inline
def zigzag(number: int) -> int:
    """Return 0, 1, 2, 3, 4 for 0, -1, 1, -2, 2."""
    return 2 * number if number >= 0 else -2 * number - 1


@inline
def varint_size(number: int) -> int:
    """Return the bytes of a number as a varint."""
    size = 1
    while number > 127:
        number >>= 7
        size += 1
    return size


@inline
def ones(word: np.uint64) -> np.uint64:
    """Return the number of bits that are set."""
    word -= (word >> _1) & _55
    word = (word & _33) + ((word >> _2) & _33)
    word = (word + (word >> _4)) & _0F
    return np.uint64((word * _01) >> _56)
