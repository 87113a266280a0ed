"""Sets of the compiled hierarchy: needs of messages, and the messages that these imply.

A message needs DV or CI of its sender, and its sender's previous message (`Last`, Listing 14 line
4, FIFO order of external peers). So FIFO and causal order are one AND-NOT. If the bit of the
previous message is outside of a message's rows, only `far_before` has it. If selected, the needs by
IDR are stored beside these bits, and deliveries are compared with them.

Bits that a super peer's TT has dropped stay here. With safe pruning every peer of the group has
delivered these messages. So they change only bytes, which are counted without them (`accounting`).
"""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy.jit import inline, njit
from antecede.lab.simulate.compiled.hierarchy.records import DEPENDENCIES, HAVE, IDR_DEPENDENCIES
from antecede.lab.simulate.compiled.hierarchy.state import HierarchyState
from antecede.tables.kernels import ones

_0, _1, _6, _7, _9, _63 = (np.uint64(k) for k in (0, 1, 6, 7, 9, 63))


@inline
def bit(message: np.uint64) -> np.uint64:
    """Return a word with the message's bit."""
    return np.uint64(_1 << (message & _63))


@inline
def contains(
    s: HierarchyState, which: np.uint64, address: np.uint64, message: np.uint64
) -> np.uint64:
    """Return 1 if a set of a process has a message, else 0."""
    word = s.sets[message >> _9, address, which, (message >> _6) & _7]
    return np.uint64((word >> (message & _63)) & _1)


@inline
def add(s: HierarchyState, which: np.uint64, address: np.uint64, message: np.uint64) -> None:
    """Add a message to a set of a process."""
    s.sets[message >> _9, address, which, (message >> _6) & _7] |= bit(message)


@inline
def remove(s: HierarchyState, which: np.uint64, address: np.uint64, message: np.uint64) -> None:
    """Remove a message from a set of a process."""
    s.sets[message >> _9, address, which, (message >> _6) & _7] &= ~bit(message)


@inline
def has_arrived(s: HierarchyState, index: np.uint64, message: np.uint64) -> np.uint64:
    """Return 1 if a message has arrived at an index of the external group, else 0."""
    word = s.arrived[message >> _9, index, (message >> _6) & _7]
    return np.uint64((word >> (message & _63)) & _1)


@inline
def add_arrived(s: HierarchyState, index: np.uint64, message: np.uint64) -> None:
    """Record the arrival of a message at an index of the external group."""
    s.arrived[message >> _9, index, (message >> _6) & _7] |= bit(message)


@inline
def is_missing_needs(s: HierarchyState, address: np.uint64, message: np.uint64) -> bool:
    """Return True if a process lacks a message that another needs."""
    found, row = _0, np.uint64(s.message[message].row)
    block = np.uint64(s.message[message].bottom)
    for k in range(np.uint64(s.message[message].rows)):
        for word in range(8):
            found |= s.needs[row + k, 0, word] & ~s.sets[block + k, address, HAVE, word]
    if found == _0 and s.message[message].far_before != 0:
        return bool(contains(s, HAVE, address, np.uint64(s.message[message].far_before) - _1) == _0)
    return bool(found != _0)


@inline
def remove_implied(s: HierarchyState, address: np.uint64, message: np.uint64) -> None:
    """Remove messages implied by a delivered one: Listing 6 lines 3 to 5, Listing 12."""
    row, block = np.uint64(s.message[message].row), np.uint64(s.message[message].bottom)
    for k in range(np.uint64(s.message[message].rows)):
        for word in range(8):
            s.sets[block + k, address, DEPENDENCIES, word] &= ~s.needs[row + k, 0, word]
    if s.message[message].far_before != 0:
        remove(s, DEPENDENCIES, address, np.uint64(s.message[message].far_before) - _1)


@inline
def remove_implied_by_idr(s: HierarchyState, address: np.uint64, message: np.uint64) -> np.uint64:
    """Do the same for IDR's CI. Return 0 if no IDR dependency is missing."""
    early, row = _0, np.uint64(s.message[message].row)
    block = np.uint64(s.message[message].bottom)
    for k in range(np.uint64(s.message[message].rows)):
        for word in range(8):
            named = s.needs[row + k, 1, word]
            s.sets[block + k, address, IDR_DEPENDENCIES, word] &= ~named
            early |= named & ~s.sets[block + k, address, HAVE, word]
    if s.message[message].far_before != 0:
        before = np.uint64(s.message[message].far_before) - _1
        remove(s, IDR_DEPENDENCIES, address, before)
        early |= _1 - contains(s, HAVE, address, before)
    return early


@inline
def add_dependency(s: HierarchyState, address: np.uint64, message: np.uint64) -> None:
    """Add a delivered message to the immediate dependencies of the next one."""
    add(s, DEPENDENCIES, address, message)
    if s.selection.violations:
        add(s, IDR_DEPENDENCIES, address, message)
    block = message >> _9
    if s.process[address].low == s.process[address].high:
        s.process[address].low = block
        s.process[address].high = block + _1
    else:
        s.process[address].low = min(s.process[address].low, block)
        s.process[address].high = max(s.process[address].high, block + _1)


