"""Consistent cuts against enumeration, and Sahai et al.'s condition with both of its NOTs."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede.core.oracle.cuts import (
    KNOWS_OUTSIDE,
    LOST,
    TWICE,
    UNSENT_IN_CHANNEL,
    UNSENT_RECEIVED,
    WRONG_CHANNEL,
    Channel,
    Cuts,
    Witness,
)
from antecede.errors import InputError
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event


def row(member: str, kind: str, message: str) -> Event:
    return Event(kind=kind, id=message, member=member)


ROWS = [
    row("A", SEND, "a"),
    row("B", RECEIVE, "a"),
    row("B", DELIVER, "a"),
    row("B", SEND, "b"),
    row("C", RECEIVE, "b"),
    row("C", DELIVER, "b"),
    row("A", SEND, "c"),
    row("C", RECEIVE, "c"),
]


def test_a_received_message_must_have_been_sent() -> None:
    cuts = Cuts(ROWS)
    assert cuts.consistent({"A": 1, "B": 1})
    assert not cuts.consistent({"B": 1})
    assert not cuts.consistent({"A": 2, "B": 2, "C": 1})
    assert cuts.consistent({})


def test_a_recorded_channel_must_not_hold_what_is_not_sent() -> None:
    cuts = Cuts(ROWS)
    channel = Channel("A", "B")
    assert cuts.consistent({"A": 1}, {channel: ["a"]})
    assert not cuts.consistent({}, {channel: ["a"]})


def test_messages_in_the_channels_of_a_cut() -> None:
    cuts = Cuts(ROWS)
    assert cuts.in_channels({"A": 2, "B": 1}) == {
        Channel("A", "B"): ["c"],
        Channel("A", "C"): ["a", "c"],
    }
    assert cuts.in_channels({"A": 1}, recipients={"a": ["B"]}) == {Channel("A", "B"): ["a"]}


def test_the_greatest_cut_falls_back_as_far_as_it_must() -> None:
    cuts = Cuts(ROWS)
    assert cuts.greatest_consistent({"A": 0, "B": 3, "C": 3}) == {"A": 0, "B": 0, "C": 0}
    assert cuts.greatest_consistent({"A": 1, "B": 3, "C": 9}) == {"A": 1, "B": 3, "C": 2}


def test_delivery_stands_in_for_a_receive_that_was_not_logged() -> None:
    cuts = Cuts([row("A", SEND, "a"), row("B", DELIVER, "a")])
    assert not cuts.consistent({"B": 1})


executions = st.lists(
    st.tuples(st.sampled_from("ABC"), st.sampled_from((SEND, RECEIVE)), st.integers(0, 5)),
    max_size=9,
)


@given(executions, st.tuples(*(st.integers(0, 9),) * 3))
def test_greatest_is_the_union_of_all_consistent_cuts_below(
    moves: list[tuple[str, str, int]], limits: tuple[int, ...]
) -> None:
    cuts = Cuts(possible(moves))
    limit = dict(zip("ABC", limits, strict=True))
    ranges = [range(min(limit[m], length) + 1) for m, length in cuts.length.items()]
    below = [dict(zip(cuts.length, at, strict=True)) for at in product(*ranges)]
    union = {m: max(cut[m] for cut in below if cuts.consistent(cut)) for m in cuts.length}
    assert cuts.greatest_consistent(limit) == union
    assert cuts.consistent(union)


def possible(moves: list[tuple[str, str, int]]) -> list[Event]:
    """Keep what can happen: sends of new messages, receipts of messages that others sent."""
    rows: list[Event] = []
    sender: dict[str, str] = {}
    for member, kind, number in moves:
        message = str(number)
        if kind == SEND and message not in sender:
            sender[message] = member
            rows.append(row(member, SEND, message))
        elif kind == RECEIVE and sender.get(message, member) != member:
            rows.append(row(member, RECEIVE, message))
    return rows


# -- what a recorded state must not say --------------------------------------------------------

TWO = [row("A", SEND, "a"), row("B", RECEIVE, "a"), row("A", SEND, "b"), row("C", SEND, "c")]
AB, AC, CB = Channel("A", "B"), Channel("A", "C"), Channel("C", "B")


@pytest.mark.parametrize(
    ("cut", "channels", "why"),
    [
        ({"A": 1, "B": 1}, {AB: ["a"]}, Witness(TWICE, "a", "A", "B")),
        ({"A": 1}, {CB: ["a"]}, Witness(WRONG_CHANNEL, "a", "A", "B")),
        ({"A": 1}, {Channel("A", "A"): ["a"]}, Witness(WRONG_CHANNEL, "a", "A", "A")),
        ({"A": 1}, {}, Witness(LOST, "a", "A", "B")),
        ({"A": 1}, {AC: ["a"]}, Witness(LOST, "a", "A", "B")),
        ({"A": 2, "B": 1}, {}, Witness(LOST, "b", "A", "")),
        ({"A": 2, "B": 1}, {AB: []}, Witness(LOST, "b", "A", "")),
        ({"A": 1, "B": 1}, {AB: ["b"]}, Witness(UNSENT_IN_CHANNEL, "b", "A", "B")),
        ({"A": 1, "B": 1}, {AB: ["z"]}, Witness(UNSENT_IN_CHANNEL, "z", "", "B")),
        ({"B": 1}, {}, Witness(UNSENT_RECEIVED, "a", "A", "B")),
        ({"A": 1, "B": 1}, {}, None),
        ({"A": 2, "B": 1}, {AB: ["b"]}, None),
        ({"A": 2}, {AB: ["a", "b"], AC: ["b"]}, None),
        ({}, {}, None),
    ],
)
def test_every_no_has_a_witness(cut: dict[str, int], channels: Any, why: Witness | None) -> None:
    assert Cuts(TWO).why_not(cut, channels) == why
    assert Cuts(TWO).consistent(cut, channels) is (why is None)


def test_whom_a_message_is_for_can_be_said() -> None:
    cuts, cut = Cuts(TWO), {"A": 2, "B": 1}
    assert cuts.why_not(cut, {AB: ["b"]}, {"b": ["B", "C"]}) == Witness(LOST, "b", "A", "C")
    assert cuts.consistent(cut, {}, {"a": ["B"], "b": []})
    channels = cuts.in_channels(cut)
    assert cuts.consistent(cut, channels)


@pytest.mark.parametrize(
    ("cut", "channels"),
    [
        ({"A": 99}, None),
        ({"A": -1}, None),
        ({"Z": 0}, None),
        ({"A": 1}, {Channel("Y", "Z"): ["a"]}),
    ],
)
def test_what_is_not_in_the_log_is_refused(cut: dict[str, int], channels: Any) -> None:
    with pytest.raises(InputError):
        Cuts(TWO).consistent(cut, channels)


def test_the_channels_of_every_consistent_cut_complete_it() -> None:
    cuts = Cuts(ROWS)
    for at in product(*(range(cuts.length[m] + 1) for m in "ABC")):
        cut = dict(zip("ABC", at, strict=True))
        if cuts.consistent(cut):
            assert cuts.consistent(cut, cuts.in_channels(cut))


# -- vector clocks -------------------------------------------------------------------------------


def clocked(member: str, id_: str, **clock: int) -> Event:
    return Event(
        id=id_, member=member, clock_members=tuple(clock), clock_counts=tuple(clock.values())
    )


CLOCKED = [
    clocked("A", "a1", A=5),
    clocked("A", "a2", A=9),
    clocked("B", "b1", B=1),
    clocked("B", "b2", B=2, A=9),
    clocked("C", "c1", C=1, B=1),
]


def test_a_log_of_clocks_is_judged_by_its_clocks() -> None:
    cuts = Cuts(CLOCKED)
    assert cuts.why_not({"B": 2}) == Witness(KNOWS_OUTSIDE, "b2", "A", "B")
    assert cuts.why_not({"A": 1, "B": 2}) == Witness(KNOWS_OUTSIDE, "b2", "A", "B")
    assert cuts.consistent({"A": 2, "B": 2})
    assert cuts.consistent({"A": 1, "B": 1, "C": 1})
    assert not cuts.consistent({"C": 1})
    assert cuts.greatest_consistent({"A": 1, "B": 2, "C": 1}) == {"A": 1, "B": 1, "C": 1}
    with pytest.raises(InputError, match="names no messages"):
        cuts.consistent({}, {})


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([clocked("A", "a1", A=2), clocked("A", "a2", A=2)], "own counter 2"),
        ([clocked("A", "a1", B=2)], "own counter 0"),
        ([clocked("A", "a1", A=1), Event(id="a2", member="A")], "rows of A with and without"),
        ([Event(id="a1", member="A"), clocked("A", "a2", A=1)], "of this member without"),
        ([row("A", SEND, "a"), row("B", SEND, "a")], "sent twice"),
    ],
)
def test_clocks_that_cannot_be_are_refused(rows: list[Event], why: str) -> None:
    with pytest.raises(InputError, match=why):
        Cuts(rows)


def test_rows_that_say_nothing_of_an_order_are_refused() -> None:
    with pytest.raises(InputError, match="causality is unknown"):
        Cuts([Event(id="e", member="A")]).consistent({"A": 1})
