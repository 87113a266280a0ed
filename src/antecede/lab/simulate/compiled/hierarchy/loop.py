"""Event loop of the compiled hierarchical protocol (Evropeytsev et al. 2016).

Events are ordered as in `lab.simulate.reference_engine`: by time, then samples, then sends, then
arrivals by sequence. A super peer's relay without delay enters the open bucket and is merged there
before the next arrival.

`HierarchyState.selection` selects further metrics. Metrics that are not selected cost nothing.
"""

from __future__ import annotations

import numpy as np

from antecede.lab.simulate.compiled.hierarchy.accounting import find_group
from antecede.lab.simulate.compiled.hierarchy.encoded import compile_sizes
from antecede.lab.simulate.compiled.hierarchy.external import arrive_external, send_external
from antecede.lab.simulate.compiled.hierarchy.internal import arrive_internal, send_internal
from antecede.lab.simulate.compiled.hierarchy.jit import inline
from antecede.lab.simulate.compiled.hierarchy.network import ACKNOWLEDGES, ADDRESS_BITS, MESSAGE
from antecede.lab.simulate.compiled.hierarchy.records import NOWHERE
from antecede.lab.simulate.compiled.hierarchy.samples import take_sample
from antecede.lab.simulate.compiled.hierarchy.state import HierarchyState
from antecede.lab.simulate.compiled.hierarchy.super_peer import (
    receive_acknowledgement,
    receive_upward,
)
from antecede.lab.simulate.compiled.queue import (
    BUCKET_BITS,
    decode_cargo,
    decode_time,
    merge_late,
    open_bucket,
)
from antecede.tables.kernels import njit_lent as njit

_0, _1 = np.uint64(0), np.uint64(1)


def run(s: HierarchyState) -> None:
    """Run a prepared state to its end. `counters.is_full`: the run is invalid."""
    compile_sizes()
    _run(s)


@njit
def _run(s: HierarchyState) -> None:
    messages = np.uint64(len(s.message))
    bucket = _0
    while (
        s.counters.sent < messages or s.queue.counters.unopened != _0
    ) and s.counters.is_full == _0:
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
                take_sample(s)
            else:
                _send(s, s.counters.sent)
    while s.counters.sampled + _1 < np.uint64(len(s.sample_us)):
        take_sample(s)


@inline
def _send(s: HierarchyState, message: np.uint64) -> None:
    s.counters.sent += _1
    if find_group(s, message) == NOWHERE:
        send_external(s, message, s.time_us[message])
    else:
        send_internal(s, message, s.time_us[message])
    merge_late(s.queue)


@inline
def _process_arrivals(s: HierarchyState, until: np.uint64) -> None:
    queue, groups = s.queue, np.uint64(len(s.group) - 1)
    while queue.counters.next < queue.counters.end:
        entry = queue.now[queue.counters.next]
        now = decode_time(queue, entry)
        if now >= until:
            break
        queue.counters.next += _1
        cargo = decode_cargo(entry)
        address, message = cargo >> ADDRESS_BITS, cargo & MESSAGE
        if message & ACKNOWLEDGES != _0:
            receive_acknowledgement(s, address, message ^ ACKNOWLEDGES)
            continue
        s.counters.arrivals += _1
        if groups <= address < s.group[groups].first:
            arrive_internal(s, address, message, now)
        elif find_group(s, message) == address:
            receive_upward(s, address, message, now)
        else:
            arrive_external(s, address, message, now)
        merge_late(queue)
