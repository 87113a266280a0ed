"""Group identity: equivalent options agree in any notation, other options are rejected."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from antecede import Bounds, Group, Subscriptions
from antecede.errors import LocalError, MismatchError

NAMES = ("alice", "bob", "carol")
BOUNDS: Bounds[str] = Bounds(accuracy_s=0.01, least_s=0.1, most_s=1.0)


def group(order: str, name: str, options: dict[str, Any]) -> Group:
    return Group(name, NAMES, order=order, incarnation=1, **options)


def met(order: str, one: dict[str, Any], two: dict[str, Any]) -> None:
    """Let alice, made with `one`, send to bob, made with `two`, and be restored with `two`.

    Raises MismatchError, or LocalError for the latter.
    """
    how: dict[str, Any] = {"topics": ("news",)} if order.startswith(("tv", "htbc")) else {}
    if order != "htbc":  # without subscriptions
        wire = group(order, "alice", one).send_packets(b"x", now=1000.0, **how)
        for packet in wire:
            group(order, "bob", two).receive(packet.wire, now=1000.5)
    group(order, "alice", two).restore(group(order, "alice", one).snapshot())


def subscribed(topics: dict[str, Collection[str]]) -> dict[str, Any]:
    return {"bounds": BOUNDS, "subscriptions": Subscriptions(topics)}


SPORT = subscribed({"alice": ("news", "sport"), "bob": ("news",)})
ALIKE: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("tv", SPORT, subscribed({"alice": ["sport", "news"], "bob": ["news"]})),
    ("tv", SPORT, subscribed({"bob": {"news"}, "alice": {"sport", "news"}})),
    ("tv", SPORT, subscribed({"alice": ("news", "sport", "news"), "bob": frozenset(["news"])})),
    ("tv-lt", SPORT, subscribed({"alice": ("sport", "news"), "bob": ("news",), "carol": []})),
    ("htbc", {"bounds": BOUNDS}, subscribed({})),
    ("htbc", {"bounds": BOUNDS, "subscriptions": None}, subscribed({"alice": []})),
    ("linear", {"delivery": "bound", "bounds": BOUNDS},
     {"delivery": "bound", "bounds": BOUNDS, "heartbeat_s": None}),
    ("linear", {"as_published": ("no-null-messages",)},
     {"as_published": ("no-null-messages",), "heartbeat_s": None}),
    ("linear", {"as_published": ("dropped", "dseq")},
     {"as_published": ["dseq", "dropped", "dseq"]}),
    ("linear", {"as_published": ()}, {"as_published": set()}),
    ("linear", {}, {"as_published": frozenset()}),
    ("linear", {}, {"recovery_s": 0, "heartbeat_s": 1}),
    ("total", {}, {"sequencer": 0}),
    ("total", {"sequencer": None}, {"sequencer": 0}),
    ("physical", {"bounds": BOUNDS},
     {"bounds": Bounds(0.01, 0.1, 1.0, {"bob": 0.01}, {("bob", "alice"): (0.1, 1)})}),
    ("matrix", {}, {"recovering": False}),
    ("bss", {}, {"differences": False, "as_published": False}),
)  # fmt: skip
OTHER: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
    ("tv", SPORT, subscribed({"alice": ("news",), "bob": ("news",)})),
    ("tv", SPORT, subscribed({"alice": ("news", "sport"), "carol": ("news",)})),
    ("tv", SPORT, {"bounds": BOUNDS}),
    ("linear", {}, {"heartbeat_s": None}),
    ("linear", {"as_published": ("dropped",)}, {"as_published": ("dropped", "dseq")}),
    ("total", {}, {"sequencer": 1}),
    ("physical", {"bounds": BOUNDS}, {"bounds": Bounds(0.01, 0.1, 1.0, {"bob": 0.02})}),
)


@pytest.mark.parametrize(("order", "one", "two"), ALIKE)
def test_the_same_written_otherwise_is_the_same_group(
    order: str, one: dict[str, Any], two: dict[str, Any]
) -> None:
    met(order, one, two)
    met(order, two, one)


@pytest.mark.parametrize(("order", "one", "two"), OTHER)
def test_what_is_not_the_same_is_another_group(
    order: str, one: dict[str, Any], two: dict[str, Any]
) -> None:
    for first, second in ((one, two), (two, one)):
        with pytest.raises((MismatchError, LocalError), match=r"other|another list"):
            met(order, first, second)


def test_invitations_go_by_what_options_mean() -> None:
    alice = Group("alice", NAMES, order="linear", delivery="bound", bounds=BOUNDS)
    options: dict[str, Any] = {"delivery": "bound", "bounds": BOUNDS, "heartbeat_s": None}
    assert Group.accept("dave", alice.invite("dave"), **options).members[-1] == "dave"


def test_subscriptions_that_mean_the_same_are_equal() -> None:
    one = Subscriptions({1: ["b", "a"], 2: []})
    assert one == Subscriptions({1: {"a", "b"}})
    assert hash(one) == hash(Subscriptions({1: ("a", "b")}))
    assert one != Subscriptions({1: {"a"}})
    assert one != {1: {"a", "b"}}


SLOW = {("bob", "alice"): (0.0, 5.0)}


@pytest.mark.parametrize(
    ("table", "fits"),
    [
        ({"channels": SLOW}, True),
        ({"channels": {**SLOW, ("bob", "dave"): (0.0, 5.0)}, "clocks": {"dave": 0.5}}, True),
        ({}, False),
        ({"channels": SLOW, "clocks": {"alice": 0.5}}, False),
    ],
)
def test_a_newcomer_has_the_bounds_of_the_first_members(table: Any, fits: bool) -> None:
    def options(**table: Any) -> dict[str, Any]:
        return {"delivery": "bound", "bounds": Bounds(0.01, 0.0, 1.0, **table)}

    alice = Group("alice", NAMES, order="linear-physical", **options(channels=SLOW))
    invitation = alice.invite("dave")
    if fits:
        assert "dave" in Group.accept("dave", invitation, **options(**table)).members
        return
    with pytest.raises(MismatchError, match=r"other bounds .*first members"):
        Group.accept("dave", invitation, **options(**table))


@pytest.mark.parametrize("began", [None, {"bob": ["news"]}])
def test_a_newcomer_may_say_its_own_subscriptions_alone(began: Any) -> None:
    first: dict[str, Any] = {} if began is None else {"subscriptions": Subscriptions(began)}
    alice = Group("alice", NAMES, order="tv", bounds=BOUNDS, **first)
    if began is None:
        alice.subscribe("alice", ["sport"])
    invitation = alice.invite("dave")
    own: Any = Subscriptions({"dave": ["sport"]})
    assert "dave" in Group.accept("dave", invitation, bounds=BOUNDS, subscriptions=own).members
    other: Any = Subscriptions({"bob": ["sport"], "dave": ["sport"]})
    with pytest.raises(MismatchError, match="other"):
        Group.accept("dave", invitation, bounds=BOUNDS, subscriptions=other)
