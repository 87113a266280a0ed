"""Which protocol can run where; the errors themselves are in test_config_file_errors."""

from __future__ import annotations

from typing import Any

import pytest

from antecede.core.protocols.registry import ENTRIES
from antecede.errors import ConfigError
from antecede.lab.simulate.config.compatibility import check_fit, topologies_of
from antecede.lab.simulate.config.model import Links, Partition, SimulationConfig, Special, Workload
from antecede.lab.simulate.delays import Delay
from antecede.lab.simulate.topology import Hierarchy, Mesh, PubSub, Topology

TOPOLOGIES: dict[str, Topology] = {
    "mesh": Mesh(3),
    "hierarchy": Hierarchy((2, 2), 1),
    "pubsub": PubSub((2, 2), 3),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_every_protocol_with_every_variant_fits_its_topologies_alone(name: str) -> None:
    for kind, topology in TOPOLOGIES.items():
        for variant in ("", *ENTRIES[name].variants):
            config = SimulationConfig(topology, name, variant)
            if kind in topologies_of(name):
                check_fit(config)
            else:
                with pytest.raises(ConfigError, match=f"{name} needs topology.kind = "):
                    check_fit(config)


@pytest.mark.parametrize("end", ["any", "super", "internal", "external", "group:0", "group:2", "6"])
def test_ends_of_special_channels_in_a_hierarchy(end: str) -> None:
    special = Special(end, "any", Delay(0.1, 0.2))
    check_fit(
        SimulationConfig(Hierarchy((2, 2), 1), "hierarchical", links=Links(special=(special,)))
    )


@pytest.mark.parametrize("end", ["peer", "group:3", "7", "group:", "group:x", "", "-1", "Any"])
def test_ends_that_nobody_is(end: str) -> None:
    special = Special("any", end, Delay(0.1, 0.2))
    config = SimulationConfig(Hierarchy((2, 2), 1), "hierarchical", links=Links(special=(special,)))
    with pytest.raises(ConfigError, match=r"links\.special\[1\]\.to: unknown address"):
        check_fit(config)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"workload": Workload(fanout=1)}, r"workload\.fanout: idr has no addressees"),
        ({"workload": Workload(topics=2)}, r"workload\.topics: .*only pubsub"),
        (
            {"links": Links(partitions=(Partition(0, 1, (9,)),))},
            r"partitions\[1\]\.side: unknown address",
        ),
        (
            {"options": {"speed": 1}},
            r"protocol\.options\.speed: unknown option of idr; there are none",
        ),
    ],
)
def test_workload_and_links_must_fit_too(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        check_fit(SimulationConfig(Mesh(3), **changed))


def test_a_protocol_of_ones_own_is_left_to_the_engine() -> None:
    check_fit(SimulationConfig(Mesh(3), "none.py:Mine", options={"speed": 1}))
