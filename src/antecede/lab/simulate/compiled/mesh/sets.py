"""Dependencies of the compiled mesh: tests, deliveries and sends on blocks of words.

A message needs the sender's fresh messages: those delivered or sent there that no other such
message needs. The rest of its past is implied (Evropeytsev et al. 2016, IDR), also its sender's
previous message. So FIFO order and causal order are one AND-NOT.
"""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.mesh.state import (
    DIFFERENCES,
    IMMEDIATE,
    NUMBER,
    VECTOR,
    MeshState,
    find_previous_block,
    make_bit,
)
from antecede.lab.simulate.compiled.mesh.violations import check_delivery, clear_word
from antecede.tables.kernels import highest, ones
from antecede.tables.kernels import inline_lent as inlined

_0, _1, _6, _7, _8, _9 = (np.uint64(k) for k in (0, 1, 6, 7, 8, 9))
_63 = np.uint64(63)
NO_SLOT = np.uint64(2**64 - 1)


@inlined
def find_missing(s: MeshState, member: np.uint64, slot: np.uint64, block: np.uint64) -> np.uint64:
    """Return the newest missing slot that a message needs, in `block` or before, or NO_SLOT."""
    bottom = s.bottom[slot]
    while True:
        lacks = _0
        for word in range(8):
            lacks |= s.needs[slot, block, word] & ~s.have[member, block, word]
        if lacks != _0:
            return _find_newest(s, member, slot, block)
        if block == bottom:
            return NO_SLOT
        block = find_previous_block(s, block)


@inlined
def _find_newest(s: MeshState, member: np.uint64, slot: np.uint64, block: np.uint64) -> np.uint64:
    word = _7
    lacks = s.needs[slot, block, word] & ~s.have[member, block, word]
    while lacks == _0:
        word -= _1
        lacks = s.needs[slot, block, word] & ~s.have[member, block, word]
    return np.uint64((block << _9) | (word << _6) | highest(lacks))


@inlined
def deliver(s: MeshState, member: np.uint64, slot: np.uint64, time: np.uint64) -> None:
    """Deliver a message. It implies its needs from now on."""
    if s.control_kind != NUMBER:
        block = s.top[slot]
        while True:
            for word in range(8):
                s.fresh[member, block, word] &= ~s.needs[slot, block, word]
            if block == s.bottom[slot]:
                break
            block = find_previous_block(s, block)
        s.fresh[member, slot >> _9, (slot >> _6) & _7] |= make_bit(slot)
    s.have[member, slot >> _9, (slot >> _6) & _7] |= make_bit(slot)
    if len(s.newest_delivered) != 0:
        check_delivery(s, member, slot)
    s.counters.deliveries += _1
    number = s.number[slot]
    s.counters.counted += np.uint64(number >= s.warm)
    if s.control_kind >= VECTOR:
        s.counts[member, s.sender[number]] = s.seq[number]
        if s.control_kind == DIFFERENCES:
            s.changed[member, s.sender[number]] = 1
    if len(s.log) != 0:
        log = s.counters.logged
        s.log[log, 0], s.log[log, 1], s.log[log, 2] = member, number, time
        s.counters.logged += _1


@inlined
def recycle(s: MeshState, slot: np.uint64) -> None:
    """Empty the word of the ring that begins with a slot."""
    if slot & _63 == _0:
        block, word = slot >> _9, (slot >> _6) & _7
        for member in range(np.uint64(len(s.have))):
            s.have[member, block, word] = _0
            s.fresh[member, block, word] = _0  # without causal order an own message may remain
        if len(s.newest_delivered) != 0:
            clear_word(s, block, word)


@inlined
def attach_needs(s: MeshState, member: np.uint64, slot: np.uint64) -> None:
    """Attach the sender's fresh messages as needs. The message is the only fresh one then."""
    block = slot >> _9
    s.top[slot] = s.bottom[slot] = block
    found = False
    for _ in range(s.have.shape[1]):
        some = _0
        for word in range(8):
            bits = s.fresh[member, block, word]
            s.needs[slot, block, word] = bits
            s.fresh[member, block, word] = _0
            some |= bits
        if some != _0:
            if not found:
                s.top[slot] = block
            s.bottom[slot] = block
            found = True
        block = find_previous_block(s, block)
    s.fresh[member, slot >> _9, (slot >> _6) & _7] |= make_bit(slot)
    s.have[member, slot >> _9, (slot >> _6) & _7] |= make_bit(slot)


@inlined
def write_causes(s: MeshState, member: np.uint64, slot: np.uint64) -> np.uint64:
    """Set `causes` to the control information of the message. Return its number of members."""
    for other in range(len(s.causes)):
        s.causes[other] = 0
    if s.control_kind == IMMEDIATE:
        _write_needs(s, slot)
        s.causes[member] = 0
    elif s.control_kind >= VECTOR:
        for other in range(len(s.causes)):
            if s.control_kind == VECTOR or s.changed[member, other] != 0:
                s.causes[other] = s.counts[member, other]
    named = _0
    for other in range(len(s.causes)):
        named += np.uint64(s.causes[other] != 0)
    return named


@inlined
def _write_needs(s: MeshState, slot: np.uint64) -> None:
    block = s.top[slot]
    while True:
        for word in range(_8):
            bits = s.needs[slot, block, word]
            while bits != _0:
                position = highest(bits)
                message = s.number[(block << _9) | (word << _6) | position]
                s.causes[s.sender[message]] = s.seq[message]
                bits ^= _1 << position
        if block == s.bottom[slot]:
            break
        block = find_previous_block(s, block)


@inlined
def count_pairs(s: MeshState, member: np.uint64) -> np.uint64:
    """Return the number of pairs in a member's CI: fresh messages without its own last one."""
    pairs = _0
    for block in range(s.fresh.shape[1]):
        for word in range(8):
            pairs += ones(s.fresh[member, block, word])
    last = s.last_sent[member]
    if last != _0:
        slot = (last - _1) & np.uint64(len(s.number) - 1)
        if s.number[slot] == last - _1:
            pairs -= (s.fresh[member, slot >> _9, (slot >> _6) & _7] >> (slot & _63)) & _1
    return pairs
