"""`Group`: bytes and names around every protocol, open and closed, with joins and snapshots."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede import Group
from antecede.core.protocols.serialization.codec import pack_state, unpack_state
from antecede.errors import (
    DecodeError,
    LimitError,
    LocalError,
    MismatchError,
    RemoteError,
    UnknownMemberError,
)
from tests.helpers.stored_groups import forged_frame, forged_invitation
from tests.helpers.unchanged import unchanged

ORDERS = ["causal", "bss", "fifo", "none", "reply"]
CAUSAL = ["causal", "bss", "matrix"]
NAMES = ["alice", "bob", "carol"]


def texts(messages: list) -> list[bytes]:  # type: ignore[type-arg]
    return [message.payload for message in messages]


def closed(order: str, **options: Any) -> list[Group]:
    return [Group(name, NAMES, order=order, **options) for name in NAMES]


@pytest.mark.parametrize("order", CAUSAL)
@pytest.mark.parametrize("members", [NAMES, None], ids=["closed", "open"])
def test_a_reply_waits_for_what_it_answers(order: str, members: list[str] | None) -> None:
    alice, bob, carol = (Group(name, members, order=order) for name in NAMES)
    question = alice.send(b"lunch?")
    assert texts(bob.receive(question)) == [b"lunch?"]
    answer = bob.send(b"yes")
    assert carol.receive(answer) == []
    assert [str(b) for b in carol.list_held()] == ["bob's message 1 waits for alice's message 1"]
    assert texts(carol.receive(question)) == [b"lunch?", b"yes"]
    assert carol.list_held() == []
    assert carol.receive(answer) == [], "a duplicate is dropped"


def test_replies_wait_for_their_parent_only() -> None:
    alice, bob, carol = closed("reply")
    first, second = alice.send(b"chennai?"), alice.send(b"delhi?")
    bob.receive(first)
    (delhi,) = bob.receive(second)
    answer = bob.send(b"yes", reply_to=delhi)
    assert carol.receive(answer) == []
    assert texts(carol.receive(second)) == [b"delhi?", b"yes"], "chennai is not waited for"


@pytest.mark.parametrize("order", ORDERS)
def test_a_snapshot_goes_on_where_it_was(order: str) -> None:
    alice, bob, carol = closed(order)
    wires = [alice.send(b"1"), alice.send(b"2")]
    bob.receive(wires[0])
    carol.receive(wires[1])
    state = carol.snapshot()
    again = Group("carol", NAMES, order=order)
    again.restore(state, resume=True)
    assert again.list_held() == carol.list_held()
    assert again.receive(wires[0]) == carol.receive(wires[0])
    assert again.send(b"x") == carol.send(b"x")


def test_a_snapshot_of_another_order_or_a_forged_one_is_refused() -> None:
    carol = Group("carol", NAMES)
    with pytest.raises(LocalError, match="snapshot is of a fifo group"):
        carol.restore(Group("carol", NAMES, order="fifo").snapshot())
    good = carol.snapshot()
    for bad in (b"", b"nonsense", good[:-1], good[:30] + bytes((good[30] ^ 255,)) + good[31:]):
        with pytest.raises(DecodeError):
            carol.restore(bad)


@pytest.mark.parametrize("order", ORDERS)
def test_a_newcomer_starts_from_its_invitation(order: str) -> None:
    alice, bob, carol = closed(order)
    before = alice.send(b"before")
    bob.receive(before)
    invitation = bob.invite("dave")
    dave = Group.accept("dave", invitation)
    alice.join("dave")
    carol.join("dave")
    assert dave.members == ("alice", "bob", "carol", "dave")
    assert dave.receive(before) == [], "covered by the frontier"
    after = alice.send(b"after")
    assert texts(dave.receive(after)) == [b"after"]
    hello = dave.send(b"hello")
    assert texts(alice.receive(hello)) == [b"hello"]
    if order in CAUSAL:
        assert carol.receive(hello) == [], "dave knows what bob knew, and has read alice's"
        carol.receive(after)
        assert texts(carol.receive(before)) == [b"before", b"after", b"hello"]


@pytest.mark.parametrize("order", ORDERS)
def test_a_member_leaves_after_its_last_message(order: str) -> None:
    alice, _, carol = closed(order)
    last = alice.send(b"bye")
    carol.leave("alice", 1)
    assert texts(carol.receive(last)) == [b"bye"]
    assert carol.members == ("bob", "carol")
    with pytest.raises(RemoteError):
        carol.receive(alice.send(b"ghost"))


def test_an_invitation_is_for_one_newcomer() -> None:
    alice = Group("alice", NAMES)
    invitation = alice.invite("dave")
    with pytest.raises(MismatchError, match="not for 'eve'"):
        Group.accept("eve", invitation)
    with pytest.raises(LocalError, match="use another name"):
        alice.invite("dave")


@pytest.mark.parametrize("order", ORDERS)
def test_a_newcomer_whose_invitation_is_lost_is_invited_again(order: str) -> None:
    alice, bob, carol = closed(order)
    alice.invite("dave")
    erin = Group.accept("erin", alice.invite("erin"))
    for name in ("dave", "erin"):
        bob.join(name)
        carol.join(name)
    early = alice.send(b"early")
    erin.receive(early)
    dave = Group.accept("dave", erin.invite("dave", again=True))
    assert dave.receive(early) == [], "covered by the frontier of erin"
    late = alice.send(b"late")
    assert texts(dave.receive(late)) == [b"late"]
    hello = dave.send(b"hello")
    for group in (alice, bob, carol, erin):
        for wire in (early, late):
            group.receive(wire)
        assert texts(group.receive(hello)) == [b"hello"]
        assert group.members == (*NAMES, "dave", "erin")


def test_only_a_member_that_sent_nothing_is_invited_again() -> None:
    alice, bob, carol = closed("causal")
    with pytest.raises(LocalError, match="dave"):
        alice.invite("dave", again=True)
    alice.invite("dave")
    dave = Group.accept("dave", alice.invite("dave", again=True))
    late = bob.send(b"first")
    dave.receive(late)
    alice.receive(dave.send(b"second"))
    assert alice.list_held(), "the message of dave waits, and is heard all the same"
    carol.leave("bob", 0)
    alice.leave("carol", 0)
    for name, group in (("dave", alice), ("alice", alice), ("carol", alice), ("bob", carol)):
        with pytest.raises(LocalError, match=f"'{name}' again: it has sent"):
            group.invite(name, again=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": ""}, "1 to 255 bytes"),
        ({"name": "x" * 256}, "1 to 255 bytes"),
        ({"name": "dave", "members": NAMES}, "lacks this member"),
        ({"name": "alice", "order": "chronological"}, "unknown order 'chronological'"),
        ({"name": "alice", "order": "hierarchical"}, "several roles"),
    ],
)
def test_a_group_that_cannot_be(arguments: dict, words: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(LocalError, match=words):
        Group(**arguments)


def test_frames_of_other_groups_are_refused() -> None:
    alice, bob, _ = closed("causal")
    with pytest.raises(DecodeError, match="another protocol; this group runs idr"):
        bob.receive(Group("alice", NAMES, order="fifo").send(b"x"))
    with pytest.raises(DecodeError, match="closed, this one is open"):
        Group("bob").receive(alice.send(b"x"))
    with pytest.raises(DecodeError, match="open, this one is closed"):
        bob.receive(Group("alice").send(b"x"))
    with pytest.raises(DecodeError, match="not a message of an antecede group"):
        bob.receive(b"GET / HTTP/1.1")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("members", [NAMES, None], ids=["closed", "open"])
@given(data=st.data())
def test_broken_bytes_raise_a_remote_error_and_change_nothing(
    order: str, members: list[str] | None, data: st.DataObject
) -> None:
    alice, bob = (Group(name, members, order=order) for name in NAMES[:2])
    wire = bytearray(alice.send(b"payload"))
    before = bob.snapshot()
    end = len(wire) - len(b"payload")
    for _ in range(data.draw(st.integers(1, 3))):
        wire[data.draw(st.integers(0, end - 1))] = data.draw(st.integers(0, 255))
    wire = wire[: data.draw(st.integers(0, len(wire)))]
    try:
        bob.receive(bytes(wire))
    except RemoteError:
        assert bob.snapshot() == before


@pytest.mark.parametrize("members", [NAMES, None], ids=["closed", "open"])
@pytest.mark.parametrize("order", CAUSAL)
@given(seed=st.integers(0, 10**6))
def test_every_member_delivers_everything_in_causal_order(
    order: str, members: list[str] | None, seed: int
) -> None:
    rng = random.Random(seed)
    groups = {name: Group(name, members, order=order) for name in NAMES}
    read: dict[str, list[bytes]] = {name: [] for name in NAMES}
    past: dict[bytes, set[bytes]] = {}
    flying: list[tuple[str, bytes]] = []
    for k in range(12):
        sender = rng.choice(NAMES)
        payload = str(k).encode()
        past[payload] = set(read[sender])
        read[sender].append(payload)
        wire = groups[sender].send(payload)
        flying += [(name, wire) for name in NAMES if name != sender for _ in range(2)]
        rng.shuffle(flying)
        for name, copy in flying[: rng.randrange(6)]:
            read[name] += texts(groups[name].receive(copy))
            flying.remove((name, copy))
    for name, copy in flying:
        read[name] += texts(groups[name].receive(copy))
    for name in NAMES:
        assert sorted(read[name]) == sorted(past), "everything, once"
        for position, payload in enumerate(read[name]):
            assert past[payload] <= set(read[name][:position])


def test_an_open_group_has_a_bound() -> None:
    bob = Group("bob", max_members=2)
    bob.receive(Group("alice").send(b"x"))
    before = bob.snapshot()
    with pytest.raises(LimitError, match="'carol' would be member 3; the limit is max_members=2"):
        bob.receive(Group("carol").send(b"x"))
    assert set(bob.members) == {"alice", "bob"}
    assert bob.snapshot() == before
    assert bob.stats().rejected == {"LimitError": 1}


def test_inspect_names_sender_and_causes() -> None:
    alice, bob, carol = closed("causal")
    bob.receive(alice.send(b"q"))
    bob.send(b"first")
    envelope = carol.inspect(bob.send(b"second"))
    assert (envelope.sender, envelope.seq, envelope.payload) == ("bob", 2, b"second")
    assert envelope.causes == (("bob", 1),), "alice's message is implied by bob's first"


@pytest.mark.parametrize("order", ORDERS)
def test_a_payload_that_is_not_bytes_uses_up_no_number(order: str) -> None:
    alice, bob, _ = closed(order)
    with pytest.raises(LocalError, match="payload is str; encode it"):
        alice.send("hi")  # type: ignore[arg-type]
    wire = alice.send(memoryview(b"hi"))  # type: ignore[arg-type]
    (message,) = bob.receive(wire)
    assert (message.seq, message.payload) == (1, b"hi")


def test_inspect_reads_the_names_of_an_open_group() -> None:
    alice, bob, carol = (Group(name) for name in NAMES)
    bob.receive(alice.send(b"q"))
    envelope = carol.inspect(bob.send(b"a"))
    assert (envelope.sender, envelope.causes) == ("bob", (("alice", 1),))
    assert carol.members == ("carol",), "nobody was met"


def test_inspect_refuses_strangers() -> None:
    bob = Group("bob", NAMES)
    with pytest.raises(UnknownMemberError, match="member 77"):
        bob.inspect(forged_frame(bob, bytes((77, 1, 0)), b"x"))


@pytest.mark.parametrize("order", ORDERS)
def test_a_snapshot_of_another_member_is_refused(order: str) -> None:
    _, bob, carol = closed(order)
    with (
        unchanged(bob),
        pytest.raises(LocalError, match="snapshot is of 'carol'; this is the group of 'bob'"),
    ):
        bob.restore(carol.snapshot())


@pytest.mark.parametrize("order", ORDERS)
def test_a_snapshot_brings_back_who_joined_and_left(order: str) -> None:
    alice, bob, _ = closed(order)
    dave = Group.accept("dave", bob.invite("dave"))
    bob.leave("carol", 0)
    again = Group("bob", NAMES, order=order)
    again.restore(bob.snapshot())
    assert again.members == ("alice", "bob", "dave")
    assert texts(again.receive(dave.send(b"hello"))) == [b"hello"]
    assert texts(again.receive(alice.send(b"hi"))) == [b"hi"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("frontier", [None, 5, ("x",), ((("x",),), ()), (((9, 1),), ((), 3))])
def test_a_forged_invitation_is_refused(order: str, frontier: object) -> None:
    with pytest.raises(RemoteError):
        Group.accept("dave", forged_invitation(order, frontier))
    honest = unpack_state(Group("alice", ["alice"], order=order).invite("dave"), 4)
    with pytest.raises(DecodeError, match="stored member table"):
        Group.accept("dave", pack_state((honest[0], 5, *honest[2:])))


@pytest.mark.parametrize("order", ORDERS)
def test_a_member_of_an_open_group_leaves_before_it_was_heard(order: str) -> None:
    alice, bob = Group("alice", order=order), Group("bob", order=order)
    first, ghost = alice.send(b"bye"), alice.send(b"ghost")
    bob.leave("alice", 1)
    assert bob.members == ("bob",)
    with pytest.raises(RemoteError):
        bob.receive(ghost)
    assert texts(bob.receive(first)) == [b"bye"]


@pytest.mark.parametrize("order", ["bss", "fifo"])
def test_an_invitation_names_every_member_of_its_frontier(order: str) -> None:
    frontier = ((0, 1), (9, 1)), ()
    with pytest.raises(DecodeError, match="has no name"):
        Group.accept("dave", forged_invitation(order, frontier))
