"""Regressions of `Group` found in reviews: each call rejects its arguments or works."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import antecede.core.group.group
from antecede import Group
from antecede.core.clocks.bounds import Bounds
from antecede.errors import DecodeError, LocalError
from tests.helpers.unchanged import unchanged

NAMES = ["alice", "bob", "carol"]


def test_no_method_is_a_class_method_twice() -> None:
    source = inspect.getsource(antecede.core.group.group)
    assert "@classmethod\n    @classmethod" not in source


@pytest.mark.parametrize("other", [1.0, Decimal("1.00"), 1])
def test_options_of_equal_value_agree(other: Any) -> None:
    options: dict[str, Any] = {"order": "matrix", "recovering": True}
    alice = Group("alice", NAMES, heartbeat_s=1, **options)
    bob = Group("bob", NAMES, heartbeat_s=other, **options)
    (message,) = bob.receive(alice.send(b"hello", now=1.0), now=1.0)
    assert message.payload == b"hello"


def restored_from() -> tuple[Group, bytes]:
    group = Group("alice", NAMES)
    stored = group.snapshot()
    group.send(b"one")
    group.send(b"two")
    return group, stored


def broken_log() -> Iterator[bytes]:
    yield from ()
    raise OSError("the disk is gone")


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"incarnation": -1}, LocalError),
        ({"log": None}, LocalError),
        ({"log": 5}, LocalError),
        ({"log": broken_log()}, OSError),
        ({"log": [b"junk"]}, DecodeError),
        ({"log": [5]}, DecodeError),
    ],
)
def test_a_restoration_that_is_refused_changes_nothing(
    how: dict[str, Any], error: type[Exception]
) -> None:
    group, stored = restored_from()
    with unchanged(group), pytest.raises(error):
        group.restore(stored, **how)
    assert group.last_seq() == 2


def test_topics_are_a_list_of_names() -> None:
    from antecede import Subscriptions

    group = Group(
        "alice",
        NAMES,
        order="htbc",
        bounds=Bounds(accuracy_s=0.1, most_s=1),
        subscriptions=Subscriptions({name: ["news"] for name in NAMES}),
    )
    for wrong in ("news", None, 5):
        with pytest.raises(LocalError, match="list of names"):
            group.subscribe("bob", wrong)  # type: ignore[arg-type]


def test_a_message_ahead_of_a_join_needs_its_time_as_any_other() -> None:
    options: dict[str, Any] = {"order": "matrix", "recovering": True}
    alice, bob = (Group(name, NAMES, **options) for name in ("alice", "bob"))
    alice.invite("dave")
    wire = alice.send(b"hello dave", now=1.0)
    with pytest.raises(LocalError, match="now"):
        bob.receive(wire)
    assert bob.receive(wire, now=1.0) == []
    assert [message.payload for message in bob.join("dave")] == [b"hello dave"]


def test_a_message_ahead_of_a_join_is_taken_in_though_the_clock_has_gone_on() -> None:
    bounds = Bounds[str](accuracy_s=0.001, least_s=1, most_s=3)
    options: dict[str, Any] = {"order": "physical", "bounds": bounds, "delivery": "bound"}
    alice, bob = (Group(name, NAMES, **options) for name in ("alice", "bob"))
    alice.invite("dave")
    assert bob.receive(alice.send(b"hello dave", now=1.0), now=2.0) == []
    bob.tick(now=5.0)
    assert [message.payload for message in bob.join("dave")] == [b"hello dave"]


def test_what_waited_for_a_join_is_handed_over_when_one_invites() -> None:
    alice, bob = Group("alice", NAMES), Group("bob", NAMES)
    alice.invite("dave")
    assert bob.receive(alice.send(b"hello")) == []
    bob.invite("dave")
    assert [message.payload for message in bob.take_own_deliveries()] == [b"hello"]


def test_names_may_come_from_a_generator() -> None:
    group = Group("alice", NAMES, order="ses", keep_log=True)
    stored = group.snapshot()
    wire = group.send(b"for bob", to=(name for name in ["bob"]))  # type: ignore[arg-type]
    again = Group("alice", NAMES, order="ses")
    again.restore(stored, group.take_log())
    assert again.last_seq() == 1
    assert Group("bob", NAMES, order="ses").receive(wire)[0].payload == b"for bob"
    with pytest.raises(LocalError, match="lists of names"):
        group.send(b"x", to=5)  # type: ignore[arg-type]


def test_a_payload_is_measured_in_bytes() -> None:
    group = Group("alice", NAMES, max_packet=100)
    with pytest.raises(
        LocalError, match="payload of 96 bytes with 22 bytes of overhead exceeds max_packet=100"
    ):
        group.send(memoryview(bytes(96)).cast("Q"))  # type: ignore[arg-type]
    assert group.last_seq() == 0
