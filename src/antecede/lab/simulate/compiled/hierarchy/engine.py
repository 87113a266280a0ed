"""Compiled engine of the hierarchical protocol: scenarios that it runs, its arrays, its figures.

Theory of operation
-------------------
`hierarchy.loop` does the run. The number of rows of 512 messages for all dependencies follows from
the send times. Let D be the longest delay of any channel. A message is delivered everywhere 3 D
after its sending (up, across, down), as its whole past was sent before it. The first message f that
is sent later has it in its past, so 3 D after f no DV or CI has it.

The figures are those of the reference engine (differential test).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from antecede.core.protocols import Relation, entry
from antecede.core.protocols.hierarchical import ACK_AFTER, FLUSH_AFTER
from antecede.errors import ScenarioError
from antecede.lab.simulate.compiled import inputs
from antecede.lab.simulate.compiled.hierarchy import loop, records
from antecede.lab.simulate.compiled.hierarchy.metrics import figures, series
from antecede.lab.simulate.compiled.hierarchy.state import (
    BLOCK,
    ROLES,
    Size,
    State,
    shapes,
    state_bytes,
)
from antecede.lab.simulate.compiled.queue import new_queue
from antecede.lab.simulate.compiled.records import Rows, new_state, one
from antecede.lab.simulate.config.model import Scenario
from antecede.lab.simulate.network import channels
from antecede.lab.simulate.outputs.metrics import sample_times
from antecede.lab.simulate.outputs.result import EVERYTHING, JUDGED, NOT_ASKED, Measures, Result
from antecede.lab.simulate.random_streams import Ints, Stream, key
from antecede.lab.simulate.schedule import Schedule
from antecede.lab.simulate.topology import Hierarchy
from antecede.lab.simulate.workload import Traffic

PRUNINGS = {"safe": records.SAFE, "none": records.NONE}
HOPS = 3

NOT_BY_RECEIPT = (
    "the compiled engine of a hierarchy follows what was delivered; --engine reference "
    "follows receipts too"
)
QUANTILES = ("wait_ms.p50", "wait_ms.p99")
LONG_WAITS = "the compiled engine of a hierarchy counts waits one by one up to a second only"


class Recorded(NamedTuple):
    """A run with everything that can be compared."""

    result: Result
    deliveries: Ints  # [deliveries, 3] member, message and time in us, in the order of the run
    carried: Ints
    """[transmissions, 5] source, message, first target, bytes by Evropeytsev et al.'s accounting
    and encoded.
    """


def can_run_hierarchy(scenario: Scenario) -> str | None:
    """Return why the engine can not run a scenario; None: it can."""
    if not isinstance(scenario.topology, Hierarchy) or scenario.protocol != "hierarchical":
        return "it runs the hierarchical protocol on a hierarchy only"
    options = _options(scenario)
    if set(options) - {"pruning", "ack_after", "ack_payload"}:
        return "it takes the options pruning and ack_after"
    if options.get("pruning", "safe") not in PRUNINGS:
        return f"its prunings are {', '.join(PRUNINGS)}"
    return inputs.unfit(scenario)


def bytes_hierarchy(scenario: Scenario, seed: int = 0) -> int:
    """Return the memory that a run needs at most. Raises ScenarioError."""
    inputs.refuse("hierarchy", can_run_hierarchy(scenario))
    sends = Traffic(scenario, seed).schedule
    return state_bytes(_size(scenario, sends, EVERYTHING, log=False))


def run_hierarchy(scenario: Scenario, seed: int, measures: Measures = EVERYTHING) -> Result:
    """Run a scenario; raises ScenarioError where `can_run_hierarchy` says why not."""
    return result_of(scenario, seed, _run(scenario, seed, measures))


def record_hierarchy(scenario: Scenario, seed: int) -> Recorded:
    """Run a scenario and keep its deliveries and transmissions. Raises ScenarioError."""
    s = _run(scenario, seed, EVERYTHING, log=True)
    deliveries, carried = s.log[: int(s.at.logged)], s.carried[: int(s.at.carried)]
    return Recorded(result_of(scenario, seed, s), deliveries, carried)


def result_of(scenario: Scenario, seed: int, s: State) -> Result:
    """Return the figures of a state that has run.

    Raises ScenarioError for a delivery before a cause: neither pruning allows that, and what IDR
    would carry from there on is unknown.
    """
    if s.at.early:
        raise ScenarioError(
            f"the compiled engine of a hierarchy has found {int(s.at.early):,} deliveries before "
            "a cause, and does not know what follows from these: --engine reference does"
        )
    found = figures(s)
    caveats = {"violations.by_receipt": NOT_BY_RECEIPT}
    if not s.measures.causes:
        caveats = dict.fromkeys(JUDGED, NOT_ASKED)
    if "wait_ms.mean" in found:
        caveats |= {name: LONG_WAITS for name in QUANTILES if name not in found}
    return Result(scenario, seed, "compiled", found, series(s), Relation.BY_DELIVERY, caveats)


def _check_silence(scenario: Scenario, sends: Schedule) -> None:
    """Refuse a run in which a super peer may flush I, which the kernel does not implement.

    Others must send fewer than FLUSH_AFTER messages between two sends of a group, plus the time
    that messages are under way on both sides.
    """
    topology = scenario.topology
    if not isinstance(topology, Hierarchy) or len(sends.time_us) < FLUSH_AFTER:
        return
    under_way_us = HOPS * inputs.longest_us(scenario)
    for at in topology.super_peers:
        own = np.isin(sends.sender, np.array(topology.members(at)))
        others_us, own_us = sends.time_us[~own], sends.time_us[own]
        since_us = np.append(-under_way_us, own_us) - under_way_us
        until_us = np.append(own_us, np.int64(inputs.FOREVER // 2)) + under_way_us
        before = np.searchsorted(others_us, since_us, side="left")
        most = int((np.searchsorted(others_us, until_us, side="right") - before).max())
        if most >= FLUSH_AFTER:
            raise ScenarioError(
                "the compiled engine of a hierarchy can not run this: the group of super peer "
                f"{at} sends nothing while others send up to {most:,} messages; from "
                f"{FLUSH_AFTER:,} on its super peer flushes I: --engine reference does that"
            )


def _options(scenario: Scenario) -> dict[str, Any]:
    return {**entry(scenario.protocol).options(scenario.variant), **scenario.options}


def _run(scenario: Scenario, seed: int, measures: Measures, log: bool = False) -> State:
    s = prepared(scenario, seed, measures, log)
    loop.run(s)
    assert not s.at.full, "the bound on rows of `needs` does not hold"
    return s


def prepared(
    scenario: Scenario, seed: int, measures: Measures = EVERYTHING, log: bool = False
) -> State:
    """Return the state of a run in which nothing has happened yet. Raises ScenarioError."""
    inputs.refuse("hierarchy", can_run_hierarchy(scenario))
    sends = Traffic(scenario, seed).schedule
    _check_silence(scenario, sends)
    size, options = _size(scenario, sends, measures, log), _options(scenario)
    pruning, ack_after = PRUNINGS[options.get("pruning", "safe")], options.get("ack_after")
    if ack_after is None:
        ack_after = ACK_AFTER
    arrays = new_state(shapes(size), records.Counters)
    arrays["at"].ack_fresh = 1
    _messages(arrays["message"], sends)
    _processes(arrays["process"], scenario)
    _groups(arrays["group"], scenario, sends)
    return State(
        **arrays,
        **inputs.input_arrays(scenario, seed, sends, size.samples),
        **{role: one(records.Sums) for role in ROLES},
        queue=new_queue(size.longest_us, size.most),
        measures=measures,
        pruning=pruning,
        ack_after=np.uint64(0 if pruning == records.NONE else ack_after),
        note_key=np.uint64(key(seed, Stream.NOTE_DELAY)),
        fifo=np.uint64(scenario.links.fifo),
    )


def _size(scenario: Scenario, sends: Schedule, measures: Measures, log: bool) -> Size:
    topology = scenario.topology
    assert isinstance(topology, Hierarchy)
    longest_us, sent_us = inputs.longest_us(scenario), sends.time_us
    groups, under_way_us = len(topology.groups), HOPS * longest_us
    recent = inputs.most_sent_within(sent_us, under_way_us + longest_us + 256)
    oldest = inputs.oldest_needed(sent_us, under_way_us, under_way_us)
    return Size(
        addresses=topology.size,
        groups=groups,
        place=groups + topology.external,
        messages=len(sent_us),
        samples=len(sample_times(scenario)) if measures.storage else 0,
        rows=int((np.arange(len(sent_us)) // BLOCK - oldest // BLOCK + 1).sum()),
        most=recent * (topology.size + sum(topology.groups)),
        longest_us=longest_us,
        fifo=scenario.links.fifo,
        log=log,
        causes=measures.causes,
    )


def _messages(message: Rows[records.Message], sends: Schedule) -> None:
    """Fill in the schedule, and for each message its neighbours among its sender's."""
    order = np.argsort(sends.sender, kind="stable")
    sender = sends.sender[order]
    same = sender[1:] == sender[:-1]
    message["after"][order[:-1][same]] = order[1:][same] + 1
    message["before"][order[1:][same]] = order[:-1][same] + 1
    message["seq"] = inputs.sender_numbers(sends.sender)
    message["sender"] = sends.sender


def _processes(process: Rows[records.Process], scenario: Scenario) -> None:
    topology, of = scenario.topology, channels(scenario.topology, scenario.links)
    assert isinstance(topology, Hierarchy)
    groups = len(topology.groups)
    inside = np.repeat(np.arange(groups), topology.groups)
    process["home"] = records.NOWHERE
    process["home"][:groups] = np.arange(groups)
    process["home"][groups : groups + len(inside)] = inside
    process["kind"] = of.kind
    process["stand"] = np.arange(len(process)) % len(of.places)


def _groups(group: Rows[records.Group], scenario: Scenario, sends: Schedule) -> None:
    topology = scenario.topology
    assert isinstance(topology, Hierarchy)
    first = len(topology.groups) + np.cumsum([0, *topology.groups])
    group["first"] = first
    group["own_first"] = np.searchsorted(np.sort(sends.sender), first)
