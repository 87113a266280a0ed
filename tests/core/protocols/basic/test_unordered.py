"""Unordered: every message at once, no duplicates."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks.intervals import MAX_GAPS, nodes
from antecede.core.protocols.base import CLOSED_GAP, DUPLICATE, Deliver, Discard
from antecede.core.protocols.basic.base import NumberedMessage
from antecede.core.protocols.basic.unordered import Unordered
from antecede.errors import LocalError


@given(st.lists(st.integers(1, 12)))
def test_every_number_is_delivered_at_its_first_arrival(numbers: list[int]) -> None:
    member = Unordered(0, range(2))
    seen: set[int] = set()
    for number in numbers:
        message = NumberedMessage(1, number, None)
        expected = Discard(message, DUPLICATE) if number in seen else Deliver(message)
        assert member.receive(message) == (expected,)
        seen.add(number)
    runs = sum(number - 1 not in seen for number in seen)
    assert member.storage_bytes() == 4 + 8 * runs


def test_a_newcomer_is_not_owed_what_its_sponsor_took_out_of_order() -> None:
    sponsor = Unordered(0, range(2))
    sponsor.receive(NumberedMessage(1, 3, None))
    newcomer = Unordered(2, [2])
    newcomer.install_join_state(sponsor.join_state())
    third, second = NumberedMessage(1, 3, None), NumberedMessage(1, 2, None)
    assert newcomer.receive(third) == (Discard(third, DUPLICATE),)
    assert newcomer.receive(second) == (Deliver(second),)
    assert newcomer.control_bytes(second) == 4


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1)])
def test_no_order_is_kept(order: tuple[int, ...]) -> None:
    member = Unordered(0, range(2))
    effects = [member.receive(NumberedMessage(1, number, None))[0] for number in order]
    assert [effect.message.seq for effect in effects] == list(order)


@given(st.lists(st.integers(1, 60), max_size=60), st.integers(1, 20))
def test_gaps_are_bounded_and_what_is_too_late_says_so(numbers: list[int], most: int) -> None:
    member = Unordered(0, range(2), max_gaps=most)
    seen: set[int] = set()
    for number in numbers:
        message = NumberedMessage(1, number, None)
        (effect,) = member.receive(message)
        again = Unordered(0, range(2), max_gaps=most)
        again.restore(member.snapshot())
        assert (again.snapshot(), again.closed) == (member.snapshot(), member.closed)
        assert nodes(member.arrived[1]) <= most + 1
        if isinstance(effect, Deliver):
            assert number not in seen
        elif number not in seen:
            assert effect == Discard(message, CLOSED_GAP)
        seen.add(number)
    assert member.guarantee.live is False


def test_a_lossy_transport_costs_bounded_memory() -> None:
    member = Unordered(0, range(2))
    for number in range(1, 200_001, 2):
        member.receive(NumberedMessage(1, number, None))
    assert len(member.arrived[1]) <= 2 * (MAX_GAPS + 1)
    late = NumberedMessage(1, 2, None)
    assert member.receive(late) == (Discard(late, CLOSED_GAP),)
    assert Unordered(0, range(2), max_gaps=None).guarantee.live


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "9"])
def test_a_bound_of_gaps_is_a_number(wrong: Any) -> None:
    with pytest.raises(LocalError, match="max_gaps"):
        Unordered(0, range(2), max_gaps=wrong)
