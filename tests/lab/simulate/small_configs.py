"""Small scenarios that tests share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from antecede.lab.simulate.config.compatibility import topologies_of
from antecede.lab.simulate.config.model import Clocks, Links, SimulationConfig, Workload
from antecede.lab.simulate.delays import Delay
from antecede.lab.simulate.topology import Hierarchy, Mesh, PubSub, Topology

TOPOLOGIES: dict[str, Topology] = {
    "mesh": Mesh(4),
    "hierarchy": Hierarchy((3, 2), 2),
    "pubsub": PubSub((2, 2), topics=3, subscribed=2),
}
FAST = Links(Delay(0.02, 0.2, "uniform"))
TALK = Workload("poisson", rate_hz=8.0)


def config_of(protocol: str, **changes: Any) -> SimulationConfig:
    """Return a second and a half of a protocol on a topology that it runs on."""
    kind = topologies_of(protocol)[0]
    given = SimulationConfig(
        TOPOLOGIES[kind],
        protocol,
        links=FAST,
        workload=replace(TALK, topics=2 if kind == "pubsub" else 1),
        clocks=Clocks(accuracy_s=0.004),
        duration_s=1.5,
        warm_s=0.3,
    )
    return replace(given, **changes)
