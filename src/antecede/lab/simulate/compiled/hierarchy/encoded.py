"""Bytes on the wire in the compiled hierarchy: exactly `len(encode(message))` of the classes.

Theory of operation
-------------------
The content of a message is a list of messages only while it is sent (`accounting`, `sets`), as TT
forgets. Positions of bit vectors are set in a row of `windows`, integers of CI in a row of `named`
by address, for `compiled.sizes`. Both are 0 again afterwards. Messages that count for no mean and
are not recorded get size 0.

The functions of `compiled.sizes` make arrays. Kernels that count no references may call them only
if they were compiled before (`compile_sizes`).
"""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled import sizes
from antecede.lab.simulate.compiled.hierarchy.accounting import (
    group_of,
    is_forgotten,
    span_inside,
    widen,
)
from antecede.lab.simulate.compiled.hierarchy.jit import inlined, njit
from antecede.lab.simulate.compiled.hierarchy.records import NOWHERE
from antecede.lab.simulate.compiled.hierarchy.sets import bit, list_needs
from antecede.lab.simulate.compiled.hierarchy.state import State

_0, _1, _6 = (np.uint64(k) for k in (0, 1, 6))


def compile_sizes() -> None:
    """Compile what makes arrays, before the kernels that call it."""
    numbers, words = np.zeros(1, np.int64), np.zeros(1, np.uint64)
    sizes.pairs_message_size(0, 1, numbers, numbers, 1)
    sizes.counters_size(numbers, numbers, 1)
    sizes.window_size(0, words)
    sizes.vector_entry_size(0, 0, words)
    sizes.inside_size(0, 1, 0, 0, 0, words)
    sizes.external_size(0, 1, 1, 0, 0, 1)


@inlined
def _int(word: np.uint64) -> int:
    """Return what `compiled.sizes` is compiled for."""
    return int(np.int64(word))


@inlined
def _is_measured(s: State, message: np.uint64) -> bool:
    return bool((s.measures.encoded and message >= s.warm) or len(s.carried) != 0)


@njit
def idr_encoded(s: State, message: np.uint64) -> np.uint64:
    """Return the bytes of IDR's message. Before `follow_own`."""
    if not _is_measured(s, message):
        return _0
    count = list_needs(s, message, _1)
    for k in range(count):
        _name(s, s.listed[k])
    pairs = _pairs(s, np.uint64(len(s.group) - 1))
    sender, seq = s.message[message].sender, s.message[message].seq
    return np.uint64(
        sizes.pairs_message_size(_int(sender), _int(seq), s.named[1], s.named[2], _int(pairs))
    )


@inlined
def _name(s: State, message: np.uint64) -> None:
    """Let the sender of a message be named with its number; of several the last."""
    sender = s.message[message].sender
    s.named[0, sender] = max(s.named[0, sender], np.int64(s.message[message].seq))


@inlined
def _pairs(s: State, first: np.uint64) -> np.uint64:
    """Turn what is named, from an address on, into pairs; return how many."""
    count = _0
    for address in range(first, np.uint64(len(s.process))):
        if s.named[0, address] != 0:
            s.named[1, count] = np.int64(address)
            s.named[2, count] = s.named[0, address]
            s.named[0, address] = 0
            count += _1
    return count


@njit
def upward_encoded(s: State, at: np.uint64, message: np.uint64) -> np.uint64:
    """Return the bytes of a message from an internal peer to its super peer."""
    count, group = list_needs(s, message, _0), s.process[at].home
    seq, floor = np.uint64(s.message[message].seq), np.uint64(s.message[message].floor)
    return _inside(s, group, at, seq, floor, floor, count)


@njit
def downward_encoded(s: State, at: np.uint64, message: np.uint64, count: np.uint64) -> np.uint64:
    """Return the bytes of a message into a group; DV is the first `count` of `list`."""
    if not _is_measured(s, message):
        return _0
    own = group_of(s, message) == at
    sender = np.uint64(s.message[message].sender) if own else at
    seq, last = np.uint64(s.number[at, message]), _last(s, at, message, own)
    return _inside(s, at, sender, seq, last, seq, count)


