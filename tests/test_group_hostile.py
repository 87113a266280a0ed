"""`Group` against bytes that no member writes: names, numbers and states that make work or harm."""

from __future__ import annotations

from typing import Any

import pytest

from antecede import Group, frame
from antecede.clocks import counters
from antecede.clocks.lanes import pack
from antecede.clocks.wire import varint
from antecede.errors import DecodeError, LocalError, RemoteError, UnknownMemberError
from antecede.protocols.addressed import AddressedProtocol
from antecede.protocols.base import Transmit
from antecede.protocols.counting import CountingProtocol
from antecede.protocols.ds import DsMessage
from antecede.protocols.sent import Sent
from antecede.protocols.storage import pack_state, unpack_state

ORDERS = ["causal", "bss", "ds", "fifo", "none", "reply", "ses", "sent"]
every = pytest.mark.parametrize("order", ORDERS)


def state(group: Group) -> tuple[Any, ...]:
    return unpack_state(group.snapshot(), 7)


def of_sent(members: int) -> bytes:
    """Return a message for nobody whose control information speaks of so many members."""
    sender = Sent(0, range(members))
    sender.send(b"x")
    (effect,) = sender.send(b"y", to=[1])
    assert isinstance(effect, Transmit)
    message = effect.message._replace(to=())
    names = {k: f"n{k}" for k in range(members)}
    return frame.pack("sent", names, sender.encode(message), b"y")


@every
def test_names_of_whom_nothing_is_said_are_refused(order: str) -> None:
    """An encoder writes none; thousands of them would be thousands of members."""
    alice, bob = Group("alice", order=order), Group("bob", order=order)
    honest = alice.send(b"x")
    parts = frame.unpack(alice.order, honest)
    names = {**parts.names, 7: "ghost"}
    before = state(bob)
    with pytest.raises(DecodeError, match="member 7, of whom nothing is said"):
        bob.receive(frame.pack(alice.order, names, parts.control, b"x"))
    assert state(bob) == before
    bob.receive(honest)
    assert set(bob.members) == {"alice", "bob"}


def test_more_names_than_the_protocol_has_numbers_for_are_refused_whole() -> None:
    """SENT has 1,024 rows. The names before the one too many do not stay either."""
    group = Group("me", order="sent")
    before = state(group)
    with pytest.raises(UnknownMemberError, match="1023"):
        group.receive(of_sent(Sent.highest + 1))
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
    """One lay-out is O(n) or O(n^2); with one a name, 10 kB of bytes would take minutes."""
    group = Group("me", order=order)
    if order == "sent":
        wire = of_sent(40)
    else:
        message = DsMessage(0, 1, b"x", pack((k, 1) for k in range(1, 40)))
        control = group._protocol.encode(message)
        wire = frame.pack(order, {k: f"n{k}" for k in range(40)}, control, b"x")
    calls = []
    cls = type(group._protocol)
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
    with pytest.raises(LocalError, match="a message to nobody"):
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
    forged = pack_state((order, False, ((0, "alice"), (1, "dave")), frontier))
    with pytest.raises(DecodeError, match=f"none of {order}"):
        Group.accept("dave", forged)


@every
@pytest.mark.parametrize("inner", [None, 5, (), ((), ()), ("x", "y", "z")])
def test_a_snapshot_whose_state_is_of_something_else_is_refused(order: str, inner: object) -> None:
    group = Group("alice", ["alice", "bob"], order=order)
    group.send(b"x")
    before = state(group)
    with pytest.raises(DecodeError, match="none of"):
        group.restore(pack_state((*before[:6], inner)))
    assert state(group) == before


def test_a_high_number_in_an_open_group_is_refused() -> None:
    control = varint(0) + varint(1) + counters.encode([65_535], [1])
    with pytest.raises(RemoteError, match="65535 without a name"):
        Group("me", order="ds").receive(frame.pack("ds", {0: "a"}, control, b""))
