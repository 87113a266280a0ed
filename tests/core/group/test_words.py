"""Texts and counters of a `Group`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antecede import Bounds, Group, Subscriptions
from antecede.core.protocols.registry import ENTRIES
from antecede.core.protocols.vector.idr import Idr
from antecede.errors import LocalError, SequenceError
from tests.helpers.stored_groups import (
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
from tests.helpers.unchanged import unchanged

GOLDEN = Path(__file__).parents[2] / "golden"
LEAVING = [order for order in ORDERS if ENTRIES[order].load().guarantee.leaves]
TOTAL = ["total", "total-agreed"]


def test_a_note_that_waits_for_a_join_is_no_message_0() -> None:
    options: dict[str, Any] = {"order": "matrix", "recovering": True}
    alice, bob = (Group(name, ["alice", "bob"], **options) for name in ("alice", "bob"))
    alice.tick(1.0)
    alice.invite("dave")
    alice.take_control_packets()
    alice.tick(9.0)
    (packet,) = alice.take_control_packets()
    bob.receive(packet.wire, now=9.0)
    (blocked,) = bob.list_held()
    assert str(blocked) == (
        "a control message of alice waits for 1 join(s) that were not reported here"
    )
    assert repr(blocked.message) == "<a control message of alice: b''>"
    assert bob.stats().ahead == 1
    bob.receive(alice.send(b"hi", now=9.5), now=9.5)
    assert "alice's message 1 waits for 1 join(s)" in str(bob.list_held()[1])


@pytest.mark.parametrize("order", ORDERS)
def test_who_leaves_does_not_tell_its_own_group(order: str) -> None:
    group = fresh(order, "alice")
    with (
        unchanged(group),
        pytest.raises(LocalError, match=r"this member itself.*the others call leave\('alice'"),
    ):
        group.leave("alice", 0)


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
    for packet in alice.take_control_packets():
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
    stored = fresh(order)
    stored.restore((GOLDEN / f"{order}.snapshot").read_bytes())
    for group in (story(order).group, stored):
        assert (group.stats().oldest is None) is (group.stats().held == 0)
        assert len(group._state.counters.held_since) == group.stats().held


# -- who left ---------------------------------------------------------------------------------


@pytest.mark.parametrize("order", LEAVING)
def test_the_last_number_of_who_left_is_the_one_that_was_told(order: str) -> None:
    group = fresh(order, "carol")
    group.leave("bob", 4)
    assert group.last_seq("bob") == 4
    again = fresh(order, "carol")
    again.restore(group.snapshot())
    assert again.last_seq("bob") == 4
    if order in JOINABLE:
        dave = Group.accept("dave", group.invite("dave"), **options_of(order))
        assert dave.last_seq("bob") == 4


def test_the_last_number_of_who_left_an_open_group() -> None:
    alice, bob = Group("alice"), Group("bob")
    alice.leave("bob", 3)
    assert (alice.last_seq("bob"), alice.members) == (3, ("alice",))
    wires = [bob.send(b"%d" % k) for k in range(3)]
    for count, wire in enumerate(wires, 1):
        assert len(alice.receive(wire)) == 1
        assert alice.frontier()["bob"] == ((1, count),)
        assert alice.last_seq("bob") == 3


# -- sequencer= ---------------------------------------------------------------------------------


def test_the_sequencer_is_named_as_members_are() -> None:
    by_name = {name: Group(name, NAMES, order="total", sequencer="bob") for name in NAMES}
    by_number = Group("carol", NAMES, order="total", sequencer=1)
    wire = by_name["alice"].send(b"hi")
    by_name["bob"].receive(wire)
    (placing,) = by_name["bob"].take_control_packets()
    for carol in (by_name["carol"], by_number):
        carol.receive(wire)
        assert [m.payload for m in carol.receive(placing.wire)] == [b"hi"]
    assert [m.payload for m in by_name["bob"].take_own_deliveries()] == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("zoe", "sequencer='zoe': unknown member"),
        (7, "sequencer=7: expected a member name, or its number"),
        (True, "sequencer=True: expected a member name"),
        ([], r"sequencer=\[\]: expected a member name"),
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
    """Return bytes of messages and control messages of an order; bytes received by a role."""
    told = story(order)
    group = told.group
    if order in ROLES:
        return told.late
    for wire in told.late:
        group.receive(wire, now=START_S + 14.0)
    group.tick(START_S + 60.0)
    how: dict[str, Any] = {"topics": ("news",)} if order in TOPICS else {}
    found = [*told.late, *(packet.wire for packet in group.take_control_packets())]
    return found + [packet.wire for packet in group.send_packets(b"x", now=START_S + 61.0, **how)]


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
    alice, bob = (Group.from_protocol(Broken(k, names), names, order="mine") for k in range(2))
    wire = alice.send(b"x")
    with pytest.raises(AttributeError, match="no_such_field"):
        bob.inspect(wire)


def test_a_protocol_that_names_no_causes_says_so_by_leaving_them_out() -> None:
    group = role("p1")
    assert not group._state.names_causes
    assert Group("a")._state.names_causes


# -- names, numbers and whose fault it is ------------------------------------------------------


@pytest.mark.parametrize("order", ["causal", "bss", "ds", "matrix", "ses", "sent", "tv-vt"])
def test_who_was_begun_again_without_its_state_is_told_so_itself(order: str) -> None:
    options: dict[str, Any] = {}
    how: dict[str, Any] = {}
    if order == "tv-vt":
        topics = Subscriptions(dict.fromkeys(("alice", "bob"), ("x",)))
        options = {"bounds": Bounds(accuracy_s=1, least_s=1, most_s=2), "subscriptions": topics}
        how = {"topics": ["x"]}
    alice, bob = (
        Group(name, ("alice", "bob"), order=order, incarnation=1, **options)
        for name in ("alice", "bob")
    )
    for number in range(2):
        bob.receive(alice.send(b"x", now=number, **how), now=number)
    answer = bob.send(b"answer", now=5, **how)
    again = Group("alice", ("alice", "bob"), order=order, incarnation=1, **options)
    with pytest.raises(
        SequenceError, match=r"'alice', but this member has sent .*0.*: its state is stale"
    ):
        again.receive(answer, now=6)


def test_errors_name_all_members_that_they_speak_of() -> None:
    names = ("alice", "bob", "carol")
    group = Group("alice", names, order="ses")
    group.leave("bob", 0)
    with pytest.raises(LocalError, match=r"'bob' is not another member; the others are 'carol'$"):
        group.send(b"x", to=["bob"])
    with pytest.raises(LocalError, match="cannot order 'alice' and 'bob'"):
        Group("alice", names, order="physical", bounds=Bounds(accuracy_s=1, least_s=1, most_s=2))


def test_reasons_name_members() -> None:
    names = ("alice", "bob", "carol")
    alice, bob, carol = (
        Group(name, names, order="reply", missing_parent="set_aside", patience_s=1)
        for name in names
    )
    (question,) = bob.receive(alice.send(b"question", now=0), now=0)
    answer = bob.send(b"answer", reply_to=question, now=0)
    (read,) = alice.receive(answer, now=0)
    for wire in (answer, alice.send(b"thanks", reply_to=read, now=0)):
        carol.receive(wire, now=0)
    carol.tick(now=10)
    (reason,) = [effect.reason for effect in carol.effects() if "reply to" in effect.reason]
    assert reason == "dropped: reply to message 1 of 'bob', which was dropped"
    assert reason in carol.stats().discarded


def test_a_number_that_is_too_large_is_told_the_largest() -> None:
    group = Group("alice", ("alice", "bob"))
    with pytest.raises(LocalError, match=f"0 to {2**63 - 1} .see last"):
        group.leave("bob", 2**63)
    with pytest.raises(LocalError, match=f"an integer from 0 to {2**63 - 1}"):
        group.start_from({"bob": 2**63})


@pytest.mark.parametrize("last", [True, None, -1])
def test_what_is_no_number_of_a_last_message_is_refused(last: Any) -> None:
    group = Group("alice", ("alice", "bob"))
    with (
        unchanged(group),
        pytest.raises(LocalError, match="expected its last sequence number"),
    ):
        group.leave("bob", last)


def test_a_thread_tells_what_was_forgotten_from_what_never_came() -> None:
    names = ("alice", "bob", "carol")
    alice, bob, _ = (Group(name, names, order="reply", threads=2) for name in names)
    question = alice.send(b"question")
    (read,) = bob.receive(question)
    for number in range(2):
        alice.receive(bob.send(b"%d" % number, reply_to=read))
    assert str(alice.thread(question)).splitlines()[0] == ("alice's message 1 (no longer kept)")
    assert alice.thread(question).is_forgotten
    carol = Group("carol", names, order="reply", missing_parent="release", patience_s=1)
    carol.receive(bob.send(b"2", reply_to=read, now=0), now=0)
    carol.tick(now=5)
    assert str(carol.thread(("alice", 1))).splitlines()[0] == "alice's message 1 (unknown)"


def test_a_clock_that_was_ahead_is_told_from_when_on_it_goes_on() -> None:
    bounds: Bounds[str] = Bounds(accuracy_s=0.005, least_s=0.05, most_s=0.2)
    group = Group("alice", ("alice", "bob"), order="physical", bounds=bounds)
    group.send(b"ahead", now=86_400)
    with pytest.raises(LocalError, match=r"if it was ahead before, .* wait until it shows 86400 s"):
        group.tick(now=10)
