"""The compiled engine of the hierarchical protocol: what it can run, what it needs, what it found.

Theory of operation
-------------------
`antecede.lab.simulate.compiled.hierarchy.loop` does the run. Here its arrays are made. How many
rows of 512 messages the dependencies of all messages take is worked out from the send times. With D
the longest delay of any channel, a message is delivered everywhere 3 D after its sending (up,
across, down), for its whole past was sent before it. The first message f that is sent later than
that has it in its past, so 3 D after f nobody's DV or CI has it.

The figures are those of the readable engine; a test holds them together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from antecede.core.protocols import Relation, entry
from antecede.core.protocols.hierarchical import ACK_AFTER, FLUSH_AFTER
from antecede.errors import ScenarioError
from antecede.lab.simulate.compiled.hierarchy import loop
from antecede.lab.simulate.compiled.hierarchy.metrics import figures, series
from antecede.lab.simulate.compiled.hierarchy.records import (
    NONE,
    NOWHERE,
    SAFE,
    Group,
    Message,
    Process,
)
from antecede.lab.simulate.compiled.hierarchy.state import (
    BLOCK,
    FOREVER,
    Size,
    State,
    new_arrays,
    state_bytes,
)
from antecede.lab.simulate.compiled.records import Rows
from antecede.lab.simulate.config.model import Scenario
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.network import channels
from antecede.lab.simulate.outputs.metric_selection import EVERYTHING, NOT_ASKED, Measures
from antecede.lab.simulate.outputs.metrics import sample_times
from antecede.lab.simulate.outputs.result import JUDGED, Result
from antecede.lab.simulate.random_streams import Ints, Stream, key
from antecede.lab.simulate.schedule import Schedule
from antecede.lab.simulate.topology import Hierarchy
from antecede.lab.simulate.workload import Traffic

PRUNINGS = {"safe": SAFE, "none": NONE}
LONGEST_US = 1 << 26
HOPS = 3

NOT_BY_RECEIPT = (
    "the compiled engine of a hierarchy follows what was delivered; --engine readable "
    "follows receipts too"
)
QUANTILES = ("wait_ms.p50", "wait_ms.p99")
LONG_WAITS = "the compiled engine of a hierarchy counts waits one by one up to a second only"


class Recorded(NamedTuple):
    """A run with everything that can be compared."""

    result: Result
    deliveries: Ints
    """[deliveries, 3] member, message and time in us, in the order of the run."""
    carried: Ints
    """[transmissions, 5] source, message, first target, bytes by Evropeytsev et al.'s accounting
    and encoded.
    """


def can_run_hierarchy(scenario: Scenario) -> str | None:
    """Return why the engine can not run a scenario; None: it can."""
    links = scenario.links
    if not isinstance(scenario.topology, Hierarchy) or scenario.protocol != "hierarchical":
        return "it runs the hierarchical protocol on a hierarchy only"
    options = _options(scenario)
    if set(options) - {"pruning", "ack_after", "ack_payload"}:
        return "it takes the options pruning and ack_after"
    if options.get("pruning", "safe") not in PRUNINGS:
        return f"its prunings are {', '.join(PRUNINGS)}"
    if links.loss or links.duplicate or links.partitions:
        return "its links lose and double nothing, and there are no partitions"
    if links.buffer is not None or links.service_s:
        return "its receivers take a copy at once"
    if scenario.workload.kind == "replay":
        return "it replays nothing"
    if _longest_us(scenario) > LONGEST_US:
        return f"its delays are below {LONGEST_US / US:.0f} s"
    return None


def bytes_hierarchy(scenario: Scenario, seed: int = 0) -> int:
    """Return the memory that a run needs at most; much of it is never touched.

    Raises ScenarioError.
    """
    _check(scenario)
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

    Raises ScenarioError where a delivery came before a cause: neither pruning allows that, and
    what IDR would carry from there on is not known.
    """
    if s.at.early:
        raise ScenarioError(
            f"the compiled engine of a hierarchy has found {int(s.at.early):,} deliveries before "
            "a cause, and does not know what follows from these: --engine readable does"
        )
    found = figures(s)
    caveats = {"early.by_receipt": NOT_BY_RECEIPT}
    if not s.measures.causes:
        caveats = dict.fromkeys(JUDGED, NOT_ASKED)
    if "wait_ms.mean" in found:
        caveats |= {name: LONG_WAITS for name in QUANTILES if name not in found}
    return Result(scenario, seed, "compiled", found, series(s), Relation.BY_DELIVERY, caveats)


def _check(scenario: Scenario) -> None:
    why = can_run_hierarchy(scenario)
    if why is not None:
        raise ScenarioError(f"the compiled engine of a hierarchy can not run this: {why}")


