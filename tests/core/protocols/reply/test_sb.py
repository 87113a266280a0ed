"""S_b: worked examples and claims of Bhavanasi and Iyer, and errors of callers."""

from __future__ import annotations

import itertools

import pytest

from antecede.core.clocks.intervals import nodes
from antecede.core.protocols.base import Deliver, Hold, MessageId, Relation, Transmit
from antecede.core.protocols.reply.messages import SbMessage
from antecede.core.protocols.reply.sb import CONFLICT, SemanticOrder
from antecede.errors import LocalError, RemoteError, SequenceError, UnknownMemberError
from tests.core.protocols.reply.tools import NAMES, mid, msg, said
from tests.helpers.unchanged import unchanged


def state(member: SemanticOrder) -> tuple[str, str]:
    shown = member.describe(NAMES)
    return shown["OL"], shown["OSMS"]


# -- worked examples -------------------------------------------------------------------------


def test_the_six_steps_of_section_iv_d() -> None:
    a = SemanticOrder(0, (0, 1))
    assert a.describe(NAMES) == {"seqno": "0", "OL": "empty", "OSMS": "empty"}  # step 1, fig. 7a
    assert said(a.receive(msg("B1"))) == ["deliver B1"]
    assert state(a) == ("B1", "empty")  # step 2, fig. 7b
    assert said(a.receive(msg("B3", "B2"))) == ["hold B3 for B2"]
    assert state(a) == ("B1", "<B3, B2>")  # step 3, fig. 7c
    assert said(a.receive(msg("B4", "B3"))) == ["hold B4 for B3"]
    assert state(a) == ("B1", "<B3, B2> <B4, B3>")  # step 4, fig. 7d
    assert said(a.receive(msg("B2", "B1"))) == ["deliver B2", "deliver B3", "deliver B4"]
    assert state(a) == ("B1-4", "empty")  # step 5, fig. 7e
    assert a.send("A1", after=(mid("B2"),)) == (Transmit((1,), msg("A1", "B2")),)
    assert a.describe(NAMES) == {"seqno": "1", "OL": "A1 B1-4", "OSMS": "empty"}  # step 6, fig. 7f


def test_the_threaded_chat_of_figures_3_and_5() -> None:
    chennai, delhi = msg("C1"), msg("C2")
    no, yes = msg("A1", "C1"), msg("B1", "C2")
    for order in itertools.permutations((chennai, delhi, no, yes)):
        d = SemanticOrder(3, range(4))
        seen = [
            effect.message.payload
            for message in order
            for effect in d.receive(message)
            if isinstance(effect, Deliver)
        ]
        assert sorted(seen) == ["A1", "B1", "C1", "C2"]
        assert seen.index("C1") < seen.index("A1")
        assert seen.index("C2") < seen.index("B1")
        assert state(d) == ("A1 B1 C1-2", "empty")


def test_figure_1_an_unrelated_message_does_not_wait() -> None:
    q, r = SemanticOrder(1, range(3)), SemanticOrder(2, range(3))
    x2 = SbMessage(0, 1, (), "X2")
    q.receive(x2)
    (sent,) = q.send("Y2")
    assert isinstance(sent, Transmit)
    assert said(r.receive(sent.message)) == ["deliver Y2"]
    assert said(r.receive(x2)) == ["deliver X2"]


# -- claims ----------------------------------------------------------------------------------


def test_iii_a_1_response_semantics_the_message_names_its_parent() -> None:
    a = SemanticOrder(0, (0, 1))
    a.receive(msg("B1"))
    (effect,) = a.send("A1", after=(mid("B1"),))
    assert isinstance(effect, Transmit)
    assert a.causes(effect.message) == (mid("B1"),)
    assert a.guarantee.relation is Relation.BY_REPLY


def test_iii_a_2_uniqueness_one_parent() -> None:
    a = SemanticOrder(0, (0, 1))
    a.receive(msg("B1"))
    a.receive(msg("B2"))
    before = a.snapshot()
    with pytest.raises(LocalError, match="several_parents=True"):
        a.send("A1", after=(mid("B1"), mid("B2")))
    with pytest.raises(RemoteError, match="replies to 2 messages"):
        a.receive(msg("B3", "B1", "B2"))
    assert a.snapshot() == before
    assert a.send("A1", after=(mid("B1"), mid("B1"))), "the same parent twice is one parent"


