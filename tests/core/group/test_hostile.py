"""Messages to a `Group` that no member encodes: costly or harmful names, numbers and states."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede import Group
from antecede.core.clocks.encoding import counters
from antecede.core.clocks.encoding.wire import varint
from antecede.core.clocks.lanes import pack
from antecede.core.group.frames import format as frame
from antecede.core.protocols.base import Transmit
from antecede.core.protocols.multicast.base import AddressedProtocol
from antecede.core.protocols.multicast.rst import Rst
from antecede.core.protocols.serialization.codec import pack_state, unpack_state
from antecede.core.protocols.vector.base import CountingProtocol
from antecede.core.protocols.vector.bss import Bss
from antecede.core.protocols.vector.ds import DsMessage
from antecede.core.protocols.vector.idr import Idr
from antecede.errors import (
    DecodeError,
    LimitError,
    LocalError,
    RemoteError,
    SequenceError,
    UnknownMemberError,
)
from tests.helpers.stored_groups import forged_frame, forged_invitation

ORDERS = ["causal", "bss", "ds", "fifo", "none", "reply", "ses", "sent"]
every = pytest.mark.parametrize("order", ORDERS)


def state(group: Group) -> tuple[Any, ...]:
    return unpack_state(group.snapshot(), 10)


def of_sent(members: int) -> bytes:
    """Return a message without receivers whose control information mentions this many members."""
    sender = Rst(0, range(members))
    sender.send(b"x")
    (effect,) = sender.send(b"y", to=[1])
    assert isinstance(effect, Transmit)
    message = effect.message._replace(to=())
    names = {k: f"n{k}" for k in range(members)}
    return forged_frame(Group("x", order="sent"), sender.encode(message), b"y", names)


@every
def test_names_of_whom_nothing_is_said_are_refused(order: str) -> None:
    alice, bob = Group("alice", order=order), Group("bob", order=order)
    honest = alice.send(b"x")
    parts = frame.unpack(alice.order, honest)
    names = {**parts.names, 7: "ghost"}
    before = state(bob)
    with pytest.raises(DecodeError, match="'ghost', which is not mentioned"):
        bob.receive(forged_frame(bob, parts.control, b"x", names))
    assert state(bob) == before
    bob.receive(honest)
    assert set(bob.members) == {"alice", "bob"}


def test_more_names_than_the_protocol_has_numbers_for_are_refused_whole() -> None:
    group = Group("me", order="sent", max_members=5000)
    before = state(group)
    with pytest.raises(UnknownMemberError, match="1023"):
        group.receive(of_sent(Rst.highest + 1))
    assert state(group) == before
    group.receive(of_sent(9))
    assert len(group.members) == 10


@pytest.mark.parametrize(
    ("order", "base", "method"),
    [("sent", AddressedProtocol, "lay_out"), ("ds", CountingProtocol, "_lay_out")],
)
def test_members_that_one_message_names_are_laid_out_once(
    order: str, base: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = Group("me", order=order)
    if order == "sent":
        wire = of_sent(40)
    else:
        message = DsMessage(0, 1, b"x", pack((k, 1) for k in range(1, 40)))
        control = group._state.protocol.encode(message)
        wire = forged_frame(group, control, b"x", {k: f"n{k}" for k in range(40)})
    calls = []
    cls = type(group._state.protocol)
    original = getattr(cls, method)

    def counted(self: Any) -> None:
        calls.append(1)
        original(self)

    monkeypatch.setattr(cls, method, counted)
    group.receive(wire)
    assert len(group.members) == 41
    assert len(calls) == 1
    assert issubclass(cls, base)


def test_a_leave_that_cannot_be_lets_nobody_in() -> None:
    group = Group("me", order="sent")
    before = state(group)
    with pytest.raises(LocalError):
        group.leave("ghost", -1)
    assert state(group) == before


@pytest.mark.parametrize("order", ["ses", "sent"])
def test_an_empty_list_of_receivers_is_not_everybody(order: str) -> None:
    group = Group("alice", ["alice", "bob"], order=order)
    before = state(group)
    with pytest.raises(LocalError, match="to= is empty"):
        group.send(b"secret", to=[])
    assert state(group) == before


@pytest.mark.parametrize(
    ("order", "frontier"),
    [
        ("ses", ((0, 10**7), (), 0, ())),
        ("ses", ((0, -1), (), 0, ())),
        ("ses", ((0, 1), ((1, 3),), 0, ())),
        ("ses", ((0, 1), ((7, 3),), 0, ())),
        ("ses", ((0, 1), (), -1, ())),
        ("ses", ((0, 1), (), 1 << 39, ())),
        ("ses", ((0, 1), (), 1 << 90, ())),
        ("ses", ((0, 1), (), 1, ((0, 2),))),
        ("ses", ((0, 1), (), 1, ((7, 1),))),
        ("sent", ((0, 10**4), (), 0)),
        ("sent", ((0, 1), (), (1 << 39,))),
        ("sent", ((0, 1), (), (-1,))),
        ("sent", ((0, 1), (), (1 << 200,))),
        ("sent", ((0, 1), (), (0, 0, 1))),
        ("ds", (((0, 1), (10**9, 1)), ())),
    ],
)
def test_an_invitation_with_numbers_that_cannot_be_is_refused(order: str, frontier: object) -> None:
    forged = forged_invitation(order, frontier)
    with pytest.raises(DecodeError, match=r"invalid join state|does not match"):
        Group.accept("dave", forged)


@every
@pytest.mark.parametrize("inner", [None, 5, (), ((), ()), ("x", "y", "z")])
def test_a_snapshot_whose_state_is_of_something_else_is_refused(order: str, inner: object) -> None:
    group = Group("alice", ["alice", "bob"], order=order)
    group.send(b"x")
    before = state(group)
    with pytest.raises(DecodeError, match="does not match"):
        group.restore(pack_state((*before[:9], inner)))
    assert state(group) == before


def test_a_high_number_in_an_open_group_is_refused() -> None:
    control = varint(0) + varint(1) + counters.encode([65_535], [1])
    me = Group("me", order="ds")
    with pytest.raises(RemoteError, match="65535 without a name"):
        me.receive(forged_frame(me, control, b"", {0: "a"}))


@every
def test_a_refused_message_that_names_newcomers_lets_nobody_in(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob, carol = (Group(name, order=order) for name in ("alice", "bob", "carol"))
    bob.receive(alice.send(b"x"))
    before, members = bob.snapshot(), bob.members

    def refuse(self: Any, message: Any, **how: Any) -> Any:
        raise SequenceError("as if it could not be")

    wire = carol.send(b"y")
    monkeypatch.setattr(type(bob._state.protocol), "receive", refuse)
    with pytest.raises(SequenceError):
        bob.receive(wire)
    assert (bob.snapshot(), bob.members) == (before, members)
    monkeypatch.undo()
    bob.receive(wire)
    assert "carol" in bob.members


@pytest.mark.parametrize("cls", [Idr, Bss])
@given(members=st.lists(st.integers(1, 40), unique=True, max_size=12), data=st.data())
def test_members_that_join_one_by_one_lay_out_as_all_at_once(
    cls: type[CountingProtocol], members: list[int], data: st.DataObject
) -> None:
    one, other = cls(0, [0]), cls(0, [0, *members])
    while members:
        some = members[: data.draw(st.integers(1, len(members)))]
        members = members[len(some) :]
        one.join_all(some)
        if data.draw(st.booleans()):
            one.unjoin(some)
            one.join_all(some)
    assert vars(one) == vars(other)


@pytest.mark.parametrize("members", [None, ("alice", "bob")], ids=["open", "closed"])
def test_lives_of_strangers_are_bounded(members: tuple[str, ...] | None) -> None:
    limit: Any = {} if members else {"max_members": 20}  # a closed list is its own limit
    alice, bob = Group("alice", members), Group("bob", members, **limit)
    told = tuple((f"ghost{k:04}", frame.Incarnation(1, 7)) for k in range(50))
    parts = frame.unpack(alice.order, alice.send(b"x"))
    before = bob.snapshot()
    with pytest.raises(
        UnknownMemberError if members else LimitError,
        match=r"reports (an incarnation|incarnations) of",
    ):
        bob.receive(frame.pack(parts._replace(known=told)))
    assert bob.snapshot() == before
    assert bob.receive(frame.pack(parts))


def test_two_lives_of_one_generation_in_one_frame_are_refused() -> None:
    names = ("alice", "bob", "carol")
    alice, bob = Group("alice", names), Group("bob", names)
    parts = frame.unpack(alice.order, alice.send(b"x"))
    told = tuple(("carol", frame.Incarnation(1, nonce)) for nonce in (1, 2))
    with pytest.raises(DecodeError, match="unordered or duplicate"):
        bob.receive(frame.pack(parts._replace(known=told)))


def test_notes_tell_no_lives_that_cannot_be() -> None:
    names = ("alice", "bob", "carol")
    alice, bob = (Group(name, names, order="matrix", recovering=True) for name in names[:2])
    alice.tick(60)
    (note,) = (packet.wire for packet in alice.take_control_packets())
    told = (("ghost", frame.Incarnation(1, 7)),)
    parts = frame.unpack(alice.order, note)._replace(known=told)
    with pytest.raises(UnknownMemberError, match="unknown member 'ghost'"):
        bob.receive(frame.pack(parts), now=0)


@pytest.mark.parametrize("wrong", [None, 5, "x", ["a"]])
def test_what_is_not_bytes_is_no_message(wrong: Any) -> None:
    with pytest.raises(DecodeError, match="expected bytes"):
        Group("alice").receive(wrong)
