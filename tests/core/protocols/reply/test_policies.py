"""S_b policies for a full store and for missing parents, and their guarantees."""

from __future__ import annotations

from typing import Any

import pytest

from antecede.core.protocols.base import (
    AFTER_LEAVE,
    Deliver,
    DeliverIncomplete,
    Discard,
    Hold,
    MessageId,
)
from antecede.core.protocols.reply.messages import SbMessage
from antecede.core.protocols.reply.sb import STORE_FULL, SemanticOrder
from antecede.errors import LocalError
from tests.core.protocols.reply.tools import mid, msg, said
from tests.core.protocols.seconds import s


def make_waiting_member(policy: str, **options: Any) -> SemanticOrder:
    return SemanticOrder(0, range(3), missing_parent=policy, patience_s=5.0, **options)


# -- a parent that never comes ---------------------------------------------------------------


def test_hold_waits_for_ever() -> None:
    a = SemanticOrder(0, range(3))
    a.receive(msg("B2", "B1"), now=s(0.0))
    assert a.tick(s(10**6)) == ()
    assert len(a.list_held()) == 1
    assert said(a.receive(msg("B1"), now=s(10**6))) == ["deliver B1", "deliver B2"]


def test_release_marks_the_message_and_its_answers_follow_in_order() -> None:
    a = make_waiting_member("release")
    a.receive(msg("B2", "B1"), now=s(0.0))
    a.receive(msg("C1", "B2"), now=s(1.0))
    assert said(a.tick(s(4.999))) == []
    assert said(a.tick(s(5.0))) == ["release B2 without B1", "deliver C1"]
    assert a.counts["released"] == 1
    assert not a.list_held()
    assert said(a.receive(msg("C2", "B2"), now=s(6.0))) == ["deliver C2"]
    assert a.send("A1", after=(mid("B2"),)), "the application has seen B2 and may answer it"


def test_release_the_parent_that_comes_later_is_delivered_late() -> None:
    a = make_waiting_member("release")
    a.receive(msg("B2", "B1"), now=s(0.0))
    a.tick(s(5.0))
    assert said(a.receive(msg("B1"), now=s(9.0))) == ["deliver B1"]
    assert said(a.receive(msg("B2", "B1"), now=s(9.0))) == ["discard B2: duplicate"]


def test_release_goes_from_the_ancestors_down() -> None:
    for parents in (("B1", "B2"), ("B2", "B1")):
        a = make_waiting_member("release", several_parents=True)
        a.receive(msg("C2", *parents), now=s(0.0))
        a.receive(msg("B2", "B1", "B9"), now=s(0.0))
        a.receive(msg("B1", "B8"), now=s(0.0))
        assert said(a.tick(s(5.0))) == [
            "release B1 without B8",
            "release B2 without B9",
            "deliver C2",
        ]


def test_release_of_a_cycle_ends() -> None:
    a = make_waiting_member("release")
    a.receive(msg("B1", "C1"), now=s(0.0))
    a.receive(msg("C1", "B1"), now=s(0.0))
    a.receive(msg("B2", "C1"), now=s(0.0))
    words = said(a.tick(s(5.0)))
    assert sum(word.startswith("release") for word in words) == 1
    assert sum(word.startswith("deliver") for word in words) == 2
    assert not a.list_held()


@pytest.mark.slow
def test_release_of_a_deep_thread_in_reverse_and_on_a_cycle() -> None:
    depth = 50_000
    for root in ((MessageId(1, depth + 1),), (MessageId(1, 2),)):
        a = make_waiting_member("release")
        for seq in range(depth, 1, -1):
            a.receive(SbMessage(1, seq, (MessageId(1, seq - 1),), seq), now=s(0.0))
        a.receive(SbMessage(1, 1, root, 1), now=s(0.0))
        effects = a.tick(s(5.0))
        assert len(effects) == depth
        assert sum(isinstance(effect, DeliverIncomplete) for effect in effects) == 1
        assert not a.list_held()


