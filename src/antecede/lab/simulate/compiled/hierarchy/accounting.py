"""Sizes by Evropeytsev et al.'s accounting: integers 4, pairs 8, bit vectors by their span.

A span is from the first to the last set bit, numbered by the vector's super peer, without headers.
"""

from __future__ import annotations

import math

import numpy as np

from antecede.lab.simulate.compiled.hierarchy.jit import inline, njit
from antecede.lab.simulate.compiled.hierarchy.records import HAVE, NOWHERE, ByteSums
from antecede.lab.simulate.compiled.hierarchy.sets import contains, has_arrived, list_needs
from antecede.lab.simulate.compiled.hierarchy.state import HierarchyState

_0, _1, _3, _7, _8 = (np.uint64(k) for k in (0, 1, 3, 7, 8))


@inline
def count_bytes(sums: ByteSums, size: np.uint64, wire: np.uint64) -> None:
    """Add a message to the sums of a role."""
    sums.count += 1
    sums.total += np.int64(size)
    sums.squares += np.int64(size * size)
    sums.wire += np.int64(wire)


@inline
def find_group(s: HierarchyState, message: np.uint64) -> np.uint64:
    """Return the group of a message's sender, NOWHERE for an external peer."""
    return np.uint64(s.process[s.message[message].sender].group)


@inline
def measure_span(lowest: np.uint64, highest: np.uint64) -> np.uint64:
    """Return the bytes of a bit vector between two set positions."""
    return np.uint64((highest - lowest + _8) >> _3)


@inline
def extend_span(
    s: HierarchyState, group: np.uint64, number: np.uint64, touched: np.uint64
) -> np.uint64:
    """Add a position to the span of a super peer's bit vector. Return the number of spans."""
    if s.group[group].highest_bit == _0:
        s.group[touched].touched = group
        touched += _1
        s.group[group].lowest_bit = s.group[group].highest_bit = number
    else:
        s.group[group].lowest_bit = min(s.group[group].lowest_bit, number)
        s.group[group].highest_bit = max(s.group[group].highest_bit, number)
    return touched


@njit
def measure_ci(s: HierarchyState, count: np.uint64) -> np.uint64:
    """Return the bytes of CI with the first `count` messages of `listed`."""
    pairs = touched = _0
    for k in range(count):
        group = find_group(s, s.listed[k])
        if group == NOWHERE:
            pairs += _1
        else:
            touched = extend_span(s, group, np.uint64(s.number[group, s.listed[k]]), touched)
    total = _8 * pairs
    for k in range(touched):
        group = s.group[k].touched
        total += measure_span(s.group[group].lowest_bit, s.group[group].highest_bit)
        s.group[group].highest_bit = _0
    return total


@inline
def is_forgotten(s: HierarchyState, group: np.uint64, message: np.uint64) -> bool:
    """Return True if a super peer's TT had a message and dropped it."""
    if find_group(s, message) == group:
        return False
    number = np.uint64(s.number[group, message])
    return bool(number <= s.group[group].least_bound)


@njit
def list_internal(s: HierarchyState, group: np.uint64, message: np.uint64) -> np.uint64:
    """List DV of a message in a group in `listed` (Listings 14 and 15). Return the count."""
    own = find_group(s, message) == group
    count = list_needs(s, message, _0)
    if own:
        return count
    if find_group(s, message) != NOWHERE and s.message[message].before != 0:
        s.listed[count] = np.uint64(s.message[message].before) - _1
        count += _1
    kept = _0
    for k in range(count):
        if not is_forgotten(s, group, s.listed[k]):
            s.listed[kept] = s.listed[k]
            kept += _1
    return kept


@njit
def find_internal_span(
    s: HierarchyState, group: np.uint64, count: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Return lowest and highest number of the first `count` of the list; 1, 0: none."""
    lowest, highest = NOWHERE, _0
    for k in range(count):
        number = np.uint64(s.number[group, s.listed[k]])
        lowest = min(lowest, number)
        highest = max(highest, number)
    if count == _0:
        return _1, _0
    return lowest, highest


@njit
def compute_entropy(window: np.uint64, chosen: np.uint64) -> float:
    """Return log2 of (window over chosen) / 8."""
    rest = window - chosen
    logs = math.lgamma(window + 1.0) - math.lgamma(chosen + 1.0) - math.lgamma(rest + 1.0)
    return logs / math.log(2.0) / 8.0


@njit
def is_known(s: HierarchyState, index: np.uint64, group: np.uint64, message: np.uint64) -> bool:
    """Return True if VTx has the number of a message that this super peer translated.

    I of the super peer's first own message after it contains the number, or I of one that needs it.
    """
    first = s.group[group].own_first
    position = _find_own_position(s, group, message)
    if position == s.group[group].own_count:
        return False
    if has_arrived(s, index, np.uint64(s.message[first + position].own)) == _1:
        return True
    for k in range(position + _1, s.group[group].own_count):
        other = np.uint64(s.message[first + k].own)
        if has_arrived(s, index, other) == _1 and _has_need(s, other, message):
            return True
    return False


@inline
def _find_own_position(s: HierarchyState, group: np.uint64, message: np.uint64) -> np.uint64:
    number = s.number[group, message]
    first, low, high = s.group[group].own_first, _0, s.group[group].own_count
    while low < high:
        middle = (low + high) >> _1
        if s.number[group, np.uint64(s.message[first + middle].own)] > number:
            high = middle
        else:
            low = middle + _1
    return low


@inline
def _has_need(s: HierarchyState, message: np.uint64, other: np.uint64) -> bool:
    block = other >> np.uint64(9)
    bottom = np.uint64(s.message[message].bottom)
    if not bottom <= block < bottom + np.uint64(s.message[message].rows):
        return False
    row = np.uint64(s.message[message].row) + block - bottom
    word = s.needs[row, 0, (other >> np.uint64(6)) & _7]
    return bool((word >> (other & np.uint64(63))) & _1 == _1)


@njit
def measure_vtx(
    s: HierarchyState, index: np.uint64, address: np.uint64, group: np.uint64
) -> np.uint64:
    """Return the bytes of VTx from its first gap to its last bit, for one super peer.

    I contains all numbers between a super peer's own messages. So nothing is missing up to its last
    own message that is delivered without a gap.
    """
    first = s.group[group].own_first
    done = np.uint64(s.vtx[index, group].own_complete)
    while (
        done < s.group[group].own_count
        and contains(s, HAVE, address, np.uint64(s.message[first + done].own)) == _1
    ):
        done += _1
    s.vtx[index, group].own_complete = done
    base = _0
    if done != _0:
        base = np.uint64(s.number[group, np.uint64(s.message[first + done - _1].own)])
    top = np.uint64(s.vtx[index, group].top)
    if top <= base:
        return _0
    following = s.message[first + done].own
    if has_arrived(s, index, np.uint64(following)) == _1:
        base = np.uint64(s.number[group, np.uint64(following)]) - _1
    else:
        end = np.uint64(s.number[group, np.uint64(following)]) - _1
        while base < end and is_known(s, index, group, np.uint64(s.order[group, base + _1])):
            base += _1
    return np.uint64((top - base + _7) >> _3)
