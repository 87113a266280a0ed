"""Event loop of the compiled hierarchical protocol (Evropeytsev et al. 2016).

Theory of operation
-------------------
Events are ordered as in `lab.simulate.reference_engine`: by time, then samples, then sends, then
arrivals by ticket. A super peer's relay without delay enters the open bucket and is settled there
before the next arrival.

    state, records   the arrays              internal      internal peers
    sets             sets as bits            super_peer    super peers, TT
    accounting       bytes                   external      the external group
    network          channels, deliveries    encoded       bytes on the wire
    samples          storage

`State.measures` selects what is counted beside deliveries and waits; the rest costs nothing.
"""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy.accounting import group_of
from antecede.lab.simulate.compiled.hierarchy.encoded import compile_sizes
from antecede.lab.simulate.compiled.hierarchy.external import arrive_outside, send_external
from antecede.lab.simulate.compiled.hierarchy.internal import arrive_inside, send_internal
from antecede.lab.simulate.compiled.hierarchy.jit import inlined
from antecede.lab.simulate.compiled.hierarchy.network import ACKNOWLEDGES, ADDRESS_BITS, MESSAGE
from antecede.lab.simulate.compiled.hierarchy.records import NOWHERE
from antecede.lab.simulate.compiled.hierarchy.samples import sample
from antecede.lab.simulate.compiled.hierarchy.state import State
from antecede.lab.simulate.compiled.hierarchy.super_peer import take_acknowledgement, take_upward
from antecede.lab.simulate.compiled.queue import (
    BUCKET_BITS,
    entry_cargo,
    entry_time,
    open_bucket,
    settle,
)
from antecede.tables.kernels import njit_lent as njit

_0, _1 = np.uint64(0), np.uint64(1)


def run(s: State) -> None:
    """Run a prepared state to its end.

    `at.full`: `needs` was too small and the run is invalid. `at.early`: causal order is violated.
    """
    compile_sizes()
    _run(s)


@njit
def _run(s: State) -> None:
    messages = np.uint64(len(s.message))
    bucket = _0
    while (s.at.sent < messages or s.queue.at.left != _0) and s.at.full == _0:
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
                sample(s)
            else:
                _send(s, s.at.sent)
    while s.at.sampled + _1 < np.uint64(len(s.sample_us)):
        sample(s)


@inlined
def _send(s: State, message: np.uint64) -> None:
    s.at.sent += _1
    if group_of(s, message) == NOWHERE:
        send_external(s, message, s.time_us[message])
    else:
        send_internal(s, message, s.time_us[message])
    settle(s.queue)


@inlined
def _arrivals(s: State, until: np.uint64) -> None:
    """Let everything of the open bucket arrive that comes before a time."""
    queue, groups = s.queue, np.uint64(len(s.group) - 1)
    while queue.at.next < queue.at.end:
        entry = queue.now[queue.at.next]
        now = entry_time(queue, entry)
        if now >= until:
            break
        queue.at.next += _1
        cargo = entry_cargo(entry)
        at, message = cargo >> ADDRESS_BITS, cargo & MESSAGE
        if message & ACKNOWLEDGES != _0:
            take_acknowledgement(s, at, message ^ ACKNOWLEDGES)
            continue
        s.at.arrivals += _1
        if groups <= at < s.group[groups].first:
            arrive_inside(s, at, message, now)
        elif group_of(s, message) == at:
            take_upward(s, at, message, now)
        else:
            arrive_outside(s, at, message, now)
        settle(queue)
