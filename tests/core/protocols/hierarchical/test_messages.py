"""Hierarchical protocol: encoding, rejected messages, byte accounting."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.bits import MAX_SPAN, trim
from antecede.core.protocols.base import Protocol
from antecede.core.protocols.hierarchical.internal import InternalPeer
from antecede.core.protocols.hierarchical.messages import (
    HIGHEST_KIND,
    Acknowledgement,
    Downward,
    External,
    Flush,
    Upward,
)
from antecede.core.protocols.hierarchical.roles import Topology, hierarchical
from antecede.errors import DecodeError, LocalError, RemoteError, SequenceError, UnknownMemberError
from tests.helpers.unchanged import unchanged

TOPOLOGY = Topology({1: (4, 5), 6: (7,)}, (2, 3))
NOTHING = (0, 0)
numbers = st.integers(0, 2**40)
windows = st.tuples(st.integers(0, 2**40), st.integers(0, 2**200)).map(lambda w: trim(*w))
members = st.tuples(numbers, st.sets(st.integers(0, MAX_SPAN - 1), max_size=4)).map(
    lambda m: sorted({m[0] + k for k in m[1]})
)
"""Ascending, and no further apart than CI's integers can be on the wire."""
messages = st.one_of(
    st.builds(Upward, numbers, numbers, windows, numbers, st.just("p")),
    st.builds(Downward, numbers, numbers, numbers, windows, st.just("p")),
    st.builds(Acknowledgement, numbers, numbers, numbers, st.just("p")),
    st.builds(Flush, numbers, st.just(0), windows, st.just("p")),
    st.builds(
        External,
        numbers,
        numbers,
        members.flatmap(lambda m: st.tuples(*[st.tuples(st.just(k), numbers) for k in m])),
        st.dictionaries(numbers, windows.filter(lambda w: w[1] > 0), max_size=4).map(
            lambda d: tuple(sorted(d.items()))
        ),
        windows,
        st.just("p"),
    ),
)


def role_for(message: Any) -> Protocol:
    return hierarchical(TOPOLOGY)[4 if isinstance(message, Downward) else 1]


@given(message=messages)
def test_encoding_goes_both_ways(message: Any) -> None:
    role = role_for(message)
    assert role.decode(role.encode(message), "p") == message


@given(message=messages, cut=st.integers(1, 40))
def test_what_is_cut_short_or_too_long_is_refused(message: Any, cut: int) -> None:
    role = role_for(message)
    control = role.encode(message)
    with pytest.raises(RemoteError):
        role.decode(control[:-cut], "p")
    with pytest.raises(RemoteError):
        role.decode(control + b"\x00", "p")


@pytest.mark.parametrize("kind", [HIGHEST_KIND + 1, 255])
def test_an_unknown_kind_is_refused(kind: int) -> None:
    role = hierarchical(TOPOLOGY)[1]
    with pytest.raises(DecodeError, match=f"unknown message kind {kind}; expected 0 to 4"):
        role.decode(bytes([kind, 1, 0]), "p")


def test_a_flush_with_a_number_is_refused() -> None:
    flush = Flush(2, 0, (0, 1), "p")
    role = role_for(flush)
    control = role.encode(flush)
    assert control[:3] == bytes([HIGHEST_KIND, 2, 0])
    with pytest.raises(DecodeError, match="flush of I with number 3; expected none"):
        role.decode(control[:2] + b"\x03" + control[3:], "p")


@given(control=st.binary(max_size=40), at=st.sampled_from((1, 2, 4)))
def test_any_bytes_decode_exactly_or_raise(control: bytes, at: int) -> None:
    role = hierarchical(TOPOLOGY)[at]
    try:
        message = role.decode(control, "p")
    except RemoteError:
        return
    assert role.encode(message) == control


small = st.integers(0, 9)
small_windows = st.tuples(small, st.integers(0, 40)).map(lambda w: trim(*w))
hostile = st.one_of(
    st.builds(Upward, small, small, small_windows, small, st.just("p")),
    st.builds(Acknowledgement, small, small, small, st.just("p")),
    st.builds(
        External,
        small,
        small,
        st.dictionaries(small, small, max_size=3).map(lambda d: tuple(sorted(d.items()))),
        st.dictionaries(small, small_windows.filter(lambda w: w[1] > 0), max_size=3).map(
            lambda d: tuple(sorted(d.items()))
        ),
        small_windows,
        st.just("p"),
    ),
)
downward = st.builds(Downward, small, small, small, small_windows, st.just("p"))


