"""Event loop of the compiled mesh. BSS, IDR and DS deliver the same and differ in bytes.

Events are ordered as in `lab.simulate.reference_engine`: by time, then sends, then arrivals by
sequence. Samples precede the events of their microsecond. A send attaches the needs (`mesh.sets`)
and sends a copy to each other member. Delays are drawn by the copy's name, so no random number is
stored.

An arrival is delivered if the member has all that the message needs. Otherwise it waits for the
newest missing message, and is checked again from there on down when that is delivered. A delivery
releases waiting messages without missing needs, by sender, then those that wait for these, breadth
first, as `core.protocols.vector.base` does.
"""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.mesh import sets
from antecede.lab.simulate.compiled.mesh.state import DIFFERENCES, NUMBER, MeshState, make_bit
from antecede.lab.simulate.compiled.mesh.violations import check_arrival, check_send
from antecede.lab.simulate.compiled.queue import (
    BUCKET_BITS,
    decode_cargo,
    decode_time,
    merge_late,
    open_bucket,
    put,
)
from antecede.lab.simulate.compiled.random_streams import draw, pick
from antecede.lab.simulate.compiled.records import release_node, take_node
from antecede.lab.simulate.compiled.sizes import varint_size, vector_message_size
from antecede.tables.kernels import inline_lent as inlined
from antecede.tables.kernels import njit_lent as njit

_0, _1, _6, _9 = (np.uint64(k) for k in (0, 1, 6, 9))
_LOW = np.uint64(2**32 - 1)
_SLOT_BITS = np.uint64(29)
_SLOT = np.uint64(2**29 - 1)


def run(s: MeshState) -> None:
    """Process all events. `s` has the results then."""
    # It allocates arrays, so it must be compiled before its callers: see `njit_lent`.
    vector_message_size(0, 1, np.zeros(1, np.int64))
    _run(s)


@njit
def _run(s: MeshState) -> None:
    messages = np.uint64(len(s.sender))
    bucket = _0
    while s.counters.sent < messages or s.queue.counters.unopened != _0:
        if s.queue.counters.unopened == _0:
            bucket = max(bucket, s.time_us[s.counters.sent] >> BUCKET_BITS)
        open_bucket(s.queue, bucket)
        bucket += _1
        end = bucket << BUCKET_BITS
        while True:
            send_us, sample_us = s.time_us[s.counters.sent], s.sample_us[s.counters.sampled]
            until = min(end, send_us, sample_us)
            _process_arrivals(s, until)
            if until == end:
                break
            if sample_us <= send_us:
                _take_sample(s)
            else:
                _send(s, s.counters.sent)
    while s.counters.sampled < np.uint64(len(s.samples)):
        _take_sample(s)


@inlined
def _send(s: MeshState, message: np.uint64) -> None:
    member, slot = s.sender[message], message & np.uint64(len(s.number) - 1)
    sets.recycle(s, slot)
    sets.attach_needs(s, member, slot)
    s.pairs[message] = sets.write_causes(s, member, slot)
    if len(s.wire_bytes) != 0:
        s.wire_bytes[message] = _compute_wire_bytes(s, member, message)
    if s.control_kind == DIFFERENCES:
        for other in range(len(s.changed)):
            s.changed[member, other] = 0
    s.number[slot] = message
    s.last_sent[member] = message + _1
    if len(s.newest_delivered) != 0:
        check_send(s, member, slot)
    if len(s.log_at) != 0:
        s.log_at[message] = s.counters.logged
    _transmit(s, member, message, slot)
    s.counters.sent += _1
    merge_late(s.queue)


@inlined
def _compute_wire_bytes(s: MeshState, member: np.uint64, message: np.uint64) -> int:
    sender, seq = int(np.int64(member)), s.seq[message]
    if s.control_kind == NUMBER:
        return varint_size(sender) + varint_size(seq)
    return vector_message_size(sender, seq, s.causes)


@inlined
def _transmit(s: MeshState, member: np.uint64, message: np.uint64, slot: np.uint64) -> None:
    members = np.uint64(len(s.have))
    now = s.time_us[message]
    for to in range(members):
        if to != member:
            word = draw(s.delay_key, message, member * members + to)
            table = s.quantiles[s.table[s.kind[member], s.kind[to]]]
            time = now + s.base[s.location[member], s.location[to]] + np.uint64(pick(table, word))
            if s.last_arrival_us.shape[0] > 1:
                time = max(time, s.last_arrival_us[member, to])
                s.last_arrival_us[member, to] = time
            put(s.queue, time, (to << _SLOT_BITS) | slot)


