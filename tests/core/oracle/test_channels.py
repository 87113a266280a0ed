"""Channel models (Sahai et al. 2020, "Message ordering"): FIFO, causal, non-FIFO, and what implies
what.
"""

from __future__ import annotations

from hypothesis import given

from antecede.core.oracle.channels import (
    CAUSAL,
    FIFO,
    NON_FIFO,
    OrderViolation,
    arrivals,
    deliveries,
)
from antecede.core.oracle.history import History
from antecede.tables.trace.schema import DELIVER, RECEIVE, SEND, Event
from tests.core.oracle.executions import executions


def rows(text: str) -> list[Event]:
    """Rows from words like P!a (P sends a), Q?a (a arrives at Q), Q.a (Q delivers a)."""
    kinds = {"!": SEND, "?": RECEIVE, ".": DELIVER}
    return [Event(kind=kinds[word[1]], id=word[2:], member=word[0]) for word in text.split()]


def test_001_a_queue_keeps_the_order_of_sending() -> None:
    found = arrivals(rows("P!a P!b Q?a Q?b"))
    assert (found.name, found.witness) == (CAUSAL, None)


def test_001_a_set_is_emptied_in_any_order() -> None:
    found = arrivals(rows("P!a P!b Q?b Q?a"))
    assert (found.name, found.witness) == (NON_FIFO, OrderViolation("a", "Q", "b"))


def test_001_fifo_does_not_imply_causal() -> None:
    found = arrivals(rows("P!a Q?a Q!b R?b R?a"))
    assert (found.name, found.fifo, found.witness) == (FIFO, (), OrderViolation("a", "R", "b"))


@given(executions())
def test_001_causal_implies_fifo(execution: list[Event]) -> None:
    for found in (arrivals(execution), deliveries(execution)):
        broken = {(one.message, one.member) for one in found.causal}
        assert {(one.message, one.member) for one in found.fifo} <= broken
        assert (found.name == CAUSAL) == (not found.causal)
        assert (found.name == NON_FIFO) == bool(found.fifo)


@given(executions())
def test_001_the_property_as_it_is_printed(execution: list[Event]) -> None:
    history = History(execution)
    pasts = history.pasts("receipt")
    holds = True
    for member, own in history.by_member.items():
        came: list[str] = []
        for row in own:
            foreign = row.kind == RECEIVE and history.sends[row.id].member != member
            if foreign and row.id not in came:
                came.append(row.id)
        holds &= not any(
            later in pasts[earlier] for k, earlier in enumerate(came) for later in came[k + 1 :]
        )
    assert (arrivals(execution).name == CAUSAL) == holds


def test_arrivals_and_deliveries_are_told_apart() -> None:
    run = rows("P!a P!b Q?b Q?a Q.a Q.b")
    assert (arrivals(run).name, deliveries(run).name) == (NON_FIFO, CAUSAL)


def test_deliveries_go_by_what_was_delivered_not_by_what_had_arrived() -> None:
    run = rows("P!a Q?a Q!b R?b R?a R.b R.a Q.a")
    assert (arrivals(run).name, deliveries(run).name) == (FIFO, CAUSAL)


def test_what_is_never_delivered_is_overtaken() -> None:
    run = rows("P!a P!b Q?b Q?a Q.b")
    assert deliveries(run).witness == OrderViolation("a", "Q", "b", never=True)


def test_a_lost_message_counts_where_the_addressees_are_known() -> None:
    run = rows("P!a P!b Q?b")
    assert arrivals(run).name == CAUSAL
    assert arrivals(run, {"a": "Q", "b": "Q"}).witness == OrderViolation("a", "Q", "b", never=True)
    assert arrivals(run, {"a": "R", "b": "Q"}).name == CAUSAL


def test_the_first_of_several_copies_counts() -> None:
    assert arrivals(rows("P!a P!b Q?a Q?b Q?a")).name == CAUSAL


def test_own_copies_and_unsent_messages_say_nothing() -> None:
    assert arrivals(rows("P!a P!b P?b P?a Q?x")).name == CAUSAL


def test_what_did_not_come_overtakes_nothing() -> None:
    run = rows("P!x P!a P!b Q?x Q?b Q?a Q.x")
    assert (arrivals(run).name, deliveries(run).name) == (NON_FIFO, CAUSAL)
