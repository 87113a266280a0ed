"""Common behaviour of SES and SENT: order per recipient, rejections, members, encoding."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.group.group import Group
from antecede.core.protocols.base import DUPLICATE, Deliver, Discard, Hold, MessageId
from antecede.core.protocols.multicast.base import NOT_ADDRESSED
from antecede.core.protocols.multicast.rst import Rst
from antecede.core.protocols.multicast.ses import Ses
from antecede.errors import DecodeError, LocalError, RemoteError, UnknownMemberError
from tests.core.protocols.sending import send_one
from tests.helpers.network import Make, Network, play
from tests.helpers.unchanged import unchanged

MAKES: dict[str, Make] = {"ses": Ses, "sent": Rst}
every = pytest.mark.parametrize("name", MAKES)


def group(name: str, members: int) -> list[Any]:
    return [MAKES[name](k, range(members)) for k in range(members)]


@every
@given(seed=st.integers(0, 2**32), members=st.integers(2, 6))
def test_unicast_alone(name: str, seed: int, members: int) -> None:
    play(MAKES[name], seed, members=members, widest=1)


@every
def test_the_network_is_adversarial(name: str) -> None:
    networks = [play(MAKES[name], seed) for seed in range(10)]
    assert sum(network.holds for network in networks) > 40
    assert sum(network.discards[DUPLICATE] for network in networks) > 20
    assert sum(network.discards[NOT_ADDRESSED] for network in networks) > 2
    widths = {len(m.to) for network in networks for m in network.sent.values()}
    assert widths == {1, 2, 3}


@pytest.mark.parametrize(
    ("variant", "widest"), [(True, 1), ("overwriting", 1), ("unicast-rule", None)]
)
def test_the_judge_of_these_tests_sees_the_printed_rules_fail(
    variant: bool | str, widest: int | None
) -> None:
    def play_many() -> None:
        for seed in range(60):
            play(partial(Ses, as_published=variant), seed, widest=widest)

    with pytest.raises(AssertionError, match="delivered early"):
        play_many()


@given(seed=st.integers(0, 2**32))
def test_both_hold_and_deliver_the_same(seed: int) -> None:
    one, other = play(Ses, seed), play(Rst, seed)
    assert one.truth.delivered == other.truth.delivered
    assert (one.holds, one.discards) == (other.holds, other.discards)


# -- refusals and discards -------------------------------------------------------------------


@every
def test_what_is_for_others_is_discarded_and_changes_nothing(name: str) -> None:
    a, _, c = group(name, 3)
    message = send_one(a, to=[1])
    before = c.snapshot()
    assert c.receive(message) == (Discard(message, NOT_ADDRESSED),)
    assert c.snapshot() == before


@every
def test_copies_of_delivered_and_of_held_messages_are_discarded(name: str) -> None:
    a, b = group(name, 2)
    one, two = send_one(a), send_one(a)
    assert isinstance(b.receive(two)[0], Hold)
    assert b.receive(two) == (Discard(two, DUPLICATE),)
    assert list(b.receive(one)) == [Deliver(one), Deliver(two)]
    for message in (one, two):
        assert b.receive(message) == (Discard(message, DUPLICATE),)


@every
@pytest.mark.parametrize("to", [[0], [0, 1], [7], [3], []])
def test_wrong_destinations_are_refused_and_change_nothing(name: str, to: list[int]) -> None:
    member = group(name, 4)[0]
    member.leave(3, 0)
    with unchanged(member), pytest.raises(LocalError):
        member.send("x", to=to)


@every
def test_destinations_are_told_once_each_whatever_is_named(name: str) -> None:
    member = group(name, 4)[0]
    assert send_one(member, to=[3, 1, 3]).to == (1, 3)
    assert send_one(member).to == (1, 2, 3)


@every
@pytest.mark.parametrize(
    ("to", "error"),
    [((2, 0), DecodeError), ((0, 0), DecodeError), ((0, 1), DecodeError), ((0, 5), RemoteError)],
)
def test_impossible_destinations_are_refused(
    name: str, to: tuple[int, ...], error: type[RemoteError]
) -> None:
    a, b, _ = group(name, 3)
    message = send_one(b)._replace(to=to)
    with unchanged(a), pytest.raises(error):
        a.receive(message)


@every
def test_what_speaks_of_a_newcomer_waits_until_the_join_is_told(name: str) -> None:
    a, b = group(name, 2)
    b.join(2)
    newcomer = MAKES[name](2, [2])
    newcomer.install_join_state(b.join_state())
    b.receive(send_one(newcomer, to=[1]))
    message = send_one(b, to=[0])
    with unchanged(a), pytest.raises(UnknownMemberError):
        a.receive(message)
    a.join(2)
    assert list(a.receive(message)) == [Deliver(message)]


@every
def test_member_numbers_have_a_limit(name: str) -> None:
    for number in (-1, 10**6):
        with pytest.raises(LocalError):
            MAKES[name](number, [number])
        with pytest.raises(LocalError):
            MAKES[name](0, [0]).join(number)


# -- members that come and go ----------------------------------------------------------------


@every
def test_a_newcomers_message_waits_for_what_its_sponsor_knew(name: str) -> None:
    a, _, c = group(name, 3)
    x = send_one(a, "x", to=[2])
    newcomer = MAKES[name](3, [3])
    newcomer.install_join_state(a.join_state())
    for member in (a, c):
        member.join(3)
    y = send_one(newcomer, "y", to=[2])
    assert list(c.receive(y)) == [Hold(y, (MessageId(0, 1),))]
    assert list(c.receive(x)) == [Deliver(x), Deliver(y)]


@every
def test_a_newcomer_is_owed_nothing_that_was_sent_before(name: str) -> None:
    a, b = group(name, 2)
    x = send_one(a, "x")
    newcomer = MAKES[name](2, [2])
    newcomer.install_join_state(b.join_state())
    for member in (a, b):
        member.join(2)
    assert newcomer.receive(x) == (Discard(x, NOT_ADDRESSED),)
    b.receive(x)
    y = send_one(b, "y")
    assert list(newcomer.receive(y)) == [Deliver(y)]


# -- release and state -----------------------------------------------------------------------


# -- bytes and numbers -----------------------------------------------------------------------


@every
@given(seed=st.integers(0, 2**32))
def test_renumbered_members_behave_as_before(name: str, seed: int) -> None:
    numbers = {0: 1, 1: 3, 2: 4, 3: 9}
    network = Network(MAKES[name], 4, seed).steps(40)
    other = MAKES[name](numbers[0], numbers.values())
    one = MAKES[name](0, range(4))
    for key, message in network.sent.items():
        assert set(one.mentions(message)) <= numbers.keys()
        if key[0] == 0 or any(sender == 0 for sender, _ in network.truth.past[key]):
            continue
        moved = other.renumber(message, numbers)
        assert other.mentions(moved) == tuple(sorted(numbers[k] for k in one.mentions(message)))
        mine, theirs = one.receive(message), other.receive(moved)
        assert [type(e) for e in mine] == [type(e) for e in theirs]
        for before, after in zip(mine, theirs, strict=True):
            assert other.renumber(before.message, numbers) == after.message
        assert len(one.list_held()) == len(other.list_held())


@every
def test_renumbering_moves_sender_destinations_and_all_that_is_known(name: str) -> None:
    _, b, c = group(name, 3)
    c.receive(send_one(b, to=[0, 2]))
    message = c.renumber(send_one(c, to=[0, 1]), {0: 7, 1: 5, 2: 3})
    assert (message.sender, message.to) == (3, (5, 7))
    receiver = MAKES[name](7, [3, 5, 7])
    assert receiver.mentions(message) == (3, 5, 7)
    assert receiver.causes(message) == ((5, 1),)
    assert receiver.receive(message) == (Hold(message, (MessageId(5, 1),)),)


@every
@given(seed=st.integers(0, 2**32))
def test_the_bytes_of_the_network_are_read_with_other_payloads(name: str, seed: int) -> None:
    network = play(MAKES[name], seed, steps=20)
    member = network.members[0]
    for message in network.sent.values():
        assert member.decode(member.encode(message), b"other") == message._replace(payload=b"other")


@every
def test_destinations_cost_three_bytes_for_one_and_five_for_all(name: str) -> None:
    member = group(name, 100)[50]
    sizes = [
        len(member.encode(send_one(group(name, 100)[50], to=to))) for to in ([7], [7, 8], None)
    ]
    assert [b - a for a, b in pairwise(sizes)] == [0, 2]


# -- as groups -------------------------------------------------------------------------------


@every
def test_open_groups_meet_by_messages_for_nobody(name: str) -> None:
    a, b, c = (Group(who, order=name) for who in "abc")
    hello = a.send(b"hello")
    assert b.receive(hello) == c.receive(hello) == []
    assert b.members == ("b", "a")
    one = b.send(b"one")
    assert [m.payload for m in a.receive(one)] == [b"one"]
    assert c.receive(one) == []  # b did not know c
    two = c.send(b"two")
    assert [(m.sender, m.payload) for m in a.receive(two)] == [("c", b"two")]
    assert [(m.sender, m.payload) for m in b.receive(two)] == [("c", b"two")]
    last = b.send(b"three")
    assert [m.payload for m in c.receive(last)] == [b"three"]


@every
def test_open_groups_hold_back_across_different_numbers(name: str) -> None:
    a, b, c = (Group(who, order=name) for who in "abc")
    for group_ in (a, b, c):
        hello = group_.send(b"hello")
        for other in (c, b, a):
            if other is not group_:
                other.receive(hello)
    x = b.send(b"x")
    assert [m.payload for m in c.receive(x)] == [b"x"]
    z = c.send(b"z")
    assert a.receive(z) == []
    (blocked,) = a.list_held()
    assert blocked.message.payload == b"z"
    assert [sender for sender, _ in blocked.waits_for] == ["b"]
    assert [m.payload for m in a.receive(x)] == [b"x", b"z"]
