"""Event loop of the compiled mesh; BSS, IDR and DS deliver the same and differ in bytes.

Theory of operation
-------------------
Events are ordered as in `lab.simulate.reference_engine`: by time, then sends, then arrivals by
ticket. Samples precede the events of their microsecond. A send stamps the message (`mesh.sets`)
and puts a copy for each other member on the network. Delays are drawn by the copy's name, so
nothing random is stored.

An arrival is delivered when the member has all that the message needs. Otherwise it waits for the
newest missing message, and is examined again from there on down when that is delivered. A delivery
releases what waited for it and lacks nothing now, by sender, then what waited for these, breadth
first, as `core.protocols.vector.base` does.
"""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.mesh import sets
from antecede.lab.simulate.compiled.mesh.state import DIFFERENCES, NUMBER, State, bit
from antecede.lab.simulate.compiled.mesh.violations import judge_arrival, judge_send
from antecede.lab.simulate.compiled.queue import (
    BUCKET_BITS,
    entry_cargo,
    entry_time,
    open_bucket,
    put,
    settle,
)
from antecede.lab.simulate.compiled.random_streams import draw, pick
from antecede.lab.simulate.compiled.records import give_node, take_node
from antecede.lab.simulate.compiled.sizes import varint_size, vector_message_size
from antecede.tables.kernels import inlined_lent as inlined
from antecede.tables.kernels import njit_lent as njit

_0, _1, _6, _9 = (np.uint64(k) for k in (0, 1, 6, 9))
_LOW = np.uint64(2**32 - 1)
_SLOT_BITS = np.uint64(29)
_SLOT = np.uint64(2**29 - 1)


def run(s: State) -> None:
    """Let everything be sent, arrive and be delivered; `s` has the figures then."""
    # It makes arrays, so it must be compiled before the kernel that calls it: see `njit_lent`.
    vector_message_size(0, 1, np.zeros(1, np.int64))
    _run(s)


@njit
def _run(s: State) -> None:
    messages = np.uint64(len(s.sender))
    bucket = _0
    while s.at.sent < messages or s.queue.at.left != _0:
        if s.queue.at.left == _0:
            bucket = max(bucket, s.time_us[s.at.sent] >> BUCKET_BITS)
        open_bucket(s.queue, bucket)
        bucket += _1
        end = bucket << BUCKET_BITS
        while True:
            send_us, sample_us = s.time_us[s.at.sent], s.sample_us[s.at.sampled]
            until = min(end, send_us, sample_us)
            _arrivals(s, until)
            if until == end:
                break
            if sample_us <= send_us:
                _sample(s)
            else:
                _send(s, s.at.sent)
    while s.at.sampled < np.uint64(len(s.sample)):
        _sample(s)


@inlined
def _send(s: State, message: np.uint64) -> None:
    """Stamp a message and put its copies on the network."""
    member, slot = s.sender[message], message & np.uint64(len(s.number) - 1)
    sets.recycle(s, slot)
    sets.stamp(s, member, slot)
    s.pairs[message] = sets.write_causes(s, member, slot)
    if len(s.encoded) != 0:
        s.encoded[message] = _encoded(s, member, message)
    if s.carries == DIFFERENCES:
        for other in range(len(s.changed)):
            s.changed[member, other] = 0
    s.number[slot] = message
    s.before[member] = message + _1
    if len(s.done) != 0:
        judge_send(s, member, slot)
    if len(s.log_at) != 0:
        s.log_at[message] = s.at.logged
    _transmit(s, member, message, slot)
    s.at.sent += _1
    settle(s.queue)


@inlined
def _encoded(s: State, member: np.uint64, message: np.uint64) -> int:
    sender, seq = int(np.int64(member)), s.seq[message]
    if s.carries == NUMBER:
        return varint_size(sender) + varint_size(seq)
    return vector_message_size(sender, seq, s.causes)


@inlined
def _transmit(s: State, member: np.uint64, message: np.uint64, slot: np.uint64) -> None:
    members = np.uint64(len(s.have))
    now = s.time_us[message]
    for to in range(members):
        if to != member:
            word = draw(s.delay_key, message, member * members + to)
            table = s.quantiles[s.table[s.kind[member], s.kind[to]]]
            time = now + s.base[s.place[member], s.place[to]] + np.uint64(pick(table, word))
            if s.newest.shape[0] > 1:
                time = max(time, s.newest[member, to])
                s.newest[member, to] = time
            put(s.queue, time, (to << _SLOT_BITS) | slot)


