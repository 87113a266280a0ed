"""Membership rules of every protocol: joins, departures and join states."""

from __future__ import annotations

from typing import Any

import pytest

from antecede.core.protocols.base import Protocol
from antecede.core.protocols.membership import changes
from antecede.core.protocols.options.checks import with_trial
from antecede.core.protocols.registry import ENTRIES, flat_class
from antecede.errors import LocalError
from tests.helpers.unchanged import unchanged

FLAT = [name for name, entry in ENTRIES.items() if entry.flat]
JOINS = [name for name in FLAT if flat_class(name).guarantee.joins]
LEAVES = [name for name in FLAT if flat_class(name).guarantee.leaves]


def members(name: str, numbers: range) -> list[Any]:
    cls = flat_class(name)
    return [cls(k, numbers, **with_trial(cls, list(numbers), {})) for k in numbers]


def say(member: Protocol) -> Any:
    """Send a message to all, and return the first one transmitted."""
    topics: dict[str, Any] = {"topics": ("x",)} if member.addressing.value == "topics" else {}
    return member.send(b"", now=1, **topics)[0].message


def test_the_lists_are_not_empty() -> None:
    assert len(JOINS) > 10
    assert len(LEAVES) > 10


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_number_is_given_out_once(name: str, number: int) -> None:
    me, other, _ = members(name, range(3))
    if name in LEAVES:
        me.leave(2, 0)
    with (
        unchanged(me),
        pytest.raises(LocalError, match=f"member number {number} was used before"),
    ):
        me.join(number)
    assert other.members == (0, 1, 2)


@pytest.mark.parametrize("name", LEAVES)
def test_only_another_member_can_leave_and_only_once(name: str) -> None:
    me = members(name, range(3))[0]
    me.leave(2, 0)
    before = me.snapshot()
    for stranger in (0, 2, 7):
        with pytest.raises(LocalError, match=f"member {stranger} is not another member"):
            me.leave(stranger, 5)
    assert me.snapshot() == before
    assert me.members == (0, 1)
    assert dict(me.list_departed()) == {2: 0}


@pytest.mark.parametrize("name", LEAVES)
def test_more_than_the_last_message_cannot_have_come(name: str) -> None:
    me, other, _ = members(name, range(3))
    me.receive(say(other), now=1)
    me.tick(10**12)  # orders by clocks have delivered it by then
    with (
        unchanged(me),
        pytest.raises(LocalError, match="member 1 left after message 0, but 1 is known here"),
    ):
        me.leave(1, 0)
    assert me.members == (0, 1, 2)


@pytest.mark.parametrize("before", ["sent", "received"])
@pytest.mark.parametrize("name", JOINS)
def test_a_frontier_is_adopted_by_newcomers_alone(name: str, before: str) -> None:
    me, other, _ = members(name, range(3))
    frontier = me.join_state()
    if before == "sent":
        say(other)
    else:
        other.receive(say(me), now=1)
    with (
        unchanged(other),
        pytest.raises(LocalError, match="before anything is sent or received"),
    ):
        other.install_join_state(frontier)


@pytest.mark.parametrize(
    ("count", "bounds"), [({1: 3, 2: 0}, {1: (1, 4), 2: ()}), ({}, {}), ({0: 1}, {0: (1, 2)})]
)
def test_counts_as_runs(count: dict[int, int], bounds: dict[int, tuple[int, ...]]) -> None:
    assert changes.counts_to_ranges(count) == bounds


def test_members_stay_sorted_and_within_bounds() -> None:
    assert changes.add_members((1, 5), {1, 5}, [9, 0]) == (0, 1, 5, 9)
    assert changes.select_current([5, 1, 3], {3}) == (1, 5)
    with pytest.raises(LocalError, match="member numbers are 0 to 8, not 9"):
        changes.add_members((1,), {1}, [9], highest=8)
    with pytest.raises(LocalError, match="member numbers are 0 to 8, not -1"):
        changes.check_numbers((-1,), 8)