@given(
    at=st.sampled_from((1, 2)),
    good=st.lists(hostile, max_size=6),
    sequence=st.lists(hostile, min_size=1, max_size=6),
)
def test_a_message_is_taken_in_or_refused_whole(
    at: int, good: list[Any], sequence: list[Any]
) -> None:
    _check_accepted_or_rejected(hierarchical(TOPOLOGY)[at], [*good, *sequence], at == 1)


@given(sequence=st.lists(downward, min_size=1, max_size=10))
def test_a_downward_message_is_taken_in_or_refused_whole(sequence: list[Any]) -> None:
    _check_accepted_or_rejected(hierarchical(TOPOLOGY)[4], sequence, False)


def _check_accepted_or_rejected(role: Protocol, sequence: list[Any], inside: bool) -> None:
    for message in sequence:
        if not isinstance(message, External | Downward) and not inside:
            continue
        before = role.snapshot()
        try:
            role.receive(message)
        except RemoteError:
            assert role.snapshot() == before
        else:
            other = hierarchical(TOPOLOGY)[role.me]
            other.restore(role.snapshot())
            assert other.snapshot() == role.snapshot()
            assert all(held.missing for held in role.list_held())


FAR = MAX_SPAN + 1


@pytest.mark.parametrize(
    ("at", "message", "error", "words"),
    [
        (4, Downward(1, 0, 0, NOTHING, "p"), SequenceError, "from 1"),
        (4, Downward(1, FAR, 0, NOTHING, "p"), SequenceError, str(MAX_SPAN)),
        (4, Downward(1, 2, 2, NOTHING, "p"), SequenceError, "later one"),
        (4, Downward(1, 2, 0, (1, 1), "p"), SequenceError, "later one"),
        (1, Upward(7, 1, NOTHING, 0, "p"), UnknownMemberError, "not in the internal group"),
        (1, Upward(4, 0, NOTHING, 0, "p"), SequenceError, "start at 1"),
        (1, Upward(4, 1, (0, 1), 0, "p"), SequenceError, "has numbered"),
        (1, Upward(4, 1, NOTHING, 1, "p"), SequenceError, "have been numbered"),
        (1, Acknowledgement(4, 0, 1, "p"), SequenceError, "have been numbered"),
        (1, Acknowledgement(9, 0, 0, "p"), UnknownMemberError, "not in the internal group"),
        (1, External(2, 1, (), ((1, (0, 1)),), NOTHING, "p"), SequenceError, "has sent 0"),
        (2, External(9, 1, (), (), NOTHING, "p"), UnknownMemberError, "not in the external"),
        (2, External(4, 1, (), (), NOTHING, "p"), UnknownMemberError, "not in the external"),
        (2, External(3, 1, ((9, 1),), (), NOTHING, "p"), UnknownMemberError, "external peer 9"),
        (2, External(3, 1, (), ((9, (0, 1)),), NOTHING, "p"), UnknownMemberError, "super peer 9"),
        (2, External(3, 0, (), (), NOTHING, "p"), SequenceError, "start at 1"),
        (2, External(3, 1, ((3, 1),), (), NOTHING, "p"), SequenceError, "names message 1 of 3"),
        (2, External(3, 1, ((3, 0),), (), NOTHING, "p"), SequenceError, "names message 0"),
        (2, External(3, 1, (), (), (0, 1), "p"), SequenceError, "only a super peer"),
        (2, External(1, 2, (), ((1, (1, 1)),), NOTHING, "p"), SequenceError, "later one"),
        (2, External(1, 2, (), (), (1, 1), "p"), SequenceError, "below the message"),
        (2, External(1, FAR, (), (), NOTHING, "p"), SequenceError, str(MAX_SPAN)),
        (2, External(1, 9 * FAR, (), (), (8 * FAR, 1), "p"), SequenceError, str(MAX_SPAN)),
    ],
)
def test_impossible_messages_are_refused_and_change_nothing(
    at: int, message: Any, error: type[Exception], words: str
) -> None:
    role = hierarchical(TOPOLOGY)[at]
    with unchanged(role), pytest.raises(error, match=words):
        role.receive(message)


