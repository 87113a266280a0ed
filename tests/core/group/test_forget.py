"""Forgotten members: limits, and what is dropped."""

from __future__ import annotations

from typing import Any

import pytest

from antecede import Bounds, Group
from antecede.errors import LimitError, LocalError, RemoteError
from tests.helpers.unchanged import unchanged

NAMES = ("alice", "bob", "carol")
FORGETTING = ("fifo", "causal", "bss", "ds", "none")


def closed(order: str, **options: Any) -> list[Group]:
    return [Group(name, NAMES, order=order, **options) for name in NAMES]


@pytest.mark.parametrize("order", ["fifo", "causal", "bss", "ds", "matrix", "reply", "none"])
def test_present_members_count_towards_the_limit(order: str) -> None:
    hub = Group("hub", order=order, max_members=3)
    for number in range(10):
        hub.receive(Group(f"client {number}", order=order).send(b"hi"))
        hub.leave(f"client {number}", 1)
    assert hub.members == ("hub",)
    for number in (20, 21):
        hub.receive(Group(f"client {number}", order=order).send(b"hi"))
    with pytest.raises(LimitError, match="would be member 4; the limit is max_members=3"):
        hub.receive(Group("one more", order=order).send(b"hi"))


@pytest.mark.parametrize("order", ["bss", "ds", "causal"])
def test_messages_carry_nothing_of_forgotten_members(order: str) -> None:
    hub = Group("hub", order=order)
    fresh = len(Group("hub", order=order).send(b"x"))
    for number in range(60):
        hub.receive(Group(f"client {number}", order=order).send(b"hi"))
        hub.leave(f"client {number}", 1)
    long = len(hub.send(b"x"))
    for number in range(60):
        hub.forget(f"client {number}")
    after = hub.send(b"x")
    assert fresh <= len(after) <= fresh + 2 < long
    assert hub.frontier() == {"hub": ((1, 2),)}
    late = Group("late", order=order)
    assert late.receive(after) == []  # the first message of hub is missing, nothing else
    assert [(m.sender, m.seq) for m in late.list_missing()] == [("hub", 1)]


@pytest.mark.parametrize("order", FORGETTING)
@pytest.mark.parametrize("is_open", [False, True])
def test_who_has_not_forgotten_yet_is_understood(order: str, is_open: bool) -> None:
    alice, bob, carol = (Group(n, None if is_open else NAMES, order=order) for n in NAMES)
    wire = alice.send(b"last words")
    for group in (bob, carol):
        group.receive(wire)
        group.leave("alice", 1)
    bob.forget("alice")
    from_carol = carol.send(b"names alice")
    assert [m.payload for m in bob.receive(from_carol)] == [b"names alice"]
    assert "alice" not in bob.members
    duplicates = bob.stats().duplicates
    assert bob.receive(wire) == []
    assert bob.stats().duplicates == duplicates + 1
    assert bob.inspect(from_carol).sender == "carol"
    answer = bob.send(b"answer")
    assert [m.payload for m in carol.receive(answer)] == [b"answer"]
    for group in (bob, carol):
        if group is carol:
            group.forget("alice")
        again = Group(group.name, None if is_open else NAMES, order=order)
        again.restore(group.snapshot())
        assert again.frontier() == group.frontier()
        assert "alice" not in again.frontier()
        assert again.receive(wire) == []


@pytest.mark.parametrize("order", FORGETTING)
def test_names_and_numbers_are_never_given_out_again(order: str) -> None:
    alice, bob, carol = closed(order)
    for group in (alice, bob):
        group.leave("carol", 0)
        group.forget("carol")
    with pytest.raises(LocalError, match="use another name"):
        alice.invite("carol")
    invitation = alice.invite("dave")
    bob.join("dave")
    dave = Group.accept("dave", invitation)
    assert dave.members == alice.members == ("alice", "bob", "dave")
    wire = dave.send(b"hi")
    assert [m.sender for group in (alice, bob) for m in group.receive(wire)] == ["dave", "dave"]
    assert [m.payload for m in dave.receive(bob.send(b"welcome"))] == [b"welcome"]
    with pytest.raises(RemoteError):
        alice.receive(Group("x", ("x", "y"), order=order).send(b"of another group"))
    again = Group("alice", NAMES, order=order)
    again.restore(alice.snapshot())
    assert again.members == alice.members
    assert again._state.roster.next_number == alice._state.roster.next_number == 4
    assert carol.members == NAMES


def test_only_who_has_left_and_is_heard_out_is_forgotten() -> None:
    alice, bob, carol = closed("causal")
    one, two = alice.send(b"1"), alice.send(b"2")
    with pytest.raises(LocalError, match=r"'alice' is in the group; call leave\('alice'"):
        carol.forget("alice")
    with pytest.raises(LocalError, match="unknown member 'ghost'"):
        carol.forget("ghost")
    carol.receive(one)
    carol.leave("alice", 2)
    with pytest.raises(LocalError, match="undelivered messages: 1 of 2 are delivered"):
        carol.forget("alice")
    carol.receive(two)
    bob.receive(one)
    bob.receive(two)
    first = bob.send(b"of bob")
    second = bob.send(b"more")
    carol.receive(second)
    carol.forget("alice")
    assert [m.payload for m in carol.receive(first)] == [b"of bob", b"more"]
    with pytest.raises(LocalError, match="unknown member 'alice'"):
        carol.forget("alice")


def test_what_waits_and_names_a_member_keeps_it() -> None:
    alice, bob, carol = closed("bss")
    wire = alice.send(b"1")
    for group in (bob, carol):
        group.receive(wire)
    bob.send(b"first")
    carol.receive(bob.send(b"second, names alice"))
    carol.leave("alice", 1)
    with pytest.raises(LocalError, match="held message 2 of 'bob'"):
        carol.forget("alice")


def test_forgetting_is_in_the_log() -> None:
    _, _, carol = closed("causal", keep_log=True)
    begun = carol.snapshot()
    carol.leave("alice", 0)
    carol.forget("alice")
    again = Group("carol", NAMES)
    again.restore(begun, carol.take_log())
    assert again.frontier() == carol.frontier() == {"bob": (), "carol": ()}


@pytest.mark.parametrize(
    ("order", "options"),
    [
        ("reply", {}),
        ("matrix", {}),
        ("ses", {}),
        ("sent", {}),
        ("linear", {"bounds": Bounds(accuracy_s=1, least_s=1, most_s=2)}),
        ("total-agreed", {}),
    ],
)
def test_orders_that_need_departed_members_say_so(order: str, options: Any) -> None:
    *_, carol = closed(order, **options)
    carol.leave("alice", 0)
    with (
        unchanged(carol),
        pytest.raises(LocalError, match="needs the state of departed members"),
    ):
        carol.forget("alice")
