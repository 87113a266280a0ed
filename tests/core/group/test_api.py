"""Public API of `Group`: ids, replies, threads, missing messages, counters, limits, help."""

from __future__ import annotations

import copy
import pickle
import random
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import antecede
from antecede import Bounds, Group, Sent, Stats, Subscriptions
from antecede.core.group.message import Message, Missing
from antecede.core.protocols.base import Held, MessageId
from antecede.core.protocols.clock_based.messages import StampedMessage
from antecede.core.protocols.registry import ENTRIES
from antecede.errors import DecodeError, LimitError, LocalError, RemoteError
from tests.helpers.stored_groups import ORDERS, START_S, TOPICS, fresh, story
from tests.helpers.unchanged import unchanged

NAMES = ("alice", "bob", "carol")


def texts(messages: list[Message]) -> list[bytes]:
    return [message.payload for message in messages]


def closed(order: str = "causal", **options: Any) -> list[Group]:
    return [Group(name, NAMES, order=order, **options) for name in NAMES]


# -- what a message is -----------------------------------------------------------------------


def test_a_sent_message_is_bytes_with_an_id() -> None:
    alice, bob, _ = closed()
    wire = alice.send(b"hi")
    assert isinstance(wire, bytes)
    assert isinstance(wire, Sent)
    assert (wire.id, wire.seq, wire.to) == (("alice", 1), 1, ("bob", "carol"))
    assert wire.message == Message("alice", 1, b"hi")
    assert alice.send(b"again").id == ("alice", 2)
    assert texts(bob.receive(wire)) == [b"hi"]
    left, right = socket.socketpair()
    with left, right:
        left.send(wire)
        assert right.recv(1000) == wire
    for other in (copy.copy(wire), copy.deepcopy(wire), pickle.loads(pickle.dumps(wire))):
        assert (other, other.id, other.to) == (wire, wire.id, wire.to)


def test_a_delivered_answer_names_what_it_answers() -> None:
    alice, bob, carol = closed("reply")
    chennai, delhi = carol.send(b"Chennai?"), carol.send(b"Delhi?")
    alice.receive(chennai)
    bob.receive(chennai)
    (question,) = bob.receive(delhi)
    no = alice.send(b"No", reply_to=chennai.id)
    yes = bob.send(b"Yes", reply_to=question)
    (first,) = carol.receive(no)
    (second,) = carol.receive(yes)
    assert first.reply_to == (("carol", 1),)
    assert second.reply_to == (("carol", 2),)
    assert alice.inspect(yes).reply_to == (("carol", 2),)
    assert yes.message.reply_to == (("carol", 2),)


def test_ones_own_message_can_be_answered() -> None:
    alice, bob, _ = closed("reply")
    question = alice.send(b"lunch?")
    more = alice.send(b"I mean today", reply_to=question)
    assert bob.receive(more) == []
    assert texts(bob.receive(question)) == [b"lunch?", b"I mean today"]


@pytest.mark.parametrize("wrong", [5, "alice", b"x", [b"x"], [None], ("alice", "1"), [("a",)]])
def test_what_names_no_message_cannot_be_answered(wrong: Any) -> None:
    alice = Group("alice", NAMES, order="reply")
    with pytest.raises(LocalError, match="reply_to"):
        alice.send(b"x", reply_to=wrong)
    assert alice.send(b"x").seq == 1


def test_orders_without_answers_say_so() -> None:
    alice = Group("alice", NAMES)
    first = alice.send(b"x")
    with pytest.raises(LocalError, match="does not support reply_to"):
        alice.send(b"y", reply_to=first)
    with pytest.raises(LocalError, match="no threads"):
        alice.thread(first)


