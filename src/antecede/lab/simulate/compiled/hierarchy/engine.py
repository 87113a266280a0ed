"""Compiled engine of the hierarchical protocol: supported configurations, arrays, metrics.

`hierarchy.loop` executes the run. The number of rows of 512 messages for all dependencies follows
from the send times. Let D be the longest delay of any channel. A message is delivered everywhere 3
D after its send (up, across, down), as its whole past was sent before it. The first message f that
is sent later has it in its past, so 3 D after f no DV or CI contains it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from antecede.core.protocols import Relation, entry
from antecede.core.protocols.hierarchical import ACK_AFTER, FLUSH_AFTER
from antecede.errors import ConfigError
from antecede.lab.simulate.compiled import inputs
from antecede.lab.simulate.compiled.hierarchy import loop, records
from antecede.lab.simulate.compiled.hierarchy.metrics import compute_metrics, compute_series
from antecede.lab.simulate.compiled.hierarchy.state import (
    BLOCK,
    ROLES,
    HierarchyArraySizes,
    HierarchyState,
    compute_state_bytes,
    list_shapes,
)
from antecede.lab.simulate.compiled.queue import make_queue
from antecede.lab.simulate.compiled.records import Rows, make_record, make_state
from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.network import make_channels
from antecede.lab.simulate.outputs.metrics import list_sample_times
from antecede.lab.simulate.outputs.result import (
    EVERYTHING,
    NOT_SELECTED,
    VIOLATION_METRICS,
    Measures,
    Result,
)
from antecede.lab.simulate.random_streams import Ints, Stream, make_key
from antecede.lab.simulate.schedule import Schedule
from antecede.lab.simulate.topology import Hierarchy
from antecede.lab.simulate.workload import Traffic

PRUNINGS = {"safe": records.SAFE, "none": records.NONE}
HOPS = 3

NO_RECEIPTS = (
    "the compiled hierarchy engine tracks deliveries only; use --engine reference for receipts"
)
QUANTILES = ("wait_ms.p50", "wait_ms.p99")
LONG_WAITS = "the compiled hierarchy engine counts waits exactly up to a second only"


class HierarchyRecording(NamedTuple):
    """A run with all events for differential tests."""

    result: Result
    deliveries: Ints  # [deliveries, 3] Member, message and time in us, in order
    transmissions: Ints
    """[transmissions, 5] Source, message, first target, counted bytes, bytes on the wire."""


def can_run_hierarchy(config: SimulationConfig) -> str | None:
    """Return why the engine cannot run a configuration (None: it can)."""
    if not isinstance(config.topology, Hierarchy) or config.protocol != "hierarchical":
        return "it needs the hierarchical protocol on a hierarchy"
    options = _merge_options(config)
    if set(options) - {"pruning", "ack_after", "ack_payload"}:
        return "it supports the options pruning and ack_after"
    if options.get("pruning", "safe") not in PRUNINGS:
        return f"it supports pruning = {', '.join(PRUNINGS)}"
    return inputs.find_misfit(config)


def bytes_hierarchy(config: SimulationConfig, seed: int = 0) -> int:
    """Return the memory that a run needs at most. Raises ConfigError."""
    inputs.reject("hierarchy", can_run_hierarchy(config))
    sends = Traffic(config, seed).schedule
    return compute_state_bytes(_compute_array_sizes(config, sends, EVERYTHING, log=False))


def run_hierarchy(config: SimulationConfig, seed: int, selection: Measures = EVERYTHING) -> Result:
    """Run a configuration. Raises ConfigError if `can_run_hierarchy` has a reason."""
    return make_result(config, seed, _run(config, seed, selection))


def record_hierarchy(config: SimulationConfig, seed: int) -> HierarchyRecording:
    """Run a configuration and store its deliveries and transmissions. Raises ConfigError."""
    s = _run(config, seed, EVERYTHING, log=True)
    deliveries, carried = (
        s.log[: int(s.counters.logged)],
        s.transmissions[: int(s.counters.transmissions)],
    )
    return HierarchyRecording(make_result(config, seed, s), deliveries, carried)


def make_result(config: SimulationConfig, seed: int, s: HierarchyState) -> Result:
    """Return the result of a finished state. Raises ConfigError for a causal violation."""
    if s.counters.violations:
        raise ConfigError(
            f"the compiled hierarchy engine found {int(s.counters.violations):,} causal "
            "violations, whose effects it does not compute; use --engine reference"
        )
    found = compute_metrics(s)
    caveats = {"violations.by_receipt": NO_RECEIPTS}
    if not s.selection.violations:
        caveats = dict.fromkeys(VIOLATION_METRICS, NOT_SELECTED)
    if "wait_ms.mean" in found:
        caveats |= {name: LONG_WAITS for name in QUANTILES if name not in found}
    return Result(config, seed, "compiled", found, compute_series(s), Relation.BY_DELIVERY, caveats)


def _check_silence(config: SimulationConfig, sends: Schedule) -> None:
    """Reject a run in which a super peer may flush I, which the kernel does not implement."""
    topology = config.topology
    if not isinstance(topology, Hierarchy) or len(sends.time_us) < FLUSH_AFTER:
        return
    under_way_us = HOPS * inputs.find_longest_delay_us(config)
    for at in topology.super_peers:
        own = np.isin(sends.sender, np.array(topology.members(at)))
        others_us, own_us = sends.time_us[~own], sends.time_us[own]
        since_us = np.append(-under_way_us, own_us) - under_way_us
        until_us = np.append(own_us, np.int64(inputs.FOREVER // 2)) + under_way_us
        before = np.searchsorted(others_us, since_us, side="left")
        most = int((np.searchsorted(others_us, until_us, side="right") - before).max())
        if most >= FLUSH_AFTER:
            raise ConfigError(
                "the compiled hierarchy engine cannot run this configuration: the group of super "
                f"peer {at} is silent while others send up to {most:,} messages; from "
                f"{FLUSH_AFTER:,} on its super peer flushes I; use --engine reference"
            )


def _merge_options(config: SimulationConfig) -> dict[str, Any]:
    return {**entry(config.protocol).options(config.variant), **config.options}


def _run(
    config: SimulationConfig, seed: int, selection: Measures, log: bool = False
) -> HierarchyState:
    s = prepare(config, seed, selection, log)
    loop.run(s)
    assert not s.counters.is_full, "more rows of `needs` than their bound"
    return s


def prepare(
    config: SimulationConfig, seed: int, selection: Measures = EVERYTHING, log: bool = False
) -> HierarchyState:
    """Return the initial state of a run. Raises ConfigError."""
    inputs.reject("hierarchy", can_run_hierarchy(config))
    sends = Traffic(config, seed).schedule
    _check_silence(config, sends)
    size, options = _compute_array_sizes(config, sends, selection, log), _merge_options(config)
    pruning, ack_after = PRUNINGS[options.get("pruning", "safe")], options.get("ack_after")
    if ack_after is None:
        ack_after = ACK_AFTER
    arrays = make_state(list_shapes(size), records.HierarchyCounters)
    arrays["counters"].ack_fresh = 1
    _fill_messages(arrays["message"], sends)
    _fill_processes(arrays["process"], config)
    _fill_groups(arrays["group"], config, sends)
    return HierarchyState(
        **arrays,
        **inputs.make_input_arrays(config, seed, sends, size.samples),
        **{role: make_record(records.ByteSums) for role in ROLES},
        queue=make_queue(size.longest_us, size.max_copies),
        selection=selection,
        pruning=pruning,
        ack_after=np.uint64(0 if pruning == records.NONE else ack_after),
        control_key=np.uint64(make_key(seed, Stream.CONTROL_DELAY)),
        fifo=np.uint64(config.links.fifo),
    )


def _compute_array_sizes(
    config: SimulationConfig, sends: Schedule, selection: Measures, log: bool
) -> HierarchyArraySizes:
    topology = config.topology
    assert isinstance(topology, Hierarchy)
    longest_us, sent_us = inputs.find_longest_delay_us(config), sends.time_us
    groups, under_way_us = len(topology.groups), HOPS * longest_us
    recent = inputs.count_most_sent(sent_us, under_way_us + longest_us + 256)
    oldest = inputs.find_oldest_needed(sent_us, under_way_us, under_way_us)
    return HierarchyArraySizes(
        addresses=topology.size,
        groups=groups,
        external_size=groups + topology.external,
        messages=len(sent_us),
        samples=len(list_sample_times(config)) if selection.storage else 0,
        rows=int((np.arange(len(sent_us)) // BLOCK - oldest // BLOCK + 1).sum()),
        max_copies=recent * (topology.size + sum(topology.groups)),
        longest_us=longest_us,
        fifo=config.links.fifo,
        log=log,
        runs_idr=selection.violations,
    )


def _fill_messages(message: Rows[records.HierarchyMessage], sends: Schedule) -> None:
    order = np.argsort(sends.sender, kind="stable")
    sender = sends.sender[order]
    same = sender[1:] == sender[:-1]
    message["after"][order[:-1][same]] = order[1:][same] + 1
    message["before"][order[1:][same]] = order[:-1][same] + 1
    message["seq"] = inputs.number_by_sender(sends.sender)
    message["sender"] = sends.sender


def _fill_processes(process: Rows[records.Process], config: SimulationConfig) -> None:
    topology, channels = config.topology, make_channels(config.topology, config.links)
    assert isinstance(topology, Hierarchy)
    groups = len(topology.groups)
    inside = np.repeat(np.arange(groups), topology.groups)
    process["group"] = records.NOWHERE
    process["group"][:groups] = np.arange(groups)
    process["group"][groups : groups + len(inside)] = inside
    process["kind"] = channels.kind
    process["location"] = np.arange(len(process)) % len(channels.location_delays_us)


def _fill_groups(
    group: Rows[records.SuperPeerRecord], config: SimulationConfig, sends: Schedule
) -> None:
    topology = config.topology
    assert isinstance(topology, Hierarchy)
    first = len(topology.groups) + np.cumsum([0, *topology.groups])
    group["first"] = first
    group["own_first"] = np.searchsorted(np.sort(sends.sender), first)
