"""Intervals of figures: from independent values, and from batches of one run."""

from __future__ import annotations

import math
import random

import pytest

from antecede.lab.simulate.config.model import SimulationConfig
from antecede.lab.simulate.outputs.confidence import BATCHES, half_width, half_widths, short_batches
from antecede.lab.simulate.outputs.needless_holds import delivery_waits
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.topology import Hierarchy, Mesh


def test_the_interval_of_a_mean_is_students() -> None:
    assert half_width([]) is half_width([3.0]) is None
    assert half_width([2.0, 2.0, 2.0]) == 0
    assert half_width([1.0, 2.0, 3.0]) == pytest.approx(4.303 / math.sqrt(3))
    ten = [float(k) for k in range(BATCHES)]
    assert half_width(ten) == pytest.approx(2.262 * 3.02765 / math.sqrt(10), rel=1e-4)


@pytest.mark.parametrize("count", [3, 10, 40])
def test_about_95_of_100_intervals_hold_the_mean(count: int) -> None:
    rng = random.Random(count)
    held = 0
    for _ in range(1000):
        values = [rng.gauss(5, 2) for _ in range(count)]
        half = half_width(values)
        assert half is not None
        held += abs(sum(values) / count - 5) <= half
    assert 930 <= held <= 970


@pytest.mark.slow
def test_batches_of_one_run_say_how_far_other_runs_are() -> None:
    short = SimulationConfig(Mesh(5), duration_s=11.0, warm_s=1.0)
    long, _ = run_readable(SimulationConfig(Mesh(5), duration_s=100.0, warm_s=1.0), 99, True)
    held = 0
    for seed in range(10):
        result, run = run_readable(short, seed, True)
        halves = half_widths(result, run, delivery_waits(run))
        for name in ("wait_ms.mean", "peer.control_bytes", "peer.storage_bytes"):
            assert halves[name] > 0
            held += abs(result.figures[name] - long.figures[name]) <= halves[name]
    assert held >= 24  # of 30


def test_figures_without_batches_have_no_interval() -> None:
    result, run = run_readable(SimulationConfig(Mesh(1), duration_s=1.0), 0, True)
    assert "wait_ms.mean" not in half_widths(result, run, delivery_waits(run))
    tree = SimulationConfig(Hierarchy((2,), 2), "hierarchical", duration_s=2.0)
    result, run = run_readable(tree, 0, True)
    found = half_widths(result, run, delivery_waits(run))
    assert "peer.control_bytes" not in found
    assert "wait_ms.mean" in found


def test_a_batch_shorter_than_a_delay_is_noticed() -> None:
    assert short_batches(SimulationConfig(Mesh(3), duration_s=2.0))
    assert not short_batches(SimulationConfig(Mesh(3), duration_s=3.0))
