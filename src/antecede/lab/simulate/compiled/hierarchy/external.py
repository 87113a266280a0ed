"""External group of the compiled hierarchy: Listings 9 to 12, for external and super peers."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy import network, sets
from antecede.lab.simulate.compiled.hierarchy.accounting import count_bytes, find_group, measure_ci
from antecede.lab.simulate.compiled.hierarchy.encoded import measure_external
from antecede.lab.simulate.compiled.hierarchy.internal import count_idr
from antecede.lab.simulate.compiled.hierarchy.jit import inline, njit
from antecede.lab.simulate.compiled.hierarchy.records import HAVE, NOWHERE
from antecede.lab.simulate.compiled.hierarchy.state import HierarchyState
from antecede.lab.simulate.compiled.hierarchy.super_peer import translate
from antecede.lab.simulate.compiled.records import release_node

_0, _1, _8, _32, _40 = (np.uint64(k) for k in (0, 1, 8, 32, 40))
_VECTOR, _HIGH = np.uint64(2**60), np.uint64(2**39)
NO_MESSAGE = np.uint64(2**64 - 1)


@njit
def send_external(s: HierarchyState, message: np.uint64, now: np.uint64) -> None:
    """Send a message of an external peer (Listing 9)."""
    address = np.uint64(s.message[message].sender)
    sets.attach_needs(s, address, message)
    if s.selection.violations and message >= s.warm:
        count_idr(s, message)
    if s.selection.sizes or s.selection.encoded:
        _count_external(s, address, message)
    if s.selection.ds and message >= s.warm:
        count_bytes(s.ds, _8 * s.process[address].known_senders, _0)
    sets.add_previous(s, message)
    sets.add(s, HAVE, address, message)
    network.send_across(s, message, address, now)


@inline
def _count_external(s: HierarchyState, address: np.uint64, message: np.uint64) -> None:
    """Count the control information of an external peer's message. Call before `add_previous`."""
    count = sets.list_needs(s, message, _0)
    encoded = measure_external(s, address, message, count, _0)
    size = measure_ci(s, count)
    if message >= s.warm:
        count_bytes(s.external, size, encoded)
    network.log_transmission(s, address, message, _0, size, encoded)


@inline
def arrive_external(
    s: HierarchyState, address: np.uint64, message: np.uint64, now: np.uint64
) -> None:
    """Deliver a message of the external group and those that waited for it, or hold it."""
    index, group = network.find_external_index(s, address), find_group(s, message)
    if group != NOWHERE:
        sets.add_arrived(s, index, message)
        s.vtx[index, group].top = max(
            np.uint64(s.vtx[index, group].top), np.uint64(s.message[message].top_announced)
        )
    if sets.is_missing_needs(s, address, message):
        s.process[address].held += _1
        network.wait(s, address, network.hold(s, message, now), _find_awaited(s, address, message))
        return
    _accept(s, address, index, message, now)
    s.released[_0] = message
    k, total = _0, _1
    while k < total:
        woken = network.collect_waiting(s, address, s.released[k], _0)
        if woken != _0:
            total = _recheck(s, address, index, woken, total, now)
        k += _1


@inline
def _accept(
    s: HierarchyState, address: np.uint64, index: np.uint64, message: np.uint64, now: np.uint64
) -> None:
    group = find_group(s, message)
    if group != NOWHERE:
        number = np.uint64(s.number[group, message])
        s.vtx[index, group].top = max(np.uint64(s.vtx[index, group].top), number)
    if s.process[address].group == NOWHERE:
        network.deliver(s, address, message, now)
        if group == NOWHERE and s.message[message].seq == 1:
            s.process[address].known_senders += _1
    else:
        translate(s, address, message, now)


@inline
def _recheck(
    s: HierarchyState,
    address: np.uint64,
    index: np.uint64,
    count: np.uint64,
    total: np.uint64,
    now: np.uint64,
) -> np.uint64:
    """Check the nodes of `ready` again. Return the new number of `released` messages."""
    _sort_ready(s, count)
    for k in range(count):
        node = s.ready[k]
        message = np.uint64(s.nodes[node].message)
        if sets.is_missing_needs(s, address, message):
            network.wait(s, address, node, _find_awaited(s, address, message))
            continue
        s.process[address].held -= _1
        if s.process[address].group == NOWHERE:
            network.count_wait(s, message, node, now)
        release_node(s, node)
        _accept(s, address, index, message, now)
        s.released[total] = message
        total += _1
    return total


@inline
def _make_sort_key(s: HierarchyState, node: np.uint64) -> np.uint64:
    message = np.uint64(s.nodes[node].message)
    group = find_group(s, message)
    if group == NOWHERE:
        return np.uint64((s.message[message].sender << _32) | np.uint64(s.message[message].seq))
    return np.uint64((group << _32) | np.uint64(s.number[group, message]))


@inline
def _sort_ready(s: HierarchyState, count: np.uint64) -> None:
    for k in range(_1, count):
        node = s.ready[k]
        key, index = _make_sort_key(s, node), np.uint64(k)
        while index > _0 and _make_sort_key(s, s.ready[index - _1]) > key:
            s.ready[index] = s.ready[index - _1]
            index -= _1
        s.ready[index] = node


@inline
def _find_awaited(s: HierarchyState, address: np.uint64, message: np.uint64) -> np.uint64:
    """Return the message that a message waits for by Listing 11."""
    group, found, least = find_group(s, message), NO_MESSAGE, NO_MESSAGE
    for k in range(sets.list_missing(s, address, message)):
        other = s.listed[k]
        if group == NOWHERE and other + _1 == np.uint64(s.message[message].before):
            return np.uint64(other)
        rank = _rank_missing(s, other, find_group(s, other))
        if rank < least:
            least, found = rank, other
    return found


@inline
def _rank_missing(s: HierarchyState, message: np.uint64, group: np.uint64) -> np.uint64:
    if group == NOWHERE:
        return np.uint64(s.message[message].sender)
    number = np.uint64(s.number[group, message])
    return np.uint64(_VECTOR + (group << _40) + (_HIGH - number))
