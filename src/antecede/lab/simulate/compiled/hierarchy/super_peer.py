"""A super peer of the compiled hierarchy: Listings 7, 8 and 13 to 15, and the pruning of TT."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy import accounting
from antecede.lab.simulate.compiled.hierarchy.encoded import downward_encoded, external_encoded
from antecede.lab.simulate.compiled.hierarchy.jit import inlined, njit
from antecede.lab.simulate.compiled.hierarchy.network import carry, send_inside, send_outside
from antecede.lab.simulate.compiled.hierarchy.records import HAVE, NONE, NOWHERE
from antecede.lab.simulate.compiled.hierarchy.sets import add, add_come, has_come, list_needs
from antecede.lab.simulate.compiled.hierarchy.state import State

_0, _1, _6, _7, _9 = (np.uint64(k) for k in (0, 1, 6, 7, 9))


@njit
def take_upward(s: State, at: np.uint64, message: np.uint64, now: np.uint64) -> None:
    """Forward a message of an internal peer, and those that waited for it; or hold it."""
    peer = np.uint64(s.message[message].sender)
    if s.message[message].seq != s.process[peer].taken + _1:
        add_come(s, at, message)
        return
    forward(s, at, message, now)
    following = np.uint64(s.message[message].after)
    while following != _0 and has_come(s, at, following - _1) == _1:
        forward(s, at, following - _1, now)
        following = np.uint64(s.message[following - _1].after)


@njit
def forward(s: State, at: np.uint64, message: np.uint64, now: np.uint64) -> None:
    """Listing 8: number a message of the own group, send it into the group and outside."""
    peer = np.uint64(s.message[message].sender)
    s.process[peer].taken += _1
    _give_number(s, at, message)
    place = s.group[at].own_first + s.group[at].owned
    before = _0
    if s.group[at].owned != _0:
        before = np.uint64(s.number[at, np.uint64(s.message[place - _1].own)])
    s.message[place].own = message
    s.group[at].owned += _1
    if s.measures.sizes or s.measures.encoded:
        _count_inward(s, at, message)
    send_inside(s, message, at, now)
    if s.measures.sizes or s.measures.encoded or s.measures.storage:
        _count_outward(s, at, message, before)
    if len(s.vtx) > 1:
        send_outside(s, message, at, now)
    learn(s, at, peer, np.uint64(s.message[message].floor))


@inlined
def _first_other(s: State, at: np.uint64) -> np.uint64:
    """Return the first address of the external group but one's own."""
    groups = np.uint64(len(s.group) - 1)
    if at != _0:
        return _0
    return _1 if groups > _1 else np.uint64(s.group[groups].first)


@inlined
def _give_number(s: State, at: np.uint64, message: np.uint64) -> None:
    number = s.group[at].given + _1
    s.group[at].given = number
    s.number[at, message] = number
    s.order[at, number] = message
    add(s, HAVE, at, message)


@njit
def _count_inward(s: State, at: np.uint64, message: np.uint64) -> None:
    """Count what a message into the group carries: DV."""
    count = accounting.list_inside(s, at, message)
    size = _0
    if count != _0:
        lowest, highest = accounting.span_inside(s, at, count)
        size = accounting.span_bytes(lowest, highest)
        if message >= s.warm:
            s.entropy[0] += accounting.entropy(highest - lowest + _1, count)
    encoded = downward_encoded(s, at, message, count)
    if message >= s.warm:
        accounting.count_bytes(s.internal, size, encoded)
    carry(s, at, message, s.group[at].first, size, encoded)


@njit
def _count_outward(s: State, at: np.uint64, message: np.uint64, before: np.uint64) -> None:
    """Listing 14: count the bytes of CI and I, and all encoded; `before`: the last own number."""
    count, number = list_needs(s, message, _0), np.uint64(s.number[at, message])
    lowest, highest = NOWHERE, _0
    if before + _1 < number:
        lowest, highest = before + _1, number - _1
    for k in range(count):
        other = s.listed[k]
        if accounting.group_of(s, other) != at:
            out = np.uint64(s.number[at, other])
            lowest, highest = min(lowest, out), max(highest, out)
    if s.message[message].before != 0:
        s.listed[count] = np.uint64(s.message[message].before) - _1
        count += _1
    s.message[message].top_told = highest
    encoded = external_encoded(s, at, message, count, before)
    size = accounting.ci_bytes(s, count)
    if highest != _0:
        size += accounting.span_bytes(lowest, highest)
    if len(s.vtx) > 1:
        if message >= s.warm:
            accounting.count_bytes(s.external, size, encoded)
        carry(s, at, message, _first_other(s, at), size, encoded)


@njit
def translate(s: State, at: np.uint64, message: np.uint64, now: np.uint64) -> None:
    """Listings 13 and 15: number a message of the external group and send it into the group."""
    _give_number(s, at, message)
    s.group[at].translated += _1
    if s.measures.sizes or s.measures.encoded:
        _count_inward(s, at, message)
    send_inside(s, message, at, now)


@njit
def learn(s: State, at: np.uint64, peer: np.uint64, floor: np.uint64) -> None:
    """Note what a peer says of itself; forget what nobody needs."""
    before = s.process[peer].floor
    if s.pruning == NONE or floor <= before:
        return
    s.process[peer].floor = floor
    if before == s.group[at].lowest:
        lowest = floor
        for other in range(s.group[at].first, s.group[at + _1].first):
            lowest = min(lowest, s.process[other].floor)
        for number in range(before + _1, lowest + _1):
            _forget(s, at, np.uint64(number))
        s.group[at].lowest = lowest


@inlined
def _forget(s: State, at: np.uint64, number: np.uint64) -> None:
    if accounting.group_of(s, np.uint64(s.order[at, number])) != at:
        s.group[at].translated -= _1


@njit
def take_acknowledgement(s: State, at: np.uint64, ack: np.uint64) -> None:
    """Believe a peer's floor, but not when it overtook a message of the peer."""
    peer, seq, floor = s.acks[ack].peer, s.acks[ack].seq, s.acks[ack].floor
    s.acks[ack].peer = s.at.ack_free
    s.at.ack_free = ack
    if seq <= s.process[peer].taken:
        learn(s, at, peer, floor)
