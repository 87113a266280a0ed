"""Sets of the compiled hierarchy: needs of messages, and what these imply.

A message needs DV or CI of its sender, and its sender's previous message (`Last`, Listing 14 line
4, FIFO order of external peers), so FIFO and causal order are one AND-NOT. Where that one bit lies
outside of a message's rows, only `far` has it. On request the needs by IDR stand beside these bits,
and deliveries are compared with them.

Bits that a super peer's TT has forgotten stay here. With safe pruning every peer of the group has
delivered these messages, so they change only bytes, which are counted without them (`accounting`).
"""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy.jit import inlined, njit
from antecede.lab.simulate.compiled.hierarchy.records import DEPENDENCIES, HAVE, IDR_DEPENDENCIES
from antecede.lab.simulate.compiled.hierarchy.state import HierarchyState
from antecede.tables.kernels import ones

_0, _1, _6, _7, _9, _63 = (np.uint64(k) for k in (0, 1, 6, 7, 9, 63))


@inlined
def bit(message: np.uint64) -> np.uint64:
    """Return a word with the message's bit."""
    return np.uint64(_1 << (message & _63))


@inlined
def contains(s: HierarchyState, which: np.uint64, at: np.uint64, message: np.uint64) -> np.uint64:
    """Return 1 when a set of a process has a message, else 0."""
    word = s.sets[message >> _9, at, which, (message >> _6) & _7]
    return np.uint64((word >> (message & _63)) & _1)


@inlined
def add(s: HierarchyState, which: np.uint64, at: np.uint64, message: np.uint64) -> None:
    """Put a message into a set of a process."""
    s.sets[message >> _9, at, which, (message >> _6) & _7] |= bit(message)


@inlined
def remove(s: HierarchyState, which: np.uint64, at: np.uint64, message: np.uint64) -> None:
    """Take a message out of a set of a process."""
    s.sets[message >> _9, at, which, (message >> _6) & _7] &= ~bit(message)


@inlined
def has_arrived(s: HierarchyState, place: np.uint64, message: np.uint64) -> np.uint64:
    """Return 1 when a message has arrived at a place of the external group, else 0."""
    word = s.arrived[message >> _9, place, (message >> _6) & _7]
    return np.uint64((word >> (message & _63)) & _1)


@inlined
def add_arrived(s: HierarchyState, place: np.uint64, message: np.uint64) -> None:
    """Note that a message has arrived at a place of the external group."""
    s.arrived[message >> _9, place, (message >> _6) & _7] |= bit(message)


@inlined
def is_missing_needs(s: HierarchyState, at: np.uint64, message: np.uint64) -> bool:
    """Tell whether a process misses anything that a message needs."""
    found, row = _0, np.uint64(s.message[message].row)
    block = np.uint64(s.message[message].bottom)
    for k in range(np.uint64(s.message[message].rows)):
        for word in range(8):
            found |= s.needs[row + k, 0, word] & ~s.sets[block + k, at, HAVE, word]
    if found == _0 and s.message[message].far_before != 0:
        return bool(contains(s, HAVE, at, np.uint64(s.message[message].far_before) - _1) == _0)
    return bool(found != _0)


@inlined
def remove_implied(s: HierarchyState, at: np.uint64, message: np.uint64) -> None:
    """Let what a message needs be implied by it: Listing 6 lines 3 to 5, Listing 12."""
    row, block = np.uint64(s.message[message].row), np.uint64(s.message[message].bottom)
    for k in range(np.uint64(s.message[message].rows)):
        for word in range(8):
            s.sets[block + k, at, DEPENDENCIES, word] &= ~s.needs[row + k, 0, word]
    if s.message[message].far_before != 0:
        remove(s, DEPENDENCIES, at, np.uint64(s.message[message].far_before) - _1)


@inlined
def remove_implied_by_idr(s: HierarchyState, at: np.uint64, message: np.uint64) -> np.uint64:
    """Do the same for IDR's CI; return 0 when everything that IDR carries is there."""
    early, row = _0, np.uint64(s.message[message].row)
    block = np.uint64(s.message[message].bottom)
    for k in range(np.uint64(s.message[message].rows)):
        for word in range(8):
            named = s.needs[row + k, 1, word]
            s.sets[block + k, at, IDR_DEPENDENCIES, word] &= ~named
            early |= named & ~s.sets[block + k, at, HAVE, word]
    if s.message[message].far_before != 0:
        before = np.uint64(s.message[message].far_before) - _1
        remove(s, IDR_DEPENDENCIES, at, before)
        early |= _1 - contains(s, HAVE, at, before)
    return early


@inlined
def add_dependency(s: HierarchyState, at: np.uint64, message: np.uint64) -> None:
    """Let a delivered message be an immediate dependency of the next one."""
    add(s, DEPENDENCIES, at, message)
    if s.selection.violations:
        add(s, IDR_DEPENDENCIES, at, message)
    block = message >> _9
    if s.process[at].low == s.process[at].high:
        s.process[at].low = block
        s.process[at].high = block + _1
    else:
        s.process[at].low = min(s.process[at].low, block)
        s.process[at].high = max(s.process[at].high, block + _1)


