"""Matrix with recovery: lost messages are detected, requested and retransmitted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.lanes import pack
from antecede.core.clocks.matrix import MAX_SIDE
from antecede.core.protocols.base import NOTHING, OWN, Deliver, Discard, Effect, Hold, Transmit
from antecede.core.protocols.matrix.matrix import LATE_CONTROL, LOST, MAX_TRIES, Matrix
from antecede.core.protocols.matrix.messages import Heartbeat, MatrixMessage, MatrixRequest
from antecede.errors import LocalError, RemoteError, SequenceError, UnknownMemberError
from tests.core.protocols import sending
from tests.core.protocols.seconds import s
from tests.core.protocols.sending import send_one
from tests.helpers.network import Network

group = partial(sending.group, Matrix)
NEAR = Bounds[int](accuracy_s=0, least_s=0, most_s=0.5)


def lossy(size: int, seed: int, losses: float, **options: Any) -> Network:
    make = partial(Matrix, recovering=True, **options)
    return Network(make, size, seed, NEAR, losses=losses)


@pytest.mark.parametrize("differences", [False, True])
@given(seed=st.integers(0, 2**32), size=st.integers(2, 4), losses=st.floats(0, 0.6))
def test_whatever_is_lost_is_recovered_and_then_forgotten(
    differences: bool, seed: int, size: int, losses: float
) -> None:
    network = lossy(size, seed, losses, differences=differences).steps(60, sends=0.2)
    network.losses = min(losses, 0.3)
    network.run(6)
    network.losses = 0.0
    network.finish(20)
    for member in network.members.values():
        assert member.list_unstable() == ()
        assert len(member.buffer) == 0
        assert member.find_missing_ranges() == {}
        assert member.requests == {}


@pytest.mark.slow
@given(seed=st.integers(0, 2**32))
def test_members_who_stay_agree_on_what_departed_members_sent(seed: int) -> None:
    network = lossy(3, seed, 0.4)
    for newcomer in (3, 4, 5):
        network.steps(20, sends=0.2)
        network.join(newcomer, network.anyone())
        network.steps(20, sends=0.2)
        network.leave(network.anyone())
        network.tell()
    network.run(4)
    network.losses = 0.0
    network.run(40)
    first, *others = (network.truth.has[at] for at in network.members)
    assert all(has == first for has in others)
    assert {key for key in network.truth.past if key[0] in network.members} <= first
    assert not any(member.list_held() for member in network.members.values())


def test_losses_are_what_these_tests_are_about() -> None:
    network = lossy(3, 1, 0.5).steps(90, sends=0.2)
    assert any(network.truth.owes(at, network.truth.past) for at in network.members)
    assert any(member.list_held() for member in network.members.values())


def lone_gap() -> tuple[list[Matrix], list[MatrixMessage]]:
    """Member 2 lacks message 1 of member 0, and holds 2."""
    members = group(3, recovering=True)
    messages = [send_one(members[0], k) for k in (1, 2)]
    assert isinstance(members[2].receive(messages[1], now=0)[0], Hold)
    return members, messages


def requests(effects: Any) -> list[tuple[tuple[int, ...], MatrixRequest]]:
    return [
        (e.to, e.message)
        for e in effects
        if isinstance(e, Transmit) and isinstance(e.message, MatrixRequest)
    ]


def test_a_gap_is_asked_for_after_retry_s_and_not_before() -> None:
    members, messages = lone_gap()
    assert requests(members[2].tick(s(10.0))) == []  # noticed
    assert requests(members[2].tick(s(11.5))) == []
    ((to, request),) = requests(members[2].tick(s(12.0)))
    assert to == (0,)
    assert request == MatrixRequest(2, 0, b"", 0, (1, 2))
    assert requests(members[2].tick(s(13.5))) == []
    assert requests(members[2].tick(s(14.0))) == [((0,), request)]
    (answer,) = members[0].receive(request, now=0)
    assert answer == Transmit((2,), messages[0])
    assert list(members[2].receive(messages[0], now=0)) == [Deliver(m) for m in messages]
    assert requests(members[2].tick(s(20.0))) == []
    assert members[2].requests == {}


def test_a_silent_members_last_message_is_missed_by_its_heartbeat() -> None:
    members = group(2, recovering=True, heartbeat_s=3.0)
    members[0].send("lost", now=s(10.0))
    assert members[0].tick(s(12.9)) == []
    (beat,) = members[0].tick(s(13.0))
    assert members[0].tick(s(15.9)) == []
    assert len(members[0].tick(s(16.0))) == 1
    assert isinstance(beat, Transmit)
    assert isinstance(beat.message, Heartbeat)
    assert members[0].is_control(beat.message)
    assert members[1].receive(beat.message, now=0) == NOTHING
    assert members[1].find_missing_ranges() == {0: (1, 2)}
    members[1].tick(s(20.0))
    ((_, request),) = requests(members[1].tick(s(22.0)))
    (answer,) = members[0].receive(request, now=0)
    assert isinstance(answer, Transmit)
    assert list(members[1].receive(answer.message, now=0)) == [Deliver(answer.message)]
    assert members[1].heartbeats != {}
    members[1].tick(s(23.0))
    assert members[1].heartbeats == {}


def test_when_the_origin_left_who_has_the_message_is_asked() -> None:
    members, messages = lone_gap()
    for message in messages:
        members[1].receive(message, now=0)
    for member in members[1:]:
        member.leave(0, 2)
    members[2].tick(s(0.0))
    assert requests(members[2].tick(s(2.0))) == []  # no member is known to have it
    (beat,) = (e.message for e in members[1].tick(s(5.0)) if isinstance(e, Transmit))
    members[2].receive(beat, now=0)
    ((to, request),) = requests(members[2].tick(s(4.0)))
    assert to == (1,)
    assert members[1].receive(request, now=0) == (Transmit((2,), messages[0]),)


def test_an_early_heartbeat_is_learnt_from_once_its_causes_are_here() -> None:
    members = group(3, recovering=True)
    message = send_one(members[0])
    members[2].receive(message, now=0)
    (beat,) = (e.message for e in members[2].tick(s(5.0)) if isinstance(e, Transmit))
    members[1].receive(beat, now=0)
    members[1].receive(message, now=0)
    assert members[1].knows(2, 0) == 0
    members[1].tick(s(5.0))
    assert members[1].knows(2, 0) == 1
    assert members[1].heartbeats == {}
    members[0].receive(beat, now=0)  # its causes are here: no tick is needed
    assert members[0].knows(2, 0) == 1


def test_an_early_heartbeat_goes_with_its_sender() -> None:
    members = group(3, recovering=True)
    members[2].receive(send_one(members[0]), now=0)
    (beat,) = (e.message for e in members[2].tick(s(5.0)) if isinstance(e, Transmit))
    members[1].receive(beat, now=0)
    assert members[1].list_holders(0, 1) == [0, 2]
    members[1].leave(2, 0)
    assert members[1].list_holders(0, 1) == [0]
    assert members[1].heartbeats == {}


def test_the_last_number_of_a_departed_member_tells_what_is_lacking() -> None:
    member = group(3, recovering=True)[2]
    member.leave(0, 2)
    assert member.find_missing_ranges() == {0: (1, 3)}
    member.leave(1, 0)
    assert member.find_missing_ranges() == {0: (1, 3)}


def test_requests_go_round_those_who_have_it() -> None:
    members, messages = lone_gap()
    for message in messages:
        members[1].receive(message, now=0)
    assert isinstance(members[2].receive(send_one(members[1]), now=0)[0], Hold)
    members[2].tick(s(0.0))
    asked = [requests(members[2].tick(s(2 * k)))[0][0] for k in (1, 2, 3)]
    assert asked == [(0,), (1,), (0,)]


def test_what_was_lost_with_its_sender_is_given_up_and_taken_up_again() -> None:
    members, messages = lone_gap()
    members[2].leave(0, 2)
    effects: list[Effect] = []
    for k in range(MAX_TRIES + 2):
        assert members[2].list_held()
        effects = list(members[2].tick(s(2 * k)))
    discards = [effect for effect in effects if isinstance(effect, Discard)]
    assert discards == [Discard(messages[1], LOST)]
    assert members[2].list_held() == ()
    for message in messages:
        members[1].receive(message, now=0)
    members[1].leave(0, 2)
    members[2].receive(
        next(e.message for e in members[1].tick(s(99.0)) if isinstance(e, Transmit)), now=0
    )
    ((to, request),) = requests(members[2].tick(s(100.0)))
    assert (to, request.bounds) == ((1,), (1, 3))


def test_copies_that_come_after_all_are_delivered() -> None:
    members, messages = lone_gap()
    members[2].leave(0, 2)
    for k in range(MAX_TRIES + 2):
        members[2].tick(s(2 * k))
    assert members[2].list_held() == ()
    for message in messages:
        assert list(members[2].receive(message, now=0)) == [Deliver(message)]


def test_an_absurd_number_is_asked_for_in_one_small_request() -> None:
    members = group(2, recovering=True)
    message = send_one(members[0])._replace(seq=10**11)
    members[1].receive(message, now=0)
    members[1].tick(s(0.0))
    ((_, request),) = requests(members[1].tick(s(2.0)))
    assert request.bounds == (1, 10**11)
    with pytest.raises(SequenceError):
        members[0].receive(request, now=0)


def test_notes_that_can_not_be_are_refused_whole() -> None:
    members = group(3, recovering=True)
    members[0].leave(2, 4)
    send_one(members[0])
    beat = Heartbeat(1, 0, b"", pack([(1, 2)]), (0, 0, 0))
    wrong: list[tuple[Any, type[RemoteError]]] = [
        (beat._replace(sender=7), UnknownMemberError),
        (beat._replace(causes=pack([(0, 2)])), SequenceError),  # I sent 1
        (beat._replace(causes=pack([(2, 5)])), SequenceError),  # it left after 4
        (beat._replace(causes=pack([(9, 1)]), rows=(0,) * 10), UnknownMemberError),
        (MatrixRequest(7, 0, b"", 0, (1, 2)), UnknownMemberError),
        (MatrixRequest(1, 0, b"", 7, (1, 2)), UnknownMemberError),
        (MatrixRequest(1, 0, b"", 0, (1, 3)), SequenceError),
    ]
    before = members[0].snapshot()
    for note, error in wrong:
        with pytest.raises(error):
            members[0].receive(note, now=0)
        assert members[0].snapshot() == before
    for note, reason in (
        (beat._replace(sender=0), OWN),
        (beat._replace(sender=2, causes=0), LATE_CONTROL),
        (MatrixRequest(2, 0, b"", 0, (1, 2)), LATE_CONTROL),
    ):
        assert members[0].receive(note, now=0) == (Discard(note, reason),)
        assert members[0].snapshot() == before


def test_an_older_heartbeat_does_not_replace_a_newer_one() -> None:
    member = group(2, recovering=True)[0]
    newer = Heartbeat(1, 0, b"", pack([(1, 3)]), (0, 0))
    member.receive(newer, now=0)
    member.receive(newer._replace(causes=pack([(1, 2)])), now=0)
    assert member.heartbeats == {1: newer}


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
        Matrix(1, [1]).install_join_state(((((0, 0),), ()), ((MAX_SIDE, 1),), ()))
    with pytest.raises(ValueError, match="unknown members"):
        Matrix(1, [1]).install_join_state(((((0, 0),), ()), ((0, pack([(2, 1)])),), ()))
    with pytest.raises(ValueError, match="invalid kept messages"):
        Matrix(1, [1]).install_join_state(((((0, 0),), ()), (), ((0, 1, (("no", 1),)),)))
