"""The external group of the compiled hierarchy: Listings 9 to 12, for external and super peers."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy import network, sets
from antecede.lab.simulate.compiled.hierarchy.accounting import count_bytes, find_group, measure_ci
from antecede.lab.simulate.compiled.hierarchy.encoded import measure_external
from antecede.lab.simulate.compiled.hierarchy.internal import count_idr
from antecede.lab.simulate.compiled.hierarchy.jit import inlined, njit
from antecede.lab.simulate.compiled.hierarchy.records import HAVE, NOWHERE
from antecede.lab.simulate.compiled.hierarchy.state import HierarchyState
from antecede.lab.simulate.compiled.hierarchy.super_peer import translate
from antecede.lab.simulate.compiled.records import release_node

_0, _1, _8, _32, _40 = (np.uint64(k) for k in (0, 1, 8, 32, 40))
_VECTOR, _HIGH = np.uint64(2**60), np.uint64(2**39)
NO_MESSAGE = np.uint64(2**64 - 1)


@njit
def send_external(s: HierarchyState, message: np.uint64, now: np.uint64) -> None:
    """Let an external peer send (Listing 9)."""
    at = np.uint64(s.message[message].sender)
    sets.attach_needs(s, at, message)
    if s.selection.violations and message >= s.warm:
        count_idr(s, message)
    if s.selection.sizes or s.selection.encoded:
        _count_external(s, at, message)
    if s.selection.ds and message >= s.warm:
        count_bytes(s.ds, _8 * s.process[at].known_senders, _0)
    sets.add_previous(s, message)
    sets.add(s, HAVE, at, message)
    network.send_across(s, message, at, now)


@inlined
def _count_external(s: HierarchyState, at: np.uint64, message: np.uint64) -> None:
    """Count what a message of an external peer carries. Before `add_previous`."""
    count = sets.list_needs(s, message, _0)
    encoded = measure_external(s, at, message, count, _0)
    size = measure_ci(s, count)
    if message >= s.warm:
        count_bytes(s.external, size, encoded)
    network.log_transmission(s, at, message, _0, size, encoded)


@inlined
def arrive_external(s: HierarchyState, at: np.uint64, message: np.uint64, now: np.uint64) -> None:
    """Deliver a message of the external group, and what waited for it, or hold it."""
    place, group = network.find_external_index(s, at), find_group(s, message)
    if group != NOWHERE:
        sets.add_arrived(s, place, message)
        s.vtx[place, group].top = max(
            np.uint64(s.vtx[place, group].top), np.uint64(s.message[message].top_announced)
        )
    if sets.is_missing_needs(s, at, message):
        s.process[at].held += _1
        network.wait(s, at, network.hold(s, message, now), _find_awaited(s, at, message))
        return
    _accept(s, at, place, message, now)
    s.released[_0] = message
    k, total = _0, _1
    while k < total:
        woken = network.collect_waiting(s, at, s.released[k], _0)
        if woken != _0:
            total = _recheck(s, at, place, woken, total, now)
        k += _1


@inlined
def _accept(
    s: HierarchyState, at: np.uint64, place: np.uint64, message: np.uint64, now: np.uint64
) -> None:
    group = find_group(s, message)
    if group != NOWHERE:
        number = np.uint64(s.number[group, message])
        s.vtx[place, group].top = max(np.uint64(s.vtx[place, group].top), number)
    if s.process[at].group == NOWHERE:
        network.deliver(s, at, message, now)
        if group == NOWHERE and s.message[message].seq == 1:
            s.process[at].known_senders += _1
    else:
        translate(s, at, message, now)


@inlined
def _recheck(
    s: HierarchyState,
    at: np.uint64,
    place: np.uint64,
    count: np.uint64,
    total: np.uint64,
    now: np.uint64,
) -> np.uint64:
    """Examine the first `count` nodes of `ready` again, by sender and number.

    Delivered messages go behind the first `total` of `done`; return their new number.
    """
    _sort_ready(s, count)
    for k in range(count):
        node = s.ready[k]
        message = np.uint64(s.nodes[node].message)
        if sets.is_missing_needs(s, at, message):
            network.wait(s, at, node, _find_awaited(s, at, message))
            continue
        s.process[at].held -= _1
        if s.process[at].group == NOWHERE:
            network.count_wait(s, message, node, now)
        release_node(s, node)
        _accept(s, at, place, message, now)
        s.released[total] = message
        total += _1
    return total


@inlined
def _make_sort_key(s: HierarchyState, node: np.uint64) -> np.uint64:
    """Return the sender in the external group and its number, as one word."""
    message = np.uint64(s.nodes[node].message)
    group = find_group(s, message)
    if group == NOWHERE:
        return np.uint64((s.message[message].sender << _32) | np.uint64(s.message[message].seq))
    return np.uint64((group << _32) | np.uint64(s.number[group, message]))


@inlined
def _sort_ready(s: HierarchyState, count: np.uint64) -> None:
    for k in range(_1, count):
        node = s.ready[k]
        key, place = _make_sort_key(s, node), np.uint64(k)
        while place > _0 and _make_sort_key(s, s.ready[place - _1]) > key:
            s.ready[place] = s.ready[place - _1]
            place -= _1
        s.ready[place] = node


@inlined
def _find_awaited(s: HierarchyState, at: np.uint64, message: np.uint64) -> np.uint64:
    """Return what a message waits for by Listing 11: the sender's message before, or the missing
    one of the first external peer, or of the first super peer the newest.
    """
    group, found, least = find_group(s, message), NO_MESSAGE, NO_MESSAGE
    for k in range(sets.list_missing(s, at, message)):
        other = s.listed[k]
        if group == NOWHERE and other + _1 == np.uint64(s.message[message].before):
            return np.uint64(other)
        rank = _rank_missing(s, other, find_group(s, other))
        if rank < least:
            least, found = rank, other
    return found


@inlined
def _rank_missing(s: HierarchyState, message: np.uint64, group: np.uint64) -> np.uint64:
    """Return a word that orders what is missing: external peers, super peers newest first."""
    if group == NOWHERE:
        return np.uint64(s.message[message].sender)
    number = np.uint64(s.number[group, message])
    return np.uint64(_VECTOR + (group << _40) + (_HIGH - number))