@inline
def _is_empty(s: HierarchyState, address: np.uint64, block: np.uint64) -> bool:
    some = _0
    for word in range(8):
        some |= s.sets[block, address, DEPENDENCIES, word]
    if s.selection.violations:
        for word in range(8):
            some |= s.sets[block, address, IDR_DEPENDENCIES, word]
    return bool(some == _0)


@inline
def trim(s: HierarchyState, address: np.uint64) -> None:
    """Skip blocks in which a process has no bits."""
    while s.process[address].low < s.process[address].high and _is_empty(
        s, address, s.process[address].low
    ):
        s.process[address].low += _1


@inline
def attach_needs(s: HierarchyState, address: np.uint64, message: np.uint64) -> None:
    """Attach the sender's DV or CI to a message, and empty these (Listings 4 and 9)."""
    trim(s, address)
    row, first = s.counters.used, s.process[address].low
    count = s.process[address].high - first
    if row + count >= np.uint64(len(s.needs)):
        s.counters.is_full = _1
        count = _0
    for k in range(count):
        for word in range(8):
            s.needs[row + k, 0, word] = s.sets[first + k, address, DEPENDENCIES, word]
            s.sets[first + k, address, DEPENDENCIES, word] = _0
        if s.selection.violations:
            for word in range(8):
                s.needs[row + k, 1, word] = s.sets[first + k, address, IDR_DEPENDENCIES, word]
                s.sets[first + k, address, IDR_DEPENDENCIES, word] = _0
    s.counters.used += count
    s.message[message].row = row
    s.message[message].bottom = first
    s.message[message].rows = count
    s.process[address].low = s.process[address].high


@inline
def add_previous(s: HierarchyState, message: np.uint64) -> None:
    """Add the sender's previous message to the needs."""
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


@inline
def _append(s: HierarchyState, word: np.uint64, first: np.uint64, count: np.uint64) -> np.uint64:
    while word != _0:
        lowest = word & (~word + _1)
        s.listed[count] = first + ones(lowest - _1)
        count += _1
        word ^= lowest
    return count


@njit
def list_needs(s: HierarchyState, message: np.uint64, which: np.uint64) -> np.uint64:
    """List the needs by the protocol (`which` 0) or IDR (1) in `listed`. Return the count."""
    count, row = _0, np.uint64(s.message[message].row)
    bottom = np.uint64(s.message[message].bottom)
    for k in range(np.uint64(s.message[message].rows)):
        for word in range(_0, np.uint64(8)):
            bits = s.needs[row + k, which, word]
            count = _append(s, bits, ((bottom + k) << _9) | (word << _6), count)
    if s.message[message].before != 0 and s.message[message].far_before == 0:
        return _remove_message(s, count, np.uint64(s.message[message].before) - _1)
    return count


@inline
def _remove_message(s: HierarchyState, count: np.uint64, message: np.uint64) -> np.uint64:
    kept = _0
    for k in range(count):
        if s.listed[k] != message:
            s.listed[kept] = s.listed[k]
            kept += _1
    return kept


@inline
def list_missing(s: HierarchyState, address: np.uint64, message: np.uint64) -> np.uint64:
    """List the needs that a process lacks in `listed`. Return the count."""
    count, row = _0, np.uint64(s.message[message].row)
    bottom = np.uint64(s.message[message].bottom)
    for k in range(np.uint64(s.message[message].rows)):
        for word in range(_0, np.uint64(8)):
            absent = s.needs[row + k, 0, word] & ~s.sets[bottom + k, address, HAVE, word]
            count = _append(s, absent, ((bottom + k) << _9) | (word << _6), count)
    if (
        s.message[message].far_before != 0
        and contains(s, HAVE, address, np.uint64(s.message[message].far_before) - _1) == _0
    ):
        s.listed[count] = np.uint64(s.message[message].far_before) - _1
        count += _1
    return count


@njit
def list_set(s: HierarchyState, which: np.uint64, address: np.uint64) -> np.uint64:
    """List DEPENDENCIES or IDR_DEPENDENCIES in `listed`. Return the count."""
    count = _0
    for block in range(s.process[address].low, s.process[address].high):
        for word in range(_0, np.uint64(8)):
            count = _append(
                s, s.sets[block, address, which, word], (block << _9) | (word << _6), count
            )
    return count


@njit
def count_set(s: HierarchyState, which: np.uint64, address: np.uint64) -> np.uint64:
    """Return the size of DEPENDENCIES or IDR_DEPENDENCIES of a process."""
    count = _0
    for block in range(s.process[address].low, s.process[address].high):
        for word in range(8):
            count += ones(s.sets[block, address, which, word])
    return count
