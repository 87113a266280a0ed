"""Total order: one order for all, causality, own messages in turn, rejections, encoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.group.group import Group
from antecede.core.protocols.base import (
    AFTER_LEAVE,
    DUPLICATE,
    OWN,
    Deliver,
    Discard,
    Held,
    Hold,
    MessageId,
    Protocol,
    Transmit,
)
from antecede.core.protocols.total.sequencer import SequenceAssignment, SequencedMessage, Sequencer
from antecede.core.protocols.total.timestamps import (
    MAX_LEAD,
    MAX_PROMISES,
    AgreedTimestamps,
    TimeAcknowledgement,
    TimedMessage,
)
from antecede.errors import LocalError, RemoteError
from tests.helpers.network import play
from tests.helpers.unchanged import unchanged

MAKES: dict[str, Callable[..., Protocol]] = {"total": Sequencer, "total-agreed": AgreedTimestamps}
both = pytest.mark.parametrize("name", MAKES)


@both
@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 5))
def test_all_deliver_everything_in_one_order_that_respects_causality(
    name: str, seed: int, size: int
) -> None:
    network = play(MAKES[name], seed, members=size, copies=0.2, restarts=0.2)
    orders = list(network.truth.delivered.values())
    assert set(orders[0]) == network.truth.past.keys()
    assert all(order == orders[0] for order in orders)


def send_one(member: Protocol, payload: object = b"") -> Any:
    return next(e.message for e in member.send(payload) if isinstance(e, Transmit))


# -- own messages -------------------------------------------------------------------------------


@both
def test_an_own_message_is_delivered_in_its_turn_and_once(name: str) -> None:
    me, other = (MAKES[name](at, range(2)) for at in (1, 0))
    (transmit,) = me.send("mine")
    assert transmit == Transmit((0,), transmit.message)
    assert [held.message for held in me.list_held()] == [transmit.message]
    note = next(e.message for e in other.receive(transmit.message) if isinstance(e, Transmit))
    assert list(me.receive(note)) == [Deliver(transmit.message)]
    assert list(me.receive(transmit.message)) == [Discard(transmit.message, OWN)]


@both
def test_alone_everything_is_delivered_when_it_is_sent(name: str) -> None:
    alone = MAKES[name](0, [0])
    transmit, deliver = alone.send("x")
    assert isinstance(transmit, Transmit)
    assert transmit.to == ()
    assert deliver == Deliver(transmit.message)


def test_a_group_returns_own_messages_too() -> None:
    alice, bob = (Group(n, ["alice", "bob"], order="total") for n in ("alice", "bob"))
    wire = bob.send(b"from bob")
    first = alice.send(b"from alice")
    restored = Group("alice", ["alice", "bob"], order="total")
    restored.restore(alice.snapshot())
    assert [m.payload for m in restored.take_own_deliveries()] == [b"from alice"]
    assert [m.payload for m in alice.receive(wire)] == [b"from alice", b"from bob"]
    assert alice.take_own_deliveries() == []
    (places,) = alice.take_control_packets()
    assert [m.payload for m in bob.receive(places.wire)] == []
    assert [m.payload for m in bob.receive(first)] == [b"from alice", b"from bob"]


# -- the sequencer ------------------------------------------------------------------------------


def test_the_sequencer_places_a_senders_messages_in_its_order() -> None:
    sequencer, sender = Sequencer(0, range(3)), Sequencer(2, range(3))
    first, second, third = (send_one(sender, n) for n in range(3))
    assert list(sequencer.receive(third)) == [Hold(third, (MessageId(2, 2),))]
    assert list(sequencer.receive(second)) == [Hold(second, (MessageId(2, 1),))]
    assert sequencer.list_held()[1].missing == (MessageId(2, 1),)
    note, *delivered = sequencer.receive(first)
    assert note == Transmit((1, 2), SequenceAssignment(0, 0, b"", 1, 2, 1, 3))
    assert delivered == [Deliver(first), Deliver(second), Deliver(third)]
    assert sequencer.control_bytes(note.message) == 16
    assert sequencer.control_bytes(first) == 4


def test_a_member_names_the_message_of_the_next_place() -> None:
    member = Sequencer(1, range(3))
    late, own = SequencedMessage(2, 1, "late"), SequencedMessage(0, 2, "own", 3)
    assert list(member.receive(late)) == [Hold(late, ())]
    assert member.list_held() == (Held(late, (), silent=(0,)),)
    member.receive(SequenceAssignment(0, 0, b"", 2, 2, 1, 1))
    assert list(member.receive(own)) == [Hold(own, ())]
    first = SequencedMessage(0, 1, "first", 1)
    assert list(member.receive(first)) == [Deliver(first), Deliver(late), Deliver(own)]
    ahead = SequencedMessage(0, 4, "ahead", 5)
    member.receive(SequenceAssignment(0, 0, b"", 4, 2, 2, 1))
    assert list(member.receive(ahead)) == [Hold(ahead, (MessageId(2, 2),))]
    assert member.storage_bytes() == 4 * (3 + 2 + 4 * 2)


def test_another_sequencer_can_be_chosen() -> None:
    member = Sequencer(1, range(3), sequencer=1)
    transmit, deliver = member.send("x")
    assert transmit.message == SequencedMessage(1, 1, "x", 1) == deliver.message
    assert member.control_bytes(transmit.message) == 8
    with pytest.raises(LocalError, match="sequencer 7"):
        Sequencer(1, range(3), sequencer=7)


@pytest.mark.parametrize(
    "message",
    [
        SequencedMessage(9, 1, "stranger"),
        SequencedMessage(2, 0, "no number"),
        SequencedMessage(2, 1 << 63, "too large"),
        SequencedMessage(2, 1, "placed by itself", 1),
        SequencedMessage(0, 1, "the sequencer's own, without a place"),
        SequencedMessage(0, 1, "place too large", 1 << 63),
        SequenceAssignment(2, 0, b"", 1, 1, 1, 1),
        SequenceAssignment(0, 0, b"", 1, 9, 1, 1),
        SequenceAssignment(0, 0, b"", 1, 0, 1, 1),
        SequenceAssignment(0, 0, b"", 0, 2, 1, 1),
        SequenceAssignment(0, 0, b"", 1, 2, 0, 1),
        SequenceAssignment(0, 0, b"", 1, 2, 1, 0),
        SequenceAssignment(0, 0, b"", 1, 1, 1, 2),  # member 1 sent one message
        SequenceAssignment(0, 0, b"", 1, 2, 1, 1 << 63),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(message: Any) -> None:
    member = Sequencer(1, range(3))
    member.send("mine")
    with unchanged(member), pytest.raises(RemoteError):
        member.receive(message)


def test_places_told_again_change_nothing() -> None:
    member = Sequencer(1, range(3))
    a, b = SequencedMessage(2, 1, "a"), SequencedMessage(2, 2, "b")
    note = SequenceAssignment(0, 0, b"", 1, 2, 1, 2)
    member.receive(note)
    assert list(member.receive(a)) == [Deliver(a)]
    before = member.snapshot()
    assert list(member.receive(note)) == []
    assert member.snapshot() == before
    assert list(member.receive(b)) == [Deliver(b)]
    assert not member.assignments


# -- timestamps -----------------------------------------------------------------------------------


def test_a_message_waits_for_every_member_and_is_acknowledged_once() -> None:
    a, b, c = (AgreedTimestamps(at, range(3)) for at in range(3))
    first = send_one(a, "a1")
    hold, note = b.receive(first)
    assert hold == Hold(first, ())
    assert note == Transmit((0, 2), TimeAcknowledgement(1, 0, b"", 0, 1))
    (other,) = c.send("c1")  # at the same time as a1: it needs no acknowledgement of c's
    assert list(c.receive(first)) == [Hold(first, ())]
    assert list(a.receive(note.message)) == []
    assert a.list_held() == (Held(first, (), silent=(2,)),)
    # What b said lets both go: a tie is decided by the member's number.
    assert list(a.receive(other.message)) == [Deliver(first), Deliver(other.message)]
    assert a.control_bytes(first) == a.control_bytes(note.message) == 8


def test_an_acknowledgement_counts_when_what_it_follows_is_here() -> None:
    member = AgreedTimestamps(0, range(3))
    own = send_one(member, "own")
    member.receive(TimedMessage(2, 1, "c1", 9))
    assert (
        list(member.receive(TimeAcknowledgement(1, 0, b"", 1, 9))) == []
    )  # message 1 may be earlier
    early = TimedMessage(1, 1, "b1", 1)
    effects = list(member.receive(early))
    assert [e.message.payload for e in effects if isinstance(e, Deliver)] == ["own", "b1", "c1"]
    assert own.lt == 1


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (Sequencer(1, range(3)), SequencedMessage(0, 2, "a2", 2)),
        (Sequencer(0, range(3)), SequencedMessage(1, 2, "b2")),
        (AgreedTimestamps(0, range(3)), TimedMessage(1, 2, "b2", 2)),
    ],
)
def test_a_copy_of_a_message_after_a_gap_is_discarded(member: Protocol, message: Any) -> None:
    assert Hold in map(type, member.receive(message))
    before = member.snapshot()
    assert list(member.receive(message)) == [Discard(message, DUPLICATE)]
    assert member.snapshot() == before


def test_acknowledgements_after_a_gap_are_bounded_and_the_last_is_kept() -> None:
    member = AgreedTimestamps(0, range(2))
    for last in range(1, 200):
        member.receive(TimeAcknowledgement(1, 0, b"", last, last))
    assert sorted(member.promised[1]) == list(range(200 - MAX_PROMISES, 200))
    before = member.storage_bytes()
    for seq in range(1, 200):
        member.receive(TimedMessage(1, seq, seq, seq))
    assert member.floors[1] == 199
    assert member.storage_bytes() == before - 8 * MAX_PROMISES


def test_a_member_that_left_is_waited_for_until_its_last_message() -> None:
    member = AgreedTimestamps(0, range(3))
    transmit = member.send("own")[0]
    member.receive(TimeAcknowledgement(1, 0, b"", 0, 1))
    far = TimedMessage(2, 3, "too far", 7)
    assert list(member.receive(far)) == [
        Hold(far, (MessageId(2, 1),)),
        Transmit((1, 2), TimeAcknowledgement(0, 0, b"", 1, 7)),
    ]
    assert list(member.leave(2, 1)) == [Discard(far, AFTER_LEAVE)]
    assert member.members == (0, 1)
    last = TimedMessage(2, 1, "last", 1)
    assert list(member.receive(last)) == [Deliver(transmit.message), Deliver(last)]
    before = member.snapshot()
    assert (
        list(member.receive(TimeAcknowledgement(2, 0, b"", 1, 9))) == []
    )  # late, of one who is gone
    assert member.snapshot() == before
    for gone in (2, 9):
        with pytest.raises(LocalError, match="not another member"):
            member.leave(gone, 1)
    with pytest.raises(RemoteError, match="numbers are 1 to 1"):
        member.receive(TimedMessage(2, 2, "x", 9))
    member.receive(TimedMessage(1, 1, "b1", 9))
    with pytest.raises(LocalError, match="left after message 0, but 1 is known here"):
        member.leave(1, 0)


def test_the_last_member_acknowledges_to_nobody() -> None:
    member = AgreedTimestamps(0, range(2))
    assert list(member.leave(1, 1)) == []
    last = TimedMessage(1, 1, "last", 9)
    assert list(member.receive(last)) == [Deliver(last)]


@pytest.mark.parametrize(
    "message",
    [
        TimedMessage(9, 1, "stranger", 1),
        TimedMessage(1, 0, "no number", 9),
        TimedMessage(1, 2, "no time", 0),
        TimedMessage(1, 2, "not after the one before", 3),
        TimedMessage(1, 4, "not after those between", 5),
        TimedMessage(1, 2, "a jump", 5 + MAX_LEAD),
        TimeAcknowledgement(1, 0, b"", -1, 9),
        TimeAcknowledgement(1, 0, b"", 1, 0),
        TimeAcknowledgement(1, 0, b"", 1, 5 + MAX_LEAD),
        TimeAcknowledgement(9, 0, b"", 1, 9),
    ],
)
def test_impossible_times_are_refused_and_change_nothing(message: Any) -> None:
    member = AgreedTimestamps(0, range(3))
    member.receive(TimedMessage(1, 1, "b1", 3))
    with unchanged(member), pytest.raises(RemoteError):
        member.receive(message)
    member.receive(TimedMessage(1, 4, "as early as can be", 6))


# -- wire and names -------------------------------------------------------------------------------


@both
@given(data=st.binary(max_size=24))
def test_random_bytes_are_refused_or_read(name: str, data: bytes) -> None:
    member = MAKES[name](0, range(3))
    try:
        message = member.decode(data, b"")
    except RemoteError:
        return
    assert member.encode(message) == data


@both
def test_only_the_senders_message_before_is_named(name: str) -> None:
    member = MAKES[name](1, range(3))
    first, second = send_one(member), send_one(member)
    assert member.causes(first) == ()
    assert member.causes(second) == (MessageId(1, 1),)
    assert not member.is_control(first)