def test_set_aside_gives_up_the_message_and_what_answers_it() -> None:
    a = make_waiting_member("set_aside")
    a.receive(msg("B2", "B1"), now=s(0.0))
    a.receive(msg("C1", "B2"), now=s(4.0))
    a.receive(msg("C2", "B9"), now=s(4.0))
    assert said(a.tick(s(5.0))) == [
        "discard B2: dropped: parent 1:1 did not arrive within 5 s",
        "discard C1: dropped: reply to message 2 of member 1, which was dropped",
    ]
    assert a.counts["set_aside"] == 2
    assert [held.message.payload for held in a.list_held()] == ["C2"]


def test_set_aside_is_final() -> None:
    a = make_waiting_member("set_aside")
    a.receive(msg("B2", "B1"), now=s(0.0))
    a.tick(s(5.0))
    assert said(a.receive(msg("B1"), now=s(6.0))) == ["deliver B1"]
    assert said(a.receive(msg("B2", "B1"), now=s(6.0))) == ["discard B2: dropped before"]
    assert said(a.receive(msg("C1", "B2"), now=s(6.0))) == [
        "discard C1: dropped: reply to message 2 of member 1, which was dropped"
    ]
    assert said(a.receive(msg("C2", "C1"), now=s(6.0))) == [
        "discard C2: dropped: reply to message 1 of member 2, which was dropped"
    ]
    assert said(a.receive(msg("C3", "B1"), now=s(6.0))) == ["deliver C3"]
    assert a.counts["set_aside"] == 3
    with pytest.raises(LocalError, match="was not delivered here"):
        a.send("A1", after=(mid("B2"),))


@pytest.mark.slow
def test_set_aside_of_a_deep_thread_and_of_a_cycle_end() -> None:
    a = make_waiting_member("set_aside")
    for seq in range(50_000, 1, -1):
        a.receive(SbMessage(1, seq, (MessageId(1, seq - 1),), seq), now=s(0.0))
    assert len(a.tick(s(5.0))) == 49_999
    assert not a.store.by_parent
    assert a.storage_bytes() == 4 + 8, "what was set aside is one interval of numbers"
    b = make_waiting_member("set_aside")
    b.receive(msg("B1", "C1"), now=s(0.0))
    b.receive(msg("C1", "B1"), now=s(0.0))
    assert len(b.tick(s(5.0))) == 2
    assert not b.list_held()


# -- a full store ----------------------------------------------------------------------------


def test_refuse_takes_the_message_when_it_comes_again() -> None:
    a = SemanticOrder(0, range(3), store_limit=2)
    a.receive(msg("B2", "B1"))
    a.receive(msg("B3", "B2"))
    assert said(a.receive(msg("B4", "B3"))) == [f"discard B4: {STORE_FULL}"]
    assert a.counts["refused"] == 1
    assert said(a.receive(msg("C1"))) == ["deliver C1"], "what need not wait needs no room"
    assert said(a.receive(msg("B1"))) == ["deliver B1", "deliver B2", "deliver B3"]
    assert said(a.receive(msg("B4", "B3"))) == ["deliver B4"]


def test_overflow_release_marks_the_oldest() -> None:
    a = SemanticOrder(0, range(3), store_limit=2, overflow="release")
    a.receive(msg("B2", "B1"))
    a.receive(msg("C2", "C1"))
    assert said(a.receive(msg("C9", "C8"))) == ["release B2 without B1", "hold C9 for C8"]
    assert said(a.receive(msg("B1"))) == ["deliver B1"]


def test_overflow_release_may_free_the_newcomer() -> None:
    a = SemanticOrder(0, range(3), store_limit=1, overflow="release")
    a.receive(msg("B2", "B1"))
    assert said(a.receive(msg("B3", "B2"))) == ["release B2 without B1", "deliver B3"]


def test_overflow_release_begins_with_a_newcomer_at_the_top_of_the_thread() -> None:
    a = SemanticOrder(0, range(2), store_limit=1, overflow="release")
    assert said(a.receive(msg("B3", "B2"))) == ["hold B3 for B2"]
    assert said(a.receive(msg("B2", "B1"))) == ["release B2 without B1", "deliver B3"]
    assert a.list_held() == ()
    assert a.counts["released"] == 1
    assert said(a.receive(msg("B1"))) == ["deliver B1"]