def test_a_thread_is_a_tree() -> None:
    alice, bob, carol = closed("reply")
    question = alice.send(b"lunch?")
    bob.receive(question)
    yes = bob.send(b"yes", reply_to=question.id)
    (read,) = alice.receive(yes)
    where = alice.send(b"where?", reply_to=read)
    also = alice.send(b"and when?", reply_to=read)
    alice.send(b"something else")
    shown = """\
alice's message 1
  bob's message 1
    alice's message 2
    alice's message 3"""
    for message in (question, read, where.id, also):
        assert str(alice.thread(message)) == shown
    assert alice.thread(question).answers[0].id == ("bob", 1)
    with pytest.raises(LocalError, match="unknown message 1 of bob"):
        carol.thread(read)
    assert carol.receive(where) == []
    carol.receive(yes)
    assert texts(carol.receive(question)) == [b"lunch?", b"yes", b"where?"]
    again = Group("alice", NAMES, order="reply")
    again.restore(alice.snapshot())
    assert again.thread(where) == alice.thread(where)


def test_threads_are_bounded_and_deep_ones_are_no_trouble() -> None:
    alice = Group("alice", NAMES, order="reply", threads=3000)
    last = alice.send(b"0")
    for k in range(4000):
        last = alice.send(b"%d" % k, reply_to=last)
    tree = alice.thread(last)
    assert tree.id == ("alice", 1001)
    assert not tree.is_known
    assert sum(1 for _ in tree.walk()) == 3001
    assert len(str(tree).splitlines()) == 3001


# -- what is missing --------------------------------------------------------------------------


def test_missing_names_the_roots_and_how_many_wait() -> None:
    alice, bob, carol = closed()
    first = alice.send(b"1")
    bob.receive(first)
    answers = [bob.send(b"2"), bob.send(b"3")]
    for answer in answers:
        assert carol.receive(answer) == []
    assert carol.list_missing() == [Missing("alice", 1, 1)]
    assert (
        str(carol.list_missing()[0])
        == "message 1 of alice is missing; 1 held message(s) wait for it"
    )
    assert len(carol.list_held()) == 2
    carol.receive(first)
    assert carol.list_missing() == []


def test_a_silent_member_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _, bob, _ = closed("linear")
    message = StampedMessage(0, 1, b"x", 0)
    after = message._replace(seq=2)
    held = (
        Held(message, (), silent=(2,), until_ns=5),
        Held(after, (MessageId(0, 1),), silent=(2,)),
    )
    monkeypatch.setattr(bob._state.protocol, "list_held", lambda: held)
    first, second = bob.list_held()
    assert (first.silent, first.until_ns) == (("carol",), 5)
    assert str(first) == "alice's message 1 waits for any message from carol and clock reading 5 ns"
    assert str(second) == "alice's message 2 waits for alice's message 1 and any message from carol"
    assert bob.list_missing() == [Missing("carol", None, 2)]
    said = "a new message of carol is missing; 2 held message(s) wait for it"
    assert str(bob.list_missing()[0]) == said


CLOCKED = Bounds[str](accuracy_s=0.001, least_s=0.01, most_s=0.05)


@pytest.mark.parametrize(
    ("order", "options"),
    [
        ("linear", {"delivery": "bound"}),
        ("physical", {"delivery": "bound"}),
        ("linear-physical", {"delivery": "bound"}),
        ("tv", {"subscriptions": Subscriptions({"alice": ["x"], "bob": ["x"], "carol": ["x"]})}),
        ("htbc", {"subscriptions": Subscriptions({"alice": ["x"], "bob": ["x"], "carol": ["x"]})}),
    ],
)
def test_who_waits_for_the_clock_says_until_when(order: str, options: dict[str, Any]) -> None:
    alice, bob, _ = closed(order, bounds=CLOCKED, **options)
    sent: dict[str, Any] = {"topics": ["x"]} if "subscriptions" in options else {}
    bob.receive(alice.send(b"hi", now=100, **sent), now=100)
    (one,) = bob.list_held()
    assert one.until_ns is not None
    assert str(one) == f"alice's message 1 waits for clock reading {one.until_ns} ns"
    assert bob.tick(now_ns=one.until_ns - 1) == []
    assert texts(bob.tick(now_ns=one.until_ns)) == [b"hi"]