@inlined
def _is_empty(s: HierarchyState, at: np.uint64, block: np.uint64) -> bool:
    some = _0
    for word in range(8):
        some |= s.sets[block, at, DEPENDENCIES, word]
    if s.selection.violations:
        for word in range(8):
            some |= s.sets[block, at, IDR_DEPENDENCIES, word]
    return bool(some == _0)


@inlined
def trim(s: HierarchyState, at: np.uint64) -> None:
    """Pass over blocks in which a process has nothing any more."""
    while s.process[at].low < s.process[at].high and _is_empty(s, at, s.process[at].low):
        s.process[at].low += _1


@inlined
def attach_needs(s: HierarchyState, at: np.uint64, message: np.uint64) -> None:
    """Let a message carry what its sender has in DV or CI, and empty these (Listings 4 and 9)."""
    trim(s, at)
    row, first = s.counters.used, s.process[at].low
    count = s.process[at].high - first
    if row + count >= np.uint64(len(s.needs)):
        s.counters.is_full = _1
        count = _0
    for k in range(count):
        for word in range(8):
            s.needs[row + k, 0, word] = s.sets[first + k, at, DEPENDENCIES, word]
            s.sets[first + k, at, DEPENDENCIES, word] = _0
        if s.selection.violations:
            for word in range(8):
                s.needs[row + k, 1, word] = s.sets[first + k, at, IDR_DEPENDENCIES, word]
                s.sets[first + k, at, IDR_DEPENDENCIES, word] = _0
    s.counters.used += count
    s.message[message].row = row
    s.message[message].bottom = first
    s.message[message].rows = count
    s.process[at].low = s.process[at].high


@inlined
def add_previous(s: HierarchyState, message: np.uint64) -> None:
    """Let a message need its sender's message before it, too."""
    if s.message[message].before != 0:
        before = np.uint64(s.message[message].before) - _1
        bottom, row = np.uint64(s.message[message].bottom), np.uint64(s.message[message].row)
        block = before >> _9
        if bottom <= block < bottom + np.uint64(s.message[message].rows):
            word = (before >> _6) & _7
            s.needs[row + block - bottom, 0, word] |= bit(before)
            if s.selection.violations:
                s.needs[row + block - bottom, 1, word] |= bit(before)
        else:
            s.message[message].far_before = s.message[message].before


@inlined
def _append(s: HierarchyState, word: np.uint64, first: np.uint64, count: np.uint64) -> np.uint64:
    while word != _0:
        lowest = word & (~word + _1)
        s.listed[count] = first + ones(lowest - _1)
        count += _1
        word ^= lowest
    return count


@njit
def list_needs(s: HierarchyState, message: np.uint64, which: np.uint64) -> np.uint64:
    """Put the needs of a message but its sender's previous one into `list`; return how many.

    `which`: 0 by the protocol, 1 by IDR.
    """
    count, row = _0, np.uint64(s.message[message].row)
    bottom = np.uint64(s.message[message].bottom)
    for k in range(np.uint64(s.message[message].rows)):
        for word in range(_0, np.uint64(8)):
            bits = s.needs[row + k, which, word]
            count = _append(s, bits, ((bottom + k) << _9) | (word << _6), count)
    if s.message[message].before != 0 and s.message[message].far_before == 0:
        return _remove_message(s, count, np.uint64(s.message[message].before) - _1)
    return count


@inlined
def _remove_message(s: HierarchyState, count: np.uint64, message: np.uint64) -> np.uint64:
    kept = _0
    for k in range(count):
        if s.listed[k] != message:
            s.listed[kept] = s.listed[k]
            kept += _1
    return kept


@inlined
def list_missing(s: HierarchyState, at: np.uint64, message: np.uint64) -> np.uint64:
    """Put what a process misses of what a message needs into `list`; return how many."""
    count, row = _0, np.uint64(s.message[message].row)
    bottom = np.uint64(s.message[message].bottom)
    for k in range(np.uint64(s.message[message].rows)):
        for word in range(_0, np.uint64(8)):
            absent = s.needs[row + k, 0, word] & ~s.sets[bottom + k, at, HAVE, word]
            count = _append(s, absent, ((bottom + k) << _9) | (word << _6), count)
    if (
        s.message[message].far_before != 0
        and contains(s, HAVE, at, np.uint64(s.message[message].far_before) - _1) == _0
    ):
        s.listed[count] = np.uint64(s.message[message].far_before) - _1
        count += _1
    return count


@njit
def list_set(s: HierarchyState, which: np.uint64, at: np.uint64) -> np.uint64:
    """Put a set of a process (KEPT, SHADOW) into `list`; return how many."""
    count = _0
    for block in range(s.process[at].low, s.process[at].high):
        for word in range(_0, np.uint64(8)):
            count = _append(s, s.sets[block, at, which, word], (block << _9) | (word << _6), count)
    return count


@njit
def count_set(s: HierarchyState, which: np.uint64, at: np.uint64) -> np.uint64:
    """Return how many messages KEPT or SHADOW of a process has."""
    count = _0
    for block in range(s.process[at].low, s.process[at].high):
        for word in range(8):
            count += ones(s.sets[block, at, which, word])
    return count
