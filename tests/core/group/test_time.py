"""Ranges of ticks: equal to single ticks, also from a group without a clock reading."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede import Group
from antecede.errors import LocalError
from tests.helpers.stored_groups import BOUNDS, NAMES
from tests.helpers.unchanged import unchanged

S = 10**9
BEATING: dict[str, dict[str, Any]] = {
    "linear": {"bounds": BOUNDS, "heartbeat_s": 1.0},
    "physical": {"bounds": BOUNDS, "heartbeat_s": 1.0},
    "linear-physical": {"bounds": BOUNDS, "heartbeat_s": 1.0},
    "matrix": {"recovering": True, "heartbeat_s": 1.0, "retry_s": 0.7},
}


def untold(order: str) -> Group:
    return Group("carol", NAMES, order=order, incarnation=5, keep_log=True, **BEATING[order])


def ticked(group: Group, readings: range) -> int:
    """Tick at one reading after another until an effect; return the last."""
    for reading in readings:
        group.tick(now_ns=reading)
        if group.effects():
            break
    return reading


@pytest.mark.parametrize("order", BEATING)
@given(step_ns=st.integers(S // 100, 2 * S), count=st.integers(1, 40), start=st.integers(0, 9))
def test_a_group_that_was_told_no_time_beats_as_if_it_were_ticked(
    order: str, step_ns: int, count: int, start: int
) -> None:
    at_once, one_by_one = untold(order), untold(order)
    stored = at_once.snapshot()
    begin = start * S
    for _ in range(3):
        readings = range(begin, begin + count * step_ns, step_ns)
        reached, released = at_once.tick_range(readings)
        assert reached == ticked(one_by_one, readings)
        assert released == []
        assert at_once.take_control_packets() == one_by_one.take_control_packets()
        begin = reached + step_ns
    log = at_once.take_log()
    assert at_once.snapshot() == one_by_one.snapshot()
    again = untold(order)
    again.restore(stored, log, resume=True)
    assert again.snapshot() == at_once.snapshot()


def test_a_gap_is_asked_for_as_if_it_were_ticked() -> None:
    groups = [untold("matrix"), untold("matrix")]
    alice = Group("alice", NAMES, order="matrix", **BEATING["matrix"])
    alice.send(b"lost", now=1.0)
    wire = alice.send(b"here", now=1.0)
    for group in groups:
        group.receive(wire, now=1.0)
    readings = range(S, 5 * S, S // 10)
    assert groups[0].tick_range(readings)[0] == ticked(groups[1], readings)
    assert groups[0].take_control_packets() == groups[1].take_control_packets() != []


@pytest.mark.parametrize("wrong", [None, 5, [1, 2], (1, 2), "12", b"12", object(), range])
def test_readings_are_a_range(wrong: Any) -> None:
    group = untold("linear")
    with unchanged(group), pytest.raises(LocalError, match="expected a range of nanoseconds"):
        group.tick_range(wrong)


@pytest.mark.parametrize("order", ["linear", "matrix"])
@pytest.mark.parametrize(
    ("readings", "what"),
    [
        (range(1 << 70), "146 years"),
        (range(-(1 << 70), 0), "146 years"),
        (range(0), "ascending range"),
    ],
)
def test_readings_that_no_clock_shows_are_refused(order: str, readings: range, what: str) -> None:
    group = untold(order)
    before = group.snapshot()
    with pytest.raises(LocalError, match=what):
        group.tick_range(readings)
    with pytest.raises(LocalError, match="notes is 'yes'; True or False"):
        group.tick_range(range(5), notes="yes")  # type: ignore[arg-type]
    assert group.snapshot() == before