@inlined
def _inside(
    s: State,
    group: np.uint64,
    sender: np.uint64,
    seq: np.uint64,
    told: np.uint64,
    near: np.uint64,
    count: np.uint64,
) -> np.uint64:
    low, high = _set_list(s, group, count)
    words = s.windows[group, low:high]
    size = sizes.inside_size(
        _int(sender), _int(seq), _int(told), _int(near), _int(low << _6), words
    )
    _clear(s, group, low, high)
    return np.uint64(size)


@inlined
def _last(s: State, at: np.uint64, message: np.uint64, own: bool) -> np.uint64:
    """Return the number of the sender's message before; 0 where DV says it, or TT forgot it."""
    if s.message[message].before == 0:
        return _0
    before = np.uint64(s.message[message].before) - _1
    if own or (group_of(s, message) == NOWHERE and not is_forgotten(s, at, before)):
        return np.uint64(s.number[at, before])
    return _0


@inlined
def _set_list(s: State, group: np.uint64, count: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Set the first `count` of `list` in a group's numbering; return from word to word."""
    if count == _0:
        return _0, _0
    lowest, highest = span_inside(s, group, count)
    for k in range(count):
        _set(s, group, np.uint64(s.number[group, s.listed[k]]))
    return _words(lowest, highest)


@inlined
def _set(s: State, row: np.uint64, number: np.uint64) -> None:
    s.windows[row, (number - _1) >> _6] |= bit(number - _1)


@inlined
def _words(lowest: np.uint64, highest: np.uint64) -> tuple[np.uint64, np.uint64]:
    return (lowest - _1) >> _6, ((highest - _1) >> _6) + _1


@inlined
def _clear(s: State, row: np.uint64, low: np.uint64, high: np.uint64) -> None:
    for word in range(low, high):
        s.windows[row, word] = _0


@njit
def external_encoded(
    s: State, at: np.uint64, message: np.uint64, count: np.uint64, before: np.uint64
) -> np.uint64:
    """Return the bytes of an External message; CI is the first `count` of `list`.

    `before`: number of the super peer's previous own message.
    """
    if not _is_measured(s, message):
        return _0
    groups, touched = np.uint64(len(s.group) - 1), _0
    for k in range(count):
        other = s.listed[k]
        group = group_of(s, other)
        if group == NOWHERE:
            _name(s, other)
        else:
            touched = _set_wide(s, group, other, touched)
    vectors = _vectors(s, touched)
    for k in range(touched):
        s.group[s.group[k].touched].highest_bit = _0
    pairs = _int(_pairs(s, s.group[groups].first))
    translated, seq = 1, _int(s.message[message].seq)
    if at < groups:
        translated = _translated(s, at, message, count, before)
        seq = _int(s.number[at, message])
    counters = sizes.counters_size(s.named[1], s.named[2], pairs)
    return np.uint64(
        sizes.external_size(_int(at), seq, counters, vectors, _int(touched), translated)
    )


@inlined
def _set_wide(s: State, group: np.uint64, message: np.uint64, touched: np.uint64) -> np.uint64:
    number = np.uint64(s.number[group, message])
    _set(s, group, number)
    return widen(s, group, number, touched)


@inlined
def _vectors(s: State, touched: np.uint64) -> int:
    """Return the bytes of CI's bit vectors, and empty these."""
    total = 0
    for k in range(touched):
        group = s.group[k].touched
        low, high = _words(s.group[group].lowest_bit, s.group[group].highest_bit)
        total += sizes.vector_entry_size(_int(group), _int(low << _6), s.windows[group, low:high])
        _clear(s, group, low, high)
    return total


@inlined
def _translated(
    s: State, at: np.uint64, message: np.uint64, count: np.uint64, before: np.uint64
) -> int:
    """Return the bytes of I: numbers since the last own message, and those that DV named."""
    row, number = np.uint64(len(s.group) - 1), np.uint64(s.number[at, message])
    lowest, highest = number, _0
    for fresh in range(before + _1, number):
        _set(s, row, np.uint64(fresh))
        lowest, highest = before + _1, number - _1
    for k in range(count):
        other = s.listed[k]
        if group_of(s, other) != at:
            out = np.uint64(s.number[at, other])
            _set(s, row, out)
            lowest, highest = min(lowest, out), max(highest, out)
    if lowest == number:
        return 1
    low, high = _words(lowest, highest)
    size = sizes.window_size(_int(low << _6), s.windows[row, low:high])
    _clear(s, row, low, high)
    return size
