"""Causal pasts and faults of small executions, worked out by hand."""

from __future__ import annotations

import pytest

from antecede.core.oracle.history import (
    STUCK,
    TWICE,
    UNNECESSARY,
    UNSENT,
    CausalViolation,
    Fault,
    History,
)
from antecede.errors import CycleError, InputError
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event


def log(text: str) -> list[Event]:
    """Read lines like `B deliver a` or `B send b < a` (the causes after <)."""
    rows = []
    for line in text.strip().splitlines():
        head, _, causes = line.partition("<")
        member, kind, message = head.split()
        rows.append(Event(kind=kind, id=message, member=member, causes=tuple(causes.split())))
    return rows


# A sends a; at B it arrives, B sends b, and only then does B deliver a.
HELD_WHILE_SENDING = log("""
    A send a
    B receive a
    B send b
    B deliver a
    C receive b
    C deliver b
    C receive a
    C deliver a
    A receive b
    A deliver b
""")


def test_receipt_and_delivery_are_two_relations() -> None:
    history = History(HELD_WHILE_SENDING)
    assert history.pasts("delivery")["b"] == frozenset()
    assert history.pasts("receipt")["b"] == {"a"}
    assert history.early("delivery") == []
    assert history.early("receipt") == [CausalViolation("b", "C", frozenset({"a"}))]


def test_what_a_newcomer_takes_over_counts_as_arrived() -> None:
    history = History(
        log("""
            A send a
            C deliver a
            C send c
            B receive c
            B deliver c
        """)
    )
    assert history.pasts("receipt")["c"] == {"a"}
    assert history.early("receipt") == [CausalViolation("c", "B", frozenset({"a"}))]


def test_by_topic_only_messages_that_share_what_the_receiver_reads_must_come_first() -> None:
    rows = log("""
        A send a
        B receive a
        B send b
        C receive b
        C deliver b
    """)
    topics = {"a": ("x", "y"), "b": ("y", "z")}
    for read, early in (("y", True), ("x", False), ("z", False), ("xz", False), ("xyz", True)):
        history = History(rows, None, topics, {"C": tuple(read)})
        assert history.pasts("topic")["b"] == {"a"}
        found = [CausalViolation("b", "C", frozenset({"a"}))] if early else []
        assert history.early("topic") == found, read
    away = History(rows, {"a": ("B",), "b": ("C",)}, topics, {"C": ("y",)})
    assert away.early("topic") == []


def test_pasts_are_transitive_through_members_that_only_pass_on() -> None:
    history = History(
        log("""
            A send a
            B deliver a
            B send b
            C deliver b
            C send c
            D deliver c
        """)
    )
    assert history.pasts("delivery")["c"] == {"a", "b"}
    assert history.early("delivery") == [
        CausalViolation("b", "C", frozenset({"a"})),
        CausalViolation("c", "D", frozenset({"a", "b"})),
    ]


def test_fifo_is_the_sender_alone() -> None:
    history = History(
        log("""
            A send a1
            B deliver a1
            B send b1
            A send a2
            B deliver a2
            B send b2
        """)
    )
    assert history.pasts("fifo") == {
        "a1": frozenset(),
        "a2": {"a1"},
        "b1": frozenset(),
        "b2": {"b1"},
    }
    assert set(history.pasts("none").values()) == {frozenset()}


def test_replies_are_what_is_declared_and_present() -> None:
    history = History(
        log("""
            A send a
            A send b
            B send c < b gone
            A deliver c
            B deliver b
        """)
    )
    assert history.pasts("reply") == {"a": frozenset(), "b": frozenset(), "c": {"b"}}
    assert history.early("reply") == []


def test_own_messages_are_never_missing() -> None:
    history = History(
        log("""
            A send a
            B deliver a
            B send b
            A deliver b
        """)
    )
    assert history.early("delivery") == []


def test_what_is_not_addressed_to_a_member_is_not_owed_to_it() -> None:
    rows = log("""
        A send a
        B deliver a
        B send b
        C deliver b
    """)
    assert [early.member for early in History(rows).early("delivery")] == ["C"]
    assert History(rows, {"a": ["B"]}).early("delivery") == []


def test_unnecessary_waits_doubles_unsent_and_stuck() -> None:
    history = History(
        log("""
            A send a
            A send b
            B receive a
            B receive b
            B deliver a
            B deliver a
            B deliver ghost
        """)
    )
    assert history.faults("fifo") == [
        Fault("a", "B", TWICE),
        Fault("ghost", "B", UNSENT),
        Fault("a", "B", UNNECESSARY),
        Fault("b", "B", UNNECESSARY),
        Fault("b", "B", STUCK),
    ]


def test_a_wait_with_a_reason_is_no_fault() -> None:
    history = History(
        log("""
            A send a
            A send b
            B receive b
            B receive a
            B deliver a
            B deliver b
        """)
    )
    assert history.faults("fifo") == []


def test_a_wait_that_ends_with_the_next_arrival_is_unnecessary() -> None:
    history = History(
        log("""
            A send a
            A send b
            B receive b
            B receive a
            B deliver a
            B receive a
            B deliver b
        """)
    )
    assert history.faults("fifo") == [Fault("b", "B", UNNECESSARY)]


def test_rows_that_cannot_be_judged_are_refused() -> None:
    with pytest.raises(InputError, match="id x"):
        History([Event(kind=SEND, id="x")])
    with pytest.raises(InputError, match="sent twice"):
        History(log("A send a\nB send a"))
    with pytest.raises(CycleError, match="a, b"):
        History(log("A send a < b\nB send b < a")).pasts("reply")


def test_kinds_are_those_of_the_schema() -> None:
    assert {row.kind for row in HELD_WHILE_SENDING} == {SEND, RECEIVE, DELIVER}
