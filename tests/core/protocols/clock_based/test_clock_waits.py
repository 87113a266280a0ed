"""Reported waits of held messages in orders by clocks or topics."""

from typing import Any

from antecede import Group
from antecede.core.clocks.bounds import Bounds
from antecede.core.group.message import HeldMessage, Missing
from antecede.core.protocols.topics.subscriptions import Subscriptions

NAMES = ("alice", "bob", "carol", "dave")
ACCURATE: Bounds[str] = Bounds(accuracy_s=0, least_s=1, most_s=3)
COARSE: Bounds[str] = Bounds(accuracy_s=0.25, least_s=1, most_s=3)


def group(order: str, **options: Any) -> dict[str, Group]:
    return {name: Group(name, NAMES, order=order, **options) for name in NAMES}


def only(blocked: list[HeldMessage]) -> HeldMessage:
    (one,) = blocked
    return one


def test_a_message_waits_for_those_who_were_not_heard_of() -> None:
    members = group("linear", heartbeat_s=1)
    alice, bob, carol, dave = (members[name] for name in NAMES)
    carol.receive(alice.send(b"first", now=0), now=1)
    later = carol.send(b"later", now=1)
    assert not bob.receive(later, now=2)
    one = only(bob.list_held())
    assert str(one) == "carol's message 1 waits for any message from alice, dave"
    assert bob.list_missing() == [Missing("alice", None, 1), Missing("dave", None, 1)]
    dave.receive(later, now=2)
    dave.tick(now=2)
    dave.tick(now=4)
    for packet in dave.take_control_packets():
        if "bob" in packet.to:
            bob.receive(packet.wire, now=5)
    assert only(bob.list_held()).silent == ("alice",)


def test_a_member_with_a_gap_is_not_silent_its_message_is_missing() -> None:
    members = group("linear", heartbeat_s=None)
    alice, bob, carol, _dave = (members[name] for name in NAMES)
    alice.send(b"1", now=0)
    second = alice.send(b"2", now=0)
    carol.receive(second, now=1)
    bob.receive(second, now=1)
    assert not bob.receive(carol.send(b"3", now=1), now=2)
    assert [str(one) for one in bob.list_held()] == [
        "alice's message 2 waits for alice's message 1",
        "carol's message 1 waits for alice's message 1 and any message from dave",
    ]


def test_a_message_waits_for_the_own_clock() -> None:
    # Causes of alice's message were sent 1 s before it, and take 3 s; each clock errs by 0.25 s.
    for order in ("physical", "linear-physical"):
        members = group(order, delivery="bound", bounds=COARSE)
        assert not members["bob"].receive(members["alice"].send(b"x", now=10), now=11)
        one = only(members["bob"].list_held())
        assert one.until_ns == 12_500_000_001
        assert not one.silent
        assert str(one) == "alice's message 1 waits for clock reading 12500000001 ns"
        assert not members["bob"].tick(now_ns=one.until_ns - 1)
        assert members["bob"].tick(now_ns=one.until_ns)
        assert members["bob"].list_held() == []


def test_without_physical_time_the_wait_counts_from_the_arrival() -> None:
    members = group("linear", delivery="bound", bounds=ACCURATE)
    assert not members["bob"].receive(members["alice"].send(b"x", now=10), now=11)
    assert only(members["bob"].list_held()).until_ns == 12_000_000_001


def test_an_event_waits_for_the_own_clock() -> None:
    subscriptions = Subscriptions(dict.fromkeys(NAMES, ("x",)))
    members = group("htbc", bounds=ACCURATE, subscriptions=subscriptions)
    alice, bob = members["alice"], members["bob"]
    assert not bob.receive(alice.send(b"x", now=10, topics=["x"]), now=11)
    one = only(bob.list_held())
    assert one.until_ns is not None
    assert str(one) == f"alice's message 1 waits for clock reading {one.until_ns} ns"
    assert not bob.tick(now_ns=one.until_ns - 1)
    assert bob.tick(now_ns=one.until_ns)


def test_an_event_whose_time_has_come_waits_for_a_held_one() -> None:
    # What comes from dave may take 30 s, so that all wait long; carol's answer came first.
    far = {("dave", "bob"): (1.0, 30.0)}
    bounds: Bounds[str] = Bounds(accuracy_s=0, least_s=1, most_s=3, channels=far)
    subscriptions = Subscriptions(dict.fromkeys(NAMES, ("x",)))
    members = group("tv", bounds=bounds, subscriptions=subscriptions)
    alice, bob, carol = (members[name] for name in NAMES[:3])
    question = alice.send(b"?", now=10, topics=["x"])
    carol.receive(question, now=11)
    answer = carol.send(b"!", now=12, topics=["x"])
    assert not bob.receive(answer, now=13)
    assert not bob.receive(question, now=14)
    until_ns = bob.list_held()[1].until_ns
    assert until_ns is not None
    assert not bob.tick(now_ns=until_ns)
    first, second = bob.list_held()
    assert first.message.sender == "alice"
    assert not first.waits_for
    assert second.waits_for == (("alice", 1),)
    assert bob.list_missing() == []
