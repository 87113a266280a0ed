"""Clocks keep their accuracy, never go back, and differ by seed; bounds hold on every channel."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.lab.simulate.clocks import MemberClocks, compute_bounds
from antecede.lab.simulate.config.model import Clocks, Links, SimulationConfig, Special
from antecede.lab.simulate.delays import US, Delay
from antecede.lab.simulate.network import make_channels
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.topology import Mesh, PubSub
from tests.lab.simulate.small_configs import config_of

DRIFTING = Clocks(accuracy_s=0.01, drift_ppm=2000.0, resync_s=2.0)
TIMES = st.lists(st.integers(0, 20 * US), min_size=2, max_size=30)


@given(st.integers(0, 2**40), TIMES, st.sampled_from([Clocks(0.01), DRIFTING]))
def test_a_clock_stays_within_its_accuracy_and_never_goes_back(
    seed: int, times: list[int], clocks: Clocks
) -> None:
    made = MemberClocks(clocks, seed)
    shown = [made.read_us(3, at) for at in sorted(times)]
    assert shown == sorted(shown)
    for at, reading in zip(sorted(times), shown, strict=True):
        assert abs(reading - made.accuracy_us - at) <= made.accuracy_us
    asked_backwards = MemberClocks(clocks, seed)
    assert [asked_backwards.read_us(3, at) for at in sorted(times, reverse=True)] == shown[::-1]


def test_clocks_use_what_they_may() -> None:
    made = MemberClocks(DRIFTING, 1)
    off = [made.read_us(at, 9 * US) - 9 * US for at in range(300)]
    assert min(off) < 0.2 * 0.02 * US
    assert max(off) > 0.8 * 0.02 * US
    rates = [made.read_us(at, 700_000) - made.read_us(at, 200_000) for at in range(300)]
    assert 499_000 <= min(rates) < 499_100
    assert 500_900 < max(rates) <= 501_000


def test_a_clock_that_is_set_back_stands_still() -> None:
    made = MemberClocks(Clocks(accuracy_s=0.5, drift_ppm=1.0, resync_s=2.0), 1)
    still = sum(made.read_us(at, 2 * US) == made.read_us(at, 2 * US + 1000) for at in range(100))
    assert 30 < still < 70


def test_without_accuracy_clocks_show_true_time() -> None:
    assert MemberClocks(Clocks(), 1).read_us(2, 12345) == 12345
    assert MemberClocks(Clocks(), 1).read_ns(2, 1_500_000) == 1_500_000_000


LAN = Delay(0.001, 0.016, "uniform")
SPECIAL = tuple(Special(f"group:{k}", f"group:{k}", LAN) for k in range(2))


PLACES = [
    Links(Delay(0.02, 0.16, "uniform"), special=SPECIAL),
    Links(Delay(0.01, 0.02, "uniform"), matrix=((0.0, 0.05), (0.07, 0.0))),
    Links(Delay(0.05, 0.05, "constant")),
]


@pytest.mark.parametrize("links", PLACES)
def test_bounds_hold_on_every_channel(links: Links) -> None:
    topology = PubSub((2, 2), topics=2)
    config = config_of("tv", topology=topology, links=links, duration_s=10.0)
    bounds = compute_bounds(config, make_channels(topology, links))
    _, run = run_readable(config, 1, record=True)
    took: dict[tuple[int, int], list[int]] = {}
    for one in run.events():
        if one.kind == 1:
            sent_us = run.sent_us[one.message] or 0
            channel = run.sender[one.message], one.member
            took.setdefault(channel, []).append((one.time_us - sent_us) * 1000)
    assert len(took) == 12
    for channel, delays in took.items():
        assert bounds.least_delay_ns(*channel) <= min(delays)
        assert max(delays) <= bounds.most_delay_ns(*channel)
        width = bounds.most_delay_ns(*channel) - bounds.least_delay_ns(*channel)
        assert max(delays) - min(delays) <= width
        assert max(delays) - min(delays) >= 0.5 * width


def test_equal_channels_need_no_list_of_them() -> None:
    config = SimulationConfig(Mesh(5))
    assert compute_bounds(config, make_channels(config.topology, config.links)).homogeneous