def test_a_far_position_in_ci_is_waited_for_without_memory_following_it() -> None:
    role = hierarchical(TOPOLOGY)[2]
    role.receive(External(3, 1, (), ((1, (2**60, 1)),), NOTHING, "p"))
    assert role.list_held()[0].missing == ((1, 2**60 + 1),)
    role.receive(External(1, MAX_SPAN, (), (), NOTHING, "q"))
    assert len(role.list_held()) == 1


@pytest.mark.parametrize("copies", [2, 3])
def test_duplicates_are_discarded_at_every_role(copies: int) -> None:
    members = hierarchical(TOPOLOGY)
    cases = [
        (4, Downward(1, 1, 0, NOTHING, "p")),
        (4, Downward(1, 3, 2, NOTHING, "held")),
        (1, Upward(4, 1, NOTHING, 0, "p")),
        (1, Upward(4, 3, NOTHING, 0, "held")),
        (1, External(2, 1, (), (), NOTHING, "p")),
        (1, External(2, 3, (), (), NOTHING, "held")),
        (2, External(1, 4, (), (), NOTHING, "p")),
        (2, External(6, 4, (), ((1, (0, 1)),), NOTHING, "held")),
        (2, External(2, 1, (), (), NOTHING, "own")),
    ]
    for at, message in cases:
        members[at].receive(message)
        for _ in range(copies):
            before = members[at].snapshot()
            effects = members[at].receive(message)
            assert [type(effect).__name__ for effect in effects] == ["Discard"]
            assert members[at].snapshot() == before


def test_external_peers_too_far_apart_for_the_wire_are_a_wrong_call() -> None:
    far = External(2, 1, ((3, 1), (3 + MAX_SPAN, 1)), (), NOTHING, b"")
    with pytest.raises(LocalError, match="apart"):
        hierarchical(TOPOLOGY)[2].encode(far)


def test_a_role_refuses_the_messages_of_another() -> None:
    members = hierarchical(TOPOLOGY)
    with pytest.raises(DecodeError, match="unexpected Upward message; this role accepts Downward"):
        members[4].decode(members[4].encode(Upward(4, 1, NOTHING, 0, b"")), b"")
    with pytest.raises(DecodeError, match="kind 9"):
        members[4].decode(b"\x09\x01\x01", b"")
    with pytest.raises(LocalError, match="a message of the hierarchical"):
        members[4].encode(("what", 1))


def test_bytes_by_the_accounting_of_the_source() -> None:
    members = hierarchical(TOPOLOGY)
    assert isinstance(members[4], InternalPeer)
    inner, outer, unpruned = members[4], members[2], hierarchical(TOPOLOGY, pruning="none")[4]
    nine = (40, 0b1_0000_0001)
    assert inner.control_bytes(Downward(1, 60, 0, nine, "p")) == 2
    assert inner.control_bytes(Upward(4, 1, nine, 40, "p")) == 2 + 4
    assert unpruned.control_bytes(Upward(4, 1, nine, 40, "p")) == 2
    assert inner.control_bytes(Acknowledgement(4, 1, 40, "p")) == 4
    ci = External(2, 1, ((3, 7),), ((1, nine), (6, (3, 1))), (5, 0b11), "p")
    assert outer.control_bytes(ci) == 8 + 2 + 1 + 1
    assert inner.storage_bytes() == 0
    for seq in (1, 2, 12):
        inner.receive(Downward(1, seq, 0, NOTHING, "p"))
    assert inner.describe() == {"SN": "0", "RV": "110000000001", "DV": "110000000001"}
    assert inner.storage_bytes() == 2 + 2
    assert outer.storage_bytes() == 2 * 4
    outer.receive(External(1, 3, (), (), NOTHING, "p"))
    outer.receive(External(3, 1, (), (), NOTHING, "p"))
    assert outer.storage_bytes() == 2 * 4 + 1 + 1 + 8
    assert members[1].storage_bytes() == 3 * 4 + 2 * 8 + 2 * 4
