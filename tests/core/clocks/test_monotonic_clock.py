"""Monotonic local clock: it never falls, and time-outs continue after a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede import Group
from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.monotonic_clock import MonotonicClock
from antecede.core.clocks.nanoseconds import NS
from antecede.core.protocols.base import Transmit
from antecede.core.protocols.clock_based.linear import Linear
from antecede.core.protocols.clock_based.physical import Physical
from antecede.core.protocols.matrix.matrix import Matrix
from antecede.core.protocols.reply.sb import SemanticOrder
from antecede.core.protocols.topics.protocols import Tv
from antecede.errors import LocalError
from tests.core.protocols.reply.tools import msg, said
from tests.core.protocols.seconds import s

NAMES = ["P1", "P2", "P3"]


def test_a_clock_set_back_inside_its_accuracy_stops_nobody() -> None:
    """Tsuneizumi et al., condition (1): from lambda ahead to lambda behind."""
    bounds = Bounds[str](accuracy_s=0.5, least_s=1.25, most_s=3)
    options: dict[str, Any] = {"order": "physical", "bounds": bounds, "delivery": "bound"}
    group = {name: Group(name, NAMES, **options) for name in NAMES}
    first = group["P1"].send(b"a1", now=9.5 + 0.5)
    second = group["P1"].send(b"a2", now=9.6 - 0.5)
    other = group["P2"].send(b"b", now=9.5)
    read = []
    for wire, at in ((first, 10.8), (second, 10.9), (other, 10.95)):
        read += group["P3"].receive(wire, now=at)
    for at_s in range(11, 20):
        read += group["P3"].tick(at_s)
    assert [message.payload for message in read] == [b"b", b"a1", b"a2"]
    assert group["P3"].list_held() == []


@given(readings=st.lists(st.integers(-20, 20), min_size=1, max_size=30))
def test_a_synchronized_clock_stands_still_until_it_has_caught_up(readings: list[int]) -> None:
    clock = MonotonicClock()
    most = -(1 << 60)
    for k, offset in enumerate(readings):
        reading, clock = clock.at(100 * k + offset, "it", error_ns=20, physical=True)
        most = max(most, 100 * k + offset)
        assert reading == most
        assert clock.shift_ns == 0


@given(readings=st.lists(st.integers(0, 1000), min_size=1, max_size=30))
def test_a_monotonic_clock_goes_on_from_the_last_reading(readings: list[int]) -> None:
    clock, before, passed = MonotonicClock(), readings[0], readings[0]
    for shown in readings:
        reading, clock = clock.at(shown, "it")
        passed += max(0, shown - before)
        before = shown
        assert reading == passed


def test_a_fall_that_no_bound_allows_is_refused_and_changes_nothing() -> None:
    bounds = Bounds[int](accuracy_s=0.1, least_s=1, most_s=3)
    member = Physical(0, range(3), bounds=bounds)
    member.send("m", now=s(100))
    before = member.snapshot()
    calls: list[Callable[[], object]] = [
        lambda: member.send("m", now=s(1)),
        lambda: member.tick(s(99)),
    ]
    for call in calls:
        with pytest.raises(LocalError, match=r"twice the accuracy of 0\.1 s"):
            call()
    assert member.snapshot() == before
    assert member.send("m", now=s(99.8))


def restored(member: Any, *args: Any, **options: Any) -> Any:
    fresh = type(member)(*args, **options)
    fresh.restore(member.snapshot())
    return fresh


def test_a_matrix_member_says_its_heartbeats_after_a_restart_at_0() -> None:
    options: Any = {"recovering": True, "heartbeat_s": 1.0, "retry_s": 2.0}
    member = Matrix(0, range(3), **options)
    member.tick(s(1000))
    again = restored(member, 0, range(3), **options)
    assert again.tick(s(0)) == []
    (beat,) = again.tick(s(1))
    assert isinstance(beat, Transmit)


def test_a_matrix_member_asks_again_after_a_restart_at_0() -> None:
    options: Any = {"recovering": True, "heartbeat_s": 1e6, "retry_s": 2.0}
    source, member = Matrix(0, range(2), **options), Matrix(1, range(2), **options)
    source.send("lost", now=0)
    (effect,) = source.send("held", now=0)
    assert isinstance(effect, Transmit)
    member.receive(effect.message, now=s(999))
    member.tick(s(1000))
    again = restored(member, 1, range(2), **options)
    again.tick(s(0))
    assert len(again.tick(s(2))) == 1


def test_linear_heartbeats_and_requests_go_on_after_a_restart_at_0() -> None:
    member = Linear(0, range(3), heartbeat_s=1.0)
    member.tick(s(1000))
    again = restored(member, 0, range(3), heartbeat_s=1.0)
    assert again.tick(s(0)) == ()
    assert len(again.tick(s(1))) == 1


def test_patience_ends_after_a_restart_at_0() -> None:
    options: Any = {"missing_parent": "release", "patience_s": 5.0}
    member = SemanticOrder(0, range(2), **options)
    member.receive(msg("B2", "B1"), now=s(1000))
    again = restored(member, 0, range(2), **options)
    assert said(again.tick(s(0))) == []
    assert said(again.tick(s(4))) == []
    assert said(again.tick(s(5))) == ["release B2 without B1"]


def test_a_wait_by_arrival_ends_after_a_restart_at_0_and_not_before() -> None:
    from antecede.core.protocols.topics.subscriptions import Subscriptions

    bounds = Bounds[int](accuracy_s=0.1, least_s=1, most_s=3)
    options: Any = {"bounds": bounds, "subscriptions": Subscriptions({1: ["x"]})}
    source, member = Tv(0, range(3), **options), Tv(1, range(3), **options)
    (effect,) = source.send("m", now=0, topics=["x"])
    assert isinstance(effect, Transmit)
    member.receive(effect.message, now=s(1000))
    again = restored(member, 1, range(3), **options)
    assert again.tick(0) == ()
    wait = 3 * NS - 1 * NS + 2 * NS // 10
    assert again.tick(wait) == ()
    assert len(again.tick(wait + 1)) == 1
