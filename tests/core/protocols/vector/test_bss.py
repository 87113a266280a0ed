"""BSS: the example of Sahai et al. 2020, differences, the printed rule, sizes."""

from __future__ import annotations

from typing import Any

import pytest

from antecede.core.clocks.lanes import unpack
from antecede.core.protocols.base import Deliver, Hold, MessageId
from antecede.core.protocols.vector.bss import Bss, BssMessage
from antecede.errors import LocalError
from tests.core.protocols.sending import send_one
from tests.helpers.network import Network

Kind = dict[str, bool]
WHOLE: Kind = {}
DIFFERENCES: Kind = {"differences": True}


def timestamp(message: BssMessage, members: int) -> tuple[int, ...]:
    """Return the vector t of Sahai et al. 2020, with the sender's own entry."""
    t = list(unpack(message.causes, members))
    t[message.sender] = message.seq
    return tuple(t)


def example(**kind: bool) -> tuple[Bss, BssMessage, BssMessage]:
    """P1 of Sahai et al.'s figure, and the messages a of P3 and b of P2 (here members 0, 2 and
    1).
    """
    p1, p2, p3 = (Bss(k, range(3), **kind) for k in range(3))
    a = send_one(p3, "a")
    p2.receive(a)
    return p1, a, send_one(p2, "b")


def clock(member: Bss) -> tuple[int, ...]:
    return tuple(count for _, count in member.join_state()[0])  # type: ignore[index]


@pytest.mark.parametrize("kind", [WHOLE, DIFFERENCES])
def test_the_example_in_order(kind: Kind) -> None:
    p1, a, b = example(**kind)
    assert timestamp(a, 3) == (0, 0, 1)
    assert timestamp(b, 3) == (0, 1, 1)
    assert p1.receive(a) == (Deliver(a),)
    assert clock(p1) == (0, 0, 1)
    assert p1.receive(b) == (Deliver(b),)
    assert clock(p1) == (0, 1, 1)


@pytest.mark.parametrize("kind", [WHOLE, DIFFERENCES])
def test_the_example_with_b_before_a(kind: Kind) -> None:
    p1, a, b = example(**kind)
    assert p1.receive(b) == (Hold(b, (MessageId(2, 1),)),)
    assert clock(p1) == (0, 0, 0)
    assert list(p1.receive(a)) == [Deliver(a), Deliver(b)]
    assert clock(p1) == (0, 1, 1)


def test_condition_2_as_printed_lets_b_overtake_a_and_blocks_a() -> None:
    p1, a, b = example(as_published=True)
    assert list(p1.receive(b)) == [Deliver(b)]  # early: a is its cause
    assert isinstance(p1.receive(a)[0], Hold)
    assert [line.message for line in p1.list_held()] == [a]
    b2 = b._replace(seq=2)
    assert list(p1.receive(b2)) == [Deliver(b2)]  # its cause a is still held, and stays so
    assert [line.message for line in p1.list_held()] == [a]
    again = Bss(0, range(3))
    again.restore(p1.snapshot())
    assert again.list_held() == p1.list_held()
    assert again.snapshot() == p1.snapshot()


def test_the_judge_of_these_tests_sees_the_printed_rule_fail() -> None:
    def make(me: int, members: Any) -> Bss:
        return Bss(me, members, as_published=True)

    network = Network(make, 3, seed=1)
    with pytest.raises(AssertionError, match=r"early|need|released"):
        network.steps(200)


def test_the_printed_rule_needs_whole_vectors() -> None:
    with pytest.raises(LocalError):
        Bss(0, range(3), differences=True, as_published=True)


def test_differences_carry_what_changed_since_the_last_message() -> None:
    sender, other = Bss(0, range(4), differences=True), Bss(1, range(4), differences=True)
    assert send_one(sender).causes == 0
    sender.receive(send_one(other))
    assert unpack(send_one(sender).causes, 4) == (0, 1, 0, 0)
    quiet = send_one(sender)
    assert quiet.causes == 0
    assert sender.control_bytes(quiet) == 8
    sender.receive(send_one(other))
    assert unpack(send_one(sender).causes, 4) == (0, 2, 0, 0)
    assert sender.storage_bytes() == 32


def test_a_newcomers_first_difference_is_its_whole_frontier() -> None:
    sponsor, other = Bss(0, range(2), differences=True), Bss(1, range(2), differences=True)
    sponsor.receive(send_one(other))
    send_one(sponsor)
    newcomer = Bss(2, [2], differences=True)
    newcomer.install_join_state(sponsor.join_state())
    assert unpack(send_one(newcomer).causes, 3) == (1, 1, 0)


def test_differences_reach_a_newcomer_without_a_base_of_its_own() -> None:
    sponsor, other, third = (Bss(k, range(3), differences=True) for k in range(3))
    t1 = send_one(third)
    other.receive(t1)
    o1, o2 = send_one(other), send_one(other)
    assert o2.causes == 0
    for message in (t1, o1):
        sponsor.receive(message)
    newcomer = Bss(3, [3], differences=True)
    newcomer.install_join_state(sponsor.join_state())
    assert list(newcomer.receive(o2)) == [Deliver(o2)]


def test_sizes_of_whole_vectors() -> None:
    member = Bss(0, range(5))
    message = send_one(member)
    assert member.control_bytes(message) == 20
    assert member.storage_bytes() == 20
