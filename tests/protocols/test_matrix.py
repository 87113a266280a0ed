"""Matrix: what all members have, the buffer that forgets it, and recovery of lost messages."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.clocks.intervals import Intervals, encode_bounds
from antecede.clocks.lanes import pack
from antecede.clocks.matrix import MAX_SIDE
from antecede.clocks.wire import varint
from antecede.errors import DecodeError, LocalError, RemoteError, SequenceError, UnknownMemberError
from antecede.group import Group
from antecede.protocols.base import (
    NOTHING,
    OWN,
    Deliver,
    Discard,
    Effect,
    Hold,
    MessageId,
    Transmit,
)
from antecede.protocols.matrix import LATE_NOTE, LOST, TRIES, Matrix
from antecede.protocols.matrix_message import Heartbeat, MatrixMessage, Request
from antecede.protocols.stable_buffer import StableBuffer
from tests.protocols.flat_tools import Network

Id = tuple[int, int]


def sent(member: Matrix, payload: object = None) -> MatrixMessage:
    (effect,) = member.send(payload)
    assert isinstance(effect, Transmit)
    message: MatrixMessage = effect.message
    return message


def group(size: int, **options: Any) -> list[Matrix]:
    return [Matrix(k, range(size), **options) for k in range(size)]


# -- order and stability ---------------------------------------------------------------------


def differing(me: int, members: Any) -> Matrix:
    return Matrix(me, members, differences=True)


@pytest.mark.parametrize("make", [Matrix, differing])
@given(seed=st.integers(0, 2**32), members=st.integers(2, 5))
def test_the_matrix_says_exactly_what_deliveries_imply(
    make: Callable[..., Matrix], seed: int, members: int
) -> None:
    """001, Matrix Time: [i, k] counts what i had of k in the newest message of i that came here.

    Differences say the same: what a message leaves out is known from the one before it.
    """
    network = Network(make, members, seed)
    network.run(50)
    for me, member in network.members.items():
        assert isinstance(member, Matrix)
        done = network.delivered[me]
        for i in range(members):
            newest = max((key for key in done if key[0] == i), default=None)
            had = {*done} if i == me else set() if newest is None else {*network.past[newest]}
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
        network.step()
        for at, member in network.members.items():
            assert isinstance(member, Matrix)
            kept = {tuple(key) for key in member.buffer}
            for key in network.delivered[at]:
                lacking = [k for k in network.members if key not in network.delivered[k]]
                assert key in kept or not lacking
            assert {tuple(key) for key in member.unstable()} <= kept


def test_what_all_have_is_forgotten_as_soon_as_their_messages_say_so() -> None:
    members = group(3)
    first = sent(members[0], b"four")
    assert members[0].buffer.bytes == 4 + 36
    for target in (1, 2):
        members[target].receive(first)
    assert members[0].unstable() == (MessageId(0, 1),)
    answers = [sent(members[1]), sent(members[2])]
    members[0].receive(answers[0])
    assert members[0].knows(1, 0) == 1
    assert members[0].stable()[0] == 0
    members[0].receive(answers[1])
    assert members[0].stable() == {0: 1, 1: 0, 2: 0}
    assert members[0].unstable() == (MessageId(1, 1), MessageId(2, 1))
    members[0].tick(0.0)
    assert members[0].buffer.get(0, 1) is None
    assert members[0].buffer.get(1, 1) == answers[0]


def test_who_left_no_longer_counts() -> None:
    members = group(3)
    first = sent(members[0])
    members[1].receive(first)
    members[0].receive(sent(members[1]))
    assert members[0].stable()[0] == 0
    assert members[0].unstable() == (MessageId(0, 1), MessageId(1, 1))
    members[0].leave(2, 0)
    assert members[0].stable() == {0: 1, 1: 1, 2: 0}
    assert members[0].unstable() == ()
    assert len(members[0].buffer) == 0
    members[0].leave(1, 1)
    sent(members[0])
    assert members[0].unstable() == ()


def test_the_row_of_who_left_does_not_come_back() -> None:
    members = group(3)
    first = sent(members[2])
    for target in (0, 1):
        members[target].receive(first)
    assert members[0].matrix[2] > 0
    members[0].leave(2, 1)
    late = sent(members[1])
    assert late.rows[2] > 0
    members[0].receive(late)
    assert members[0].matrix[2] == 0
    assert sent(members[0]).rows[2] == 0


def test_deliveries_alone_clear_the_buffer() -> None:
    members = group(2)
    for _ in range(20):
        members[1].receive(sent(members[0]))
        members[0].receive(sent(members[1]))
    assert all(len(member.buffer) <= 4 for member in members)


def test_a_newcomer_counts_from_the_sponsors_frontier_on_and_keeps_what_it_kept() -> None:
    sponsor, other = group(2)
    first = sent(sponsor)
    other.receive(first)
    newcomer = Matrix(2, [2])
    newcomer.adopt(sponsor.frontier())
    for member in (sponsor, other):
        member.join(2)
    assert newcomer.knows(2, 0) == newcomer.knows(0, 0) == 1
    assert newcomer.buffer.get(0, 1) == first
    sponsor.receive(sent(other))
    assert sponsor.stable()[0] == 0  # nothing was heard of the newcomer
    sponsor.receive(sent(newcomer))
    assert sponsor.stable()[0] == 1


def test_a_message_from_before_a_join_was_told_is_learnt_from_all_the_same() -> None:
    members = group(2)
    members[1].join(2)
    message = sent(members[1])
    assert len(message.rows) == 3
    assert list(members[0].receive(message)) == [Deliver(message)]
    assert members[0].knows(1, 1) == 1
    members[0].join(2)
    reply = sent(members[0])
    assert list(members[1].receive(reply)) == [Deliver(reply)]


def test_differences_carry_the_rows_that_changed() -> None:
    members = group(4, differences=True)
    first = sent(members[1])
    assert not any(first.rows)
    assert members[1].control_bytes(first) == 16
    for target in (0, 2, 3):
        members[target].receive(first)
    second = sent(members[0])
    assert second.rows == (0, pack([(1, 1)]), 0, 0)
    assert members[0].control_bytes(second) == 16 + 20
    assert not any(sent(members[0]).rows)
    assert members[0].storage_bytes() == 2 * 64


def test_sizes_of_whole_matrices() -> None:
    member = group(5)[0]
    message = sent(member)
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
            assert list(buffer.of(sender)) == sorted(seq for k, seq in rule if k == sender)
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


# -- recovery --------------------------------------------------------------------------------


class Lossy:
    """Members on a network that loses copies; the oracle is plain sets of ids."""

    def __init__(self, size: int, seed: int, losses: float, **options: Any) -> None:
        self.random = random.Random(seed)
        self.losses = losses
        self.options = {"recovering": True, **options}
        self.members = {k: Matrix(k, range(size), **self.options) for k in range(size)}
        self.done: dict[int, list[Id]] = {k: [] for k in self.members}
        self.past: dict[Id, frozenset[Id]] = {}
        self.flight: list[tuple[int, Any]] = []
        self.now = 0.0
        self.discarded: list[str] = []

    def carry_out(self, at: int, effects: Any) -> None:
        for effect in effects:
            if isinstance(effect, Transmit):
                control = self.members[at].encode(effect.message)
                read = self.members[at].decode(control, effect.message.payload)
                assert read == effect.message
                for target in effect.to:
                    assert target != at
                    if self.random.random() >= self.losses:
                        self.flight.append((target, read))
            elif isinstance(effect, Deliver):
                key = effect.message[:2]
                assert key not in self.done[at]
                assert self.past[key] <= {*self.done[at]}
                self.done[at].append(key)
            elif isinstance(effect, Discard):
                self.discarded.append(effect.reason)

    def send(self, at: int) -> None:
        effects = self.members[at].send(b"", now=self.now)
        assert isinstance(effects[0], Transmit)
        key: Id = effects[0].message[:2]
        self.past[key] = frozenset(self.done[at])
        self.done[at].append(key)
        self.carry_out(at, effects)

    def step(self) -> None:
        draw = self.random.random()
        if draw < 0.2:
            self.send(self.random.choice(list(self.members)))
        elif draw < 0.3:
            self.tick(0.5)
        elif self.flight:
            target, message = self.flight.pop(self.random.randrange(len(self.flight)))
            if target in self.members:
                self.carry_out(target, self.members[target].receive(message, now=self.now))

    def tick(self, seconds: float) -> None:
        self.now += seconds
        for at in list(self.members):
            state = self.members[at].snapshot()
            fresh = Matrix(at, self.members, **self.options)
            fresh.restore(state)
            assert fresh.snapshot() == state
            self.members[at] = fresh
            self.carry_out(at, fresh.tick(self.now))

    def settle(self, rounds: int) -> None:
        for _ in range(rounds):
            self.tick(1.0)
            while self.flight:
                target, message = self.flight.pop(self.random.randrange(len(self.flight)))
                if target in self.members:
                    self.carry_out(target, self.members[target].receive(message, now=self.now))

    def join(self, newcomer: int, sponsor: int) -> None:
        fresh = Matrix(newcomer, [newcomer], **self.options)
        fresh.adopt(self.members[sponsor].frontier())
        self.done[newcomer] = list(self.done[sponsor])
        for member in self.members.values():
            member.join(newcomer)
        self.members[newcomer] = fresh

    def leave(self, member: int) -> None:
        del self.members[member]
        last = max((seq for sender, seq in self.past if sender == member), default=0)
        for at, other in self.members.items():
            self.carry_out(at, other.leave(member, last))


@pytest.mark.parametrize("differences", [False, True])
@given(seed=st.integers(0, 2**32), size=st.integers(2, 4), losses=st.floats(0, 0.6))
def test_whatever_is_lost_is_recovered_and_then_forgotten(
    differences: bool, seed: int, size: int, losses: float
) -> None:
    network = Lossy(size, seed, losses, differences=differences)
    for _ in range(40):
        network.step()
    network.losses = min(losses, 0.3)
    network.settle(6)
    network.losses = 0.0
    network.settle(14)
    for at, member in network.members.items():
        assert {*network.done[at]} == {*network.past}
        assert member.blocked_on() == ()
        assert member.unstable() == ()
        assert len(member.buffer) == 0
        assert member.lacking() == {}
        assert member.asked == {}


@given(seed=st.integers(0, 2**32))
def test_members_who_stay_agree_on_what_departed_members_sent(seed: int) -> None:
    network = Lossy(3, seed, 0.4)
    for newcomer in (3, 4, 5):
        for _ in range(15):
            network.step()
        network.join(newcomer, network.random.choice(list(network.members)))
        for _ in range(15):
            network.step()
        network.leave(network.random.choice(list(network.members)))
    network.settle(4)
    network.losses = 0.0
    network.settle(24)
    first, *others = ({*network.done[at]} for at in network.members)
    assert all(done == first for done in others)
    for at, member in network.members.items():
        assert member.blocked_on() == ()
        mine = {key for key in network.past if key[0] in network.members}
        assert mine <= {*network.done[at]}


def test_losses_are_what_these_tests_are_about() -> None:
    network = Lossy(3, 1, 0.5)
    for _ in range(60):
        network.step()
    assert any({*network.done[at]} != {*network.past} for at in network.members)
    assert any(member.blocked_on() for member in network.members.values())


def lone_gap() -> tuple[list[Matrix], list[MatrixMessage]]:
    """Member 2 lacks message 1 of member 0, and holds 2."""
    members = group(3, recovering=True)
    messages = [sent(members[0], k) for k in (1, 2)]
    assert isinstance(members[2].receive(messages[1])[0], Hold)
    return members, messages


def requests(effects: Any) -> list[tuple[tuple[int, ...], Request]]:
    return [
        (e.to, e.message)
        for e in effects
        if isinstance(e, Transmit) and isinstance(e.message, Request)
    ]


def test_a_gap_is_asked_for_after_retry_s_and_not_before() -> None:
    members, messages = lone_gap()
    assert requests(members[2].tick(10.0)) == []  # noticed
    assert requests(members[2].tick(11.5)) == []
    ((to, request),) = requests(members[2].tick(12.0))
    assert to == (0,)
    assert request == Request(2, 0, b"", 0, (1, 2))
    assert requests(members[2].tick(13.5)) == []
    assert requests(members[2].tick(14.0)) == [((0,), request)]
    (answer,) = members[0].receive(request)
    assert answer == Transmit((2,), messages[0])
    assert list(members[2].receive(messages[0])) == [Deliver(m) for m in messages]
    assert requests(members[2].tick(20.0)) == []
    assert members[2].asked == {}


def test_a_silent_members_last_message_is_missed_by_its_heartbeat() -> None:
    members = group(2, recovering=True, heartbeat_s=3.0)
    members[0].send("lost", now=10.0)
    assert members[0].tick(12.9) == []
    (beat,) = members[0].tick(13.0)
    assert members[0].tick(15.9) == []
    assert len(members[0].tick(16.0)) == 1
    assert isinstance(beat, Transmit)
    assert isinstance(beat.message, Heartbeat)
    assert members[0].is_note(beat.message)
    assert members[1].receive(beat.message) == NOTHING
    assert members[1].lacking() == {0: (1, 2)}
    members[1].tick(20.0)
    ((_, request),) = requests(members[1].tick(22.0))
    (answer,) = members[0].receive(request)
    assert isinstance(answer, Transmit)
    assert list(members[1].receive(answer.message)) == [Deliver(answer.message)]
    assert members[1].notes != {}
    members[1].tick(23.0)
    assert members[1].notes == {}


def test_when_the_origin_left_who_has_the_message_is_asked() -> None:
    members, messages = lone_gap()
    for message in messages:
        members[1].receive(message)
    for member in members[1:]:
        member.leave(0, 2)
    members[2].tick(0.0)
    assert requests(members[2].tick(2.0)) == []  # nobody is known to have it
    (beat,) = (e.message for e in members[1].tick(5.0) if isinstance(e, Transmit))
    members[2].receive(beat)
    ((to, request),) = requests(members[2].tick(4.0))
    assert to == (1,)
    assert members[1].receive(request) == (Transmit((2,), messages[0]),)


def test_an_early_heartbeat_is_learnt_from_once_its_causes_are_here() -> None:
    members = group(3, recovering=True)
    message = sent(members[0])
    members[2].receive(message)
    (beat,) = (e.message for e in members[2].tick(5.0) if isinstance(e, Transmit))
    members[1].receive(beat)
    members[1].receive(message)
    assert members[1].knows(2, 0) == 0
    members[1].tick(5.0)
    assert members[1].knows(2, 0) == 1
    assert members[1].notes == {}
    members[0].receive(beat)  # its causes are here: no tick is needed
    assert members[0].knows(2, 0) == 1


def test_an_early_heartbeat_goes_with_its_sender() -> None:
    members = group(3, recovering=True)
    members[2].receive(sent(members[0]))
    (beat,) = (e.message for e in members[2].tick(5.0) if isinstance(e, Transmit))
    members[1].receive(beat)
    assert members[1].holders(0, 1) == [0, 2]
    members[1].leave(2, 0)
    assert members[1].holders(0, 1) == [0]
    assert members[1].notes == {}


def test_the_last_number_of_a_departed_member_tells_what_is_lacking() -> None:
    member = group(3, recovering=True)[2]
    member.leave(0, 2)
    assert member.lacking() == {0: (1, 3)}
    member.leave(1, 0)
    assert member.lacking() == {0: (1, 3)}


def test_requests_go_round_those_who_have_it() -> None:
    members, messages = lone_gap()
    for message in messages:
        members[1].receive(message)
    assert isinstance(members[2].receive(sent(members[1]))[0], Hold)
    members[2].tick(0.0)
    asked = [requests(members[2].tick(2.0 * k))[0][0] for k in (1, 2, 3)]
    assert asked == [(0,), (1,), (0,)]


def test_what_was_lost_with_its_sender_is_given_up_and_taken_up_again() -> None:
    members, messages = lone_gap()
    members[2].leave(0, 2)
    effects: list[Effect] = []
    for k in range(TRIES + 2):
        assert members[2].blocked_on()
        effects = list(members[2].tick(2.0 * k))
    discards = [effect for effect in effects if isinstance(effect, Discard)]
    assert discards == [Discard(messages[1], LOST)]
    assert members[2].blocked_on() == ()
    for message in messages:
        members[1].receive(message)
    members[1].leave(0, 2)
    members[2].receive(next(e.message for e in members[1].tick(99.0) if isinstance(e, Transmit)))
    ((to, request),) = requests(members[2].tick(100.0))
    assert (to, request.bounds) == ((1,), (1, 3))


def test_copies_that_come_after_all_are_delivered() -> None:
    members, messages = lone_gap()
    members[2].leave(0, 2)
    for k in range(TRIES + 2):
        members[2].tick(2.0 * k)
    assert members[2].blocked_on() == ()
    for message in messages:
        assert list(members[2].receive(message)) == [Deliver(message)]


def test_an_absurd_number_is_asked_for_in_one_small_request() -> None:
    members = group(2, recovering=True)
    message = sent(members[0])._replace(seq=10**11)
    members[1].receive(message)
    members[1].tick(0.0)
    ((_, request),) = requests(members[1].tick(2.0))
    assert request.bounds == (1, 10**11)
    with pytest.raises(SequenceError):
        members[0].receive(request)


def test_notes_that_can_not_be_are_refused_whole() -> None:
    members = group(3, recovering=True)
    members[0].leave(2, 4)
    sent(members[0])
    beat = Heartbeat(1, 0, b"", pack([(1, 2)]), (0, 0, 0))
    wrong: list[tuple[Any, type[RemoteError]]] = [
        (beat._replace(sender=7), UnknownMemberError),
        (beat._replace(causes=pack([(0, 2)])), SequenceError),  # I sent 1
        (beat._replace(causes=pack([(2, 5)])), SequenceError),  # it left after 4
        (beat._replace(causes=pack([(9, 1)]), rows=(0,) * 10), UnknownMemberError),
        (Request(7, 0, b"", 0, (1, 2)), UnknownMemberError),
        (Request(1, 0, b"", 7, (1, 2)), UnknownMemberError),
        (Request(1, 0, b"", 0, (1, 3)), SequenceError),
    ]
    before = members[0].snapshot()
    for note, error in wrong:
        with pytest.raises(error):
            members[0].receive(note)
        assert members[0].snapshot() == before
    for note, reason in (
        (beat._replace(sender=0), OWN),
        (beat._replace(sender=2, causes=0), LATE_NOTE),
        (Request(2, 0, b"", 0, (1, 2)), LATE_NOTE),
    ):
        assert members[0].receive(note) == (Discard(note, reason),)
        assert members[0].snapshot() == before


def test_an_older_heartbeat_does_not_replace_a_newer_one() -> None:
    member = group(2, recovering=True)[0]
    newer = Heartbeat(1, 0, b"", pack([(1, 3)]), (0, 0))
    member.receive(newer)
    member.receive(newer._replace(causes=pack([(1, 2)])))
    assert member.notes == {1: newer}


def test_wrong_options_and_numbers_are_named() -> None:
    wrong: list[Callable[[], object]] = [
        lambda: Matrix(0, [0], heartbeat_s=0.0),
        lambda: Matrix(0, [0], retry_s=-1.0),
        lambda: Matrix(0, [0, MAX_SIDE]),
        lambda: Matrix(0, [0]).join(MAX_SIDE),
        lambda: Matrix(0, [0]).knows(0, 1),
    ]
    for call in wrong:
        with pytest.raises(LocalError):
            call()
    with pytest.raises(ValueError, match="matrix"):
        Matrix(1, [1]).adopt(((((0, 0),), ()), ((MAX_SIDE, 1),), ()))
    with pytest.raises(ValueError, match="strangers"):
        Matrix(1, [1]).adopt(((((0, 0),), ()), ((0, pack([(2, 1)])),), ()))
    with pytest.raises(ValueError, match="no message"):
        Matrix(1, [1]).adopt(((((0, 0),), ()), (), ((0, 1, (("no", 1),)),)))


# -- bytes -----------------------------------------------------------------------------------

NOTES = [
    Heartbeat(1, 0, b"x", pack([(0, 3), (1, 2)]), (pack([(0, 3)]), 0, pack([(1, 2)]))),
    Heartbeat(1, 0, b"x", 0, (0, 0)),
    Request(2, 0, b"x", 0, Intervals.of([1, 2, 5]).bounds),
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
    request = Request(2, 0, b"x", 0, Intervals.of([1, 2, 5]).bounds)
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
    ann.send(b"lost", now=0.0)
    wire = ann.send(b"arrives", now=0.5)
    assert bob.receive(wire, now=1.0) == []
    for second in (1.0, 3.0):
        assert bob.tick(second) == []
    packets = [packet for packet in bob.outgoing() if packet.to == ("ann",)]
    for packet in packets:
        ann.receive(packet.wire)
    (answer,) = ann.outgoing()
    assert answer.to == ("bob",)
    assert [m.payload for m in bob.receive(answer.wire)] == [b"lost", b"arrives"]


def test_open_groups_give_members_numbers_of_their_own() -> None:
    ann, bob, cid = (Group(name, order="matrix") for name in ("ann", "bob", "cid"))
    one = ann.send(b"1")
    bob.receive(one)
    two = bob.send(b"2")
    assert cid.receive(two) == []
    assert [m.payload for m in cid.receive(one)] == [b"1", b"2"]
    assert [m.payload for m in ann.receive(two)] == [b"2"]
    three = cid.send(b"3")
    assert [m.payload for m in ann.receive(three)] == [b"3"]