def test_one_that_is_due_says_that_a_tick_lets_it_go() -> None:
    alice, bob, _ = closed("linear", bounds=CLOCKED, delivery="bound")
    wires = [alice.send(b"%d" % number, now=100) for number in range(3)]
    bob.receive(wires[0], now=100)
    bob.receive(wires[2], now=101)  # ahead of a gap: nothing is looked at
    said = "alice's message 1 waits for the next tick, or a held message ordered before it"
    assert str(bob.list_held()[0]) == said
    assert texts(bob.tick(now=101)) == [b"0"]


def test_a_clock_that_began_again_says_until_when_in_its_own_readings() -> None:
    alice, bob, _ = closed("linear", bounds=CLOCKED, delivery="bound")
    bob.tick(now=1000)
    bob.receive(alice.send(b"hi", now=100), now=100)
    (one,) = bob.list_held()
    assert one.until_ns is not None
    assert 100 * 10**9 < one.until_ns < 101 * 10**9
    assert bob.tick(now_ns=one.until_ns - 1) == []
    assert texts(bob.tick(now_ns=one.until_ns)) == [b"hi"]


@pytest.mark.parametrize("order", ["linear", "physical", "linear-physical"])
def test_who_waits_for_null_messages_names_the_silent(order: str) -> None:
    alice, bob, carol = closed(order, bounds=CLOCKED)
    wires = [alice.send(b"%d" % number, now=100 + number) for number in (1, 2)]
    for wire in wires:
        bob.receive(wire, now=110)
    held = bob.list_held()
    assert str(held[-1]) == "alice's message 2 waits for any message from carol"
    assert bob.list_missing() == [Missing("carol", None, len(held))]
    bob.receive(carol.send(b"here", now=100), now=110)
    bob.receive(carol.send(b"later", now=112), now=112)
    assert all("carol" not in str(one).partition("waits")[2] for one in bob.list_held())


def test_what_a_leaver_and_a_newcomer_need_can_be_asked_for() -> None:
    alice, bob, carol = closed()
    wires = [alice.send(b"1"), alice.send(b"2")]
    bob.receive(wires[0])
    carol.receive(wires[1])
    assert (
        alice.last_seq(),
        bob.last_seq("alice"),
        carol.last_seq("alice"),
        bob.last_seq("carol"),
    ) == (2, 1, 2, 0)
    assert bob.frontier() == {"alice": ((1, 1),), "bob": (), "carol": ()}
    assert carol.frontier()["alice"] == ()
    with pytest.raises(LocalError, match="unknown member 'zoe'"):
        alice.last_seq("zoe")
    dave = Group.accept("dave", carol.invite("dave"))
    assert dave.frontier() == {"alice": (), "bob": (), "carol": (), "dave": ()}
    (held,) = carol.list_held_packets()
    assert dave.receive(held.wire) == []
    alice.join("dave")
    assert texts(dave.receive(wires[0])) == [b"1", b"2"]
    bob.join("dave")
    bob.leave("alice", alice.last_seq())
    assert texts(bob.receive(wires[1])) == [b"2"]


def test_frontiers_of_orders_with_gaps_show_them() -> None:
    alice, bob, _ = closed("none")
    wires = [alice.send(b"%d" % k) for k in range(4)]
    for k in (0, 1, 3):
        bob.receive(wires[k])
    assert bob.frontier()["alice"] == ((1, 2), (4, 4))


