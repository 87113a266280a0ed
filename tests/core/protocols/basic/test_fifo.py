"""FIFO: the order of each sender, and none across senders."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.clocks import intervals
from antecede.core.protocols.base import Deliver, Hold
from antecede.core.protocols.basic.base import NumberedMessage
from antecede.core.protocols.basic.fifo import Fifo

MESSAGES = [NumberedMessage(1, number, f"m{number}") for number in (1, 2, 3, 4)]


@pytest.mark.parametrize("order", list(permutations(MESSAGES)))
def test_every_order_of_arrival_gives_the_order_of_sending(order: list[NumberedMessage]) -> None:
    member = Fifo(0, range(2))
    delivered = []
    for message in order:
        for effect in member.receive(message):
            if isinstance(effect, Deliver):
                delivered.append(effect.message)
            else:
                assert isinstance(effect, Hold)
                (missing,) = effect.missing
                arrived = {m.seq for m in order[: order.index(message) + 1]}
                assert missing.seq == max(set(range(1, message.seq)) - arrived)
    assert delivered == MESSAGES
    assert member.newest(1) == 4
    assert member.storage_bytes() == 8
    assert member.control_bytes(MESSAGES[0]) == 4


def test_senders_do_not_wait_for_each_other() -> None:
    member = Fifo(0, range(3))
    member.receive(MESSAGES[1])
    other = NumberedMessage(2, 1, "other")
    assert list(member.receive(other)) == [Deliver(other)]


def test_a_newcomer_starts_behind_a_gap() -> None:
    sponsor = Fifo(0, range(2))
    for message in (MESSAGES[0], MESSAGES[3]):
        sponsor.receive(message)
    newcomer = Fifo(2, [2])
    newcomer.install_join_state(sponsor.join_state())
    assert newcomer.newest(1) == 1
    assert list(newcomer.receive(MESSAGES[1])) == [Deliver(MESSAGES[1])]


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 30)), max_size=40))
def test_what_is_blocked_names_the_nearest_gap_of_each(numbers: list[tuple[int, int]]) -> None:
    member = Fifo(0, range(3))
    for sender, seq in numbers:
        member.receive(NumberedMessage(sender, seq, None))
    for held in member.list_held():
        assert held.missing == member._find_missing(held.message.sender, held.message.seq)
    assert [h.message for h in member.list_held()] == [m for _, m in sorted(member.held.items())]


def test_a_long_run_of_held_messages_costs_one_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    member, looked = Fifo(0, range(2)), list[int]()
    for seq in range(2, 2000):
        member.receive(NumberedMessage(1, seq, None))
    real = intervals.nearest_gap

    def count_call(bounds: list[int], number: int) -> int:
        looked.append(number)
        return real(bounds, number)

    monkeypatch.setattr(intervals, "nearest_gap", count_call)
    assert len(member.list_held()) == 1998
    assert len(looked) == 1
