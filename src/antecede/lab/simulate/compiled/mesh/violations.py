"""Causal violations in the compiled mesh, whatever the protocol promises.

A past is a set of messages in the ring of slots, as in `mesh.sets`. A delivery is a violation if
the member lacks a message of the past. Each message has two pasts: by delivery (delivered to or
sent by the sender) and by receipt (arrived at or sent by the sender). Control information is not
used.

A past has no message that is older than the longest delay, as every member has that one. This is
checked, 64 messages at a time, before it is relied on (`MeshCounters.unchecked`).
"""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.mesh.state import (
    NUMBER,
    MeshState,
    find_previous_block,
    make_bit,
)
from antecede.tables.kernels import inline_lent as inlined

_0, _1, _3, _6, _7, _9 = (np.uint64(k) for k in (0, 1, 3, 6, 7, 9))
_63 = np.uint64(63)
_ALL = np.uint64(2**64 - 1)
_BY_DELIVERY, _BY_RECEIPT = 0, 1


@inlined
def check_send(s: MeshState, member: np.uint64, slot: np.uint64) -> None:
    """Set a message's pasts to the messages that its sender knows."""
    _skip_old_words(s, s.number[slot])
    ring = np.uint64(s.have.shape[1] * 8 - 1)
    first, last = s.counters.recent & ring, slot >> _6
    s.past_blocks[slot] = _count_blocks(s, first, last)
    block = slot >> _9
    for _ in range(s.past_blocks[slot]):
        for word in range(8):
            s.past[slot, block, _BY_DELIVERY, word] = _0
            s.past[slot, block, _BY_RECEIPT, word] = _0
        block = find_previous_block(s, block)
    for k in range(((last - first) & ring) + _1):
        at = (first + np.uint64(k)) & ring
        block, place = at >> _3, at & _7
        for how in (_BY_DELIVERY, _BY_RECEIPT):
            s.past[slot, block, how, place] = s.known[member, block, how, place]
    _add_known(s, _BY_DELIVERY, member, slot)
    _add_known(s, _BY_RECEIPT, member, slot)
    if s.control_kind == NUMBER:
        s.newest_delivered[member, member] = np.uint32(s.seq[s.number[slot]])


@inlined
def check_arrival(s: MeshState, member: np.uint64, slot: np.uint64) -> None:
    """Add a message and its past to those that a member knows by receipt."""
    block = slot >> _9
    for _ in range(s.past_blocks[slot]):
        for word in range(8):
            s.known[member, block, _BY_RECEIPT, word] |= s.past[slot, block, _BY_RECEIPT, word]
        block = find_previous_block(s, block)
    _add_known(s, _BY_RECEIPT, member, slot)


@inlined
def check_delivery(s: MeshState, member: np.uint64, slot: np.uint64) -> None:
    """Count a violation if the member lacks a message of the past."""
    early, early_by_receipt = _0, _0
    block = slot >> _9
    for _ in range(s.past_blocks[slot]):
        for word in range(8):
            past = s.past[slot, block, _BY_DELIVERY, word]
            lacks = ~s.have[member, block, word]
            early |= past & lacks
            early_by_receipt |= s.past[slot, block, _BY_RECEIPT, word] & lacks
            s.known[member, block, _BY_DELIVERY, word] |= past
        block = find_previous_block(s, block)
    _add_known(s, _BY_DELIVERY, member, slot)
    s.counters.violations += np.uint64(early != _0)
    s.counters.receipt_violations += np.uint64(early_by_receipt != _0)
    if s.control_kind == NUMBER:
        sender, number = s.sender[s.number[slot]], np.uint32(s.seq[s.number[slot]])
        s.counters.fifo_violations += np.uint64(
            s.newest_delivered[member, sender] + np.uint32(1) != number
        )
        s.newest_delivered[member, sender] = number


@inlined
def clear_word(s: MeshState, block: np.uint64, word: np.uint64) -> None:
    """Clear a word of the ring in the known messages of all members."""
    for member in range(np.uint64(len(s.known))):
        s.known[member, block, _BY_DELIVERY, word] = _0
        s.known[member, block, _BY_RECEIPT, word] = _0


@inlined
def _skip_old_words(s: MeshState, message: np.uint64) -> None:
    """Skip words whose messages all are older than the longest delay, and check them."""
    now = s.time_us[message]
    while (
        s.counters.recent < message >> _6
        and s.time_us[(s.counters.recent << _6) | _63] + s.longest_us < now
    ):
        word = s.counters.recent & np.uint64(s.have.shape[1] * 8 - 1)
        for member in range(np.uint64(len(s.have))):
            s.counters.unchecked += np.uint64(s.have[member, word >> _3, word & _7] != _ALL)
        s.counters.recent += _1


@inlined
def _count_blocks(s: MeshState, first: np.uint64, last: np.uint64) -> np.uint64:
    blocks = np.uint64(s.have.shape[1])
    if first > last and first >> _3 == last >> _3:
        return blocks
    return np.uint64((((last >> _3) - (first >> _3)) & (blocks - _1)) + _1)


@inlined
def _add_known(s: MeshState, relation: int, member: np.uint64, slot: np.uint64) -> None:
    s.known[member, slot >> _9, relation, (slot >> _6) & _7] |= make_bit(slot)
