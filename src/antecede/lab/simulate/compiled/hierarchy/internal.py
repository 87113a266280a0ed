"""Internal peers of the compiled hierarchy: Listings 4 to 6, and the floors of safe pruning."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy import network, sets
from antecede.lab.simulate.compiled.hierarchy.accounting import (
    count_bytes,
    find_internal_span,
    measure_span,
)
from antecede.lab.simulate.compiled.hierarchy.encoded import measure_idr, measure_upward
from antecede.lab.simulate.compiled.hierarchy.jit import inlined, njit
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
    """Let an internal peer send (Listing 4)."""
    at = np.uint64(s.message[message].sender)
    if s.selection.violations:
        _check_lemma_3(s, at)
    sets.attach_needs(s, at, message)
    if s.selection.violations and message >= s.warm:
        count_idr(s, message)
    sets.add_previous(s, message)
    s.message[message].lower_bound = s.process[at].announced_bound = advance_prefix(s, at)
    s.process[at].deliveries_since_send = _0
    s.process[at].sent += _1
    if len(s.transmissions) != 0:
        size, encoded = _count_upward_bytes(s, at, message), measure_upward(s, at, message)
        network.log_transmission(s, at, message, s.process[at].group, size, encoded)
    network.send_up(s, message, at, now)


@njit
def count_idr(s: HierarchyState, message: np.uint64) -> None:
    """Count what IDR would carry."""
    pairs, row = _0, np.uint64(s.message[message].row)
    for k in range(np.uint64(s.message[message].rows)):
        for word in range(8):
            pairs += ones(s.needs[row + k, 1, word])
    count_bytes(s.idr, _8 * pairs, measure_idr(s, message))


@inlined
def _check_lemma_3(s: HierarchyState, at: np.uint64) -> None:
    """Hold DV against the immediate dependencies (Lemma 3 of Evropeytsev et al. 2016)."""
    for block in range(s.process[at].low, s.process[at].high):
        for word in range(8):
            wanted = s.sets[block, at, IDR_DEPENDENCIES, word]
            s.counters.missing += ones(wanted & ~s.sets[block, at, DEPENDENCIES, word])
            s.counters.extra += ones(s.sets[block, at, DEPENDENCIES, word] & ~wanted)


@njit
def _count_upward_bytes(s: HierarchyState, at: np.uint64, message: np.uint64) -> np.uint64:
    count = sets.list_needs(s, message, _0)
    floor = _4 if s.pruning == SAFE else _0
    if count == _0:
        return floor
    lowest, highest = find_internal_span(s, s.process[at].group, count)
    return np.uint64(floor + measure_span(lowest, highest))


@inlined
def advance_prefix(s: HierarchyState, at: np.uint64) -> np.uint64:
    """Return the number up to which an internal peer has all: RV's leading ones."""
    group, found = s.process[at].group, s.process[at].complete_prefix
    while (
        found < s.process[at].newest
        and sets.contains(s, HAVE, at, np.uint64(s.order[group, found + _1])) == _1
    ):
        found += _1
    s.process[at].complete_prefix = found
    return np.uint64(found)


@inlined
def arrive_internal(s: HierarchyState, at: np.uint64, message: np.uint64, now: np.uint64) -> None:
    """Deliver a message from the super peer, and what waited for it, or hold it (Listings 5, 6)."""
    if sets.is_missing_needs(s, at, message):
        _hold(s, at, message, now)
        return
    _accept(s, at, message, now)
    count = network.collect_waiting(s, at, message, _0)
    if count != _0:
        _release(s, at, count, now)
    if s.ack_after != _0 and s.process[at].deliveries_since_send >= s.ack_after:
        _acknowledge(s, at, now)


@inlined
def _accept(s: HierarchyState, at: np.uint64, message: np.uint64, now: np.uint64) -> None:
    s.process[at].newest = max(
        s.process[at].newest, np.uint64(s.number[s.process[at].group, message])
    )
    s.process[at].deliveries_since_send += _1
    if s.message[message].sender == at:
        sets.add(s, HAVE, at, message)
    else:
        network.deliver(s, at, message, now)


@inlined
def _hold(s: HierarchyState, at: np.uint64, message: np.uint64, now: np.uint64) -> None:
    if s.message[message].sender != at:
        s.process[at].held += _1
    network.wait(s, at, network.hold(s, message, now), _find_newest_missing(s, at, message))


@inlined
def _find_newest_missing(s: HierarchyState, at: np.uint64, message: np.uint64) -> np.uint64:
    """Return the message of the highest number that is missing."""
    group, newest, found = s.process[at].group, _0, _0
    for k in range(sets.list_missing(s, at, message)):
        number = np.uint64(s.number[group, s.listed[k]])
        if number > newest:
            newest, found = number, s.listed[k]
    return found


@inlined
def _release(s: HierarchyState, at: np.uint64, count: np.uint64, now: np.uint64) -> None:
    """Look again at the first `count` nodes of `ready`, lowest number first, and what they free."""
    while count != _0:
        node = _take_lowest(s, at, count)
        count -= _1
        message = np.uint64(s.nodes[node].message)
        if sets.is_missing_needs(s, at, message):
            network.wait(s, at, node, _find_newest_missing(s, at, message))
            continue
        if s.message[message].sender != at:
            s.process[at].held -= _1
            network.count_wait(s, message, node, now)
        release_node(s, node)
        _accept(s, at, message, now)
        count = network.collect_waiting(s, at, message, count)


@inlined
def _take_lowest(s: HierarchyState, at: np.uint64, count: np.uint64) -> np.uint64:
    """Take the node with the lowest number out of the first `count` of `ready`."""
    group, best, least = s.process[at].group, _0, np.uint64(2**32)
    for k in range(count):
        number = np.uint64(s.number[group, np.uint64(s.nodes[s.ready[k]].message)])
        if number < least:
            best, least = np.uint64(k), number
    node = s.ready[best]
    s.ready[best] = s.ready[count - _1]
    return np.uint64(node)


@njit
def _acknowledge(s: HierarchyState, at: np.uint64, now: np.uint64) -> None:
    """Tell the floor, if it has risen."""
    s.process[at].deliveries_since_send = _0
    floor = advance_prefix(s, at)
    if s.pruning == SAFE:
        sets.trim(s, at)
        count = sets.list_set(s, DEPENDENCIES, at)
        if count != _0:
            lowest, _ = find_internal_span(s, s.process[at].group, count)
            floor = min(floor, lowest - _1)
    if floor > s.process[at].announced_bound:
        s.process[at].announced_bound = floor
        network.acknowledge(s, at, s.process[at].sent, floor, now)
