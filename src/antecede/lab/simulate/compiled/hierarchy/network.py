"""Channels of the compiled hierarchy, lists of held messages, deliveries to applications."""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy.jit import inline
from antecede.lab.simulate.compiled.hierarchy.records import AWAITED, HAVE
from antecede.lab.simulate.compiled.hierarchy.sets import (
    add,
    add_dependency,
    contains,
    remove,
    remove_implied,
    remove_implied_by_idr,
)
from antecede.lab.simulate.compiled.hierarchy.state import WAIT_BINS, HierarchyState
from antecede.lab.simulate.compiled.queue import put
from antecede.lab.simulate.compiled.random_streams import draw, pick
from antecede.lab.simulate.compiled.records import take_node

_0, _1 = np.uint64(0), np.uint64(1)
ADDRESS_BITS = np.uint64(32)  # Cargo of the queue: the receiver above these bits, the message below
MESSAGE = np.uint64(2**32 - 1)
ACKNOWLEDGES = np.uint64(2**31)  # In place of a message: this and the index of an acknowledgement


@inline
def _draw_arrival(
    s: HierarchyState, word: np.uint64, address: np.uint64, to: np.uint64, now: np.uint64
) -> np.uint64:
    table = s.quantiles[s.table[s.process[address].kind, s.process[to].kind]]
    return np.uint64(
        now
        + s.base[s.process[address].location, s.process[to].location]
        + np.uint64(pick(table, word))
    )


@inline
def send_down(s: HierarchyState, message: np.uint64, address: np.uint64, now: np.uint64) -> None:
    """Send a message from a super peer to all peers of its group."""
    addresses = np.uint64(len(s.process))
    for peer in range(s.group[address].first, s.group[address + _1].first):
        to = np.uint64(peer)
        word = draw(s.delay_key, message, address * addresses + to)
        time = _draw_arrival(s, word, address, to, now)
        if s.fifo != _0:
            time = max(time, s.process[to].newest_down)
            s.process[to].newest_down = time
        put(s.queue, time, (to << ADDRESS_BITS) | message)


@inline
def find_external_index(s: HierarchyState, address: np.uint64) -> np.uint64:
    """Return the index of a process in the external group."""
    groups = np.uint64(len(s.group) - 1)
    if address < groups:
        return address
    return np.uint64(address - (s.group[groups].first - groups))


@inline
def send_across(s: HierarchyState, message: np.uint64, address: np.uint64, now: np.uint64) -> None:
    """Send a message to all others of the external group, by address."""
    groups, addresses = np.uint64(len(s.group) - 1), np.uint64(len(s.process))
    for other in range(groups):
        if other != address:
            _put_across(s, message, address, np.uint64(other), now)
    for other in range(s.group[groups].first, addresses):
        if other != address:
            _put_across(s, message, address, np.uint64(other), now)


@inline
def _put_across(
    s: HierarchyState, message: np.uint64, address: np.uint64, to: np.uint64, now: np.uint64
) -> None:
    word = draw(s.delay_key, message, address * np.uint64(len(s.process)) + to)
    time = _draw_arrival(s, word, address, to, now)
    if s.fifo != _0:
        source, target = find_external_index(s, address), find_external_index(s, to)
        time = max(time, s.newest_out[source, target])
        s.newest_out[source, target] = time
    put(s.queue, time, (to << ADDRESS_BITS) | message)


@inline
def send_up(s: HierarchyState, message: np.uint64, address: np.uint64, now: np.uint64) -> None:
    """Send a message from an internal peer to its super peer."""
    word = draw(
        s.delay_key, message, address * np.uint64(len(s.process)) + s.process[address].group
    )
    _put_up(s, word, message, address, now)


@inline
def _put_up(
    s: HierarchyState, word: np.uint64, cargo: np.uint64, address: np.uint64, now: np.uint64
) -> None:
    time = _draw_arrival(s, word, address, s.process[address].group, now)
    if s.fifo != _0:
        time = max(time, s.process[address].newest_up)
        s.process[address].newest_up = time
    put(s.queue, time, (s.process[address].group << ADDRESS_BITS) | cargo)