def test_overflow_set_aside_gives_up_the_oldest_and_what_answers_it() -> None:
    a = SemanticOrder(0, range(3), store_limit=1, overflow="set_aside")
    a.receive(msg("B2", "B1"))
    assert said(a.receive(msg("C2", "C1"))) == [
        "discard B2: dropped: the store is full",
        "hold C2 for C1",
    ]
    assert said(a.receive(msg("C3", "C2"))) == [
        "discard C2: dropped: the store is full",
        "discard C3: dropped: reply to message 2 of member 2, which was dropped",
    ]
    assert a.counts["set_aside"] == 3


@pytest.mark.parametrize("overflow", ["refuse", "release", "set_aside"])
def test_the_store_never_exceeds_its_limit(overflow: str) -> None:
    a = SemanticOrder(0, range(2), store_limit=7, overflow=overflow)
    held = []
    for seq in range(100, 400):
        a.receive(SbMessage(1, seq, (MessageId(1, seq - 1 - 7 * (seq % 3)),), seq))
        held.append(len(a.list_held()))
    assert max(held) == 7


# -- promises --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "early", "stuck", "loss"),
    [
        ({}, True, True, False),
        ({"several_parents": True}, True, True, False),
        ({"missing_parent": "release", "patience_s": 1.0}, False, True, True),
        ({"missing_parent": "set_aside", "patience_s": 1.0}, True, False, True),
        ({"store_limit": 3}, True, False, False),
        ({"store_limit": 3, "overflow": "release"}, False, True, False),
        ({"store_limit": 3, "overflow": "set_aside"}, True, False, False),
    ],
)
def test_the_guarantee_says_what_is_left(
    options: dict[str, Any], early: bool, stuck: bool, loss: bool
) -> None:
    promised = SemanticOrder(0, range(2), **options).guarantee
    assert (promised.safe, promised.live) == (early, stuck)
    assert (promised.no_unnecessary_wait, promised.survives_loss) == (stuck, loss)
    assert promised.joins
    assert promised.leaves
    assert SemanticOrder.guarantee == SemanticOrder(0, range(2)).guarantee


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"missing_parent": "wait"}, "unknown missing_parent 'wait'"),
        ({"missing_parent": "release"}, "needs patience_s"),
        ({"missing_parent": "set_aside", "patience_s": 0.0}, "needs patience_s"),
        ({"patience_s": 3.0}, "without missing_parent"),
        ({"store_limit": 0}, "expected 1 or more"),
        ({"overflow": "release"}, "without store_limit"),
        ({"overflow": "oldest", "store_limit": 1}, "unknown overflow 'oldest'"),
        ({"as_published": "both"}, "unknown as_published 'both'"),
    ],
)
def test_choices_that_make_no_sense(options: dict[str, Any], says: str) -> None:
    with pytest.raises(LocalError, match=says):
        SemanticOrder(0, range(2), **options)


def test_a_full_store_holds_the_newcomer_where_it_is_in_no_thread_that_goes() -> None:
    member = SemanticOrder(0, range(2), several_parents=True, store_limit=2, overflow="release")
    below = SbMessage(1, 9, (MessageId(1, 8), MessageId(1, 7)), "below")
    above = SbMessage(1, 8, (MessageId(1, 1),), "above")
    other = SbMessage(1, 6, (MessageId(1, 5),), "other")
    member.receive(below)
    member.receive(above)
    assert list(member.receive(other)) == [
        DeliverIncomplete(above, above.parents),
        DeliverIncomplete(below, (MessageId(1, 7),)),
        Hold(other, other.parents),
    ]
    late = SbMessage(1, 5, (), "late")
    assert list(member.receive(late)) == [Deliver(late), Deliver(other)]


def test_what_is_held_beyond_the_last_message_of_who_left_is_set_aside_with_its_answers() -> None:
    member = SemanticOrder(0, range(3))
    beyond = SbMessage(1, 5, (MessageId(1, 4),), "beyond")
    answer = SbMessage(2, 1, (MessageId(1, 5),), "answer")
    member.receive(beyond)
    member.receive(answer)
    gone, with_it = member.leave(1, 4)
    assert gone == Discard(beyond, AFTER_LEAVE)
    assert isinstance(with_it, Discard)
    assert with_it.message == answer
    assert member.list_held() == ()
