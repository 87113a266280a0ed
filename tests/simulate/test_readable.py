"""The readable engine: every protocol runs, nothing comes too early, the same run every time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from antecede.errors import ScenarioError
from antecede.protocols.registry import ENTRIES
from antecede.simulate.delays import Delay
from antecede.simulate.fitness import topologies_of
from antecede.simulate.readable import run_readable
from antecede.simulate.scenario import Clocks, Links, Scenario, Workload
from antecede.simulate.topology import Hierarchy, Mesh, PubSub, Topology

TOPOLOGIES: dict[str, Topology] = {
    "mesh": Mesh(4),
    "hierarchy": Hierarchy((3, 2), 2),
    "pubsub": PubSub((2, 2), topics=3, subscribed=2),
}
FAST = Links(Delay(0.02, 0.2, "uniform"))
TALK = Workload("poisson", rate_hz=8.0, topics=1)
CLOCKS = Clocks(accuracy_s=0.004)


def scenario_of(name: str, **changes: Any) -> Scenario:
    kind = topologies_of(name)[0]
    workload = replace(TALK, topics=2) if kind == "pubsub" else TALK
    given = Scenario(
        TOPOLOGIES[kind],
        name,
        links=FAST,
        workload=workload,
        clocks=CLOCKS,
        duration_s=1.5,
        warm_s=0.3,
    )
    return replace(given, **changes)


def variants() -> list[tuple[str, str]]:
    return [
        (entry.name, variant)
        for entry in ENTRIES.values()
        for variant in ("", *entry.variants)
        if variant not in entry.defective
    ]


REFUSING = {("sb", "refusing"), ("sb", "dropping"), ("linear", "short-memory")}
"""What these give up never comes again; their guarantee says so."""


@pytest.mark.parametrize(("name", "variant"), variants())
def test_every_protocol_keeps_its_promise(name: str, variant: str) -> None:
    workload = replace(scenario_of(name).workload, answers=0.6)
    scenario = scenario_of(name, variant=variant, workload=workload)
    result, run = run_readable(scenario, 3, record=True)
    figures = result.figures
    assert figures["sent"] == len(run.sender) > 20
    assert figures["violations"] == 0
    if (name, variant) not in REFUSING:
        assert figures["held_at_end"] == 0
        assert figures["deliveries"] == sum(len(run.receivers(m)) for m in range(len(run.sender)))


@pytest.mark.parametrize("name", list(ENTRIES))
def test_the_same_run_every_time_and_another_for_another_seed(name: str) -> None:
    scenario = scenario_of(name)
    first, events = run_readable(scenario, 5, record=True)
    again, others = run_readable(scenario, 5, record=True)
    assert first == again
    assert list(events.happenings()) == list(others.happenings())
    assert events.transmissions == others.transmissions
    assert run_readable(scenario, 6).figures != first.figures


@pytest.mark.parametrize("name", list(ENTRIES))
def test_topologies_that_a_protocol_cannot_run_on(name: str) -> None:
    for kind, topology in TOPOLOGIES.items():
        if kind not in topologies_of(name):
            with pytest.raises(ScenarioError, match=r"protocol\.name.*protocols that do: "):
                run_readable(scenario_of(name, topology=topology, workload=TALK), 1)