@inlined
def _arrivals(s: State, until: np.uint64) -> None:
    """Let everything of the open bucket arrive that comes before a time."""
    queue = s.queue
    while queue.at.next < queue.at.end:
        entry = queue.now[queue.at.next]
        time = entry_time(queue, entry)
        if time >= until:
            break
        queue.at.next += _1
        cargo = entry_cargo(entry)
        _arrive(s, cargo >> _SLOT_BITS, cargo & _SLOT, time)


@inlined
def _arrive(s: State, member: np.uint64, slot: np.uint64, time: np.uint64) -> None:
    s.at.arrivals += _1
    if len(s.done) != 0:
        judge_arrival(s, member, slot)
    lacks = sets.missing(s, member, slot, s.top[slot])
    if lacks == sets.NOTHING:
        _release(s, member, slot, time)
    else:
        _wait(s, member, lacks, _hold(s, member, slot, time))


@inlined
def _hold(s: State, member: np.uint64, slot: np.uint64, time: np.uint64) -> np.uint64:
    """Return a node for a message that is held back from now on."""
    node = take_node(s)
    s.nodes[node].slot = slot
    s.nodes[node].since = time & _LOW
    s.held[member] += _1
    s.at.held += _1
    return node


@inlined
def _wait(s: State, member: np.uint64, slot: np.uint64, node: np.uint64) -> None:
    """Let a node wait at a member for the message of a slot."""
    mark = s.awaited[member, slot >> _6] & bit(slot)
    place = slot & np.uint64(s.head.shape[1] - 1)
    s.nodes[node].after = np.uint64(s.head[member, place]) if mark != _0 else _0
    s.head[member, place] = node
    s.awaited[member, slot >> _6] |= bit(slot)


@inlined
def _release(s: State, member: np.uint64, slot: np.uint64, time: np.uint64) -> None:
    """Deliver a message and all that waited for it, breadth first."""
    s.ready[_0] = slot
    done, count = _0, _1
    while done < count:
        slot = s.ready[done]
        done += _1
        sets.deliver(s, member, slot, time)
        if s.awaited[member, slot >> _6] & bit(slot) != _0:
            s.awaited[member, slot >> _6] &= ~bit(slot)
            count = _wake(s, member, slot, time, count)


@inlined
def _wake(
    s: State, member: np.uint64, slot: np.uint64, time: np.uint64, count: np.uint64
) -> np.uint64:
    """Look again at what waited for a slot; return how many are ready then."""
    node = np.uint64(s.head[member, slot & np.uint64(s.head.shape[1] - 1)])
    first = count
    while node != _0:
        after, waiter = np.uint64(s.nodes[node].after), np.uint64(s.nodes[node].slot)
        lacks = sets.missing(s, member, waiter, slot >> _9)
        if lacks == sets.NOTHING:
            _let_go(s, member, waiter, node, time)
            count = _insert(s, first, count, waiter)
        else:
            _wait(s, member, lacks, node)
        node = after
    return count


@inlined
def _let_go(s: State, member: np.uint64, slot: np.uint64, node: np.uint64, time: np.uint64) -> None:
    if s.number[slot] >= s.warm:
        s.wait_us[(time - np.uint64(s.nodes[node].since)) & _LOW] += _1
    s.held[member] -= _1
    s.at.held -= _1
    give_node(s, node)


@inlined
def _insert(s: State, first: np.uint64, count: np.uint64, slot: np.uint64) -> np.uint64:
    """Put a slot into the ready ones from `first` on, by sender; return their new number."""
    place = count
    sender = s.sender[s.number[slot]]
    while place > first and s.sender[s.number[s.ready[place - _1]]] > sender:
        s.ready[place] = s.ready[place - _1]
        place -= _1
    s.ready[place] = slot
    return np.uint64(count + _1)


@inlined
def _sample(s: State) -> None:
    row = s.at.sampled
    s.at.sampled += _1
    s.sample[row].held = s.at.held
    for one in range(len(s.fresh)):
        member = np.uint64(one)
        pairs = sets.immediate(s, member)
        s.sample[row].pairs += pairs
        s.sample[row].most_pairs = max(s.sample[row].most_pairs, pairs)
        s.sample[row].most_held = max(s.sample[row].most_held, s.held[member])
