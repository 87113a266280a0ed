"""Common guarantees of flat protocols: order, no duplicates, no stuck message, rejections."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.encoding.wire import varint
from antecede.core.clocks.lanes import MAX_MEMBER, MAX_VALUE, pack
from antecede.core.protocols.base import (
    AFTER_LEAVE,
    DUPLICATE,
    OWN,
    Deliver,
    Discard,
    Hold,
    MessageId,
)
from antecede.core.protocols.basic.fifo import Fifo
from antecede.core.protocols.basic.unordered import Unordered
from antecede.core.protocols.clock_based.linear import Linear
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.core.protocols.clock_based.physical import Physical
from antecede.core.protocols.matrix.matrix import Matrix
from antecede.core.protocols.multicast.rst import Rst
from antecede.core.protocols.multicast.ses import Ses
from antecede.core.protocols.vector.bss import Bss
from antecede.core.protocols.vector.ds import Ds
from antecede.core.protocols.vector.idr import Idr
from antecede.errors import DecodeError, RemoteError, SequenceError, UnknownMemberError
from tests.core.protocols.sending import send_one
from tests.core.protocols.wire_checks import (
    check_damage,
    check_length_changes,
    check_random_bytes,
)
from tests.helpers.network import Make, play, play_with_churn
from tests.helpers.unchanged import unchanged

BOUNDS: Bounds[int] = Bounds(accuracy_s=0.5, least_s=1.25, most_s=3)
MAKES: dict[str, Make] = {
    "unordered": Unordered,
    "fifo": Fifo,
    "bss": Bss,
    "bss-differences": partial(Bss, differences=True),
    "idr": Idr,
    "ds": Ds,
    "matrix": Matrix,
    "matrix-differences": partial(Matrix, differences=True),
    "matrix-recovering": partial(Matrix, recovering=True),
    "ses": Ses,
    "sent": Rst,
    "linear": partial(Linear, bounds=BOUNDS),
    "physical": partial(Physical, bounds=BOUNDS),
    "linear-physical": partial(LinearPhysical, bounds=BOUNDS),
}
VECTORS = ["bss", "bss-differences", "idr", "ds"]
CAUSAL = [*VECTORS, "matrix", "matrix-differences", "matrix-recovering"]
CLOCKS = ["linear", "physical", "linear-physical"]
UNTIMED = [name for name in MAKES if name not in CLOCKS]

every = pytest.mark.parametrize("name", MAKES)
untimed = pytest.mark.parametrize("name", UNTIMED)
ordered = pytest.mark.parametrize("name", [name for name in UNTIMED if name != "unordered"])
broadcast = pytest.mark.parametrize("name", ["unordered", "fifo", *CAUSAL])
naming = pytest.mark.parametrize("name", [*CAUSAL, "ses", "sent"])
causal = pytest.mark.parametrize("name", CAUSAL)


@pytest.mark.few(4)
@untimed
@given(seed=st.integers(0, 2**32), members=st.integers(2, 6))
def test_an_adversarial_network(name: str, seed: int, members: int) -> None:
    play(MAKES[name], seed, members=members)


@pytest.mark.few(4)
@untimed
@given(seed=st.integers(0, 2**32))
def test_members_come_and_go(name: str, seed: int) -> None:
    play_with_churn(MAKES[name], seed)


@ordered
def test_the_network_is_adversarial(name: str) -> None:
    networks = [play(MAKES[name], seed) for seed in range(5)]
    assert sum(network.holds for network in networks) > 20
    assert sum(network.discards[DUPLICATE] for network in networks) > 5


@every
def test_an_own_copy_is_discarded(name: str) -> None:
    member = MAKES[name](0, range(2))
    message = send_one(member)
    before = member.snapshot()
    assert member.receive(message, now=0) == (Discard(message, OWN),)
    assert member.snapshot() == before


@every
@pytest.mark.parametrize("seq", [0, -1])
def test_a_number_below_one_is_refused(name: str, seq: int) -> None:
    member = MAKES[name](0, range(2))
    message = send_one(MAKES[name](1, range(2)))._replace(seq=seq)
    with unchanged(member), pytest.raises(SequenceError):
        member.receive(message, now=0)


@every
def test_a_stranger_is_refused_until_its_join_is_told(name: str) -> None:
    member = MAKES[name](0, range(2))
    message = send_one(MAKES[name](2, range(3)))
    with unchanged(member), pytest.raises(UnknownMemberError, match="member 2"):
        member.receive(message, now=0)
    member.join(2)
    assert isinstance(member.receive(message, now=0)[-1], Deliver | Hold)


@broadcast
def test_an_absurd_number_costs_one_held_message(name: str) -> None:
    member = MAKES[name](0, range(2))
    message = send_one(MAKES[name](1, range(2)))._replace(seq=10**15)
    size = len(repr(member.snapshot()))
    effects = member.receive(message, now=0)
    assert len(repr(member.snapshot())) < size + 200
    if name == "unordered":
        assert effects == (Deliver(message),)
    else:
        assert effects == (Hold(message, (MessageId(1, 10**15 - 1),)),)


@untimed
def test_after_a_leave_late_messages_count_and_later_ones_are_refused(name: str) -> None:
    member, gone = MAKES[name](0, range(3)), MAKES[name](1, range(3))
    messages = [send_one(gone, k) for k in range(3)]
    member.receive(messages[0], now=0)
    member.leave(1, 2)
    assert member.members == (0, 2)
    with unchanged(member), pytest.raises(SequenceError):
        member.receive(messages[2], now=0)
    assert list(member.receive(messages[1], now=0)) == [Deliver(messages[1])]
    assert isinstance(member.receive(messages[1], now=0)[0], Discard)
    newcomer = MAKES[name](3, [3])
    newcomer.install_join_state(member.join_state())
    assert newcomer.members == (0, 2, 3)
    assert isinstance(newcomer.receive(messages[0], now=0)[0], Discard)
    with pytest.raises(SequenceError):
        newcomer.receive(messages[2], now=0)


@ordered
def test_a_leave_discards_what_can_not_be_right(name: str) -> None:
    member, gone = MAKES[name](0, range(3)), MAKES[name](1, range(3))
    messages = [send_one(gone, k) for k in range(4)]
    for message in messages[1:]:
        member.receive(message, now=0)
    assert member.leave(1, 2) == tuple(Discard(m, AFTER_LEAVE) for m in messages[2:])
    assert [line.message for line in member.list_held()] == [messages[1]]
    assert list(member.receive(messages[0], now=0)) == [Deliver(m) for m in messages[:2]]


@ordered
def test_a_long_cascade_neither_recurses_nor_rescans(name: str) -> None:
    member, other = MAKES[name](0, range(2)), MAKES[name](1, range(2))
    messages = [send_one(other, k) for k in range(5000)]
    for message in messages[:0:-1]:
        member.receive(message, now=0)
    assert list(member.receive(messages[0], now=0)) == [Deliver(message) for message in messages]
    assert member.list_held() == ()


# -- bytes -----------------------------------------------------------------------------------


@pytest.mark.few(4)
@untimed
@given(data=st.binary(max_size=40))
@settings(max_examples=200)
def test_random_bytes_decode_or_are_refused(name: str, data: bytes) -> None:
    check_random_bytes(MAKES[name](0, range(4)), data)


@untimed
@given(seed=st.integers(0, 2**32), where=st.floats(0, 1), byte=st.integers(0, 255))
def test_a_damaged_message_is_refused_whole_or_read_as_another(
    name: str, seed: int, where: float, byte: int
) -> None:
    network = play(MAKES[name], seed, members=3, steps=20)
    newest = list(network.sent.values())[-3:]
    check_damage(network.members[0], newest, where, byte)


@untimed
def test_bytes_left_over_or_cut_short_are_refused(name: str) -> None:
    network = play(MAKES[name], 3)
    check_length_changes(network.members[0], network.sent.values())


@pytest.mark.parametrize("name", VECTORS)
def test_absurd_control_information_is_refused(name: str) -> None:
    member = MAKES[name](0, range(3))
    head = varint(1) + varint(1)
    cases: list[tuple[bytes, type[RemoteError]]] = [
        (head + varint(10**9), DecodeError),  # announces more than there is
        (head + b"\x10\x02" + varint(MAX_VALUE + 1), SequenceError),
        (head + b"\x10" + varint(MAX_MEMBER + 1) + b"\x05", UnknownMemberError),
        (head + b"\x10\x02\x00", DecodeError),  # a counter of 0 has a shorter spelling
    ]
    for control, error in cases:
        with pytest.raises(error):
            member.decode(control, None)


# -- causes ----------------------------------------------------------------------------------


@causal
@pytest.mark.parametrize("seq", [1, 2])
@pytest.mark.parametrize(
    ("causes", "error"),
    [
        ({0: 1}, SequenceError),  # of my own, which I have not sent
        ({1: 2}, SequenceError),  # of its sender, later than itself
        ({3: 6}, SequenceError),  # of a member that left after message 5
        ({2: 1}, UnknownMemberError),  # an unused number in the gap
        ({9: 1}, UnknownMemberError),  # a number above all
    ],
)
def test_impossible_causes_are_refused(
    name: str, seq: int, causes: dict[int, int], error: type[RemoteError]
) -> None:
    member = MAKES[name](0, [0, 1, 3])
    member.leave(3, 5)
    message = send_one(MAKES[name](1, [0, 1, 3]))._replace(seq=seq, causes=pack(causes.items()))
    with unchanged(member), pytest.raises(error):
        member.receive(message, now=0)


@naming
def test_released_messages_come_by_generation_then_sender(name: str) -> None:
    group = {k: MAKES[name](k, range(5)) for k in range(5)}
    a = send_one(group[4], "a")
    group[1].receive(a, now=0)
    b = send_one(group[1], "b")
    group[2].receive(a, now=0)
    c = send_one(group[2], "c")
    group[3].receive(a, now=0)
    group[3].receive(b, now=0)
    d = send_one(group[3], "d")
    for message in (d, c, b):
        assert isinstance(group[0].receive(message, now=0)[0], Hold)
    state = group[0].snapshot()
    assert [effect.message.payload for effect in group[0].receive(a, now=0)] == ["a", "b", "c", "d"]
    again = MAKES[name](0, range(5))
    again.restore(state)
    assert [effect.message.payload for effect in again.receive(a, now=0)] == ["a", "b", "c", "d"]


@naming
def test_states_that_behave_alike_are_equal(name: str) -> None:
    group = {k: MAKES[name](k, range(3)) for k in range(3)}
    a = send_one(group[1], "a")
    group[2].receive(a, now=0)
    b, c, d = send_one(group[2], "b"), send_one(group[1], "c"), send_one(group[1], "d")
    one, two = MAKES[name](0, range(3)), MAKES[name](0, range(3))
    for message in (b, c, d):
        one.receive(message, now=0)
    for message in (d, c, b):
        two.receive(message, now=0)
    assert one.snapshot() == two.snapshot()
    assert hash(one.snapshot()) == hash(two.snapshot())
    assert one.receive(a, now=0) == two.receive(a, now=0)


@causal
def test_blocked_on_names_the_cause(name: str) -> None:
    group = {k: MAKES[name](k, range(3)) for k in range(3)}
    a = send_one(group[1])
    group[2].receive(a, now=0)
    b = send_one(group[2])
    assert group[0].receive(b, now=0) == (Hold(b, (MessageId(1, 1),)),)
    assert [(line.message, line.missing) for line in group[0].list_held()] == [(b, ((1, 1),))]
    assert group[0].causes(b) == ((1, 1),)
    assert group[0].mentions(b) == (1, 2)


@broadcast
def test_renumbering_moves_sender_and_causes(name: str) -> None:
    group = {k: MAKES[name](k, range(3)) for k in range(3)}
    a = send_one(group[1])
    group[2].receive(a, now=0)
    b = group[0].renumber(send_one(group[2]), {0: 7, 1: 5, 2: 3})
    assert b.sender == 3
    assert set(group[0].mentions(b)) == ({3, 5} if name in CAUSAL else {3})
    assert group[0].causes(b) == (((5, 1),) if name in CAUSAL else ())


@untimed
def test_a_frontier_may_name_the_newcomer(name: str) -> None:
    sponsor = MAKES[name](0, range(2))
    before = sponsor.join_state()
    sponsor.join(2)
    newcomers = [MAKES[name](2, [2]), MAKES[name](2, [2])]
    for newcomer, frontier in zip(newcomers, (before, sponsor.join_state()), strict=True):
        newcomer.install_join_state(frontier)
        own = send_one(newcomer)
        assert newcomer.receive(own, now=0) == (Discard(own, OWN),)
    assert newcomers[0].snapshot() == newcomers[1].snapshot()
