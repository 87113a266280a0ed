"""The order of events: time, then ticket; when samples are taken; how a run ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from antecede.lab.simulate.config.model import Links, SimulationConfig, Workload
from antecede.lab.simulate.delays import US, Delay
from antecede.lab.simulate.network import Copy, Network
from antecede.lab.simulate.outputs.recording import ARRIVED, DELIVERED, SENT
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.topology import Hierarchy, Mesh
from tests.lab.simulate.small_configs import config_of

TENTH = Delay(0.1, 0.1, "constant")
AT_ONCE = Links(Delay(0.0, 0.0, "constant"))
ONE_SPEAKS = Workload(interval=TENTH, silent=2)


def test_what_is_sent_comes_before_what_arrives() -> None:
    config = SimulationConfig(Mesh(3), links=Links(TENTH), workload=ONE_SPEAKS, duration_s=0.35)
    _, run = run_readable(config, 1, record=True)
    found = [(one.kind, one.member, one.message) for one in run.events()]
    last = found[-1][2]
    assert last >= 2
    expected = [(SENT, 0, 0)]
    for message in range(last + 1):
        expected += [(SENT, 0, message + 1)] * (message < last)
        for member in (1, 2):
            expected += [(ARRIVED, member, message), (DELIVERED, member, message)]
    assert found == expected


def test_copies_that_take_no_time_come_in_the_order_of_effects() -> None:
    orders = set()
    for seed in range(20):
        config = SimulationConfig(
            Hierarchy((2,), 2),
            "hierarchical",
            links=AT_ONCE,
            workload=Workload("random", messages=1),
            duration_s=1.0,
        )
        _, run = run_readable(config, seed, record=True)
        assert len({time_us for time_us, _, _ in run.deliveries()}) == 1
        orders.add((run.sender[0], *(member for _, member, _ in run.deliveries())))
    assert orders == {(1, 2, 3, 4), (2, 1, 3, 4), (3, 4, 1, 2), (4, 3, 1, 2)}


def test_a_sample_comes_before_the_events_of_its_time() -> None:
    config = SimulationConfig(Mesh(3), links=AT_ONCE, workload=ONE_SPEAKS, duration_s=0.35)
    _, run = run_readable(config, 1, record=True)
    first_s = (run.sent_us[0] or 0) / US
    empty, one_pair = 4 * 3, 4 * 3 + 8 * 2 / 3
    for warm_s, stored in ((first_s, empty), (first_s + 1 / US, one_pair)):
        result = run_readable(replace(config, warm_s=warm_s), 1)
        assert result.series["time_s"][0] == warm_s
        assert result.series["peer.storage_bytes"][0] == stored
        assert result.figures["peer.storage_bytes_max"] == 4 * 3 + 8


def test_samples_are_taken_to_the_end_though_nothing_happens() -> None:
    workload = Workload("random", messages=1)
    config = SimulationConfig(Mesh(2), workload=workload, duration_s=10.0, sample_s=1.0)
    assert run_readable(config, 1).series["time_s"] == [float(second) for second in range(10)]


def test_nobody_to_talk_to() -> None:
    result = run_readable(SimulationConfig(Mesh(1), duration_s=1.0), 1)
    assert result.figures["sent"] > 0
    assert result.figures["arrivals"] == 0
    assert "wait_ms.mean" not in result.figures


def test_nothing_to_say() -> None:
    config = SimulationConfig(Mesh(3), workload=Workload("random", messages=0), duration_s=1.0)
    figures = run_readable(config, 1).figures
    assert figures["sent"] == figures["promise_violations"] == 0
    assert "peer.control_bytes" not in figures


def test_waiting_for_time_ends() -> None:
    """Tsuneizumi et al. without recovery: after a loss messages wait for ever, and the run ends all
    the same.
    """
    links = Links(Delay(0.02, 0.1, "uniform"), loss=0.1)
    figures = run_readable(config_of("linear", links=links), 1).figures
    assert figures["held_at_end"] > 0
    assert figures["undelivered"] >= figures["held_at_end"]
    assert figures["promise_violations"] == 0


def test_ticks_deliver_what_has_waited_for_its_time() -> None:
    """Tsuneizumi et al., delivery "bound": nothing goes before all that it may depend on can have
    come.

    That is most less least delay after it was sent, if clocks are right: 80 ms.
    """
    links = Links(Delay(0.02, 0.1, "uniform"))
    config = config_of("linear-physical", variant="bound", links=links)
    result, run = run_readable(config, 1, record=True)
    assert result.figures["held_at_end"] == 0
    tick_us = 100_000 // 8
    delivered = [one for one in run.events() if one.kind == DELIVERED]
    assert all(one.time_us - (run.sent_us[one.message] or 0) > 80_000 for one in delivered)
    assert sum(one.time_us % tick_us == 0 for one in delivered) > len(delivered) / 4


def test_notes_are_counted_by_transmission(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tsuneizumi et al. with recovery: null messages, requests and messages sent again, one number
    each.
    """
    counts: list[int] = []
    put = Network.send_control

    def note(self: Network, count: int, now_us: int, source: int, to: Sequence[int]) -> list[Copy]:
        counts.append(count)
        return put(self, count, now_us, source, to)

    monkeypatch.setattr(Network, "send_control", note)
    links = Links(Delay(0.02, 0.1, "uniform"), loss=0.1)
    figures = run_readable(config_of("linear", variant="recovery", links=links), 1).figures
    assert counts == list(range(len(counts)))
    assert figures["control_messages"] >= len(counts) > 10


def test_the_run_does_not_end_while_copies_are_under_way() -> None:
    links = Links(Delay(0.02, 2.0, "uniform"), duplicate=0.9)
    config = config_of("matrix", variant="recovering", topology=Mesh(2), links=links)
    config = replace(config, workload=Workload("random", messages=3))
    for seed in range(5):
        result, run = run_readable(config, seed, record=True)
        again = result.figures.get("control_messages", 0)
        assert result.figures["arrivals"] >= 3 + result.figures["duplicates"]
        assert again or result.figures["arrivals"] == 3 + result.figures["duplicates"]
        assert len(run.deliveries()) == 3