def _check_silence(scenario: Scenario, sends: Schedule) -> None:
    """Refuse a run in which a super peer may flush I, which the kernel does not.

    Between two sends of a group, and so long before and after as a message is under way, others
    send fewer than FLUSH_AFTER messages.
    """
    topology = scenario.topology
    if not isinstance(topology, Hierarchy) or len(sends.time_us) < FLUSH_AFTER:
        return
    under_way_us = HOPS * _longest_us(scenario)
    for at in topology.super_peers:
        own = np.isin(sends.sender, np.array(topology.members(at)))
        others_us, own_us = sends.time_us[~own], sends.time_us[own]
        since_us = np.append(-under_way_us, own_us) - under_way_us
        until_us = np.append(own_us, np.int64(FOREVER // 2)) + under_way_us
        before = np.searchsorted(others_us, since_us, side="left")
        most = int((np.searchsorted(others_us, until_us, side="right") - before).max())
        if most >= FLUSH_AFTER:
            raise ScenarioError(
                "the compiled engine of a hierarchy can not run this: the group of super peer "
                f"{at} sends nothing while others send up to {most:,} messages; from "
                f"{FLUSH_AFTER:,} on its super peer flushes I: --engine readable does that"
            )


def _options(scenario: Scenario) -> dict[str, Any]:
    return {**entry(scenario.protocol).options(scenario.variant), **scenario.options}


def _longest_us(scenario: Scenario) -> int:
    of = channels(scenario.topology, scenario.links)
    return int(of.quantiles.max()) + int(of.places.max())


def _run(scenario: Scenario, seed: int, measures: Measures, log: bool = False) -> State:
    s = prepared(scenario, seed, measures, log)
    loop.run(s)
    assert not s.at.full, "the bound on rows of `needs` does not hold"
    return s


def prepared(
    scenario: Scenario, seed: int, measures: Measures = EVERYTHING, log: bool = False
) -> State:
    """Return the state of a run in which nothing has happened yet. Raises ScenarioError."""
    _check(scenario)
    sends = Traffic(scenario, seed).schedule
    _check_silence(scenario, sends)
    return _state(scenario, seed, sends, _size(scenario, sends, measures, log), measures)


# -- how large ------------------------------------------------------------------------------------


def _size(scenario: Scenario, sends: Schedule, measures: Measures, log: bool) -> Size:
    topology = scenario.topology
    assert isinstance(topology, Hierarchy)
    longest = _longest_us(scenario)
    groups, sent = len(topology.groups), sends.time_us
    recent = np.arange(len(sent)) - np.searchsorted(sent, sent - (HOPS + 1) * longest - 256) + 1
    return Size(
        addresses=topology.size,
        groups=groups,
        place=groups + topology.external,
        messages=len(sent),
        samples=len(_samples(scenario)) if measures.storage else 0,
        rows=_rows(sent, HOPS * longest),
        most=int(recent.max(initial=0)) * (topology.size + sum(topology.groups)),
        longest_us=longest,
        fifo=scenario.links.fifo,
        log=log,
        causes=measures.causes,
    )


def _rows(sent_us: Ints, everywhere_us: int) -> int:
    """Return how many blocks all messages' dependencies have together, see the module."""
    later = np.searchsorted(sent_us, sent_us + everywhere_us, side="right")
    never = np.append(sent_us, np.int64(FOREVER // 2))
    free_us = never[later] + everywhere_us
    number = np.arange(len(sent_us))
    oldest = np.searchsorted(free_us, sent_us)
    return int((number // BLOCK - oldest // BLOCK + 1).sum())


def _samples(scenario: Scenario) -> range:
    return sample_times(_us(scenario.warm_s), _us(scenario.sample_s), _us(scenario.duration_s))


def _us(seconds: float) -> int:
    return round(seconds * US)


# -- the arrays -----------------------------------------------------------------------------------


def _state(scenario: Scenario, seed: int, sends: Schedule, size: Size, measures: Measures) -> State:
    options = _options(scenario)
    pruning = PRUNINGS[options.get("pruning", "safe")]
    ack_after = options.get("ack_after")
    if ack_after is None:
        ack_after = ACK_AFTER
    of = channels(scenario.topology, scenario.links)
    arrays = new_arrays(size)
    _messages(arrays["message"], sends)
    _processes(arrays["process"], scenario)
    _groups(arrays["group"], scenario, sends)
    return State(
        **arrays,
        measures=measures,
        time_us=np.append(sends.time_us, FOREVER).astype(np.uint64),
        sample_us=np.array([*_samples(scenario)[: size.samples], FOREVER], np.uint64),
        warm=np.uint64(np.searchsorted(sends.time_us, _us(scenario.warm_s))),
        pruning=pruning,
        ack_after=np.uint64(0 if pruning == NONE else ack_after),
        delay_key=np.uint64(key(seed, Stream.DELAY)),
        note_key=np.uint64(key(seed, Stream.NOTE_DELAY)),
        table=of.table.astype(np.uint64),
        quantiles=of.quantiles,
        base=of.places.astype(np.uint64),
        fifo=np.uint64(scenario.links.fifo),
    )


def _messages(message: Rows[Message], sends: Schedule) -> None:
    """Fill in the schedule, and for each message its neighbours among its sender's."""
    count = len(message)
    order = np.lexsort((np.arange(count), sends.sender))
    sender = sends.sender[order]
    same = sender[1:] == sender[:-1]
    message["after"][order[:-1][same]] = order[1:][same] + 1
    message["before"][order[1:][same]] = order[:-1][same] + 1
    new = np.append(True, ~same)[:count]
    begin = np.maximum.accumulate(np.where(new, np.arange(count), 0))
    message["seq"][order] = np.arange(count) - begin + 1
    message["sender"] = sends.sender


def _processes(process: Rows[Process], scenario: Scenario) -> None:
    topology, of = scenario.topology, channels(scenario.topology, scenario.links)
    assert isinstance(topology, Hierarchy)
    groups = len(topology.groups)
    inside = np.repeat(np.arange(groups), topology.groups)
    process["home"] = NOWHERE
    process["home"][:groups] = np.arange(groups)
    process["home"][groups : groups + len(inside)] = inside
    process["kind"] = of.kind
    process["stand"] = np.arange(len(process)) % len(of.places)


def _groups(group: Rows[Group], scenario: Scenario, sends: Schedule) -> None:
    topology = scenario.topology
    assert isinstance(topology, Hierarchy)
    first = len(topology.groups) + np.cumsum([0, *topology.groups])
    group["first"] = first
    group["own_first"] = np.searchsorted(np.sort(sends.sender), first)
