"""Compiled engine of broadcast over a mesh: scenarios that it runs, its arrays, its figures.

Theory of operation
-------------------
`mesh.loop` does the run. The width of its window of messages follows from the send times. Let D be
the longest delay of any channel. A message m is delivered everywhere D after its sending, as its
whole past was sent before it. The first message f that is sent later has m in its past, so D after
f no set of fresh messages has m. The last message that needs m directly was sent by then, and is
delivered everywhere D later. From then on nothing asks for m, and its place is free.

The figures are exactly those of the reference engine (differential test).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from antecede.core.protocols import Relation
from antecede.errors import ScenarioError
from antecede.lab.simulate.compiled import inputs
from antecede.lab.simulate.compiled.mesh import loop, state
from antecede.lab.simulate.compiled.mesh.state import Counters, Size, State
from antecede.lab.simulate.compiled.queue import new_queue
from antecede.lab.simulate.compiled.records import new_state
from antecede.lab.simulate.config.model import Scenario
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.network import channels
from antecede.lab.simulate.outputs.metrics import binned_wait_figures, sample_times
from antecede.lab.simulate.outputs.result import EVERYTHING, JUDGED, NOT_ASKED, Measures, Result
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


class Recorded(NamedTuple):
    """A run with everything that can be compared."""

    result: Result
    deliveries: Ints  # [deliveries, 3] member, message and time in us, in the order of the run
    log_at: Ints  # [messages] how many deliveries there were before each message was sent
    control_bytes: Ints  # [messages] by the source's accounting
    encoded_bytes: Ints  # [messages] on the wire


def can_run_mesh(scenario: Scenario) -> str | None:
    """Return why the engine can not run a scenario; None: it can."""
    if not isinstance(scenario.topology, Mesh):
        return "it runs on a mesh only"
    if (scenario.protocol, scenario.variant) not in PROTOCOLS:
        known = ", ".join(" ".join(pair).strip() for pair in PROTOCOLS)
        return f"it knows {known}"
    if scenario.options:
        return "it takes no options of a protocol"
    fanout = scenario.workload.fanout
    if fanout is not None and fanout < scenario.topology.size - 1:
        return "its messages are for everybody"
    return inputs.unfit(scenario)


def bytes_mesh(scenario: Scenario, seed: int = 0) -> int:
    """Return the memory that a run needs at most. Raises ScenarioError."""
    inputs.refuse("mesh", can_run_mesh(scenario))
    size = _size(scenario, Traffic(scenario, seed).schedule, EVERYTHING)
    return state.state_bytes(size, _carries(scenario), scenario.links.fifo)


def run_mesh(scenario: Scenario, seed: int, measures: Measures = EVERYTHING) -> Result:
    """Run a scenario; raises ScenarioError where `can_run_mesh` says why not."""
    return _result(scenario, seed, _run(scenario, seed, measures), measures)


def record_mesh(scenario: Scenario, seed: int) -> Recorded:
    """Run a scenario and keep its deliveries: 24 bytes each. Raises ScenarioError."""
    s = _run(scenario, seed, EVERYTHING, log=True)
    sizes = _control_bytes(scenario, s), s.encoded.astype(np.int64)
    return Recorded(_result(scenario, seed, s, EVERYTHING), s.log, s.log_at, *sizes)


def _carries(scenario: Scenario) -> np.uint64:
    return PROTOCOLS[scenario.protocol, scenario.variant]


def _run(scenario: Scenario, seed: int, measures: Measures, log: bool = False) -> State:
    s = prepared(scenario, seed, measures, log)
    loop.run(s)
    return s


def prepared(
    scenario: Scenario, seed: int, measures: Measures = EVERYTHING, log: bool = False
) -> State:
    """Return the state of a run in which nothing has happened yet. Raises ScenarioError."""
    inputs.refuse("mesh", can_run_mesh(scenario))
    sends = Traffic(scenario, seed).schedule
    size, carries = _size(scenario, sends, measures), _carries(scenario)
    of = channels(scenario.topology, scenario.links)
    return State(
        **new_state(state.shapes(size, carries, scenario.links.fifo, log), Counters),
        **inputs.input_arrays(scenario, seed, sends, size.samples),
        queue=new_queue(size.longest_us, size.most),
        sender=sends.sender.astype(np.uint64),
        kind=of.kind.astype(np.uint64),
        place=(np.arange(size.members) % len(of.places)).astype(np.uint64),
        carries=carries,
        seq=inputs.sender_numbers(sends.sender),
        longest=np.uint64(size.longest_us),
    )


def _size(scenario: Scenario, sends: Schedule, measures: Measures) -> Size:
    members, longest_us = scenario.topology.size, inputs.longest_us(scenario)
    sent_us = sends.time_us
    kept = np.arange(len(sent_us)) - inputs.oldest_needed(sent_us, longest_us, 2 * longest_us)
    window = int(kept.max(initial=0)) + 64
    return Size(
        members=members,
        messages=len(sent_us),
        samples=len(sample_times(scenario)) if measures.storage else 0,
        window=max(state.BLOCK_BITS, 1 << (window - 1).bit_length()),
        longest_us=longest_us,
        most=inputs.most_sent_within(sent_us, longest_us + 128) * (members - 1),
        judged=measures.causes,
        encoded=measures.encoded,
    )


def _control_bytes(scenario: Scenario, s: State) -> Ints:
    """Return [messages] bytes of control information, as the protocols' `control_bytes`."""
    if scenario.protocol in ("idr", "ds"):
        return PAIR_BYTES * s.pairs.astype(np.int64)
    if scenario.variant == "differences":
        return PAIR_BYTES * (1 + s.pairs.astype(np.int64))
    each = INTEGER_BYTES * (scenario.topology.size if scenario.protocol == "bss" else 1)
    return np.full(len(s.sender), each, dtype=np.int64)


