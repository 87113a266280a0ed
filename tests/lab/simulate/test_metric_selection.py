"""Figures by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.delays import US
from antecede.lab.simulate.outputs.metrics import (
    MessageSizes,
    StorageSamples,
    VectorEntropy,
    list_sample_times,
    wait_figures,
)
from antecede.lab.simulate.outputs.recording import ARRIVED, DELIVERED
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.topology import Mesh
from tests.lab.simulate.small_configs import config_of


def test_parts_are_the_ceil_p_n_th_smallest() -> None:
    found = wait_figures([5000, 1000, 4000, 2000, 3000])
    assert found == {
        "wait_ms.mean": 3.0,
        "wait_ms.p50": 3.0,
        "wait_ms.p99": 5.0,
        "wait_ms.max": 5.0,
    }
    hundred = wait_figures(range(1000, 201_000, 1000))
    assert (hundred["wait_ms.p50"], hundred["wait_ms.p99"]) == (100.0, 198.0)
    assert wait_figures([]) == {}


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=30))
def test_mean_and_deviation_are_exact(values: list[int]) -> None:
    sizes = MessageSizes()
    for value in values:
        sizes.add(value, value + 1)
    found = sizes.compute_metrics("peer")
    mean = sum(values) / len(values)
    assert found["peer.control_bytes"] == mean
    assert found["peer.wire_bytes"] == sum(value + 1 for value in values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values) / len(values)
    assert found["peer.control_bytes_sd"] == pytest.approx(math.sqrt(spread), abs=1e-6)


def test_entropy_of_a_bit_vector() -> None:
    entropy = VectorEntropy()
    entropy.add(0b1001)  # one of (4 over 2) = 6
    entropy.add(0b1)
    assert entropy.compute_mean() == math.log2(6) / 8 / 2


def test_the_largest_is_of_one_member() -> None:
    stored = StorageSamples()
    stored.add([1, 9])
    stored.add([4, 4])
    assert (stored.mean, stored.maximum, stored.series) == (4.5, 9, [5.0, 4.0])


def test_samples_lie_before_the_end() -> None:
    config = SimulationConfig(Mesh(2), warm_s=2e-6, sample_s=4e-6, duration_s=10e-6)
    assert list(list_sample_times(config)) == [2, 6]


@pytest.mark.parametrize("protocol", ["idr", "hierarchical"])
def test_means_count_what_was_sent_after_the_warm_up(protocol: str) -> None:
    early, late = (config_of(protocol, warm_s=warm_s) for warm_s in (0.0, 0.9))
    result, run = run_readable(late, 2, record=True)
    arrived: dict[tuple[int, int], int] = {}
    waits = []
    for time_us, kind, member, message in run.events():
        if kind == ARRIVED:
            arrived[member, message] = time_us
        elif kind == DELIVERED and (run.sent_us[message] or 0) >= 0.9 * US:
            waits.append(time_us - arrived[member, message])
    assert wait_figures(waits).items() <= result.figures.items()
    assert 0 < len(waits) < len(run.deliveries()) / 2
    if protocol == "hierarchical":
        name = "idr.control_bytes"
        assert run_readable(early, 2).figures[name] < result.figures[name]
