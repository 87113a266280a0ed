"""Bytes on the wire in the compiled hierarchy: exactly `len(encode(message))` of the classes.

The content of a message is a list of messages only while it is sent (`accounting`, `sets`), since
TT drops entries. Positions of bit vectors are set in a row of `windows`, integers of CI in a row of
`named_numbers` by address, for `compiled.sizes`. Both are 0 again afterwards. Messages that count
for no mean and are not recorded get size 0.

The functions of `compiled.sizes` allocate arrays. Kernels without reference counting may call them
only if they were compiled before (`compile_sizes`).
"""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled import sizes
from antecede.lab.simulate.compiled.hierarchy.accounting import (
    extend_span,
    find_group,
    find_internal_span,
    is_forgotten,
)
from antecede.lab.simulate.compiled.hierarchy.jit import inline, njit
from antecede.lab.simulate.compiled.hierarchy.records import NOWHERE
from antecede.lab.simulate.compiled.hierarchy.sets import bit, list_needs
from antecede.lab.simulate.compiled.hierarchy.state import HierarchyState

_0, _1, _6 = (np.uint64(k) for k in (0, 1, 6))


def compile_sizes() -> None:
    """Compile functions that allocate arrays, before the kernels that call them."""
    numbers, words = np.zeros(1, np.int64), np.zeros(1, np.uint64)
    sizes.pairs_message_size(0, 1, numbers, numbers, 1)
    sizes.counters_size(numbers, numbers, 1)
    sizes.window_size(0, words)
    sizes.vector_entry_size(0, 0, words)
    sizes.internal_size(0, 1, 0, 0, 0, words)
    sizes.external_size(0, 1, 1, 0, 0, 1)


@inline
def _to_int(word: np.uint64) -> int:
    return int(np.int64(word))


@inline
def _is_measured(s: HierarchyState, message: np.uint64) -> bool:
    return bool((s.selection.encoded and message >= s.warm) or len(s.transmissions) != 0)


@njit
def measure_idr(s: HierarchyState, message: np.uint64) -> np.uint64:
    """Return the bytes of IDR's message. Call before `add_previous`."""
    if not _is_measured(s, message):
        return _0
    count = list_needs(s, message, _1)
    for k in range(count):
        _name_sender(s, s.listed[k])
    pairs = _collect_pairs(s, np.uint64(len(s.group) - 1))
    sender, seq = s.message[message].sender, s.message[message].seq
    return np.uint64(
        sizes.pairs_message_size(
            _to_int(sender), _to_int(seq), s.named_numbers[1], s.named_numbers[2], _to_int(pairs)
        )
    )


@inline
def _name_sender(s: HierarchyState, message: np.uint64) -> None:
    sender = s.message[message].sender
    s.named_numbers[0, sender] = max(s.named_numbers[0, sender], np.int64(s.message[message].seq))


@inline
def _collect_pairs(s: HierarchyState, first: np.uint64) -> np.uint64:
    """Turn stored numbers, from an address on, into pairs. Return their number."""
    count = _0
    for address in range(first, np.uint64(len(s.process))):
        if s.named_numbers[0, address] != 0:
            s.named_numbers[1, count] = np.int64(address)
            s.named_numbers[2, count] = s.named_numbers[0, address]
            s.named_numbers[0, address] = 0
            count += _1
    return count


@njit
def measure_upward(s: HierarchyState, address: np.uint64, message: np.uint64) -> np.uint64:
    """Return the bytes of a message from an internal peer to its super peer."""
    count, group = list_needs(s, message, _0), s.process[address].group
    seq, floor = np.uint64(s.message[message].seq), np.uint64(s.message[message].lower_bound)
    return _measure_internal(s, group, address, seq, floor, floor, count)


@njit
def measure_downward(
    s: HierarchyState, address: np.uint64, message: np.uint64, count: np.uint64
) -> np.uint64:
    """Return the bytes of a message into a group. DV is the first `count` of `listed`."""
    if not _is_measured(s, message):
        return _0
    own = find_group(s, message) == address
    sender = np.uint64(s.message[message].sender) if own else address
    seq, last = np.uint64(s.number[address, message]), _find_last(s, address, message, own)
    return _measure_internal(s, address, sender, seq, last, seq, count)