def _result(scenario: Scenario, seed: int, s: State, measures: Measures) -> Result:
    arrivals, deliveries = int(s.at.arrivals), int(s.at.deliveries)
    stored, series = _samples_of(scenario, s)
    figures = {
        "sent": len(s.sender),
        "arrivals": arrivals,
        "deliveries": deliveries,
        "held_at_end": arrivals - deliveries,
        "lost": 0,
        "duplicates": 0,
        **_sizes(scenario, s, measures),
        **stored,
        **_waits(s),
        **_judged(scenario, s),
    }
    relation = Relation.FIFO if _carries(scenario) == state.NUMBER else Relation.BY_DELIVERY
    caveats = {} if len(s.done) else dict.fromkeys(JUDGED, NOT_ASKED)
    return Result(scenario, seed, "compiled", figures, series, relation, caveats)


def _judged(scenario: Scenario, s: State) -> dict[str, float]:
    """Return deliveries before a cause; nothing where they were not looked for."""
    if not len(s.done):
        return {}
    if s.at.unjudged:
        raise ScenarioError(
            f"the compiled engine of a mesh cannot judge this run: {s.at.unjudged} times a member "
            f"lacks a message after the longest delay ({int(s.longest) / US:g} s). "
            "Use --engine reference"
        )
    by_delivery = int(s.at.early)
    kept = by_delivery if _carries(scenario) != state.NUMBER else int(s.at.overtaking)
    found = kept, by_delivery, int(s.at.early_by_receipt), int(s.at.deliveries)
    return dict(zip(JUDGED, found, strict=True))


def _sizes(scenario: Scenario, s: State, measures: Measures) -> dict[str, float]:
    """Return means over counted messages: sums of integers, divided once."""
    control = _control_bytes(scenario, s)[int(s.warm) :]
    count, total = len(control), int(control.sum())
    if not count or scenario.topology.size == 1:  # who is alone transmits nothing
        return {}
    squares = int((control * control).sum())
    found: dict[str, float] = {}
    if measures.sizes:
        deviation = math.sqrt(count * squares - total * total) / count
        found |= {"peer.control_bytes": total / count, "peer.control_bytes_sd": deviation}
    if measures.encoded:
        found["peer.wire_bytes"] = int(s.encoded[int(s.warm) :].sum()) / count
    return found


def _samples_of(
    scenario: Scenario, s: State
) -> tuple[dict[str, float], dict[str, Sequence[float]]]:
    """Return the figures of storage and messages held, and both over time."""
    members = scenario.topology.size
    if not len(s.sample):
        return {}, {}
    pairs, most, held, most_held = (
        s.sample[name].astype(np.int64) for name in ("pairs", "most_pairs", "held", "most_held")
    )
    vector = INTEGER_BYTES * members * (2 if scenario.variant == "differences" else 1)
    each = PAIR_BYTES if scenario.protocol == "idr" else 0
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


def _waits(s: State) -> dict[str, float]:
    """Return mean, quantiles and maximum in ms, exact to the microsecond."""
    bins = s.wait_us.astype(np.int64)
    waited = np.flatnonzero(bins)
    total_us = int((bins * np.arange(len(bins))).sum())
    longest_us = int(waited[-1]) if len(waited) else 0
    return binned_wait_figures(bins, int(s.at.counted), total_us, longest_us)
