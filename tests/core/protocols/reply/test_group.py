"""S_b: joins and leaves, snapshots, encoding, sizes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede import Group
from antecede.core.clocks.intervals import MAX_NUMBER
from antecede.core.protocols.base import MessageId, Transmit
from antecede.core.protocols.reply.messages import SbMessage, decode, encode
from antecede.core.protocols.reply.sb import SemanticOrder
from antecede.core.protocols.serialization.codec import pack_state, unpack_state
from antecede.errors import DecodeError, LocalError, RemoteError, SequenceError
from tests.core.protocols.reply.tools import NAMES, mid, msg, said
from tests.core.protocols.seconds import s
from tests.helpers.unchanged import unchanged

# -- joins and leaves ------------------------------------------------------------------------


def test_a_newcomer_begins_from_its_sponsors_ordering_lists() -> None:
    sponsor = SemanticOrder(0, (0, 1))
    for message in (msg("B1"), msg("B3"), msg("B5", "B4")):
        sponsor.receive(message)
    sponsor.send("A1")
    newcomer = SemanticOrder(2, (0, 1, 2))
    newcomer.install_join_state(sponsor.join_state())
    sponsor.join(2)
    assert newcomer.members == (0, 1, 2)
    assert newcomer.describe(NAMES)["OL"] == "A1 B1 B3"
    assert said(newcomer.receive(msg("B3"))) == ["discard B3: duplicate"]
    assert said(newcomer.receive(msg("B5", "B4"))) == ["hold B5 for B4"], "the transport owes it"
    assert said(newcomer.receive(msg("B4", "B3"))) == ["deliver B4", "deliver B5"]
    (effect,) = newcomer.send("C1", after=(mid("A1"),))
    assert isinstance(effect, Transmit)
    assert effect.to == (0, 1)
    assert said(sponsor.receive(effect.message)) == ["deliver C1"]
    (effect,) = sponsor.send("A2", after=(mid("C1"),))
    assert isinstance(effect, Transmit)
    assert effect.to == (1, 2)


@pytest.mark.parametrize(
    "frontier",
    [
        None,
        ((0, (1, 2)),),
        ((0, (1,), -1),),
        ((0, (3, 2), -1),),
        ((0, (0, 2), -1),),
        ((0, (1.5, 2.5), -1),),
        ((0, (1, MAX_NUMBER + 2), -1),),
        (("0", (), -1),),
        ((0, (), None),),
        ((0, (), -2),),
    ],
)
def test_a_bad_frontier_is_refused_and_changes_nothing(frontier: object) -> None:
    a = SemanticOrder(0, (0, 1))
    with unchanged(a), pytest.raises(RemoteError, match="join state"):
        a.install_join_state(frontier)


def test_answers_to_a_member_that_left_still_count() -> None:
    a = SemanticOrder(0, range(3))
    a.receive(msg("B1"))
    a.leave(1, 2)
    assert a.members == (0, 2)
    (effect,) = a.send("A1", after=(mid("B1"),))
    assert isinstance(effect, Transmit)
    assert effect.to == (2,)
    assert said(a.receive(msg("C1", "B2"))) == ["hold C1 for B2"]
    assert said(a.receive(msg("B2", "B1"))) == ["deliver B2", "deliver C1"]
    for impossible in (msg("B3"), msg("C2", "B3")):
        with pytest.raises(SequenceError, match="who left after message 2"):
            a.receive(impossible)
    newcomer = SemanticOrder(3, range(4))
    newcomer.install_join_state(a.join_state())
    assert newcomer.members == (0, 2, 3)
    with pytest.raises(SequenceError, match="who left"):
        newcomer.receive(msg("B3"))
    assert said(newcomer.receive(msg("C2", "B1"))) == ["deliver C2"]


# -- snapshots -------------------------------------------------------------------------------


def busy() -> SemanticOrder:
    a = SemanticOrder(0, range(4), several_parents=True, missing_parent="set_aside", patience_s=5.0)
    a.receive(msg("B2", "B1"), now=s(0.0))
    a.tick(s(5.0))
    a.receive(msg("C2", "B4", "C1"), now=s(6.0))
    a.receive(msg("B5", "C2"), now=s(7.0))
    a.receive(msg("B4"), now=s(7.0))
    a.receive(msg("B5"), now=s(7.0))
    a.leave(3, 0)
    a.send("A1", after=(mid("B4"),))
    return a


def test_a_snapshot_is_the_whole_state() -> None:
    a = busy()
    state = a.snapshot()
    hash(state)
    other = SemanticOrder(0, range(9))
    (stored,) = unpack_state(pack_state((state,)), 1)
    other.restore(stored)
    assert other.snapshot() == state
    assert other.guarantee == a.guarantee
    assert other.members == a.members
    assert other.counts == {"conflict": 1, "refused": 0, "released": 0, "set_aside": 1}
    for member in (a, other):
        assert said(member.receive(msg("C1"), now=s(7))) == [
            "deliver C1",
            "deliver C2",
            "deliver B5",
        ]
        assert said(member.receive(msg("C3", "B2"), now=s(7))) == [
            "discard C3: dropped: reply to message 2 of member 1, which was dropped"
        ]
    assert other.snapshot() == a.snapshot() != state


def test_a_restored_member_shares_nothing_with_the_first() -> None:
    a, other = busy(), SemanticOrder(0, (0, 1))
    state = a.snapshot()
    other.restore(state)
    other.receive(msg("C1"), now=s(7))
    other.join(9)
    assert a.snapshot() == state


# -- bytes -----------------------------------------------------------------------------------

numbers = st.integers(min_value=0, max_value=(1 << 64) - 1)
ids = st.builds(MessageId, numbers, numbers)
messages = st.builds(SbMessage, numbers, numbers, st.lists(ids, max_size=4).map(tuple), st.none())


@given(messages)
def test_encoding_goes_both_ways(message: SbMessage) -> None:
    assert decode(encode(message), None) == message


@given(st.binary(max_size=40))
def test_any_bytes_decode_exactly_or_raise(control: bytes) -> None:
    try:
        message = decode(control, None)
    except DecodeError:
        return
    assert encode(message) == control
    assert all(type(parent) is MessageId for parent in message.parents)


@given(st.binary(max_size=40))
def test_decoded_bytes_are_taken_in_or_refused_whole(control: bytes) -> None:
    a = SemanticOrder(0, range(3), several_parents=True)
    a.receive(msg("B2", "B1"))
    before = a.snapshot()
    try:
        a.receive(a.decode(control, "x"))
    except RemoteError:
        assert a.snapshot() == before


def test_bytes_left_over_are_not_ignored() -> None:
    with pytest.raises(DecodeError, match="1 bytes after the end"):
        decode(encode(msg("B2", "B1")) + b"\x00", None)


def test_announced_parents_do_not_cost_memory() -> None:
    with pytest.raises(DecodeError, match="parents at byte"):
        decode(b"\x01\x01" + b"\xff" * 8 + b"\x01", None)


def test_sizes_in_both_accountings() -> None:
    a = SemanticOrder(0, range(3), several_parents=True)
    for message, source, wire in (
        (msg("B1"), 16, 3),
        (msg("B2", "B1"), 16, 5),
        (msg("B3", "B1", "C1"), 24, 7),
    ):
        assert a.control_bytes(message) == source
        assert len(a.encode(message)) == wire


def test_open_groups_renumber_every_id() -> None:
    a = SemanticOrder(0, range(3))
    message = msg("B3", "C1")
    assert a.mentions(message) == (1, 2)
    assert a.renumber(message, {1: 7, 2: 0}) == SbMessage(7, 3, (MessageId(0, 1),), "B3")


def _three(**options: Any) -> tuple[Group, Group, Group]:
    names = ["alice", "bob", "carol"]
    groups = (Group(name, names, order="reply", keep_log=True, **options) for name in names)
    alice, bob, carol = groups
    return alice, bob, carol


def test_what_never_comes_releases_what_waits_for_it_alone() -> None:
    alice, bob, carol = _three(several_parents=True)
    one, two = alice.send(b"one"), alice.send(b"two")
    (got_one,), (got_two,) = bob.receive(one), bob.receive(two)
    to_one = bob.send(b"to one", reply_to=got_one)
    to_both = bob.send(b"to both", reply_to=[got_one, got_two])
    below = bob.send(b"below", reply_to=to_one)
    for wire in (below, to_both, to_one):
        assert carol.receive(wire) == []
    assert carol.declare_lost([("alice", 5)]) == []
    first, second = carol.declare_lost([one.id])
    assert (first.payload, first.missing, first.reply_to) == (b"to one", (one.id,), (one.id,))
    assert (second.payload, second.missing) == (b"below", ())
    assert carol.stats().released == 1
    assert [effect.kind for effect in carol.effects()] == ["delivered_incomplete", "delivered"]
    (held,) = carol.list_held()
    assert held.waits_for == (one.id, two.id)
    assert [m.payload for m in carol.declare_lost([one.id, two.id])] == [b"to both"]
    assert [m.payload for m in carol.receive(one)] == [b"one"], "late, if it comes after all"


def test_a_release_is_in_the_log() -> None:
    alice, bob, carol = _three()
    before = carol.snapshot()
    one = alice.send(b"one")
    carol.receive(bob.send(b"to one", reply_to=bob.receive(one)))
    carol.declare_lost([one.id])
    again = Group("carol", ["alice", "bob", "carol"], order="reply")
    again.restore(before, carol.take_log())
    assert again.frontier() == carol.frontier() == {"alice": (), "bob": ((1, 1),), "carol": ()}
    assert again.stats().released == 1


def test_nothing_else_is_released() -> None:
    with pytest.raises(LocalError, match="Unordered never waits for a message"):
        Group("a", ["a", "b"], order="none").declare_lost([("b", 1)])
    _, _, carol = _three()
    for wrong in (5, [5], "bob", [("nobody", 1)]):
        with pytest.raises(LocalError):
            carol.declare_lost(wrong)  # type: ignore[arg-type]
    assert carol.take_log() == []
