"""Stamps made at once equal those that the classes of Tsuneizumi et al. and Nakayama 2017 put on
their messages.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from antecede.errors import ConfigError
from antecede.lab.simulate.config.model import (
    Clocks,
    Links,
    Partition,
    SimulationConfig,
    Special,
    Workload,
)
from antecede.lab.simulate.delays import Delay
from antecede.lab.simulate.members import make_members
from antecede.lab.simulate.outputs.counters import RunCounters
from antecede.lab.simulate.outputs.timestamps import compute_timestamps
from antecede.lab.simulate.reference_engine import EventLoop
from antecede.lab.simulate.topology import Hierarchy, Mesh, PubSub, Topology
from antecede.tables.false_causality.count import count_pairs


class Stamping(RunCounters):
    """Keeps every message of the application as it was sent, and who got it when."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given, record=False)
        self.sent_messages: dict[int, Any] = {}

    def on_transmit(
        self, now_us: int, address: int, member: Any, message: Any, number: int, to: Any
    ) -> None:
        self.sent_messages.setdefault(number, message)
        super().on_transmit(now_us, address, member, message, number, to)


def run_of(config: SimulationConfig, seed: int) -> tuple[dict[int, Any], dict[int, list[int]]]:
    """Return the messages of a run of the classes, and what arrived at each member in order."""
    made = make_members(config, seed)
    metrics = Stamping(config, made.members)
    loop = EventLoop(config, seed, made, metrics)
    loop.run()
    arrived: dict[int, list[int]] = {at: [] for at in made.members}
    for happening in loop.recording.events():
        if happening.kind == 1:
            arrived[happening.member].append(happening.message)
    return metrics.sent_messages, arrived


SCENES = [
    SimulationConfig(
        Mesh(5),
        "linear-physical",
        links=Links(Delay(0.0, 0.05)),
        clocks=Clocks(0.01),
        duration_s=1.0,
    ),
    SimulationConfig(
        Mesh(4),
        "linear-physical",
        links=Links(
            Delay(0.02, 0.2, "uniform"), (Special("0", "any", Delay(0.5, 0.6)),), fifo=True
        ),
        clocks=Clocks(0.05, 2000, 1.0),
        duration_s=2.0,
    ),
    SimulationConfig(
        PubSub((3, 3), 5, 3),
        "htbc",
        links=Links(
            Delay(0.01, 0.16, "uniform"), (Special("group:0", "group:0", Delay(0.001, 0.016)),)
        ),
        workload=Workload("random", messages=150, topics=3),
        clocks=Clocks(0.004),
        duration_s=4.0,
    ),
]


def anything(seed: int) -> SimulationConfig:
    """Return a random scenario over a mesh or topics: delays, loss, clocks that drift."""
    r = random.Random(seed)
    groups = tuple(r.randrange(1, 4) for _ in range(r.randrange(1, 4)))
    topics = r.randrange(1, 6)
    by_topic = r.random() < 0.5
    topology: Topology = PubSub(groups, topics, topics) if by_topic else Mesh(r.randrange(2, 8))
    low = r.choice((0.001, 0.02, 0.1))
    delay = Delay(low, low + r.choice((0.001, 0.05, 0.3)), r.choice(("uniform", "normal")))
    special = (Special("any", "0", Delay(0.4, 0.5)), Special("1", "any", Delay(0.001, 0.9)))
    drift = r.choice((0.0, 500.0))
    return SimulationConfig(
        topology,
        "htbc" if by_topic else "linear-physical",
        links=Links(
            delay,
            tuple(one for one in special if r.random() < 0.3 and topology.size > 1),
            fifo=r.random() < 0.4,
            loss=r.choice((0.0, 0.0, 0.2)),
        ),
        workload=Workload(
            r.choice(("periodic", "poisson", "random")),
            rate_hz=20.0,
            messages=60,
            topics=r.randrange(1, topics + 1) if by_topic else 1,
        ),
        clocks=Clocks(r.choice((0.001, 0.02)), drift, 1.0 if drift else 0.0),
        duration_s=1.0,
    )


def lockstep(config: SimulationConfig, seed: int) -> int:
    """Hold every stamp to the message that the classes sent; return how many there were."""
    messages, arrived = run_of(config, seed)
    found = compute_timestamps(config, seed)
    first = 1 if config.protocol == "htbc" else 0  # Nakayama 2017 counts before it stamps
    for at, stamps in found.items():
        came = arrived[at]
        assert len(came) == len(stamps.sender)
        for row, number in enumerate(came):
            message = messages[number]
            assert (message.sender, message.seq) == (stamps.sender[row], stamps.seq[row])
            assert message.lt == stamps.lt[row] + first
            assert message.pt_ns == stamps.pt_us[row] * 1000
            if stamps.counts is not None:
                own = {int(topic[1:]): count for topic, count in message.tv}
                assert own == {t: n for t, n in enumerate(stamps.counts[row]) if n}
    return sum(map(len, arrived.values()))


@pytest.mark.parametrize("config", SCENES)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_stamps_of_the_classes(config: SimulationConfig, seed: int) -> None:
    assert lockstep(config, seed) > 100


@pytest.mark.parametrize("seed", range(40))
def test_the_stamps_of_the_classes_in_any_scenario(seed: int) -> None:
    lockstep(anything(seed), seed)


def test_lossy_copies_teach_nobody() -> None:
    whole = SimulationConfig(Mesh(4), links=Links(Delay(0.0, 0.1)), duration_s=2.0)
    lossy = SimulationConfig(Mesh(4), links=Links(Delay(0.0, 0.1), loss=0.5), duration_s=2.0)
    complete, lost = compute_timestamps(whole, 1)[0], compute_timestamps(lossy, 1)[0]
    assert 0.3 < len(lost.sender) / len(complete.sender) < 0.7
    assert complete.vector is not None
    assert lost.vector is not None
    assert lost.vector.sum(axis=1).mean() < complete.vector.sum(axis=1).mean()


def test_linear_time_misses_no_cause() -> None:
    for stamps in compute_timestamps(SCENES[0], 3).values():
        counts = count_pairs(stamps, "linear")
        assert counts.missed_pairs == 0
        assert counts.false_pairs > 0


def test_some_observers_alone() -> None:
    every, one = compute_timestamps(SCENES[1], 1), compute_timestamps(SCENES[1], 1, [2])
    assert list(one) == [2]
    assert np.array_equal(one[2].lt, every[2].lt)


@pytest.mark.parametrize(
    ("config", "key"),
    [
        (SimulationConfig(Hierarchy((2,), 2)), "topology"),
        (
            SimulationConfig(Mesh(3), links=Links(partitions=(Partition(0.0, 1.0, (0,)),))),
            "partitions",
        ),
        (SimulationConfig(Mesh(3), links=Links(duplicate=0.1)), "duplicate"),
        (SimulationConfig(Mesh(3), workload=Workload(fanout=1)), "workload"),
    ],
)
def test_what_has_no_stamps_here(config: SimulationConfig, key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        compute_timestamps(config, 1)
