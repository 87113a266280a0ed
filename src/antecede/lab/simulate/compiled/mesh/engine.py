"""The compiled engine of broadcast over a mesh: what it can run, what it needs, what it found.

Theory of operation
-------------------
`antecede.lab.simulate.compiled.mesh.loop` does the run. Here its arrays are made, and how wide its
window of messages must be is worked out from the send times. With D the longest delay of any
channel: a message m is delivered everywhere D after its sending, for its whole past was sent before
it. The first message f that is sent later than that has m in its past, so D after f nobody's set of
fresh messages has m; the last message that needs m directly was sent by then, and D later it is
delivered everywhere. From then on nothing asks for m, and its place may be another's.

The figures are those of the readable engine, exactly; a test holds them together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from antecede.core.protocols import Relation
from antecede.errors import ScenarioError
from antecede.lab.simulate.compiled.mesh import loop
from antecede.lab.simulate.compiled.mesh.state import (
    BLOCK_BITS,
    DIFFERENCES,
    FOREVER,
    IMMEDIATE,
    NUMBER,
    VECTOR,
    Size,
    State,
    new_arrays,
    state_bytes,
)
from antecede.lab.simulate.config.model import Scenario
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.network import channels
from antecede.lab.simulate.outputs.metric_selection import EVERYTHING, NOT_ASKED, Measures
from antecede.lab.simulate.outputs.metrics import binned_wait_figures, sample_times
from antecede.lab.simulate.outputs.result import JUDGED, Result
from antecede.lab.simulate.random_streams import Ints, Stream, key
from antecede.lab.simulate.schedule import Schedule
from antecede.lab.simulate.topology import Mesh
from antecede.lab.simulate.workload import Traffic

INTEGER_BYTES, PAIR_BYTES = 4, 8
PROTOCOLS = {
    ("idr", ""): IMMEDIATE,
    ("ds", ""): VECTOR,
    ("bss", ""): VECTOR,
    ("bss", "differences"): DIFFERENCES,
    ("fifo", ""): NUMBER,
}
"""What the engine runs: (protocol, variant) and what its messages carry."""
LONGEST_US = 1 << 26


class Recorded(NamedTuple):
    """A run with everything that can be compared."""

    result: Result
    deliveries: Ints
    """[deliveries, 3] member, message and time in us, in the order of the run."""
    log_at: Ints
    """[messages] how many deliveries there were before each message was sent."""
    control_bytes: Ints
    """[messages] by the source's accounting."""
    encoded_bytes: Ints
    """[messages] on the wire."""


def can_run_mesh(scenario: Scenario) -> str | None:
    """Return why the engine can not run a scenario; None: it can."""
    links = scenario.links
    if scenario.workload.kind == "replay":
        return "answers of a replay wait for what is delivered"
    if not isinstance(scenario.topology, Mesh):
        return "it runs on a mesh only"
    if (scenario.protocol, scenario.variant) not in PROTOCOLS:
        known = ", ".join(" ".join(pair).strip() for pair in PROTOCOLS)
        return f"it knows {known}"
    if scenario.options:
        return "it takes no options of a protocol"
    if links.loss or links.duplicate or links.partitions:
        return "its links lose and double nothing, and there are no partitions"
    if links.buffer is not None or links.service_s:
        return "its receivers take a copy at once"
    fanout = scenario.workload.fanout
    if fanout is not None and fanout < scenario.topology.size - 1:
        return "its messages are for everybody"
    of = channels(scenario.topology, links)
    if int(of.quantiles.max()) + int(of.places.max()) > LONGEST_US:
        return f"its delays are below {LONGEST_US / US:.0f} s"
    return None


def bytes_mesh(scenario: Scenario, seed: int = 0) -> int:
    """Return the memory that a run needs at most. Raises ScenarioError."""
    _check(scenario)
    times = Traffic(scenario, seed).schedule
    return state_bytes(
        _size(scenario, times, EVERYTHING), _carries(scenario), scenario.links.fifo, log=False
    )


def run_mesh(scenario: Scenario, seed: int, measures: Measures = EVERYTHING) -> Result:
    """Run a scenario; raises ScenarioError where `can_run_mesh` says why not."""
    return _result(scenario, seed, _run(scenario, seed, measures), measures)


