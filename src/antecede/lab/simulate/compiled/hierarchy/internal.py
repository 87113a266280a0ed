"""Internal peers of the compiled hierarchy: Listings 4 to 6, and lower bounds of safe pruning."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy import network, sets
from antecede.lab.simulate.compiled.hierarchy.accounting import (
    count_bytes,
    find_internal_span,
    measure_span,
)
from antecede.lab.simulate.compiled.hierarchy.encoded import measure_idr, measure_upward
from antecede.lab.simulate.compiled.hierarchy.jit import inline, njit
from antecede.lab.simulate.compiled.hierarchy.records import (
    DEPENDENCIES,
    HAVE,
    IDR_DEPENDENCIES,
    SAFE,
)
from antecede.lab.simulate.compiled.hierarchy.state import HierarchyState
from antecede.lab.simulate.compiled.records import release_node
from antecede.tables.kernels import ones

_0, _1, _4, _8 = (np.uint64(k) for k in (0, 1, 4, 8))


@njit
def send_internal(s: HierarchyState, message: np.uint64, now: np.uint64) -> None:
    """Send a message of an internal peer (Listing 4)."""
    address = np.uint64(s.message[message].sender)
    if s.selection.violations:
        _check_lemma_3(s, address)
    sets.attach_needs(s, address, message)
    if s.selection.violations and message >= s.warm:
        count_idr(s, message)
    sets.add_previous(s, message)
    s.message[message].lower_bound = s.process[address].announced_bound = advance_prefix(s, address)
    s.process[address].deliveries_since_send = _0
    s.process[address].sent += _1
    if len(s.transmissions) != 0:
        size, encoded = (
            _count_upward_bytes(s, address, message),
            measure_upward(s, address, message),
        )
        network.log_transmission(s, address, message, s.process[address].group, size, encoded)
    network.send_up(s, message, address, now)


@njit
def count_idr(s: HierarchyState, message: np.uint64) -> None:
    """Count the control information of IDR."""
    pairs, row = _0, np.uint64(s.message[message].row)
    for k in range(np.uint64(s.message[message].rows)):
        for word in range(8):
            pairs += ones(s.needs[row + k, 1, word])
    count_bytes(s.idr, _8 * pairs, measure_idr(s, message))


@inline
def _check_lemma_3(s: HierarchyState, address: np.uint64) -> None:
    for block in range(s.process[address].low, s.process[address].high):
        for word in range(8):
            wanted = s.sets[block, address, IDR_DEPENDENCIES, word]
            s.counters.missing += ones(wanted & ~s.sets[block, address, DEPENDENCIES, word])
            s.counters.extra += ones(s.sets[block, address, DEPENDENCIES, word] & ~wanted)


@njit
def _count_upward_bytes(s: HierarchyState, address: np.uint64, message: np.uint64) -> np.uint64:
    count = sets.list_needs(s, message, _0)
    floor = _4 if s.pruning == SAFE else _0
    if count == _0:
        return floor
    lowest, highest = find_internal_span(s, s.process[address].group, count)
    return np.uint64(floor + measure_span(lowest, highest))


@inline
def advance_prefix(s: HierarchyState, address: np.uint64) -> np.uint64:
    """Return the number up to which an internal peer has all messages: RV's leading ones."""
    group, found = s.process[address].group, s.process[address].complete_prefix
    while (
        found < s.process[address].newest
        and sets.contains(s, HAVE, address, np.uint64(s.order[group, found + _1])) == _1
    ):
        found += _1
    s.process[address].complete_prefix = found
    return np.uint64(found)


@inline
def arrive_internal(
    s: HierarchyState, address: np.uint64, message: np.uint64, now: np.uint64
) -> None:
    """Deliver a message from the super peer or hold it (Listings 5 and 6)."""
    if sets.is_missing_needs(s, address, message):
        _hold(s, address, message, now)
        return
    _accept(s, address, message, now)
    count = network.collect_waiting(s, address, message, _0)
    if count != _0:
        _release(s, address, count, now)
    if s.ack_after != _0 and s.process[address].deliveries_since_send >= s.ack_after:
        _acknowledge(s, address, now)


@inline
def _accept(s: HierarchyState, address: np.uint64, message: np.uint64, now: np.uint64) -> None:
    s.process[address].newest = max(
        s.process[address].newest, np.uint64(s.number[s.process[address].group, message])
    )
    s.process[address].deliveries_since_send += _1
    if s.message[message].sender == address:
        sets.add(s, HAVE, address, message)
    else:
        network.deliver(s, address, message, now)


@inline
def _hold(s: HierarchyState, address: np.uint64, message: np.uint64, now: np.uint64) -> None:
    if s.message[message].sender != address:
        s.process[address].held += _1
    network.wait(
        s, address, network.hold(s, message, now), _find_newest_missing(s, address, message)
    )


@inline
def _find_newest_missing(s: HierarchyState, address: np.uint64, message: np.uint64) -> np.uint64:
    group, newest, found = s.process[address].group, _0, _0
    for k in range(sets.list_missing(s, address, message)):
        number = np.uint64(s.number[group, s.listed[k]])
        if number > newest:
            newest, found = number, s.listed[k]
    return found


@inline
def _release(s: HierarchyState, address: np.uint64, count: np.uint64, now: np.uint64) -> None:
    while count != _0:
        node = _take_lowest(s, address, count)
        count -= _1
        message = np.uint64(s.nodes[node].message)
        if sets.is_missing_needs(s, address, message):
            network.wait(s, address, node, _find_newest_missing(s, address, message))
            continue
        if s.message[message].sender != address:
            s.process[address].held -= _1
            network.count_wait(s, message, node, now)
        release_node(s, node)
        _accept(s, address, message, now)
        count = network.collect_waiting(s, address, message, count)


@inline
def _take_lowest(s: HierarchyState, address: np.uint64, count: np.uint64) -> np.uint64:
    group, best, least = s.process[address].group, _0, np.uint64(2**32)
    for k in range(count):
        number = np.uint64(s.number[group, np.uint64(s.nodes[s.ready[k]].message)])
        if number < least:
            best, least = np.uint64(k), number
    node = s.ready[best]
    s.ready[best] = s.ready[count - _1]
    return np.uint64(node)


@njit
def _acknowledge(s: HierarchyState, address: np.uint64, now: np.uint64) -> None:
    s.process[address].deliveries_since_send = _0
    floor = advance_prefix(s, address)
    if s.pruning == SAFE:
        sets.trim(s, address)
        count = sets.list_set(s, DEPENDENCIES, address)
        if count != _0:
            lowest, _ = find_internal_span(s, s.process[address].group, count)
            floor = min(floor, lowest - _1)
    if floor > s.process[address].announced_bound:
        s.process[address].announced_bound = floor
        network.acknowledge(s, address, s.process[address].sent, floor, now)
