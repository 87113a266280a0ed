"""Groups with sender logs: the host delivers each sender's complete log to every member."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from antecede import Bounds, Group
from antecede.core.protocols import registry
from antecede.errors import LocalError

BOUNDS: Bounds[str] = Bounds(accuracy_ns=10, least_ns=100, most_ns=1000)
CLOCKS = ("linear", "physical", "linear-physical")


def founded(order: str, name: str = "a", **more: Any) -> Group:
    return Group(name, order=order, lanes=True, bounds=BOUNDS, delivery="bound", **more)


def accepted(name: str, invitation: bytes) -> Group:
    return Group.accept(name, invitation, lanes=True, bounds=BOUNDS, delivery="bound")


@pytest.mark.parametrize("order", CLOCKS)
def test_a_broadcast_is_the_same_bytes_for_all_whoever_came_when(order: str) -> None:
    a = founded(order)
    (alone,) = a.send_packets(b"1", now_ns=10)
    assert alone.to == ()
    b = accepted("b", a.invite("b"))
    b.start_from({"a": 1})
    (two,) = a.send_packets(b"2", now_ns=20)  # one packet, though b was sent nothing before
    assert b.receive(two.wire, now_ns=200) == []
    assert [one.payload for one in b.tick(now_ns=5000)] == [b"2"]
    assert b.frontier()["a"] == ((1, 2),)


@pytest.mark.parametrize("order", CLOCKS)
def test_who_knows_two_members_waits_for_a_third(order: str) -> None:
    a = founded(order)
    b = accepted("b", a.invite("b"))
    b.start_from({"a": 0})
    (said,) = b.send_packets(b"an answer, maybe", now_ns=1000)
    assert a.receive(said.wire, now_ns=1100) == []
    (held,) = a.list_held()
    # b's at 1000, c's of up to 1000 - 100 later, two clocks off by 10; and one more.
    assert held.until_ns == 1921
    assert [one.payload for one in a.tick(now_ns=held.until_ns)] == [b"an answer, maybe"]


@pytest.mark.parametrize("order", CLOCKS)
def test_without_lanes_two_who_are_all_wait_for_nobody(order: str) -> None:
    a, b = (
        Group(name, ("a", "b"), order=order, bounds=BOUNDS, delivery="bound") for name in ("a", "b")
    )
    (said,) = b.send_packets(b"at once", now_ns=1000)
    assert [one.payload for one in a.receive(said.wire, now_ns=1100)] == [b"at once"]


@pytest.mark.parametrize("order", CLOCKS)
def test_what_is_known_of_a_third_member_counts_in_lanes_too(order: str) -> None:
    near = Bounds(accuracy_ns=10, least_ns=100, most_ns=1000, channels_ns={(2, 0): (100, 500)})
    member = registry.entry(order).load()(0, (0, 1, 2), bounds=near, delivery="bound")
    # Without physical time from the arrival on, which is 100 after the sending at least.
    wait_ns = (500 - 100) + 2 * 10 - 100 * (order == "linear")
    assert member.wait_ns(1) == wait_ns
    member.carry_in_lanes()
    assert member.wait_ns(1) == wait_ns


def test_a_state_comes_back_in_lanes() -> None:
    a = founded("linear-physical")
    invitation = a.invite("b")
    b = accepted("b", invitation)
    b.start_from({"a": 0})
    (first,) = a.send_packets(b"1", now_ns=10)
    b.receive(first.wire, now_ns=150)
    again = accepted("b", invitation)
    again.restore(b.snapshot())
    (second,) = a.send_packets(b"2", now_ns=20)
    again.receive(second.wire, now_ns=160)
    assert [one.payload for one in again.tick(now_ns=5000)] == [b"1", b"2"]
    numbers = [packet.wire for packet in again.send_packets(b"mine", now_ns=6000)]
    assert len(numbers) == 1


@pytest.mark.parametrize("order", CLOCKS)
def test_without_lanes_these_groups_stay_closed(order: str) -> None:
    with pytest.raises(LocalError, match="closed group"):
        Group("a", order=order, bounds=BOUNDS)


def test_numbers_to_begin_at_are_refused_where_they_cannot_be() -> None:
    closed = Group("a", ["a", "b"], order="linear")
    with pytest.raises(LocalError, match="sender_logs"):
        closed.start_from({"b": 1})
    a = founded("linear")
    b = accepted("b", a.invite("b"))
    for wrong in (5, {"a": -1}, {"a": "x"}, {"z": 1}):
        with pytest.raises(LocalError):
            b.start_from(wrong)  # type: ignore[arg-type]
    b.start_from({"a": 3})
    with pytest.raises(LocalError, match="before anything"):
        b.start_from({"a": 4})


def test_topics_that_nobody_reads_have_bytes_in_lanes_and_none_without() -> None:
    for lanes in (True, False):
        a = Group("a", order="htbc", lanes=lanes, bounds=BOUNDS)
        b = Group.accept("b", a.invite("b"), lanes=lanes, bounds=BOUNDS)
        a.subscribe("b", ["x"])
        b.subscribe("b", ["x"])
        assert a.subscriptions() == {"b": ("x",)}
        packets = [
            a.send_packets(b"1", topics=["y"], now_ns=10),
            a.send_packets(b"2", topics=["x"], now_ns=20),
        ]
        assert [len(some) for some in packets] == [int(lanes), 1]
        for some in packets:
            for packet in some:
                b.receive(packet.wire, now_ns=150)
        assert [one.payload for one in b.tick(now_ns=5000)] == [b"2"]


def test_orders_that_need_no_lanes_are_the_same_with_them() -> None:
    wires = []
    for lanes in (True, False):
        a = Group("a", order="causal", lanes=lanes, incarnation=1)
        b = Group("b", order="causal", lanes=lanes, incarnation=2)
        b.receive(a.send(b"1"))
        a.start_from({})
        wires.append((bytes(a.send(b"2")), bytes(b.send(b"3"))))
    assert all(one == other for one, other in pairwise(wires))
