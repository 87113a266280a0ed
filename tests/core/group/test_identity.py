"""Errors for other rooms, options, member lists, joins and incarnations."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede import Group
from antecede.core.clocks.bounds import Bounds
from antecede.core.group.frames.format import measure_parts
from antecede.core.group.message import Message
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import (
    ConflictError,
    DecodeError,
    IncarnationError,
    LocalError,
    MismatchError,
    SequenceError,
)
from tests.helpers.stored_groups import forged_frame

NAMES = ("alice", "bob", "carol")
BOUNDS: Bounds[str] = Bounds(accuracy_s=0.1, least_s=0.5, most_s=2.0)


def texts(messages: list[Message]) -> list[bytes]:
    return [message.payload for message in messages]


def refused(one: Group, wire: bytes, words: str, kind: type[Exception] = MismatchError) -> None:
    before = one.snapshot()
    with pytest.raises(kind, match=words):
        one.receive(wire, now_ns=10**9)
    assert one.snapshot() == before, "a refused message changes nothing"


# -- groups ---------------------------------------------------------------------------------


@pytest.mark.parametrize("members", [NAMES, None], ids=["closed", "open"])
def test_another_room_is_refused_by_name(members: tuple[str, ...] | None) -> None:
    bob = Group("bob", members, room="kitchen")
    refused(bob, Group("alice", members, room="cellar").send(b"x"), "another room")
    assert texts(bob.receive(Group("alice", members, room="kitchen").send(b"x"))) == [b"x"]


def test_members_made_with_other_lists_are_refused_by_name() -> None:
    two, three = ["alice", "bob"], ["alice", "bob", "zoe"]
    bob = Group("bob", three)
    refused(bob, Group("alice", two).send(b"x"), "another member list.*alice, bob, zoe")
    refused(Group("alice", two), Group("zoe", three).send(b"x"), "another member list")


@pytest.mark.parametrize(
    ("order", "ours", "theirs"),
    [
        ("bss", {"differences": True}, {}),
        ("sb", {"several_parents": True}, {}),
        ("linear", {"bounds": BOUNDS}, {"bounds": Bounds(accuracy_s=0.1, most_s=3.0)}),
        ("linear", {"bounds": BOUNDS}, {"bounds": BOUNDS, "heartbeat_s": 2.0}),
        ("ses", {"as_published": True}, {}),
    ],
)
def test_other_options_are_refused_by_name(order: str, ours: dict, theirs: dict) -> None:  # type: ignore[type-arg]
    alice, bob = (
        Group("alice", NAMES, order=order, **theirs),
        Group("bob", NAMES, order=order, **ours),
    )
    refused(bob, alice.send(b"x", now=5.0), f"a group of {order} with other options")


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (
            {"bounds": Bounds(accuracy_s=0.1, least_s=0.5, most_s=2.0, clocks={"bob": 0.2})},
            "bounds",
        ),
        (
            {"subscriptions": Subscriptions({"alice": ("news",), "carol": ("news",)})},
            "subscriptions",
        ),
    ],
)
def test_other_bounds_and_subscriptions_of_members_are_refused(theirs: dict, words: str) -> None:  # type: ignore[type-arg]
    common: dict[str, Any] = {
        "bounds": BOUNDS,
        "subscriptions": Subscriptions(dict.fromkeys(NAMES, ("news",))),
    }
    bob, carol = (Group(name, NAMES, order="htbc", **common) for name in ("bob", "carol"))
    alice = Group("alice", NAMES, order="htbc", **{**common, **theirs})
    one = carol if words == "subscriptions" else bob
    (packet,) = alice.send_packets(b"x", topics=["news"], now=5.0)
    refused(one, packet.wire, f"other.*{words}")


def test_options_that_each_may_choose_need_not_agree() -> None:
    alice = Group("alice", NAMES, order="reply")
    bob = Group("bob", NAMES, order="reply", store_limit=5)
    assert texts(bob.receive(alice.send(b"x"))) == [b"x"]


def test_defaults_that_are_written_out_agree_with_defaults() -> None:
    alice, bob = (
        Group("alice", NAMES, order="bss"),
        Group("bob", NAMES, order="bss", differences=False),
    )
    assert texts(bob.receive(alice.send(b"x"))) == [b"x"]


def test_two_sponsors_at_once_are_refused_by_name() -> None:
    alice, bob, carol = (Group(name, NAMES) for name in NAMES)
    dave = Group.accept("dave", alice.invite("dave"))
    erin = Group.accept("erin", bob.invite("erin"))
    carol.join("dave")
    assert texts(carol.receive(dave.send(b"I am dave"))) == [b"I am dave"]
    refused(carol, erin.send(b"I am erin"), "other joins.*'dave'.*two sponsors")
    refused(carol, bob.send(b"from bob"), "two sponsors")
    refused(erin, alice.send(b"x"), "two sponsors")


def test_a_frame_of_a_later_view_waits_for_the_join() -> None:
    alice, bob, carol = (Group(name, NAMES) for name in NAMES)
    dave = Group.accept("dave", alice.invite("dave"))
    bob.join("dave")
    hello = dave.send(b"hello")
    bob.receive(hello)
    answer = bob.send(b"welcome")
    assert carol.receive(answer) == []
    assert carol.receive(hello) == []
    assert carol.receive(hello) == [], "a copy"
    assert carol.stats().ahead == 2
    assert [str(blocked) for blocked in carol.list_held()] == [
        "bob's message 1 waits for 1 join(s) that were not reported here",
        "#3's message 1 waits for 1 join(s) that were not reported here",
    ]
    again = Group("carol", NAMES)
    again.restore(carol.snapshot(), resume=True)
    for one in (carol, again):
        assert texts(one.join("dave")) == [b"hello", b"welcome"]
        assert one.list_held() == []


def test_frames_of_an_earlier_view_are_taken() -> None:
    alice, bob, _ = (Group(name, NAMES) for name in NAMES)
    early = bob.send(b"early")
    alice.invite("dave")
    assert texts(alice.receive(early)) == [b"early"]


def test_a_newcomer_gives_the_options_of_the_group() -> None:
    alice = Group("alice", NAMES, order="bss", differences=True, room="kitchen")
    invitation = alice.invite("dave")
    with pytest.raises(MismatchError, match="other options"):
        Group.accept("dave", invitation)
    with pytest.raises(MismatchError, match="another room"):
        Group.accept("dave", invitation, differences=True, room="cellar")
    dave = Group.accept("dave", invitation, differences=True)
    assert texts(dave.receive(alice.send(b"x"))) == [b"x"], "in the room of the invitation"


# -- lives ----------------------------------------------------------------------------------


def restored(state: bytes, name: str = "alice", **how: object) -> Group:
    group = Group(name, NAMES, **how)  # type: ignore[arg-type]
    group.restore(state)
    return group


def test_a_member_that_was_restored_goes_on() -> None:
    alice, bob, carol = (Group(name, NAMES) for name in NAMES)
    bob.receive(alice.send(b"1"))
    again = restored(alice.snapshot())
    second = again.send(b"2")
    assert second.seq == 2
    assert texts(bob.receive(second)) == [b"2"]
    answer = bob.send(b"answer")
    assert carol.receive(answer) == []
    assert carol.list_missing()[0].sender == "alice"


def test_a_stale_snapshot_is_refused_by_name_and_not_swallowed() -> None:
    alice, bob, _ = (Group(name, NAMES) for name in NAMES)
    bob.receive(alice.send(b"1"))
    stale = alice.snapshot()
    bob.receive(alice.send(b"2"))
    again = restored(stale)
    words = "alice was restored from a snapshot that is too old: it restarts with message 2"
    refused(bob, again.send(b"other"), words, IncarnationError)
    refused(bob, again.send(b"and more"), words, IncarnationError)


def test_a_member_without_its_state_is_refused_by_name() -> None:
    alice, bob, _ = (Group(name, NAMES) for name in NAMES)
    bob.receive(alice.send(b"1"))
    refused(bob, Group("alice", NAMES).send(b"x"), "started without its state", IncarnationError)


def test_of_two_restored_from_one_snapshot_the_second_is_refused() -> None:
    alice, bob, _ = (Group(name, NAMES) for name in NAMES)
    bob.receive(alice.send(b"1"))
    state = alice.snapshot()
    one, two = restored(state), restored(state)
    assert texts(bob.receive(one.send(b"one"))) == [b"one"]
    refused(bob, two.send(b"two"), "restored twice from one snapshot", IncarnationError)


def test_a_message_of_a_life_that_is_over_is_refused() -> None:
    alice, bob, _ = (Group(name, NAMES) for name in NAMES)
    bob.receive(alice.send(b"1"))
    stale = alice.snapshot()
    lost = alice.send(b"lost")
    again = restored(stale)
    assert texts(bob.receive(again.send(b"new"))) == [b"new"]
    refused(bob, lost, "message 2 of alice is superseded", IncarnationError)


def test_late_copies_of_an_older_life_are_duplicates_or_delivered() -> None:
    alice, bob, _ = (Group(name, NAMES) for name in NAMES)
    first = alice.send(b"1")
    again = restored(alice.snapshot())
    second = again.send(b"2")
    assert bob.receive(second) == []
    assert texts(bob.receive(first)) == [b"1", b"2"]
    assert bob.receive(first) == []
    assert bob.stats().duplicates == 1


def test_what_depends_on_a_superseded_message_is_refused() -> None:
    alice, bob, carol = (Group(name, NAMES) for name in NAMES)
    stale = alice.snapshot()
    lost = alice.send(b"lost")
    carol.receive(lost)
    answer = carol.send(b"answers the lost one")
    again = restored(stale)
    assert texts(bob.receive(again.send(b"new"))) == [b"new"]
    refused(bob, answer, "depends on alice's message 1 from before", IncarnationError)
    seen = bob.send(b"answers the new one")
    refused(carol, seen, "bob reports that alice was restored", IncarnationError)


def test_what_is_told_of_a_new_life_refuses_the_old_one() -> None:
    alice, bob, carol = (Group(name, NAMES) for name in NAMES)
    stale = alice.snapshot()
    lost = alice.send(b"lost")
    again = restored(stale)
    new = again.send(b"new")
    bob.receive(new)
    assert carol.receive(bob.send(b"b")) == [], "waits for alice's new message"
    refused(carol, lost, "superseded", IncarnationError)
    assert texts(carol.receive(new)) == [b"new", b"b"]


def test_a_known_number_with_other_content_is_reported() -> None:
    bob = Group("bob", NAMES)
    one, two = (Group("alice", NAMES, incarnation=1) for _ in range(2))
    bob.receive(one.send(b"one"))
    refused(bob, two.send(b"two"), "message 1 of alice is known with other content", ConflictError)
    assert bob.stats().rejected == {"ConflictError": 1}
    assert bob.stats().duplicates == 0


def test_somebody_who_speaks_in_ones_own_name_is_named() -> None:
    alice = Group("alice", NAMES)
    alice.send(b"mine")
    other = Group("alice", NAMES)
    refused(alice, other.send(b"not mine"), "alice was started without", IncarnationError)


def test_a_snapshot_made_with_other_options_or_another_list_is_refused() -> None:
    state = Group("alice", NAMES, order="bss").snapshot()
    with pytest.raises(LocalError, match="with other options"):
        Group("alice", NAMES, order="bss", differences=True).restore(state)
    with pytest.raises(LocalError, match="another member list"):
        Group("alice", ("alice", "bob"), order="bss").restore(state)
    with pytest.raises(LocalError, match="another room"):
        Group("alice", NAMES, order="bss", room="cellar").restore(state)


def test_incarnations_make_bytes_that_are_the_same_every_time() -> None:
    one, two = (Group("alice", NAMES, incarnation=5) for _ in range(2))
    assert one.send(b"x") == two.send(b"x")
    assert Group("alice", NAMES).send(b"x") != Group("alice", NAMES).send(b"x")
    with pytest.raises(LocalError, match="incarnation=-1"):
        Group("alice", NAMES, incarnation=-1)


@pytest.mark.parametrize("members", [NAMES, None], ids=["closed", "open"])
def test_identity_is_no_control_information(members: tuple[str, ...] | None) -> None:
    alice = Group("alice", members)
    wire = alice.send(b"payload")
    counted = measure_parts(wire)
    assert sum(counted) == len(wire)
    assert (counted.control, counted.payload) == (3, 7)
    assert counted.identity <= 20
    envelope = Group("bob", members).inspect(wire)
    assert envelope.control_bytes == 3
    assert envelope.identity_bytes == counted.identity + counted.names


@given(seed=st.integers(0, 10**6))
def test_restarts_at_any_time_never_misattribute_a_message(seed: int) -> None:
    rng = random.Random(seed)
    groups = {name: Group(name, NAMES) for name in NAMES}
    states = {name: [group.snapshot()] for name, group in groups.items()}
    flying: list[tuple[str, bytes]] = []
    causes: dict[bytes, list[bytes]] = {}
    seen: dict[str, list[bytes]] = {name: [] for name in NAMES}
    kept: dict[str, list[list[bytes]]] = {name: [[]] for name in NAMES}
    for k in range(40):
        name = rng.choice(NAMES)
        choice = rng.random()
        if choice < 0.3:
            payload = f"{k} of {name}".encode()
            wire = groups[name].send(payload)
            causes[payload] = list(seen[name])
            seen[name].append(payload)
            flying += [(other, wire) for other in NAMES if other != name]
        elif choice < 0.4:
            states[name].append(groups[name].snapshot())
            kept[name].append(list(seen[name]))
        elif choice < 0.5:
            at = rng.randrange(len(states[name]))
            groups[name] = restored(states[name][at], name)
            seen[name] = list(kept[name][at])
            states[name], kept[name] = states[name][: at + 1], kept[name][: at + 1]
        elif flying:
            to, copy = flying.pop(rng.randrange(len(flying)))
            try:
                got = texts(groups[to].receive(copy))
            except (IncarnationError, ConflictError):
                continue
            for payload in got:
                assert set(causes[payload]) <= set(seen[to]), "its own causes, none other's"
                assert payload not in seen[to]
                seen[to].append(payload)


def test_forged_views_and_lives_are_refused() -> None:
    bob = Group("bob", NAMES)
    wire = bytearray(forged_frame(bob, bytes((0, 1, 0)), b"x"))
    wire[10] ^= 1  # the digest of the list
    refused(bob, bytes(wire), "another member list")


def test_a_head_that_was_read_before_is_read_alike() -> None:
    alice, bob, fresh = (Group(name, NAMES) for name in NAMES)
    one, two, long = (alice.send(payload) for payload in (b"1", b"2", b"3" * 300))
    bob.receive(one)
    assert [bob.inspect(two), bob.inspect(long)] == [fresh.inspect(two), fresh.inspect(long)]
    refused(bob, two[:18] + b"\xff", "truncated", DecodeError)
    assert bob.receive(two)
    assert bob.receive(long)
    assert bob.receive(restored(alice.snapshot()).send(b"4"))  # its head has more
    fresh.receive(one)
    alice.invite("dave")
    refused(fresh, alice.send(b"5")[:18] + b"\xff", "truncated", DecodeError)


def test_a_head_is_judged_anew_when_a_member_joins() -> None:
    alice, bob, _ = (Group(name, NAMES) for name in NAMES)
    bob.receive(alice.send(b"1"))
    alice.invite("dave")
    after = alice.send(b"2")
    assert not bob.receive(after)
    assert bob.stats().ahead == 1
    other = alice.send(b"3")
    assert [one.payload for one in bob.join("dave")] == [b"2"]
    assert [one.payload for one in bob.receive(other)] == [b"3"]


# -- what was under way when a member was restored ------------------------------------------


def reborn(one: Group, snapshot: bytes, log: list[bytes] = []) -> Group:  # noqa: B006
    group = Group(one.name, NAMES, order=one.order, keep_log=True)
    group.restore(snapshot, log)
    return group


@pytest.mark.parametrize("order", ["ses", "sent", "fifo", "total-agreed"])
def test_messages_from_before_a_restart_may_come_after_those_from_after_it(order: str) -> None:
    alice, bob = (Group(name, NAMES, order=order, keep_log=True) for name in NAMES[:2])
    before = [alice.send(bytes([k])) for k in range(3)]
    alice = reborn(alice, alice.snapshot())
    after = alice.send(b"z")
    bob.receive(after)
    for wire in reversed(before):
        bob.receive(wire)
    assert bob.last_seq("alice") == 4
    assert not bob.list_missing() or order == "total-agreed"


@pytest.mark.parametrize("order", ["ses", "sent"])
def test_what_a_receiver_makes_of_a_message_is_judged_by_all_lives(order: str) -> None:
    alice, bob = (Group(name, NAMES, order=order, keep_log=True) for name in NAMES[:2])
    alice = reborn(alice, alice.snapshot())
    first = alice.send(b"1")
    alice = reborn(alice, alice.snapshot())
    second = alice.send(b"2")
    assert texts(bob.receive(first) + bob.receive(second)) == [b"1", b"2"]


def test_places_from_before_a_restart_of_the_sequencer_still_count() -> None:
    alice, bob, carol = (Group(name, NAMES, order="total", keep_log=True) for name in NAMES)
    wire = bob.send(b"x")
    carol.receive(wire)
    alice.receive(wire)
    (placing,) = (packet.wire for packet in alice.take_control_packets())
    alice = reborn(alice, alice.snapshot())
    carol.receive(alice.send(b"y"))  # it overtakes the place of x
    assert texts(carol.receive(placing)) == [b"x", b"y"]


def test_a_sequencer_restored_too_far_back_is_refused_by_name() -> None:
    alice, bob, carol = (Group(name, NAMES, order="total", keep_log=True) for name in NAMES)
    old = alice.snapshot()
    x, y = bob.send(b"x"), carol.send(b"y")
    alice.receive(x)
    bob.receive(alice.take_control_packets()[0].wire)
    bob.receive(y)
    alice = reborn(alice, old)
    alice.receive(y)
    refused(
        bob,
        alice.take_control_packets()[0].wire,
        "assignment of 1 to message 1 of 'carol'",
        SequenceError,
    )
    alice.receive(x)
    refused(
        bob,
        alice.take_control_packets()[0].wire,
        "assignment of 2 to message 1 of 'bob'",
        SequenceError,
    )
