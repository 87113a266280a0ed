"""What a `Group` says of itself: each figure and each sentence names what it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antecede import Group
from antecede.errors import LocalError
from antecede.protocols.registry import ENTRIES
from antecede.protocols.vector.idr import Idr
from tests.stored_groups import (
    JOINABLE,
    NAMES,
    ORDERS,
    ROLES,
    START_S,
    TOPICS,
    fresh,
    options_of,
    role,
    story,
)

GOLDEN = Path(__file__).parent / "golden"
LEAVING = [order for order in ORDERS if ENTRIES[order].load().guarantee.leaves]
TOTAL = ["total", "total-agreed"]


def test_a_note_that_waits_for_a_join_is_no_message_0() -> None:
    options: dict[str, Any] = {"order": "matrix", "recovering": True}
    alice, bob = (Group(name, ["alice", "bob"], **options) for name in ("alice", "bob"))
    alice.tick(1.0)
    alice.invite("dave")
    alice.outgoing()
    alice.tick(9.0)
    (packet,) = alice.outgoing()
    bob.receive(packet.wire, now=9.0)
    (blocked,) = bob.blocked_on()
    assert str(blocked) == (
        "a note of alice's protocol waits for 1 join(s) that were not told here"
    )
    assert repr(blocked.message) == "<a note of alice's protocol: b''>"
    assert bob.stats().ahead == 1
    bob.receive(alice.send(b"hi", now=9.5), now=9.5)
    assert "alice's message 1 waits for 1 join(s)" in str(bob.blocked_on()[1])


@pytest.mark.parametrize("order", ORDERS)
def test_who_leaves_does_not_tell_its_own_group(order: str) -> None:
    group = fresh(order, "alice")
    before = group.snapshot()
    with pytest.raises(LocalError, match=r"this member itself.*the others call leave\('alice'"):
        group.leave("alice", 0)
    assert group.snapshot() == before


def test_who_leaves_an_open_group_does_not_tell_its_own() -> None:
    group = Group("alice")
    group.send(b"x")
    with pytest.raises(LocalError, match="this member itself"):
        group.leave("alice", 1)
    assert group.members == ("alice",)


# -- total order: own messages wait, too ----------------------------------------------------------


@pytest.mark.parametrize("order", TOTAL)
def test_an_own_message_that_waits_is_the_oldest(order: str) -> None:
    alice, bob = (Group(name, NAMES[:2], order=order) for name in NAMES[:2])
    wires = [bob.send(b"%d" % k, now_ns=7 + k) for k in range(2)]
    stats = bob.stats()
    assert (stats.held, stats.oldest, stats.held_since_ns) == (2, ("bob", 1), 7)
    again = Group("bob", NAMES[:2], order=order)
    again.restore(bob.snapshot())
    assert again.stats()[4:8] == stats[4:8]
    alice.receive(wires[0])
    for packet in alice.outgoing():
        bob.receive(packet.wire)
    stats = bob.stats()
    assert (stats.held, stats.oldest, stats.held_since_ns) == (1, ("bob", 2), 8)


@pytest.mark.parametrize("order", TOTAL)
def test_an_own_message_that_does_not_wait_is_not_the_oldest(order: str) -> None:
    alone = Group("alice", ["alice"], order=order)
    alone.send(b"x", now_ns=7)
    first = Group("alice", NAMES, order="total")  # the sequencer
    first.send(b"x", now_ns=7)
    for group in (alone, first):
        assert group.stats()[4:8] == (0, 0, None, None)
        assert group.stats().delivered == 1


@pytest.mark.parametrize("order", ORDERS)
def test_whatever_is_held_has_an_oldest(order: str) -> None:
    """Also where a state of version 1 did not note since when."""
    stored = fresh(order)
    stored.restore((GOLDEN / f"{order}.snapshot").read_bytes())
    for group in (story(order).group, stored):
        assert (group.stats().oldest is None) is (group.stats().held == 0)
        assert len(group._state.tally.since) == group.stats().held


# -- who left ---------------------------------------------------------------------------------


@pytest.mark.parametrize("order", LEAVING)
def test_the_last_number_of_who_left_is_the_one_that_was_told(order: str) -> None:
    group = fresh(order, "carol")
    group.leave("bob", 4)
    assert group.last("bob") == 4
    again = fresh(order, "carol")
    again.restore(group.snapshot())
    assert again.last("bob") == 4
    if order in JOINABLE:
        dave = Group.accept("dave", group.invite("dave"), **options_of(order))
        assert dave.last("bob") == 4


def test_the_last_number_of_who_left_an_open_group() -> None:
    alice, bob = Group("alice"), Group("bob")
    alice.leave("bob", 3)
    assert (alice.last("bob"), alice.members) == (3, ("alice",))
    wires = [bob.send(b"%d" % k) for k in range(3)]
    for count, wire in enumerate(wires, 1):
        assert len(alice.receive(wire)) == 1
        assert alice.frontier()["bob"] == ((1, count),)
        assert alice.last("bob") == 3


# -- sequencer= ---------------------------------------------------------------------------------


def test_the_sequencer_is_named_as_members_are() -> None:
    by_name = {name: Group(name, NAMES, order="total", sequencer="bob") for name in NAMES}
    by_number = Group("carol", NAMES, order="total", sequencer=1)
    wire = by_name["alice"].send(b"hi")
    by_name["bob"].receive(wire)
    (placing,) = by_name["bob"].outgoing()
    for carol in (by_name["carol"], by_number):
        carol.receive(wire)
        assert [m.payload for m in carol.receive(placing.wire)] == [b"hi"]
    assert [m.payload for m in by_name["bob"].delivered()] == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("zoe", "sequencer is 'zoe', who is not in the list of members"),
        (7, "sequencer is 7; it is the name of a member, or its number"),
        (True, "sequencer is True; it is the name of a member"),
        ([], r"sequencer is \[\]; it is the name of a member"),
    ],
)
def test_a_sequencer_who_is_no_member_is_refused(wrong: Any, says: str) -> None:
    with pytest.raises(LocalError, match=says):
        Group("alice", NAMES, order="total", sequencer=wrong)


def test_options_say_that_the_sequencer_is_a_member() -> None:
    assert Group.options("total") == {"sequencer": "None (or a member: its name or number)"}
    assert "total: sequencer=None (or a member: its name or number)" in str(Group.__doc__)


# -- what bytes say -------------------------------------------------------------------------------


def packets(order: str) -> list[bytes]:
    """Return bytes of messages and of notes of an order; what came to a role."""
    told = story(order)
    group = told.group
    if order in ROLES:
        return told.late
    for wire in told.late:
        group.receive(wire, now=START_S + 14.0)
    group.tick(START_S + 60.0)
    how: dict[str, Any] = {"topics": ("news",)} if order in TOPICS else {}
    found = [*told.late, *(packet.wire for packet in group.outgoing())]
    return found + [packet.wire for packet in group.post(b"x", now=START_S + 61.0, **how)]


@pytest.mark.parametrize("order", [*ORDERS, *ROLES])
def test_causes_are_told_where_the_order_declares_them(order: str) -> None:
    group = fresh(order) if order in ROLES else fresh(order, "alice")
    envelopes = [group.inspect(wire) for wire in packets(order)]
    assert envelopes
    if order in ROLES or order == "unordered" or order in TOPICS:
        assert all(envelope.causes == () for envelope in envelopes)
    elif order != "sb":
        assert any(envelope.causes for envelope in envelopes), order


def test_an_error_in_causes_is_not_taken_for_no_causes() -> None:
    class Broken(Idr):
        def causes(self, message: Any) -> Any:
            return message.no_such_field

    names = dict(enumerate(NAMES))
    alice, bob = (Group.around(Broken(k, names), names, order="mine") for k in range(2))
    wire = alice.send(b"x")
    with pytest.raises(AttributeError, match="no_such_field"):
        bob.inspect(wire)


def test_a_protocol_that_names_no_causes_says_so_by_leaving_them_out() -> None:
    group = role("p1")
    assert not group._state.names_causes
    assert Group("a")._state.names_causes
