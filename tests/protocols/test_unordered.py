"""Unordered: everything at once, nothing twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.protocols.base import DUPLICATE, Deliver, Discard
from antecede.protocols.numbered import NumberedMessage
from antecede.protocols.unordered import Unordered


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
    newcomer.adopt(sponsor.frontier())
    third, second = NumberedMessage(1, 3, None), NumberedMessage(1, 2, None)
    assert newcomer.receive(third) == (Discard(third, DUPLICATE),)
    assert newcomer.receive(second) == (Deliver(second),)
    assert newcomer.control_bytes(second) == 4


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1)])
def test_no_order_is_kept(order: tuple[int, ...]) -> None:
    member = Unordered(0, range(2))
    effects = [member.receive(NumberedMessage(1, number, None))[0] for number in order]
    assert [effect.message.seq for effect in effects] == list(order)
