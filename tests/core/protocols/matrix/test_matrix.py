"""Matrix: known deliveries of all members, the stable buffer, encoding."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.encoding.wire import varint
from antecede.core.clocks.intervals import Intervals, encode_bounds
from antecede.core.clocks.lanes import pack
from antecede.core.clocks.matrix import MAX_SIDE
from antecede.core.group.group import Group
from antecede.core.protocols.base import Deliver, MessageId
from antecede.core.protocols.matrix.base import StableBuffer
from antecede.core.protocols.matrix.matrix import Matrix
from antecede.core.protocols.matrix.messages import Heartbeat, MatrixRequest
from antecede.errors import DecodeError, LocalError, RemoteError, SequenceError, UnknownMemberError
from tests.core.protocols import sending
from tests.core.protocols.seconds import s
from tests.core.protocols.sending import send_one
from tests.helpers.network import Network

Id = tuple[int, int]
group = partial(sending.group, Matrix)


# -- order and stability ---------------------------------------------------------------------


def make_with_differences(me: int, members: Any) -> Matrix:
    return Matrix(me, members, differences=True)


@pytest.mark.parametrize("make", [Matrix, make_with_differences])
@given(seed=st.integers(0, 2**32), members=st.integers(2, 5))
def test_the_matrix_says_exactly_what_deliveries_imply(
    make: Callable[..., Matrix], seed: int, members: int
) -> None:
    """Sahai et al. 2020, Matrix Time: [i, k] counts what i had of k in the newest message of i
    that came here.

    Differences say the same: what a message leaves out is known from the one before it.
    """
    network = Network(make, members, seed).steps(50)
    for me, member in network.members.items():
        assert isinstance(member, Matrix)
        done = network.truth.has[me]
        for i in range(members):
            newest = max((key for key in done if key[0] == i), default=None)
            had = done if i == me else set() if newest is None else {*network.truth.past[newest]}
            had |= {newest} if newest else set()
            for k in range(members):
                exact = sum(sender == k for sender, _ in had)
                assert member.knows(i, k) == exact
                assert member.knows(i, k) <= member.knows(me, k)  # the principal is the largest
        for k, count in member.stable().items():
            assert count == min(member.knows(i, k) for i in range(members))


@given(seed=st.integers(0, 2**32))
def test_nothing_is_forgotten_that_a_member_lacks(seed: int) -> None:
    network = Network(Matrix, 4, seed)
    for _ in range(60):
        network.steps(1)
        for at, member in network.members.items():
            assert isinstance(member, Matrix)
            kept = {tuple(key) for key in member.buffer}
            for key in network.truth.has[at]:
                lacking = [k for k in network.members if key not in network.truth.has[k]]
                assert key in kept or not lacking
            assert {tuple(key) for key in member.list_unstable()} <= kept


def test_what_all_have_is_forgotten_as_soon_as_their_messages_say_so() -> None:
    members = group(3)
    first = send_one(members[0], b"four")
    assert members[0].buffer.bytes == 4 + 36
    for target in (1, 2):
        members[target].receive(first, now=0)
    assert members[0].list_unstable() == (MessageId(0, 1),)
    answers = [send_one(members[1]), send_one(members[2])]
    members[0].receive(answers[0], now=0)
    assert members[0].knows(1, 0) == 1
    assert members[0].stable()[0] == 0
    members[0].receive(answers[1], now=0)
    assert members[0].stable() == {0: 1, 1: 0, 2: 0}
    assert members[0].list_unstable() == (MessageId(1, 1), MessageId(2, 1))
    members[0].tick(s(0.0))
    assert members[0].buffer.get(0, 1) is None
    assert members[0].buffer.get(1, 1) == answers[0]


def test_who_left_no_longer_counts() -> None:
    members = group(3)
    first = send_one(members[0])
    members[1].receive(first, now=0)
    members[0].receive(send_one(members[1]), now=0)
    assert members[0].stable()[0] == 0
    assert members[0].list_unstable() == (MessageId(0, 1), MessageId(1, 1))
    members[0].leave(2, 0)
    assert members[0].stable() == {0: 1, 1: 1, 2: 0}
    assert members[0].list_unstable() == ()
    assert len(members[0].buffer) == 0
    members[0].leave(1, 1)
    send_one(members[0])
    assert members[0].list_unstable() == ()


def test_the_row_of_who_left_does_not_come_back() -> None:
    members = group(3)
    first = send_one(members[2])
    for target in (0, 1):
        members[target].receive(first, now=0)
    assert members[0].matrix[2] > 0
    members[0].leave(2, 1)
    late = send_one(members[1])
    assert late.rows[2] > 0
    members[0].receive(late, now=0)
    assert members[0].matrix[2] == 0
    assert send_one(members[0]).rows[2] == 0


def test_deliveries_alone_clear_the_buffer() -> None:
    members = group(2)
    for _ in range(20):
        members[1].receive(send_one(members[0]), now=0)
        members[0].receive(send_one(members[1]), now=0)
    assert all(len(member.buffer) <= 4 for member in members)


def test_a_newcomer_counts_from_the_sponsors_frontier_on_and_keeps_what_it_kept() -> None:
    sponsor, other = group(2)
    first = send_one(sponsor)
    other.receive(first, now=0)
    newcomer = Matrix(2, [2])
    newcomer.install_join_state(sponsor.join_state())
    for member in (sponsor, other):
        member.join(2)
    assert newcomer.knows(2, 0) == newcomer.knows(0, 0) == 1
    assert newcomer.buffer.get(0, 1) == first
    sponsor.receive(send_one(other), now=0)
    assert sponsor.stable()[0] == 0  # nothing was heard of the newcomer
    sponsor.receive(send_one(newcomer), now=0)
    assert sponsor.stable()[0] == 1


def test_a_message_from_before_a_join_was_told_is_learnt_from_all_the_same() -> None:
    members = group(2)
    members[1].join(2)
    message = send_one(members[1])
    assert len(message.rows) == 3
    assert list(members[0].receive(message, now=0)) == [Deliver(message)]
    assert members[0].knows(1, 1) == 1
    members[0].join(2)
    reply = send_one(members[0])
    assert list(members[1].receive(reply, now=0)) == [Deliver(reply)]


def test_differences_carry_the_rows_that_changed() -> None:
    members = group(4, differences=True)
    first = send_one(members[1])
    assert not any(first.rows)
    assert members[1].control_bytes(first) == 16
    for target in (0, 2, 3):
        members[target].receive(first, now=0)
    second = send_one(members[0])
    assert second.rows == (0, pack([(1, 1)]), 0, 0)
    assert members[0].control_bytes(second) == 16 + 20
    assert not any(send_one(members[0]).rows)
    assert members[0].storage_bytes() == 2 * 64


def test_sizes_of_whole_matrices() -> None:
    member = group(5)[0]
    message = send_one(member)
    assert member.control_bytes(message) == 100
    assert member.storage_bytes() == 100
    # Sender, number, side, principal vector, which rows: there is nothing else to say yet.
    assert len(member.encode(message)) == 1 + 1 + 1 + 1 + 1


# -- the buffer ------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.integers(0, 2), st.tuples(st.integers(0, 2), st.integers(0, 9)))))
def test_the_buffer_is_a_set_of_messages(actions: list[int | tuple[int, int]]) -> None:
    buffer, rule = StableBuffer(), dict[Id, int]()
    newest = [0, 0, 0]
    for action in actions:
        if isinstance(action, int):
            newest[action] += 1
            buffer.keep(action, newest[action], f"m{newest[action]}", 10 + action)
            rule[action, newest[action]] = 10 + action
        else:
            sender, count = action
            gone = [key for key in rule if key[0] == sender and key[1] <= count]
            assert buffer.forget({sender: count}) == len(gone)
            rule = {key: size for key, size in rule.items() if key not in gone}
        assert sorted(rule) == list(buffer)
        assert buffer.bytes == sum(rule.values())
        assert len(buffer) == len(rule)
        for sender in range(3):
            assert list(buffer.list_numbers(sender)) == sorted(
                seq for k, seq in rule if k == sender
            )
            for seq in range(12):
                kept = buffer.get(sender, seq)
                assert kept == (f"m{seq}" if (sender, seq) in rule else None)
        again = StableBuffer()
        again.restore(buffer.snapshot())
        assert again.snapshot() == buffer.snapshot()
        assert again.bytes == buffer.bytes


def test_a_gap_in_the_buffer_is_a_wrong_call() -> None:
    buffer = StableBuffer()
    buffer.keep(0, 4, "m4", 1)
    with pytest.raises(LocalError):
        buffer.keep(0, 6, "m6", 1)
    assert list(buffer) == [(0, 4)]


# -- bytes -----------------------------------------------------------------------------------

NOTES = [
    Heartbeat(1, 0, b"x", pack([(0, 3), (1, 2)]), (pack([(0, 3)]), 0, pack([(1, 2)]))),
    Heartbeat(1, 0, b"x", 0, (0, 0)),
    MatrixRequest(2, 0, b"x", 0, Intervals.of([1, 2, 5]).bounds),
]


@pytest.mark.parametrize("note", NOTES)
def test_notes_travel(note: Any) -> None:
    member = group(3)[0]
    control = member.encode(note)
    assert member.decode(control, b"x") == note
    for cut in range(len(control)):
        with pytest.raises(RemoteError):
            member.decode(control[:cut], b"x")
    with pytest.raises(DecodeError):
        member.decode(control + b"\x00", b"x")
    moved = member.renumber(note, {0: 4, 1: 0, 2: 1})
    back = {4: 0, 0: 1, 1: 2}
    again = member.renumber(moved, back)
    assert again[:2] == note[:2]
    assert member.mentions(again) == member.mentions(note)
    assert {back[k] for k in member.mentions(moved)} == {*member.mentions(note)}


def test_a_request_has_no_causes_and_costs_8_bytes_a_run() -> None:
    request = MatrixRequest(2, 0, b"x", 0, Intervals.of([1, 2, 5]).bounds)
    assert group(3)[0].causes(request) == ()
    assert group(3)[0].control_bytes(request) == 4 + 16


HEAD = varint(1) + varint(1)


@pytest.mark.parametrize(
    ("control", "error"),
    [
        (HEAD + varint(MAX_SIDE + 1), UnknownMemberError),
        (HEAD + b"\x01", UnknownMemberError),  # the sender has no row
        (HEAD + b"\x02\x03\x01\x01\x01\x00", DecodeError),  # a vector longer than the side
        (HEAD + b"\x02\x02\x00\x01\x00", DecodeError),  # the sender's own number twice
        (HEAD + b"\x02\x00\x02\x01\x00\x00", DecodeError),  # the sender's own row
        (HEAD + b"\x02\x00\x04", DecodeError),  # a row that is not there
        (HEAD + b"\x02\x00\x01\x01\x00\x01", DecodeError),  # a row of zeros
        (HEAD + b"\x02\x00\x01\x01\x00\x02", SequenceError),  # behind by more than there is
        (varint(1) + varint(2**40) + b"\x02\x00\x00", DecodeError),
        (varint(1) + b"\x00\x03", DecodeError),  # no such note
        (varint(1) + b"\x00\x02\x00" + encode_bounds([]), DecodeError),  # asks for nothing
    ],
)
def test_what_no_member_wrote_is_refused(control: bytes, error: type[RemoteError]) -> None:
    with pytest.raises(error):
        group(3)[0].decode(control, None)


# -- as a group ------------------------------------------------------------------------------


def test_groups_recover_over_bytes() -> None:
    names = ["ann", "bob"]
    ann, bob = (Group(n, names, order="matrix", recovering=True) for n in names)
    ann.send(b"lost", now=s(0.0))
    wire = ann.send(b"arrives", now=s(0.5))
    assert bob.receive(wire, now=s(1.0)) == []
    for second in (1.0, 3.0):
        assert bob.tick(second) == []
    packets = [packet for packet in bob.take_control_packets() if packet.to == ("ann",)]
    for packet in packets:
        ann.receive(packet.wire, now=0)
    (answer,) = ann.take_control_packets()
    assert answer.to == ("bob",)
    assert [m.payload for m in bob.receive(answer.wire, now=0)] == [b"lost", b"arrives"]


def test_a_forged_frontier_that_keeps_2_to_the_60_messages_is_refused_at_once() -> None:
    sponsor, _ = group(2)
    send_one(sponsor)
    frontier: Any = sponsor.join_state()
    counts, rows, ((sender, first, run),) = frontier
    newcomer = Matrix(2, [2])
    with pytest.raises(ValueError, match="other messages than the last ones of member 0"):
        newcomer.install_join_state((counts, rows, ((sender, first - 2**60, run),)))