@inlined
def _process_arrivals(s: MeshState, until: np.uint64) -> None:
    queue = s.queue
    while queue.counters.next < queue.counters.end:
        entry = queue.now[queue.counters.next]
        time = decode_time(queue, entry)
        if time >= until:
            break
        queue.counters.next += _1
        cargo = decode_cargo(entry)
        _arrive(s, cargo >> _SLOT_BITS, cargo & _SLOT, time)


@inlined
def _arrive(s: MeshState, member: np.uint64, slot: np.uint64, time: np.uint64) -> None:
    s.counters.arrivals += _1
    if len(s.newest_delivered) != 0:
        check_arrival(s, member, slot)
    lacks = sets.find_missing(s, member, slot, s.top[slot])
    if lacks == sets.NO_SLOT:
        _release(s, member, slot, time)
    else:
        _wait(s, member, lacks, _hold(s, member, slot, time))


@inlined
def _hold(s: MeshState, member: np.uint64, slot: np.uint64, time: np.uint64) -> np.uint64:
    node = take_node(s)
    s.nodes[node].slot = slot
    s.nodes[node].since = time & _LOW
    s.held[member] += _1
    s.counters.held += _1
    return node


@inlined
def _wait(s: MeshState, member: np.uint64, slot: np.uint64, node: np.uint64) -> None:
    mark = s.awaited[member, slot >> _6] & make_bit(slot)
    position = slot & np.uint64(s.first_waiting.shape[1] - 1)
    s.nodes[node].after = np.uint64(s.first_waiting[member, position]) if mark != _0 else _0
    s.first_waiting[member, position] = node
    s.awaited[member, slot >> _6] |= make_bit(slot)


@inlined
def _release(s: MeshState, member: np.uint64, slot: np.uint64, time: np.uint64) -> None:
    s.ready[_0] = slot
    done, count = _0, _1
    while done < count:
        slot = s.ready[done]
        done += _1
        sets.deliver(s, member, slot, time)
        if s.awaited[member, slot >> _6] & make_bit(slot) != _0:
            s.awaited[member, slot >> _6] &= ~make_bit(slot)
            count = _recheck_waiting(s, member, slot, time, count)


@inlined
def _recheck_waiting(
    s: MeshState, member: np.uint64, slot: np.uint64, time: np.uint64, count: np.uint64
) -> np.uint64:
    node = np.uint64(s.first_waiting[member, slot & np.uint64(s.first_waiting.shape[1] - 1)])
    first = count
    while node != _0:
        after, waiter = np.uint64(s.nodes[node].after), np.uint64(s.nodes[node].slot)
        lacks = sets.find_missing(s, member, waiter, slot >> _9)
        if lacks == sets.NO_SLOT:
            _end_hold(s, member, waiter, node, time)
            count = _insert_ready(s, first, count, waiter)
        else:
            _wait(s, member, lacks, node)
        node = after
    return count


@inlined
def _end_hold(
    s: MeshState, member: np.uint64, slot: np.uint64, node: np.uint64, time: np.uint64
) -> None:
    if s.number[slot] >= s.warm:
        s.wait_us[(time - np.uint64(s.nodes[node].since)) & _LOW] += _1
    s.held[member] -= _1
    s.counters.held -= _1
    release_node(s, node)


@inlined
def _insert_ready(s: MeshState, first: np.uint64, count: np.uint64, slot: np.uint64) -> np.uint64:
    position = count
    sender = s.sender[s.number[slot]]
    while position > first and s.sender[s.number[s.ready[position - _1]]] > sender:
        s.ready[position] = s.ready[position - _1]
        position -= _1
    s.ready[position] = slot
    return np.uint64(count + _1)


@inlined
def _take_sample(s: MeshState) -> None:
    row = s.counters.sampled
    s.counters.sampled += _1
    s.samples[row].held = s.counters.held
    for index in range(len(s.fresh)):
        member = np.uint64(index)
        pairs = sets.count_pairs(s, member)
        s.samples[row].pairs += pairs
        s.samples[row].most_pairs = max(s.samples[row].most_pairs, pairs)
        s.samples[row].most_held = max(s.samples[row].most_held, s.held[member])