@pytest.mark.parametrize("order", ["total", "total-agreed"])
@given(seed=st.integers(0, 2**32))
def test_the_frontier_of_a_total_order_is_what_was_handed_over(order: str, seed: int) -> None:
    rng = random.Random(seed)
    groups = {name: Group(name, NAMES, order=order) for name in NAMES}
    flying: list[tuple[str, bytes]] = []
    read: dict[str, list[Message]] = {name: [] for name in NAMES}
    for k in range(60):
        if k < 12 and rng.random() < 0.5:
            name = rng.choice(NAMES)
            flying += [(to, p.wire) for p in groups[name].send_packets(b"x") for to in p.to]
        elif flying:
            name, wire = flying.pop(rng.randrange(len(flying)))
            read[name] += groups[name].receive(wire)
        else:
            continue
        read[name] += groups[name].take_own_deliveries()
        flying += [(to, p.wire) for p in groups[name].take_control_packets() for to in p.to]
        for member, runs in groups[name].frontier().items():
            numbers = [m.seq for m in read[name] if m.sender == member]
            assert [n for first, last in runs for n in range(first, last + 1)] == numbers


def test_roles_that_number_anew_have_no_frontier() -> None:
    group = story("internal").group
    with pytest.raises(LocalError, match="renumbers messages"):
        group.frontier()
    assert group.last_seq() == 0
    with pytest.raises(LocalError, match="numbers of p0 are unknown here"):
        group.last_seq("p0")  # it answered 0, although messages of it are here


@pytest.mark.parametrize("order", ORDERS)
def test_inspect_works_in_every_order(order: str) -> None:
    alice, bob = fresh(order, "alice"), fresh(order, "bob")
    how: dict[str, Any] = {"topics": ("news",)} if order in TOPICS else {}
    for packet in alice.send_packets(b"x", now=START_S, **how):
        envelope = bob.inspect(packet.wire)
        assert (envelope.sender, envelope.seq, envelope.payload) == ("alice", 1, b"x")
        assert envelope.control_bytes > 0


@pytest.mark.parametrize("order", ORDERS)
def test_the_count_of_held_messages_is_that_of_blocked_on(order: str) -> None:
    told = story(order)
    assert told.group._state.protocol.count_held() == len(told.group._state.protocol.list_held())
    assert told.group.stats().held == len(told.group.list_held())


def test_matrix_tells_what_others_have() -> None:
    alice, bob, carol = closed("matrix")
    first = alice.send(b"1")
    bob.receive(first)
    carol.receive(first)
    alice.receive(bob.send(b"2"))
    assert (alice.get_known_seq("bob", "alice"), alice.get_known_seq("carol", "alice")) == (1, 0)
    assert alice.stable_seqs() == {"alice": 0, "bob": 0, "carol": 0}
    with pytest.raises(LocalError, match="use 'matrix'"):
        Group("alice", NAMES).stable_seqs()


# -- counters and limits ------------------------------------------------------------------------


def test_stats_count_what_happened() -> None:
    alice, bob, carol = closed()
    first, second = alice.send(b"1"), alice.send(b"2")
    carol.receive(second, now_ns=500)
    carol.receive(second, now_ns=600)
    stats = carol.stats()
    assert isinstance(stats, Stats)
    assert (stats.held, stats.oldest, stats.held_since_ns) == (1, ("alice", 2), 500)
    carol.receive(first)
    carol.receive(first)
    with pytest.raises(RemoteError):
        carol.receive(b"nonsense")
    stats = carol.stats()
    assert (stats.members, stats.sent, stats.delivered, stats.held) == (3, 0, 2, 0)
    assert (stats.duplicates, stats.oldest, stats.rejected) == (2, None, {"DecodeError": 1})
    assert alice.stats().sent == 2
    assert bob.stats().delivered == 0


def test_discards_reach_the_counters_by_reason() -> None:
    alice, _, carol = closed("fifo")
    alice.send(b"1")
    alice.send(b"2")
    carol.receive(alice.send(b"3"))
    carol.leave("alice", 1)
    assert carol.stats().discarded == {"numbered after its sender's last message": 1}
    assert carol.stats().oldest is None


