"""Deliveries too early and waits that were unnecessary: counted again by sets, and by hand."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antecede.core.protocols.base import Relation
from antecede.lab.simulate.config.model import Clocks, Links, SimulationConfig, Workload
from antecede.lab.simulate.delays import Delay
from antecede.lab.simulate.outputs import needless_holds
from antecede.lab.simulate.outputs.needless_holds import WaitCounts, wait_counts
from antecede.lab.simulate.outputs.recording import ARRIVED, DELIVERED, SENT, Recording
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.topology import Mesh, PubSub


def again(run: Recording) -> WaitCounts:
    """Count with sets, one question after another."""
    by_topic = run.relation is Relation.BY_TOPIC
    knows: dict[int, set[int]] = {}
    past: dict[int, set[int]] = {}
    had: dict[int, set[int]] = {}
    waits: dict[tuple[int, int], tuple[int, int | None]] = {}
    early = held = unnecessary = unnecessary_us = checked = 0

    def causes(member: int, message: int) -> set[int]:
        found = {one for one in past[message] if member in run.receivers(one)}
        if not by_topic:
            return found
        common = run.subscriptions[member].intersection(run.topics[message])
        return {one for one in found if common.intersection(run.topics[one])}

    for time_us, kind, member, message in run.events():
        known = knows.setdefault(member, set())
        if kind == SENT:
            past[message] = set(known)
        elif kind == ARRIVED:
            waits[member, message] = time_us, None
        else:
            had.setdefault(member, set())
            arrived_us, ready_us = waits.pop((member, message))
            checked += 1
            early += not causes(member, message) <= had[member]
            held += time_us > arrived_us
            late_us = 0 if ready_us is None else time_us - ready_us
            unnecessary += late_us > 0
            unnecessary_us += late_us
            had[member].add(message)
        if kind != ARRIVED or by_topic:
            known |= past[message] | {message}
        for (at, one), (arrived_us, ready_us) in waits.items():
            if at == member and ready_us is None and causes(at, one) <= had.get(at, set()):
                waits[at, one] = arrived_us, time_us
    return WaitCounts(checked, early, held, unnecessary, unnecessary_us)


SMALL = {
    "mesh": st.builds(
        SimulationConfig,
        st.builds(Mesh, st.integers(2, 4)),
        st.sampled_from(("unordered", "fifo", "bss", "sb", "linear", "linear-physical")),
        links=st.builds(Links, st.just(Delay(0.0, 0.3)), loss=st.sampled_from((0.0, 0.1))),
        workload=st.just(Workload("random", messages=12, reply_fraction=0.5)),
        clocks=st.just(Clocks(0.01)),
        duration_s=st.just(0.5),
    ),
    "pubsub": st.builds(
        SimulationConfig,
        st.just(PubSub((2, 2), 3, 2)),
        st.sampled_from(("tv", "htbc")),
        links=st.just(Links(Delay(0.0, 0.1))),
        workload=st.just(Workload("random", messages=12, topics=2)),
        duration_s=st.just(0.5),
    ),
}


@pytest.mark.parametrize("kind", SMALL)
@given(data=st.data(), seed=st.integers(0, 99))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=40)
def test_counted_again_by_sets(kind: str, data: st.DataObject, seed: int) -> None:
    _, run = run_readable(data.draw(SMALL[kind]), seed, True)
    assert wait_counts(run) == again(run)


@pytest.mark.parametrize("name", ["bss", "idr", "ds", "ses", "sent", "matrix"])
def test_exact_causal_protocols_are_never_early_and_never_wait_unnecessarily(name: str) -> None:
    config = SimulationConfig(Mesh(6), name, duration_s=2.0)
    _, run = run_readable(config, 1, True)
    seen = wait_counts(run)
    assert seen is not None
    assert (seen.violations, seen.unnecessary, seen.needless_us) == (0, 0, 0)
    assert seen.held > 0


def test_weaker_orders_are_early_and_stronger_ones_wait_unnecessarily() -> None:
    seen = {}
    for name in ("unordered", "fifo", "bss", "linear"):
        seen[name] = wait_counts(
            run_readable(SimulationConfig(Mesh(6), name, duration_s=2.0), 1, True)[1]
        )
    early = {name: one.violations for name, one in seen.items() if one is not None}
    waits = {name: one.unnecessary for name, one in seen.items() if one is not None}
    assert early["unordered"] > early["fifo"] > early["bss"] == early["linear"] == 0
    assert waits["linear"] > waits["bss"] == waits["fifo"] == waits["unordered"] == 0


def test_by_hand() -> None:
    run = Recording(
        SimulationConfig(Mesh(3)), 0,
        Relation.BY_DELIVERY, [0, 1, 0], [0, 10, 40], [()] * 3, [None] * 3,
        [()] * 3,
    )  # fmt: skip
    for time_us, kind, member, message in (
        (0, SENT, 0, 0),
        (5, ARRIVED, 1, 0),
        (5, DELIVERED, 1, 0),
        (10, SENT, 1, 1),
        (20, ARRIVED, 2, 1),
        (20, DELIVERED, 2, 1),
        (30, ARRIVED, 2, 0),
        (30, DELIVERED, 2, 0),
        (40, SENT, 0, 2),
        (50, ARRIVED, 2, 2),
        (51, DELIVERED, 2, 2),
    ):
        run.record(time_us, kind, member, message)
    assert wait_counts(run) == WaitCounts(
        checked=4, violations=1, held=1, unnecessary=1, needless_us=1
    )
    assert WaitCounts(4, 1, 1, 1, 1).figures() == {
        "causal.checked": 4,
        "causal.violations": 1,
        "causal.held": 1,
        "causal.needless_holds": 1,
        "causal.needless_hold_ms": 0.001,
    }


def test_too_many_messages_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    _, run = run_readable(SimulationConfig(Mesh(2), duration_s=0.5), 0, True)
    assert wait_counts(run) is not None
    monkeypatch.setattr(needless_holds, "FULL", 1)
    assert wait_counts(run) is None