def record_mesh(scenario: Scenario, seed: int) -> Recorded:
    """Run a scenario and keep its deliveries: 24 bytes each. Raises ScenarioError."""
    s = _run(scenario, seed, EVERYTHING, log=True)
    sizes = _control_bytes(scenario, s), s.encoded.astype(np.int64)
    return Recorded(_result(scenario, seed, s, EVERYTHING), s.log, s.log_at, *sizes)


def _check(scenario: Scenario) -> None:
    why = can_run_mesh(scenario)
    if why is not None:
        raise ScenarioError(f"the compiled engine of a mesh can not run this: {why}")


def _carries(scenario: Scenario) -> np.uint64:
    return PROTOCOLS[scenario.protocol, scenario.variant]


def _run(scenario: Scenario, seed: int, measures: Measures, log: bool = False) -> State:
    _check(scenario)
    times = Traffic(scenario, seed).schedule
    s = _state(scenario, seed, times, measures, log)
    loop.run(s)
    return s


def _state(scenario: Scenario, seed: int, times: Schedule, measures: Measures, log: bool) -> State:
    of = channels(scenario.topology, scenario.links)
    size = _size(scenario, times, measures)
    arrays = new_arrays(size, _carries(scenario), scenario.links.fifo, log)
    return State(
        **arrays,  # type: ignore[arg-type]
        time_us=np.append(times.time_us.astype(np.uint64), np.uint64(FOREVER)),
        sender=times.sender.astype(np.uint64),
        sample_us=np.append(
            _samples(scenario)[: size.samples].astype(np.uint64), np.uint64(FOREVER)
        ),
        key=np.uint64(key(seed, Stream.DELAY)),
        kind=of.kind.astype(np.uint64),
        table=of.table.astype(np.uint64),
        quantiles=of.quantiles,
        place=(np.arange(size.members) % len(of.places)).astype(np.uint64),
        base=of.places.astype(np.uint64),
        carries=_carries(scenario),
        seq=_numbers(times.sender),
        warm=np.uint64(np.searchsorted(times.time_us, _us(scenario.warm_s))),
    )


def _us(seconds: float) -> int:
    return round(seconds * US)


def _samples(scenario: Scenario) -> Ints:
    times = sample_times(_us(scenario.warm_s), _us(scenario.sample_s), _us(scenario.duration_s))
    return np.array(times, dtype=np.int64)


def _size(scenario: Scenario, times: Schedule, measures: Measures) -> Size:
    of = channels(scenario.topology, scenario.links)
    members = scenario.topology.size
    longest = int(of.quantiles.max()) + int(of.places.max())
    sent = times.time_us
    recent = np.arange(len(sent)) - np.searchsorted(sent, sent - longest - 128) + 1
    return Size(
        members=members,
        messages=len(sent),
        samples=len(_samples(scenario)) if measures.storage else 0,
        window=_window(sent, longest),
        longest_us=longest,
        most=int(recent.max(initial=0)) * (members - 1),
        judged=measures.causes,
        encoded=measures.encoded,
    )


def _window(sent_us: Ints, longest_us: int) -> int:
    """Return how many messages must have a place of their own; see the module."""
    count = len(sent_us)
    later = np.searchsorted(sent_us, sent_us + longest_us, side="right")
    never = np.append(sent_us, np.int64(FOREVER // 2))
    free_us = never[later] + 2 * longest_us
    kept = np.arange(count) - np.searchsorted(free_us, sent_us)
    need = int(kept.max(initial=0)) + 64
    return max(BLOCK_BITS, 1 << (need - 1).bit_length())


def _numbers(sender: Ints) -> Ints:
    """Return each message's number among those of its sender, from 1."""
    order = np.argsort(sender, kind="stable")
    ordered = sender[order]
    found = np.empty(len(sender), dtype=np.int64)
    found[order] = np.arange(1, len(sender) + 1) - np.searchsorted(ordered, ordered)
    return found


# -- figures ------------------------------------------------------------------------------------


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
    relation = Relation.FIFO if _carries(scenario) == NUMBER else Relation.BY_DELIVERY
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
            "Use --engine readable"
        )
    by_delivery = int(s.at.early)
    kept = by_delivery if _carries(scenario) != NUMBER else int(s.at.overtaking)
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
        found |= {"peer.overhead_bytes": total / count, "peer.overhead_bytes_sd": deviation}
    if measures.encoded:
        found["peer.encoded_bytes"] = int(s.encoded[int(s.warm) :].sum()) / count
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