def test_a_limit_of_held_messages_refuses_and_loses_nothing() -> None:
    alice, bob = Group("alice", NAMES), Group("bob", NAMES, max_held=3)
    wires = [alice.send(b"%d" % k) for k in range(6)]
    for wire in wires[1:4]:
        bob.receive(wire)
    with (
        unchanged(bob),
        pytest.raises(LimitError, match="3 messages are held, the limit is max_held=3: retry"),
    ):
        bob.receive(wires[4])
    assert texts(bob.receive(wires[0])) == [b"0", b"1", b"2", b"3"], "what helps is taken in"
    assert texts(bob.receive(wires[4]) + bob.receive(wires[5])) == [b"4", b"5"]


def test_packets_and_payloads_have_a_limit() -> None:
    alice = Group("alice", NAMES, max_packet=1000)
    with pytest.raises(LocalError, match="payload of 1001 bytes exceeds max_packet=1000"):
        alice.send(bytes(1001))
    big = Group("bob", NAMES).send(bytes(1000))
    with pytest.raises(LimitError, match="max_packet=1000"):
        alice.receive(big)
    assert alice.send(b"x").seq == 1
    with pytest.raises(LocalError, match="max_held=0"):
        Group("alice", NAMES, max_held=0)


# -- words ----------------------------------------------------------------------------------------


def test_errors_and_reprs_say_names() -> None:
    alice, bob, carol = closed()
    assert repr(alice) == "<Group of 'alice': idr, closed, 3 members>"
    wire = alice.send(b"hi")
    assert repr(bob.receive(wire)[0]) == "<alice's message 1: b'hi'>"
    assert repr(alice.send_packets(b"x")[0]).endswith("bytes for bob, carol>")
    carol.leave("bob", 0)
    with pytest.raises(RemoteError, match="'bob'"):
        carol.receive(bob.send(b"ghost"))
    with pytest.raises(LocalError, match="'bob'"):
        carol.leave("bob", 0)


def test_what_a_group_cannot_be_made_of_is_said() -> None:
    with pytest.raises(LocalError, match=r"causal \(= idr\), reply \(= sb\), none \(= unordered\)"):
        Group("a", order="chronological")
    with pytest.raises(LocalError, match="members= is the text 'abc'"):
        Group("a", "abc")
    with pytest.raises(LocalError, match="member name is int"):
        Group("a", ["a", 5])  # type: ignore[list-item]
    with pytest.raises(LocalError, match="order 'linear' needs a closed group"):
        Group("a", order="linear", bounds=Bounds())
    with pytest.raises(LocalError, match="room="):
        Group("a", room=5)  # type: ignore[arg-type]


def test_options_that_would_say_nothing_are_refused() -> None:
    with pytest.raises(LocalError, match="max_members= has no effect in a closed group"):
        Group("a", ["a", "b"], max_members=5)
    with pytest.raises(LocalError, match="threads= has no effect"):
        Group("a", ["a", "b"], threads=5)
    with pytest.raises(LocalError, match="duplicate name: 'b'"):
        Group("a", ["a", "b", "b"])
    with pytest.raises(LocalError, match="threads=-1: expected an integer of 0 or more"):
        Group("a", ["a", "b"], order="reply", threads=-1)


def test_options_of_a_wrong_kind_say_what_is_right() -> None:
    with pytest.raises(LocalError, match=r"'foo'; choose from .*several_parents"):
        Group("a", ["a", "b"], order="reply", foo=3)
    with pytest.raises(
        LocalError, match=r"fifo.*'foo'; it has no options\. Options of every group: room"
    ):
        Group("a", ["a", "b"], order="fifo", foo=3)
    with pytest.raises(LocalError, match=r"bounds= is int; expected antecede.Bounds"):
        Group("a", ["a", "b"], order="htbc", bounds=3)
    with pytest.raises(LocalError, match=r"subscriptions= is dict; expected antecede.Sub"):
        Group("a", ["a"], order="htbc", bounds=Bounds(), subscriptions={"a": ["x"]})
    with pytest.raises(LocalError, match=r"LinearPhysical.*give bounds=Bounds\(accuracy_s="):
        Group("a", ["a", "b"], order="linear-physical")