def test_iii_a_2_a_message_may_have_many_answers() -> None:
    a = SemanticOrder(0, range(3))
    for label in ("B2", "C1", "C2"):
        a.receive(msg(label, "B1"))
    assert said(a.receive(msg("B1"))) == ["deliver B1", "deliver B2", "deliver C1", "deliver C2"]


def test_iii_a_3_transitivity_whatever_the_order_of_arrival() -> None:
    thread = (msg("A1"), msg("B1", "A1"), msg("C1", "B1"), msg("B2", "C1"))
    for order in itertools.permutations(thread):
        d = SemanticOrder(3, range(4))
        words = [word for message in order for word in said(d.receive(message))]
        delivered = [word for word in words if word.startswith("deliver")]
        assert delivered == ["deliver A1", "deliver B1", "deliver C1", "deliver B2"]


def test_iii_b_1_what_is_answered_happened_before() -> None:
    a = SemanticOrder(0, (0, 1))
    for never in ("B1", "A1", "C1"):
        with pytest.raises(LocalError, match="was not delivered here"):
            a.send("x", after=(mid(never),))
    a.receive(msg("B2", "B1"))
    with pytest.raises(LocalError, match="was not delivered here"):
        a.send("x", after=(mid("B2"),))  # it arrived, but the application has not seen it
    assert a.sent == 0


def test_iii_b_2_happened_before_does_not_imply_s_b() -> None:
    a = SemanticOrder(0, (0, 1))
    assert said(a.receive(msg("B2"))) == ["deliver B2"]
    assert said(a.receive(msg("B1"))) == ["deliver B1"]


def test_theorem_2_answers_do_not_wait_for_each_other() -> None:
    a = SemanticOrder(0, range(3))
    a.receive(msg("B1"))
    assert said(a.receive(msg("C5", "B1"))) == ["deliver C5"]
    assert said(a.receive(msg("C1", "B1"))) == ["deliver C1"]


def test_vi_d_2_best_case_one_node_a_member() -> None:
    a = SemanticOrder(0, range(3))
    for seq in range(1, 1001):
        a.receive(SbMessage(1, seq, (), None))
        a.receive(SbMessage(2, seq, (), None))
    assert [nodes(bounds) for bounds in a.delivered.values()] == [0, 1, 1]
    assert a.storage_bytes() == 4 + 2 * 8


def test_vi_d_2_worst_case_one_node_a_message() -> None:
    a = SemanticOrder(0, range(2))
    for seq in range(1, 2001, 2):
        a.receive(SbMessage(1, seq, (), None))
    assert nodes(a.delivered[1]) == 1000
    assert a.storage_bytes() == 4 + 1000 * 8


def test_vi_d_2_the_store_is_empty_in_order_and_holds_all_without_the_root() -> None:
    chain = [SbMessage(1, seq, (MessageId(1, seq - 1),), seq) for seq in range(2, 102)]
    root = SbMessage(1, 1, (), 1)
    best, worst = SemanticOrder(0, (0, 1)), SemanticOrder(0, (0, 1))
    for message in (root, *chain):
        best.receive(message)
        assert not best.list_held()
    for message in chain:
        worst.receive(message)
    assert len(worst.list_held()) == 100
    assert worst.storage_bytes() == 4 + 100 * 16
    assert len(worst.receive(root)) == 101


@pytest.mark.slow
def test_a_thread_of_100_000_messages_in_reverse() -> None:
    depth = 100_000
    a = SemanticOrder(0, (0, 1))
    for seq in range(depth, 1, -1):
        a.receive(SbMessage(1, seq, (MessageId(1, seq - 1),), seq))
    effects = a.receive(SbMessage(1, 1, (), 1))
    assert [effect.message.seq for effect in effects] == list(range(1, depth + 1))
    assert a.delivered[1] == [1, depth + 1]
    assert not a.list_held()
    assert not a.store.by_parent


def test_depth_first_as_in_algorithm_3() -> None:
    a = SemanticOrder(0, range(3))
    answers = ("B2", "B1"), ("C1", "B1"), ("B3", "B2"), ("C2", "C1"), ("B4", "B2"), ("B5", "B3")
    for label, parent in answers:
        a.receive(msg(label, parent))
    words = said(a.receive(msg("B1")))
    assert words == [f"deliver {label}" for label in ("B1", "B2", "B3", "B5", "B4", "C1", "C2")]


# -- several parents -------------------------------------------------------------------------


