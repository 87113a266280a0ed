"""Super peer of the compiled hierarchy: Listings 7, 8 and 13 to 15, and the pruning of TT."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy import accounting
from antecede.lab.simulate.compiled.hierarchy.encoded import measure_downward, measure_external
from antecede.lab.simulate.compiled.hierarchy.jit import inline, njit
from antecede.lab.simulate.compiled.hierarchy.network import (
    log_transmission,
    send_across,
    send_down,
)
from antecede.lab.simulate.compiled.hierarchy.records import HAVE, NONE, NOWHERE
from antecede.lab.simulate.compiled.hierarchy.sets import add, add_arrived, has_arrived, list_needs
from antecede.lab.simulate.compiled.hierarchy.state import HierarchyState

_0, _1, _6, _7, _9 = (np.uint64(k) for k in (0, 1, 6, 7, 9))


@njit
def receive_upward(
    s: HierarchyState, address: np.uint64, message: np.uint64, now: np.uint64
) -> None:
    """Forward a message of an internal peer and those that waited for it, or hold it."""
    peer = np.uint64(s.message[message].sender)
    if s.message[message].seq != s.process[peer].forwarded + _1:
        add_arrived(s, address, message)
        return
    forward(s, address, message, now)
    following = np.uint64(s.message[message].after)
    while following != _0 and has_arrived(s, address, following - _1) == _1:
        forward(s, address, following - _1, now)
        following = np.uint64(s.message[following - _1].after)


@njit
def forward(s: HierarchyState, address: np.uint64, message: np.uint64, now: np.uint64) -> None:
    """Number a message of the own group, and send it into the group and outside (Listing 8)."""
    peer = np.uint64(s.message[message].sender)
    s.process[peer].forwarded += _1
    _assign_number(s, address, message)
    index = s.group[address].own_first + s.group[address].own_count
    before = _0
    if s.group[address].own_count != _0:
        before = np.uint64(s.number[address, np.uint64(s.message[index - _1].own)])
    s.message[index].own = message
    s.group[address].own_count += _1
    if s.selection.sizes or s.selection.encoded:
        _count_inward(s, address, message)
    send_down(s, message, address, now)
    if s.selection.sizes or s.selection.encoded or s.selection.storage:
        _count_outward(s, address, message, before)
    if len(s.vtx) > 1:
        send_across(s, message, address, now)
    update_lower_bound(s, address, peer, np.uint64(s.message[message].lower_bound))


@inline
def _find_first_other(s: HierarchyState, address: np.uint64) -> np.uint64:
    groups = np.uint64(len(s.group) - 1)
    if address != _0:
        return _0
    return _1 if groups > _1 else np.uint64(s.group[groups].first)


@inline
def _assign_number(s: HierarchyState, address: np.uint64, message: np.uint64) -> None:
    number = s.group[address].last_number + _1
    s.group[address].last_number = number
    s.number[address, message] = number
    s.order[address, number] = message
    add(s, HAVE, address, message)


@njit
def _count_inward(s: HierarchyState, address: np.uint64, message: np.uint64) -> None:
    count = accounting.list_internal(s, address, message)
    size = _0
    if count != _0:
        lowest, highest = accounting.find_internal_span(s, address, count)
        size = accounting.measure_span(lowest, highest)
        if message >= s.warm:
            s.entropy[0] += accounting.compute_entropy(highest - lowest + _1, count)
    encoded = measure_downward(s, address, message, count)
    if message >= s.warm:
        accounting.count_bytes(s.internal, size, encoded)
    log_transmission(s, address, message, s.group[address].first, size, encoded)


@njit
def _count_outward(
    s: HierarchyState, address: np.uint64, message: np.uint64, before: np.uint64
) -> None:
    """Count the bytes of CI and I (Listing 14). `before`: the last own number."""
    count, number = list_needs(s, message, _0), np.uint64(s.number[address, message])
    lowest, highest = NOWHERE, _0
    if before + _1 < number:
        lowest, highest = before + _1, number - _1
    for k in range(count):
        other = s.listed[k]
        if accounting.find_group(s, other) != address:
            out = np.uint64(s.number[address, other])
            lowest, highest = min(lowest, out), max(highest, out)
    if s.message[message].before != 0:
        s.listed[count] = np.uint64(s.message[message].before) - _1
        count += _1
    s.message[message].top_announced = highest
    encoded = measure_external(s, address, message, count, before)
    size = accounting.measure_ci(s, count)
    if highest != _0:
        size += accounting.measure_span(lowest, highest)
    if len(s.vtx) > 1:
        if message >= s.warm:
            accounting.count_bytes(s.external, size, encoded)
        log_transmission(s, address, message, _find_first_other(s, address), size, encoded)


@njit
def translate(s: HierarchyState, address: np.uint64, message: np.uint64, now: np.uint64) -> None:
    """Number a message of the external group and send it into the group (Listings 13 and 15)."""
    _assign_number(s, address, message)
    s.group[address].translated += _1
    if s.selection.sizes or s.selection.encoded:
        _count_inward(s, address, message)
    send_down(s, message, address, now)


@njit
def update_lower_bound(
    s: HierarchyState, address: np.uint64, peer: np.uint64, lower_bound: np.uint64
) -> None:
    """Record a peer's lower bound. Drop entries that no peer needs."""
    before = s.process[peer].lower_bound
    if s.pruning == NONE or lower_bound <= before:
        return
    s.process[peer].lower_bound = lower_bound
    if before == s.group[address].least_bound:
        lowest = lower_bound
        for other in range(s.group[address].first, s.group[address + _1].first):
            lowest = min(lowest, s.process[other].lower_bound)
        for number in range(before + _1, lowest + _1):
            _forget(s, address, np.uint64(number))
        s.group[address].least_bound = lowest


@inline
def _forget(s: HierarchyState, address: np.uint64, number: np.uint64) -> None:
    if accounting.find_group(s, np.uint64(s.order[address, number])) != address:
        s.group[address].translated -= _1


@njit
def receive_acknowledgement(s: HierarchyState, address: np.uint64, ack: np.uint64) -> None:
    """Accept a peer's lower bound, unless it overtook a message of the peer."""
    peer, seq, floor = s.acks[ack].peer, s.acks[ack].seq, s.acks[ack].lower_bound
    s.acks[ack].peer = s.counters.ack_free
    s.counters.ack_free = ack
    if seq <= s.process[peer].forwarded:
        update_lower_bound(s, address, peer, floor)
