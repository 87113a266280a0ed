"""Correction of clocks that were ahead."""

from __future__ import annotations

from typing import Any

import pytest

from antecede import Bounds, Group, Subscriptions
from antecede.errors import EarlyError, LimitError, LocalError

DAY = 86_400
BOUNDS: Bounds[str] = Bounds(accuracy_s=0.005, least_s=0.05, most_s=0.2)
TIMED = ("physical", "linear-physical")
TOPICS = ("tv-pt", "htbc")


def pair(order: str, **options: Any) -> tuple[Group, Group, dict[str, Any]]:
    more: dict[str, Any] = {"bounds": BOUNDS, **options}
    if order in TOPICS:
        more["subscriptions"] = Subscriptions(dict.fromkeys("ab", ("x",)))
    a, b = (Group(name, ["a", "b"], order=order, keep_log=True, **more) for name in "ab")
    return a, b, ({"topics": ["x"]} if order in TOPICS else {})


@pytest.mark.parametrize("order", TIMED)
def test_a_member_whose_clock_was_a_day_ahead_goes_on(order: str) -> None:
    a, b, _ = pair(order, delivery="bound")
    begun = a.snapshot()
    ahead = a.send(b"ahead", now=1000 + DAY)
    with pytest.raises(LimitError, match=r"max_ahead_s.*call correct_clock\(\)"):
        b.receive(ahead, now=1000)
    with pytest.raises(LocalError, match=r"call correct_clock\(\)"):
        a.tick(now=1001)
    a.correct_clock(now=1001)
    again = Group("a", ["a", "b"], order=order, bounds=BOUNDS, delivery="bound")
    again.restore(begun, a.take_log())
    for group in (a, again):
        assert group.tick(now=1002) == []
        with pytest.raises(EarlyError) as found:
            group.send(b"too early", now=1003)
        assert found.value.from_ns == 1061_010_000_001
    wire = a.send(b"mended", now=1062)
    assert b.receive(wire, now=1062.1) == []
    assert [str(one) for one in b.list_missing()] == [
        "message 1 of a is missing; 1 held message(s) wait for it"
    ]
    got = b.declare_lost([("a", 1)]) + b.tick(now=1070)
    assert [(m.payload, m.missing) for m in got] == [(b"mended", (("a", 1),))]


@pytest.mark.parametrize("order", TIMED)
def test_what_was_refused_is_sent_again_where_recovery_is_on(order: str) -> None:
    a, b, _ = pair(order, delivery="bound", retry_s=1, recovery_s=10, heartbeat_s=1)
    ahead = a.send(b"ahead", now=1000 + DAY)
    with pytest.raises(LimitError):
        b.receive(ahead, now=1000)
    a.correct_clock(now=1001)
    got: list[bytes] = []
    for now in range(1063, 1100):
        for group, other in ((a, b), (b, a)):
            got += [m.payload for m in group.tick(now=now)]
            for packet in group.take_control_packets():
                got += [m.payload for m in other.receive(packet.wire, now=now)]
    assert got == [b"ahead"]


@pytest.mark.parametrize("order", TIMED)
def test_a_leap_second_bars_sending_for_a_second_and_nothing_else(order: str) -> None:
    a, b, _ = pair(order)
    a.send(b"1", now=1000)
    a.correct_clock(now=999)
    a.receive(b.send(b"z", now=999), now=999.1)
    a.tick(now=999.5)
    with pytest.raises(EarlyError):
        a.send(b"2", now=999.9)
    assert a.send(b"2", now=1000.1).seq == 2


@pytest.mark.parametrize("order", TOPICS)
def test_topics_go_on_at_once(order: str) -> None:
    a, b, how = pair(order)
    got = b.receive(a.send(b"ahead", now=1000 + DAY, **how), now=1000)
    a.correct_clock(now=1001)
    assert a.receive(b.send(b"seen", now=1001.3, **how), now=1001.4) == []
    assert [m.payload for m in a.tick(now=1003)] == [b"seen"]
    got += b.receive(a.send(b"mended", now=1004, **how), now=1004.1)
    assert [m.payload for m in got + b.tick(now=1010)] == [b"ahead", b"mended"]


@pytest.mark.parametrize("order", [*TIMED, *TOPICS])
def test_only_a_clock_that_was_ahead_is_corrected(order: str) -> None:
    a, _, how = pair(order)
    for now in (5, 1000):
        with pytest.raises(LocalError, match="no correction is needed"):
            a.correct_clock(now=now)
        a.send(b"x", now=1000, **how)
    with pytest.raises(LocalError):
        a.correct_clock()


@pytest.mark.parametrize(("order", "options"), [("causal", {}), ("linear", {"bounds": BOUNDS})])
def test_orders_without_physical_time_have_nothing_to_correct(order: str, options: Any) -> None:
    group = Group("a", ["a", "b"], order=order, **options)
    with pytest.raises(LocalError, match="does not order by a clock"):
        group.correct_clock(now=5)


def test_where_any_time_is_believed_no_clock_is_corrected() -> None:
    a, _, _ = pair("physical", max_ahead_s=None)
    a.send(b"x", now=1000 + DAY)
    with pytest.raises(LocalError, match="max_ahead_s=None"):
        a.correct_clock(now=1000)