@pytest.mark.parametrize("wrong", ["news", b"news", 3])
def test_subscriptions_are_lists_of_topics(wrong: Any) -> None:
    with pytest.raises(LocalError, match=r"topics of 'a' is .*; expected a list of words"):
        Group("a", ["a"], order="tv", bounds=CLOCKED, subscriptions=Subscriptions({"a": wrong}))
    with pytest.raises(LocalError, match="expected topics by member"):
        Group("a", ["a"], order="tv", bounds=CLOCKED, subscriptions=Subscriptions(wrong))


def test_help_lists_the_options_of_every_order() -> None:
    text = Group.__doc__
    assert text is not None
    for name, entry in ENTRIES.items():
        if entry.flat:
            assert f"\n{name}: " in text
    assert Group.options("bss") == {"differences": "False", "as_published": "False"}
    assert "bounds" in Group.options("htbc")
    assert "subscriptions=" in text


def test_what_builders_need_is_exported() -> None:
    for name in antecede.__all__:
        assert getattr(antecede, name) is not None
    assert {"Bounds", "Subscriptions", "LimitError", "Sent", "Stats"} <= {*antecede.__all__}
    assert Subscriptions({"a": ("news",)}).of("a") == frozenset({"news"})


# -- the log of inputs ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "order", ["causal", "bss", "fifo", "none", "reply", "matrix", "ses", "total"]
)
@given(seed=st.integers(0, 10**6))
def test_a_snapshot_and_the_log_since_are_the_state(order: str, seed: int) -> None:
    rng = random.Random(seed)
    options: dict[str, Any] = {"several_parents": True} if order == "reply" else {}
    groups = {
        n: Group(n, NAMES, order=order, keep_log=True, incarnation=k, **options)
        for k, n in enumerate(NAMES)
    }
    bob, files = groups["bob"], list[bytes]()
    state = bob.snapshot()
    read: list[Message] = []
    flying: list[tuple[str, bytes]] = []
    for k in range(rng.randrange(40)):
        choice = rng.random()
        name = rng.choice(NAMES)
        if choice < 0.4:
            chosen: dict[str, Any] = (
                {"reply_to": read[-1]} if order == "reply" and name == "bob" and read else {}
            )
            for packet in groups[name].send_packets(b"%d" % k, **chosen):
                flying += [(other, packet.wire) for other in packet.to]
        elif choice < 0.5:
            state, files = bob.snapshot(), []
        elif choice < 0.6:
            files += bob.take_log()
        elif flying:
            to, wire = flying.pop(rng.randrange(len(flying)))
            got = groups[to].receive(wire)
            read += got if to == "bob" else []
            for packet in groups[to].take_control_packets():
                flying += [(other, packet.wire) for other in packet.to]
    files += bob.take_log()
    again = Group("bob", NAMES, order=order, keep_log=True, **options)
    again.restore(state, files, resume=True)
    assert again.snapshot() == bob.snapshot()
    assert all(len(record) < 400 for record in files)


def test_a_log_holds_membership_too() -> None:
    alice = Group("alice", NAMES, keep_log=True)
    state = alice.snapshot()
    dave = Group.accept("dave", alice.invite("dave"))
    alice.leave("carol", 0)
    alice.receive(dave.send(b"hello"))
    again = Group("alice", NAMES)
    again.restore(state, alice.take_log())
    assert again.members == ("alice", "bob", "dave")
    assert again.stats().delivered == 1
    assert again.send(b"x").seq == 1