@inline
def _measure_internal(
    s: HierarchyState,
    group: np.uint64,
    sender: np.uint64,
    seq: np.uint64,
    announced: np.uint64,
    near: np.uint64,
    count: np.uint64,
) -> np.uint64:
    low, high = _set_numbers(s, group, count)
    words = s.windows[group, low:high]
    size = sizes.internal_size(
        _to_int(sender), _to_int(seq), _to_int(announced), _to_int(near), _to_int(low << _6), words
    )
    _clear_words(s, group, low, high)
    return np.uint64(size)


@inline
def _find_last(s: HierarchyState, address: np.uint64, message: np.uint64, own: bool) -> np.uint64:
    """Return the number of the sender's previous message; 0 if DV or TT makes it unnecessary."""
    if s.message[message].before == 0:
        return _0
    before = np.uint64(s.message[message].before) - _1
    if own or (find_group(s, message) == NOWHERE and not is_forgotten(s, address, before)):
        return np.uint64(s.number[address, before])
    return _0


@inline
def _set_numbers(
    s: HierarchyState, group: np.uint64, count: np.uint64
) -> tuple[np.uint64, np.uint64]:
    if count == _0:
        return _0, _0
    lowest, highest = find_internal_span(s, group, count)
    for k in range(count):
        _set_number(s, group, np.uint64(s.number[group, s.listed[k]]))
    return _find_word_range(lowest, highest)


@inline
def _set_number(s: HierarchyState, row: np.uint64, number: np.uint64) -> None:
    s.windows[row, (number - _1) >> _6] |= bit(number - _1)


@inline
def _find_word_range(lowest: np.uint64, highest: np.uint64) -> tuple[np.uint64, np.uint64]:
    return (lowest - _1) >> _6, ((highest - _1) >> _6) + _1


@inline
def _clear_words(s: HierarchyState, row: np.uint64, low: np.uint64, high: np.uint64) -> None:
    for word in range(low, high):
        s.windows[row, word] = _0


@njit
def measure_external(
    s: HierarchyState, address: np.uint64, message: np.uint64, count: np.uint64, before: np.uint64
) -> np.uint64:
    """Return the bytes of an External message. `before`: the last own number."""
    if not _is_measured(s, message):
        return _0
    groups, touched = np.uint64(len(s.group) - 1), _0
    for k in range(count):
        other = s.listed[k]
        group = find_group(s, other)
        if group == NOWHERE:
            _name_sender(s, other)
        else:
            touched = _set_in_span(s, group, other, touched)
    vectors = _measure_vectors(s, touched)
    for k in range(touched):
        s.group[s.group[k].touched].highest_bit = _0
    pairs = _to_int(_collect_pairs(s, s.group[groups].first))
    translated, seq = 1, _to_int(s.message[message].seq)
    if address < groups:
        translated = _measure_translated(s, address, message, count, before)
        seq = _to_int(s.number[address, message])
    counters = sizes.counters_size(s.named_numbers[1], s.named_numbers[2], pairs)
    return np.uint64(
        sizes.external_size(_to_int(address), seq, counters, vectors, _to_int(touched), translated)
    )


@inline
def _set_in_span(
    s: HierarchyState, group: np.uint64, message: np.uint64, touched: np.uint64
) -> np.uint64:
    number = np.uint64(s.number[group, message])
    _set_number(s, group, number)
    return extend_span(s, group, number, touched)


@inline
def _measure_vectors(s: HierarchyState, touched: np.uint64) -> int:
    total = 0
    for k in range(touched):
        group = s.group[k].touched
        low, high = _find_word_range(s.group[group].lowest_bit, s.group[group].highest_bit)
        total += sizes.vector_entry_size(
            _to_int(group), _to_int(low << _6), s.windows[group, low:high]
        )
        _clear_words(s, group, low, high)
    return total


@inline
def _measure_translated(
    s: HierarchyState, address: np.uint64, message: np.uint64, count: np.uint64, before: np.uint64
) -> int:
    row, number = np.uint64(len(s.group) - 1), np.uint64(s.number[address, message])
    lowest, highest = number, _0
    for fresh in range(before + _1, number):
        _set_number(s, row, np.uint64(fresh))
        lowest, highest = before + _1, number - _1
    for k in range(count):
        other = s.listed[k]
        if find_group(s, other) != address:
            out = np.uint64(s.number[address, other])
            _set_number(s, row, out)
            lowest, highest = min(lowest, out), max(highest, out)
    if lowest == number:
        return 1
    low, high = _find_word_range(lowest, highest)
    size = sizes.window_size(_to_int(low << _6), s.windows[row, low:high])
    _clear_words(s, row, low, high)
    return size
