"""Consistent cuts against enumeration, and 001's condition with both of its NOTs."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from antecede.oracle.cuts import Channel, Cuts
from antecede.trace.schema import DELIVER, RECEIVE, SEND, Event


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
    assert cuts.in_channels({"A": 1}, addressed={"a": ["B"]}) == {Channel("A", "B"): ["a"]}


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
    ranges = [range(min(limit[m], cuts.length.get(m, 0)) + 1) for m in "ABC"]
    below = [dict(zip("ABC", at, strict=True)) for at in product(*ranges)]
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