@inline
def acknowledge(
    s: HierarchyState, address: np.uint64, seq: np.uint64, lower_bound: np.uint64, now: np.uint64
) -> None:
    """Send the lower bound of an internal peer alone."""
    ack = s.counters.ack_free
    if ack == _0:
        ack = s.counters.ack_fresh
        s.counters.ack_fresh += _1
    else:
        s.counters.ack_free = s.acks[ack].peer
    s.acks[ack].peer, s.acks[ack].seq, s.acks[ack].lower_bound = address, seq, lower_bound
    word = draw(
        s.control_key,
        s.counters.acknowledgements,
        address * np.uint64(len(s.process)) + s.process[address].group,
    )
    s.counters.acknowledgements += _1
    _put_up(s, word, ACKNOWLEDGES | ack, address, now)


@inline
def log_transmission(
    s: HierarchyState,
    address: np.uint64,
    message: np.uint64,
    to: np.uint64,
    size: np.uint64,
    wire: np.uint64,
) -> None:
    """Log a transmission, if transmissions are stored."""
    if len(s.transmissions) != 0:
        row = s.counters.transmissions
        s.transmissions[row, 0], s.transmissions[row, 1] = address, message
        s.transmissions[row, 2], s.transmissions[row, 3], s.transmissions[row, 4] = to, size, wire
        s.counters.transmissions += _1


@inline
def hold(s: HierarchyState, message: np.uint64, now: np.uint64) -> np.uint64:
    """Return a node for a held message."""
    node = take_node(s)
    s.nodes[node].message = message
    s.nodes[node].since = now & MESSAGE
    return node


@inline
def wait(s: HierarchyState, address: np.uint64, node: np.uint64, reason: np.uint64) -> None:
    """Let a node wait at a process for a message."""
    index = reason & np.uint64(s.head.shape[1] - 1)
    s.nodes[node].after = s.head[address, index]
    s.nodes[node].reason = reason
    s.head[address, index] = node
    add(s, AWAITED, address, reason)


@inline
def collect_waiting(
    s: HierarchyState, address: np.uint64, reason: np.uint64, count: np.uint64
) -> np.uint64:
    """Put the nodes that wait for a message behind the first `count` of `ready`."""
    if contains(s, AWAITED, address, reason) != _0:
        remove(s, AWAITED, address, reason)
        index = reason & np.uint64(s.head.shape[1] - 1)
        node = np.uint64(s.head[address, index])
        before = _0
        while node != _0:
            after = np.uint64(s.nodes[node].after)
            if s.nodes[node].reason == reason:
                s.ready[count] = node
                count += _1
                if before == _0:
                    s.head[address, index] = after
                else:
                    s.nodes[before].after = after
            else:
                before = node
            node = after
    return count


@inline
def deliver(s: HierarchyState, address: np.uint64, message: np.uint64, now: np.uint64) -> None:
    """Deliver a message of another process to an application, and check it by IDR."""
    remove_implied(s, address, message)
    if s.selection.violations and remove_implied_by_idr(s, address, message) != _0:
        s.counters.violations += _1
    add(s, HAVE, address, message)
    add_dependency(s, address, message)
    s.counters.deliveries += _1
    if message >= s.warm:
        s.counters.counted += _1
    if len(s.log) != 0:
        line = s.counters.logged
        s.log[line, 0], s.log[line, 1], s.log[line, 2] = address, message, now
        s.counters.logged += _1


@inline
def count_wait(s: HierarchyState, message: np.uint64, node: np.uint64, now: np.uint64) -> None:
    """Count the wait of a held message that is delivered now."""
    waited = (now - np.uint64(s.nodes[node].since)) & MESSAGE
    if message >= s.warm and waited != _0:
        s.wait_us[min(waited, np.uint64(WAIT_BINS))] += _1
        s.counters.waited_us += waited
        s.counters.longest_wait_us = max(s.counters.longest_wait_us, waited)
