"""Waiting time of a joining member before its first message, in orders by network times."""

from __future__ import annotations

from typing import Any

import pytest

from antecede import Bounds, Group, Subscriptions
from antecede.core.protocols import registry
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.core.protocols.topics.protocols import Htbc
from antecede.errors import EarlyError, LocalError
from antecede.lab.check.conformance import conform
from antecede.lab.check.search_plans import SearchSize, suites
from antecede.lab.check.target import Target

MS = 1_000_000
BOUNDS: Bounds[str] = Bounds(accuracy_s=0.002, least_s=0.02, most_s=0.06)
TOPICS = ("tv", "tv-lt", "tv-pt", "tv-vt", "htbc")
WAITING = {
    **{f"{order} bound": (order, "bound") for order in ("linear", "physical", "linear-physical")},
    **{f"{order} null": (order, "null") for order in ("physical", "linear-physical")},
    **{order: (order, "") for order in TOPICS},
}


def options(kind: str) -> dict[str, Any]:
    order, delivery = WAITING.get(kind, (kind, ""))
    more: dict[str, Any] = {"bounds": BOUNDS}
    if order in TOPICS:
        more["subscriptions"] = Subscriptions(dict.fromkeys("ab", ("x",)))
    elif delivery:
        more["delivery"] = delivery
    return more


def founded(kind: str) -> tuple[Group, Group, dict[str, Any]]:
    order = WAITING[kind][0]
    a, b = (Group(name, ["a", "b"], order=order, **options(kind)) for name in "ab")
    return a, b, ({"topics": ["x"]} if order in TOPICS else {})


def invited(kind: str, a: Group, b: Group, **more: Any) -> tuple[bytes, Group]:
    invitation = a.invite("c")
    b.join("c")
    c = Group.accept("c", invitation, **options(kind), **more)
    if kind in TOPICS:
        for group in (a, b, c):
            group.subscribe("c", ["x"])
    return invitation, c


@pytest.mark.parametrize("kind", WAITING)
def test_a_newcomer_that_sends_at_once_is_told_when_it_may(kind: str) -> None:
    a, b, how = founded(kind)
    a.send(b"question", now_ns=0, **how)
    invitation, c = invited(kind, a, b)
    before = c.snapshot()
    with pytest.raises(EarlyError, match=r"call tick\(now\) now, and send 0\.024 s later") as found:
        c.send(b"answer", now_ns=1, **how)
    assert found.value.from_ns is None
    assert c.snapshot() == before
    c.tick(now_ns=1)
    again = Group.accept("c", invitation, **options(kind))
    again.restore(c.snapshot())
    for group in (c, again):
        with pytest.raises(EarlyError, match="before the local clock shows") as found:
            group.send(b"answer", now_ns=24 * MS, **how)
        assert found.value.from_ns == 24 * MS + 1
        assert group.send(b"answer", now_ns=24 * MS + 1, **how).seq == 1
        assert group.send(b"more", now_ns=24 * MS + 2, **how).seq == 2
    assert isinstance(found.value, LocalError)


@pytest.mark.parametrize("kind", [kind for kind in WAITING if not kind.endswith("null")])
def test_the_answer_of_a_newcomer_comes_after_the_question(kind: str) -> None:
    a, b, how = founded(kind)
    question = a.send(b"question", now_ns=0, **how)
    _, c = invited(kind, a, b)
    c.tick(now_ns=1)
    answer = c.send(b"answer", now_ns=24 * MS + 1, **how)
    got = b.receive(answer, now_ns=44 * MS + 1)
    for now in range(45, 60):
        got += b.tick(now_ns=now * MS)
    got += b.receive(question, now_ns=60 * MS)
    for now in range(61, 200):
        got += b.tick(now_ns=now * MS)
    assert [m.payload for m in got] == [b"question", b"answer"]


@pytest.mark.parametrize("kind", WAITING)
def test_an_invitation_that_took_its_time_needs_no_wait(kind: str) -> None:
    a, b, how = founded(kind)
    _, c = invited(kind, a, b, by_channel=True)
    assert c.send(b"hi", now_ns=1, **how).seq == 1


def test_where_counts_keep_the_order_nobody_waits() -> None:
    a, b = (Group(name, ["a", "b"], order="linear") for name in "ab")
    invitation = a.invite("c")
    b.join("c")
    assert Group.accept("c", invitation).send(b"at once", now_ns=1).seq == 1


def test_the_path_of_least_delay_from_the_furthest_member_counts() -> None:
    near: dict[str, Any] = {"accuracy_ns": 1, "least_ns": 10, "most_ns": 900}
    a, b = (
        Group(name, ["a", "b"], order="linear-physical", bounds=Bounds(**near)) for name in "ab"
    )
    invitation = a.invite("c")
    b.join("c")
    far: Bounds[str] = Bounds(**near, channels_ns={("b", "c"): (200, 900)})
    c = Group.accept("c", invitation, bounds=far)
    c.tick(now_ns=1000)
    with pytest.raises(EarlyError) as found:
        c.send(b"x", now_ns=1001)
    assert found.value.from_ns == 1000 + 20 + 2


class AtOnce(LinearPhysical):
    """Sends as a newcomer without waiting."""

    def enter(self) -> None: ...


class TopicsAtOnce(Htbc):
    """Publishes as a newcomer without waiting."""

    def enter(self) -> None: ...


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "delivery"), [(AtOnce, "null"), (AtOnce, "bound"), (TopicsAtOnce, "")]
)
def test_the_checker_finds_a_newcomer_that_does_not_wait(kind: type, delivery: str) -> None:
    more = {"delivery": delivery} if delivery else {}
    *_, (group, plan) = suites(Target(kind.__name__, kind, None, more), SearchSize())
    found = [conform(group, plan, seed).failure for seed in range(3)]
    assert any(f is not None and "before a message of its causal past" in f.what for f in found)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["linear", "physical", "linear-physical", "htbc", "tv"])
def test_the_checker_lets_newcomers_send_at_once_and_passes_those_that_wait(order: str) -> None:
    target = Target(order, registry.entry(order).load(), None, {})
    *_, (group, plan) = suites(target, SearchSize())
    suite = conform(group, plan, 1)
    assert suite.failure is None
    assert suite.deliveries
