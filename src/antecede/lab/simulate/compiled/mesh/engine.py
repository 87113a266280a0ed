"""Compiled engine of broadcast over a mesh: supported configurations, arrays, metrics.

`mesh.loop` executes the run. The width of its window of messages follows from the send times. Let D
be the longest delay of any channel. A message m is delivered everywhere D after its send, as its
whole past was sent before it. The first message f that is sent later has m in its past, so D after
f no set of fresh messages contains m. The last message that needs m directly was sent by then, and
is delivered everywhere D later. From then on nothing needs m, and its slot is free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from antecede.core.protocols import Relation
from antecede.errors import ConfigError
from antecede.lab.simulate.compiled import inputs
from antecede.lab.simulate.compiled.mesh import loop, state
from antecede.lab.simulate.compiled.mesh.state import MeshArraySizes, MeshCounters, MeshState
from antecede.lab.simulate.compiled.queue import make_queue
from antecede.lab.simulate.compiled.records import make_state
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.network import make_channels
from antecede.lab.simulate.outputs.metrics import compute_binned_wait_metrics, list_sample_times
from antecede.lab.simulate.outputs.result import (
    EVERYTHING,
    NOT_SELECTED,
    VIOLATION_METRICS,
    Measures,
    Result,
)
from antecede.lab.simulate.random_streams import Ints
from antecede.lab.simulate.schedule import Schedule
from antecede.lab.simulate.topology import Mesh
from antecede.lab.simulate.workload import Traffic

INTEGER_BYTES, PAIR_BYTES = 4, 8
PROTOCOLS = {
    ("idr", ""): state.IMMEDIATE,
    ("ds", ""): state.VECTOR,
    ("bss", ""): state.VECTOR,
    ("bss", "differences"): state.DIFFERENCES,
    ("fifo", ""): state.NUMBER,
}
"""Protocol and variant -> control information of its messages."""


class MeshRecording(NamedTuple):
    """A run with all events for differential tests."""

    result: Result
    deliveries: Ints  # [deliveries, 3] Member, message and time in us, in order
    deliveries_before: Ints  # [messages] Number of deliveries before each message was sent
    control_bytes: Ints  # [messages] By the source's accounting
    wire_bytes: Ints  # [messages] On the wire


def can_run_mesh(config: SimulationConfig) -> str | None:
    """Return why the engine cannot run a configuration (None: it can)."""
    if not isinstance(config.topology, Mesh):
        return "it needs a mesh"
    if (config.protocol, config.variant) not in PROTOCOLS:
        known = ", ".join(" ".join(pair).strip() for pair in PROTOCOLS)
        return f"it supports {known}"
    if config.options:
        return "it supports no protocol options"
    fanout = config.workload.fanout
    if fanout is not None and fanout < config.topology.size - 1:
        return "it supports no addressees"
    return inputs.find_misfit(config)


def bytes_mesh(config: SimulationConfig, seed: int = 0) -> int:
    """Return the memory that a run needs at most. Raises ConfigError."""
    inputs.reject("mesh", can_run_mesh(config))
    size = _compute_array_sizes(config, Traffic(config, seed).schedule, EVERYTHING)
    return state.compute_state_bytes(size, _find_control_kind(config), config.links.fifo)


def run_mesh(config: SimulationConfig, seed: int, selection: Measures = EVERYTHING) -> Result:
    """Run a configuration. Raises ConfigError if `can_run_mesh` has a reason."""
    return _make_result(config, seed, _run(config, seed, selection), selection)


def record_mesh(config: SimulationConfig, seed: int) -> MeshRecording:
    """Run a configuration and store its deliveries: 24 bytes each. Raises ConfigError."""
    s = _run(config, seed, EVERYTHING, log=True)
    sizes = _compute_control_bytes(config, s), s.wire_bytes.astype(np.int64)
    return MeshRecording(_make_result(config, seed, s, EVERYTHING), s.log, s.log_at, *sizes)


def _find_control_kind(config: SimulationConfig) -> np.uint64:
    return PROTOCOLS[config.protocol, config.variant]


def _run(config: SimulationConfig, seed: int, selection: Measures, log: bool = False) -> MeshState:
    s = prepare(config, seed, selection, log)
    loop.run(s)
    return s


def prepare(
    config: SimulationConfig, seed: int, selection: Measures = EVERYTHING, log: bool = False
) -> MeshState:
    """Return the initial state of a run. Raises ConfigError."""
    inputs.reject("mesh", can_run_mesh(config))
    sends = Traffic(config, seed).schedule
    size, carries = _compute_array_sizes(config, sends, selection), _find_control_kind(config)
    channels = make_channels(config.topology, config.links)
    return MeshState(
        **make_state(state.list_shapes(size, carries, config.links.fifo, log), MeshCounters),
        **inputs.make_input_arrays(config, seed, sends, size.samples),
        queue=make_queue(size.longest_us, size.max_copies),
        sender=sends.sender.astype(np.uint64),
        kind=channels.kind.astype(np.uint64),
        location=(np.arange(size.members) % len(channels.location_delays_us)).astype(np.uint64),
        control_kind=carries,
        seq=inputs.number_by_sender(sends.sender),
        longest_us=np.uint64(size.longest_us),
    )


def _compute_array_sizes(
    config: SimulationConfig, sends: Schedule, selection: Measures
) -> MeshArraySizes:
    members, longest_us = config.topology.size, inputs.find_longest_delay_us(config)
    sent_us = sends.time_us
    kept = np.arange(len(sent_us)) - inputs.find_oldest_needed(sent_us, longest_us, 2 * longest_us)
    window = int(kept.max(initial=0)) + 64
    return MeshArraySizes(
        members=members,
        messages=len(sent_us),
        samples=len(list_sample_times(config)) if selection.storage else 0,
        window=max(state.BLOCK_BITS, 1 << (window - 1).bit_length()),
        longest_us=longest_us,
        max_copies=inputs.count_most_sent(sent_us, longest_us + 128) * (members - 1),
        checks_violations=selection.violations,
        counts_wire=selection.encoded,
    )


def _compute_control_bytes(config: SimulationConfig, s: MeshState) -> Ints:
    if config.protocol in ("idr", "ds"):
        return PAIR_BYTES * s.pairs.astype(np.int64)
    if config.variant == "differences":
        return PAIR_BYTES * (1 + s.pairs.astype(np.int64))
    each = INTEGER_BYTES * (config.topology.size if config.protocol == "bss" else 1)
    return np.full(len(s.sender), each, dtype=np.int64)


def _make_result(config: SimulationConfig, seed: int, s: MeshState, selection: Measures) -> Result:
    arrivals, deliveries = int(s.counters.arrivals), int(s.counters.deliveries)
    stored, series = _compute_storage_metrics(config, s)
    figures = {
        "sent": len(s.sender),
        "arrivals": arrivals,
        "deliveries": deliveries,
        "held_at_end": arrivals - deliveries,
        "lost": 0,
        "duplicates": 0,
        **_compute_size_metrics(config, s, selection),
        **stored,
        **_compute_wait_metrics(s),
        **_compute_violation_metrics(config, s),
    }
    relation = Relation.FIFO if _find_control_kind(config) == state.NUMBER else Relation.BY_DELIVERY
    caveats = {} if len(s.newest_delivered) else dict.fromkeys(VIOLATION_METRICS, NOT_SELECTED)
    return Result(config, seed, "compiled", figures, series, relation, caveats)


def _compute_violation_metrics(config: SimulationConfig, s: MeshState) -> dict[str, float]:
    if not len(s.newest_delivered):
        return {}
    if s.counters.unchecked:
        raise ConfigError(
            f"the compiled mesh engine cannot count violations of this run: {s.counters.unchecked} "
            f"times a member lacks a message after the longest delay ({int(s.longest_us) / US:g} "
            "s); use --engine reference"
        )
    by_delivery = int(s.counters.violations)
    kept = (
        by_delivery
        if _find_control_kind(config) != state.NUMBER
        else int(s.counters.fifo_violations)
    )
    found = kept, by_delivery, int(s.counters.receipt_violations), int(s.counters.deliveries)
    return dict(zip(VIOLATION_METRICS, found, strict=True))


def _compute_size_metrics(
    config: SimulationConfig, s: MeshState, selection: Measures
) -> dict[str, float]:
    control = _compute_control_bytes(config, s)[int(s.warm) :]
    count, total = len(control), int(control.sum())
    if not count or config.topology.size == 1:  # a single peer transmits nothing
        return {}
    squares = int((control * control).sum())
    found: dict[str, float] = {}
    if selection.sizes:
        deviation = math.sqrt(count * squares - total * total) / count
        found |= {"peer.control_bytes": total / count, "peer.control_bytes_sd": deviation}
    if selection.encoded:
        found["peer.wire_bytes"] = int(s.wire_bytes[int(s.warm) :].sum()) / count
    return found


def _compute_storage_metrics(
    config: SimulationConfig, s: MeshState
) -> tuple[dict[str, float], dict[str, Sequence[float]]]:
    members = config.topology.size
    if not len(s.samples):
        return {}, {}
    pairs, most, held, most_held = (
        s.samples[name].astype(np.int64) for name in ("pairs", "most_pairs", "held", "most_held")
    )
    vector = INTEGER_BYTES * members * (2 if config.variant == "differences" else 1)
    each = PAIR_BYTES if config.protocol == "idr" else 0
    total = vector * members + each * pairs
    figures = {
        "peer.storage_bytes": int(total.sum()) / (members * len(total)),
        "peer.storage_bytes_max": vector + each * int(most.max()),
        "held.mean": int(held.sum()) / (members * len(held)),
        "held.max": int(most_held.max()),
    }
    series = {
        "time_s": (s.sample_us[:-1].astype(np.int64) / US).tolist(),
        "held": (held / members).tolist(),
        "peer.storage_bytes": (total / members).tolist(),
    }
    return figures, series


def _compute_wait_metrics(s: MeshState) -> dict[str, float]:
    bins = s.wait_us.astype(np.int64)
    waited = np.flatnonzero(bins)
    total_us = int((bins * np.arange(len(bins))).sum())
    longest_us = int(waited[-1]) if len(waited) else 0
    return compute_binned_wait_metrics(bins, int(s.counters.counted), total_us, longest_us)