def test_a_log_that_is_none_is_refused_whole() -> None:
    alice = Group("alice", NAMES, keep_log=True)
    state = alice.snapshot()
    alice.send(b"x")
    good = alice.take_log()
    again = Group("alice", NAMES)
    before = again.snapshot()
    for bad in (b"", b"x", good[0][:-1], state):
        with pytest.raises(DecodeError):
            again.restore(state, [*good, bad])
        assert again.snapshot() == before
    with pytest.raises(LocalError, match="keep_log=True"):
        again.take_log()


def test_who_is_alone_sends_to_nobody_and_keeps_its_numbers() -> None:
    alone = Group("alice", ["alice"], order="linear")
    sent = alone.send(b"x", now=1.0)
    assert (bytes(sent), sent.id, sent.to) == (b"", ("alice", 1), ())
    assert (alone.last_seq(), alone.stats().sent) == (1, 1)


def test_topics_nobody_reads_spend_no_number_and_posted_ones_count_as_the_last() -> None:
    bounds: Bounds[str] = Bounds(accuracy_s=0.01, least_s=0.0, most_s=0.1)
    read: Subscriptions[str] = Subscriptions({"bob": ["news"]})
    alice = Group("alice", ["alice", "bob"], order="tv", bounds=bounds, subscriptions=read)
    with pytest.raises(
        LocalError, match=r"of alice has no receivers.*subscribes to 'typo'; no number was used"
    ):
        alice.send(b"x", topics=["typo"], now=1.0)
    assert (alice.last_seq(), alice.stats().sent) == (0, 0)
    assert alice.send_packets(b"x", topics=["typo"], now=1.0) == []
    assert (alice.last_seq(), alice.stats().sent) == (1, 1)


def test_numbers_and_names_of_other_libraries_are_taken_as_ones_own() -> None:
    import enum
    from fractions import Fraction

    import numpy as np

    ns: Any = np.int64(10**6)
    given: Bounds[str] = Bounds(accuracy_ns=ns, least_ns=ns, most_ns=ns, clocks_ns={"bob": ns})
    assert type(given.most_ns) is type(given.clocks_ns["bob"]) is int

    class Who(enum.StrEnum):
        ALICE = "alice"
        BOB = "bob"

    third = Group(Who.ALICE, [*Who], order="linear", heartbeat_s=Fraction(1, 3))
    other = Group("bob", ["alice", "bob"], order="linear", heartbeat_s=1 / 3)
    third.invite(enum.StrEnum("More", {"CAROL": "carol"}).CAROL)  # type: ignore[attr-defined]
    assert {type(name) for name in third.members} == {str}
    other.join("carol")
    assert other._state.options == third._state.options
    other.receive(third.send(b"x", now=1.0), now=1.0)


@pytest.mark.parametrize("order", ["fifo", "bss", "idr", "matrix"])
def test_the_whole_gap_is_missing_where_all_of_a_sender_s_messages_are_for_everybody(
    order: str,
) -> None:
    alice, bob = (Group(name, ["alice", "bob"], order=order) for name in ("alice", "bob"))
    wires = [alice.send(b"") for _ in range(6)]
    for number in (1, 4, 6):
        bob.receive(wires[number - 1])
    assert bob.list_missing() == [Missing("alice", 3, 1, first=2), Missing("alice", 5, 1)]
    assert str(bob.list_missing()[0]) == (
        "messages 2 to 3 of alice are missing; 1 held message(s) wait for them"
    )
    for number in (2, 3, 5):
        bob.receive(wires[number - 1])
    assert bob.list_missing() == []


def test_where_messages_are_for_some_or_order_goes_by_reply_a_number_stands_alone() -> None:
    alice, bob = (Group(name, ["alice", "bob"], order="reply") for name in ("alice", "bob"))
    _, second = alice.send(b"1"), alice.send(b"2")
    bob.receive(alice.send(b"3", reply_to=second))
    assert bob.list_missing() == [Missing("alice", 2, 1)]