def test_several_parents_waits_for_all_of_them() -> None:
    a = SemanticOrder(0, range(3), several_parents=True)
    assert said(a.receive(msg("C2", "B1", "C1"))) == ["hold C2 for B1 C1"]
    assert said(a.receive(msg("B1"))) == ["deliver B1"]
    assert said([Hold(*held[:2]) for held in a.list_held()]) == ["hold C2 for C1"]
    assert said(a.receive(msg("C1"))) == ["deliver C1", "deliver C2"]
    (effect,) = a.send("A1", after=(mid("B1"), mid("C2")))
    assert isinstance(effect, Transmit)
    assert effect.message == msg("A1", "B1", "C2")
    with pytest.raises(RemoteError, match="twice"):
        a.receive(msg("C3", "B1", "B1"))


# -- duplicates and impossible messages ------------------------------------------------------


def test_duplicates_are_discarded_held_delivered_or_own() -> None:
    a = SemanticOrder(0, (0, 1))
    a.receive(msg("B2", "B1"))
    assert said(a.receive(msg("B2", "B1"))) == ["discard B2: duplicate"]
    a.receive(msg("B1"))
    for label in ("B1", "B2"):
        assert said(a.receive(msg(label))) == [f"discard {label}: duplicate"]
    a.send("A1")
    assert said(a.receive(msg("A1"))) == ["discard A1: own message"]
    assert a.counts["conflict"] == 0


def test_same_id_with_other_content_is_a_conflict_and_the_first_stays() -> None:
    a = SemanticOrder(0, (0, 1))
    held = msg("B2", "B1")
    a.receive(held)
    for other in (held._replace(payload="other"), held._replace(parents=(mid("B7"),))):
        (effect,) = a.receive(other)
        assert effect == (other, CONFLICT)
    assert a.counts["conflict"] == 2
    assert said(a.receive(msg("B1"))) == ["deliver B1", "deliver B2"]


@pytest.mark.parametrize(
    ("message", "error", "says"),
    [
        (SbMessage(7, 1, (), "x"), UnknownMemberError, "7, who is not in the group"),
        (SbMessage(1, 1, (MessageId(7, 1),), "x"), UnknownMemberError, "7, who is not"),
        (SbMessage(1, 0, (), "x"), SequenceError, "number 0"),
        (SbMessage(1, -3, (), "x"), SequenceError, "number -3"),
        (SbMessage(1, 1 << 63, (), "x"), SequenceError, "number 9223372036854775808"),
        (SbMessage(1, 1, (MessageId(1, 0),), "x"), SequenceError, "number 0"),
        (SbMessage(1, 1, (MessageId(1, 1 << 63),), "x"), SequenceError, "number"),
        (SbMessage(1, 4, (MessageId(1, 4),), "x"), RemoteError, "replies to itself"),
        (
            SbMessage(1, 4, (MessageId(0, 1),), "x"),
            SequenceError,
            "but this member has sent 0",
        ),
        (SbMessage(0, 1, (), "x"), SequenceError, "its state is stale"),
    ],
)
def test_impossible_messages_are_refused_and_change_nothing(
    message: SbMessage, error: type[RemoteError], says: str
) -> None:
    a = SemanticOrder(0, (0, 1))
    a.receive(msg("B2"))
    a.receive(msg("B6", "B5"))
    with unchanged(a), pytest.raises(error, match=says):
        a.receive(message)
    assert said(a.receive(msg("B5"))) == ["deliver B5", "deliver B6"]


def test_memory_does_not_follow_absurd_numbers() -> None:
    a = SemanticOrder(0, (0, 1))
    far = (1 << 63) - 1
    assert said(a.receive(SbMessage(1, far, (), "far"))) == ["deliver far"]
    a.receive(SbMessage(1, far - 2, (MessageId(1, far - 1),), "held"))
    assert a.storage_bytes() == 4 + 8 + 16
    assert said(a.receive(SbMessage(1, far - 1, (), "gap"))) == ["deliver gap", "deliver held"]
    assert nodes(a.delivered[1]) == 1


def test_a_cycle_of_parents_is_held_and_shown_and_hinders_nobody() -> None:
    a = SemanticOrder(0, range(3))
    a.receive(msg("B1", "C1"))
    a.receive(msg("C1", "B1"))
    a.receive(msg("B2", "C1"))
    blocked = [(held.message.payload, held.missing) for held in a.list_held()]
    assert blocked == [("B1", (mid("C1"),)), ("C1", (mid("B1"),)), ("B2", (mid("C1"),))]
    assert said(a.receive(msg("C2"))) == ["deliver C2"]
