"""Order "reply": what becomes of answers whose parents died with their senders."""

from __future__ import annotations

import random
from typing import Any

import pytest

from antecede.errors import LocalError
from antecede.live.events import Id, Message, MessagesAbandoned
from antecede.live.peer import Peer
from antecede.live.settings import NS, Settings
from tests.live.memory_network import MemoryNetwork


def send_text(network: MemoryNetwork, name: str, text: str, *answers: Id) -> Id:
    found = network.say(name, text.encode(), answers)
    assert found is not None
    return found


def heard(network: MemoryNetwork, name: str) -> dict[str, Message]:
    events = network.hosts[name].events
    return {one.payload.decode(): one for one in events if isinstance(one, Message)}


def given_up(network: MemoryNetwork, name: str) -> list[MessagesAbandoned]:
    return [one for one in network.hosts[name].events if isinstance(one, MessagesAbandoned)]


def group(seed: int = 1, durable: str = "", names: str = "abcd", **settings: Any) -> MemoryNetwork:
    network = MemoryNetwork(seed)
    for name in names:
        made = Settings(**{"order": "reply", "evict_after_ns": 3 * NS, "history": 50, **settings})
        network.add(name, made, durable=name in durable)
        network.start(name, "" if name == "a" else "a")
    network.run(3 * settings.get("repair_delay_ns", NS))
    assert all(len(network.observe(name).connected) == len(names) - 1 for name in names)
    return network


def is_at_rest(network: MemoryNetwork, name: str) -> bool:
    """Return whether a member holds nothing and keeps nothing for others."""
    found = network.observe(name)
    return not found.held and found.memory_bytes == 0


def orphaned(network: MemoryNetwork) -> tuple[Id, list[Id]]:
    """d asks, c alone hears it and answers, somebody answers that: a and b lack the question."""
    network.cut("d", "ab")
    question = send_text(network, "d", "question")
    network.run(network.now + NS // 4)
    answer = send_text(network, "c", "answer", question)
    more = send_text(network, "c", "more", answer)
    network.run(network.now + NS // 4)
    network.crash("c")
    network.crash("d")
    return question, [answer, more]


@pytest.mark.parametrize("durable", ["", "ab"])
def test_an_orphan_is_handed_over_marked_by_all(durable: str) -> None:
    network = group(durable=durable)
    question, [answer, _] = orphaned(network)
    network.run(network.now + NS)
    assert not heard(network, "a")
    assert network.observe("a").waits_for == ((question,), (answer,))
    network.run(network.now + 12 * NS)
    for name in "ab":
        got = heard(network, name)
        assert list(got) == ["answer", "more"]
        assert (got["answer"].reply_to, got["answer"].missing_ids) == ((question,), (question,))
        assert (got["more"].reply_to, got["more"].missing_ids) == ((answer,), ())
        assert not given_up(network, name)
        assert is_at_rest(network, name)
    send_text(network, "a", "so what?", answer)
    network.run(network.now + NS)
    assert heard(network, "b")["so what?"].reply_to == (answer,)


def test_all_set_the_same_aside_where_the_group_was_made_so() -> None:
    network = group(on_missing_parent="drop")
    question, [answer, more] = orphaned(network)
    network.run(network.now + 13 * NS)
    for name in "ab":
        assert not heard(network, name)
        assert given_up(network, name) == [
            MessagesAbandoned(answer.sender_id, 1, (question.sender_id,)),
            MessagesAbandoned(more.sender_id, 1, (answer.sender_id,)),
        ]
        assert is_at_rest(network, name)
        assert network.observe(name).abandoned == 2
    send_text(network, "a", "next")
    network.run(network.now + NS)
    assert list(heard(network, "b")) == ["next"]


def test_where_the_group_holds_it_waits_and_that_is_shown() -> None:
    network = group(on_missing_parent="hold")
    question, _ = orphaned(network)
    network.run(network.now + 20 * NS)
    for name in "ab":
        assert not heard(network, name)
        [missing] = network.observe(name).missing
        assert (missing.sender, missing.seq) == question


def test_nothing_is_given_up_while_somebody_who_may_have_it_is_away() -> None:
    network = group(names="abcde", durable="e", evict_after_ns=None)
    network.cut("de", "ab")
    question = send_text(network, "d", "question")
    network.run(network.now + NS // 4)
    network.cut("e", "abcd")
    send_text(network, "c", "answer", question)
    network.run(network.now + NS // 4)
    network.crash("c")
    network.crash("d")
    network.run(network.now + 6 * NS)
    for lane in [one for one in network.observe("a").members if one[0] in "cd"]:
        network.evict("a", lane, "dead")
    network.run(network.now + 10 * NS)
    assert not heard(network, "a")
    network.heal()
    network.run(network.now + 10 * NS)
    for name in "ab":
        assert list(heard(network, name)) == ["question", "answer"]
        assert not heard(network, name)["answer"].missing_ids


def test_an_orphan_survives_a_restart_and_comes_once() -> None:
    network = group(durable="ab")
    orphaned(network)
    network.run(network.now + 13 * NS)
    send_text(network, "a", "with this it is stored how far a is done")
    network.run(network.now + NS)
    before = list(network.hosts["a"].events)
    network.crash("a")
    network.start("a")
    network.run(network.now + 5 * NS)
    fresh = network.hosts["a"].events[len(before) :]
    assert not [one for one in fresh if isinstance(one, Message)]
    kept = network.observe("a").history_messages
    assert [one.payload for one in kept] == [
        *(b"answer", b"more"),
        b"with this it is stored how far a is done",
    ]
    assert [len(one.missing_ids) for one in kept] == [1, 0, 0]
    answer = heard(network, "b")["answer"]
    send_text(network, "a", "after the restart", answer.id)
    network.run(network.now + NS)
    assert heard(network, "b")["after the restart"].reply_to == (answer.id,)


def test_a_newcomer_gets_an_orphan_as_one() -> None:
    network = group()
    question, [answer, _] = orphaned(network)
    network.run(network.now + 13 * NS)
    network.add("n", Settings(order="reply", history=50))
    network.start("n", "b")
    network.run(network.now + 3 * NS)
    got = heard(network, "n")
    assert list(got) == ["answer", "more"]
    assert (got["answer"].missing_ids, got["answer"].is_history) == ((question,), True)
    send_text(network, "n", "hello", answer)
    network.run(network.now + NS)
    assert heard(network, "a")["hello"].reply_to == (answer,)


def test_a_newcomer_that_comes_before_the_rest_agrees_gets_the_orphan_too() -> None:
    network = group()
    question, _ = orphaned(network)
    network.run(network.now + NS)
    network.add("n", Settings(order="reply", evict_after_ns=3 * NS, history=50))
    network.start("n", "a")
    network.run(network.now + 20 * NS)
    for name in "abn":
        assert list(heard(network, name)) == ["answer", "more"], name
        assert heard(network, name)["answer"].missing_ids == (question,)


@pytest.mark.few(1)
@pytest.mark.parametrize("policy", ["deliver", "drop"])
@pytest.mark.parametrize("seed", range(12))
def test_all_come_to_the_same_whatever_happens(seed: int, policy: str) -> None:
    network = group(seed, names="abcde", on_missing_parent=policy)
    draw = random.Random(f"{seed} {policy}")
    for _ in range(60):
        name = draw.choice("abcde")
        if draw.random() < 0.12:
            some = set(draw.sample("abcde", draw.randrange(1, 5)))
            network.cut(some, set("abcde") - some)
        elif draw.random() < 0.1:
            network.heal()
        known = [*heard(network, name).values()]
        answers = (draw.choice(known).id,) if known and draw.random() < 0.8 else ()
        network.say(name, f"{name}{network.now}".encode(), answers)
        network.run(network.now + draw.randrange(NS // 10))
    network.heal()
    network.run(network.now + 3 * NS)
    network.cut("d", "abc")  # what it says from here on e alone hears
    network.cut("e", draw.sample("abc", draw.randrange(3)))
    for _ in range(draw.randrange(6, 11)):
        for name, other in ("de", "ed"):
            known = [one for one in heard(network, name).values() if one.sender == other]
            answers = (draw.choice(known[-3:]).id,) if known else ()
            network.say(name, f"{name} at the end {network.now}".encode(), answers)
        network.run(network.now + NS // 25)
    network.crash("d")
    network.crash("e")
    network.run(network.now + 25 * NS)
    results = []
    for name in "abc":
        found = network.observe(name)
        assert sorted(one[0] for one in found.members) == ["a", "b", "c"]
        assert is_at_rest(network, name), name
        got = {m.id: (m.payload, m.reply_to, m.missing_ids) for m in heard(network, name).values()}
        lost = {(one.sender_id, one.missing_sender_ids) for one in given_up(network, name)}
        of_the_dead = {one: what for one, what in got.items() if one.sender_id[0] in "de"}
        results.append((of_the_dead, lost))
        for message in heard(network, name).values():
            for parent in set(message.reply_to) - set(message.missing_ids):
                assert parent in got or parent.sender_id == found.sender_id
    assert results[0] == results[1] == results[2]
    ends = [bool(missing) for _, _, missing in results[0][0].values()], results[0][1]
    assert any(ends[0]) if policy == "deliver" else ends[1], "a run without an orphan"


def test_what_would_have_no_effect_or_lets_results_differ_is_refused() -> None:
    with pytest.raises(LocalError, match="has no effect"):
        Settings(on_missing_parent="drop")
    with pytest.raises(LocalError, match="unknown on_missing_parent="):
        Settings(order="reply", on_missing_parent="perhaps")
    for options in ({"on_missing_parent": "deliver", "patience_s": 1}, {"store_limit": 5}):
        with pytest.raises(LocalError, match="together"):
            Peer("a", order="reply", insecure=True, options=options)
    assert (
        Settings(order="reply").tags() != Settings(order="reply", on_missing_parent="hold").tags()
    )


# -- history -------------------------------------------------------------------------------------


def test_newcomers_get_history_through_newcomers_and_answer_it() -> None:
    network = group(names="ab")
    first = send_text(network, "a", "first")
    network.run(network.now + NS)
    second = send_text(network, "b", "second", first)
    network.run(network.now + NS)
    network.leave("a")
    network.run(network.now + NS)
    network.crash("a")
    for name, sponsor in ("n", "b"), ("m", "n"):
        network.add(name, Settings(order="reply", history=50))
        network.start(name, sponsor)
        network.run(network.now + 3 * NS)
        got = heard(network, name)
        assert list(got) == ["first", "second"]
        assert got["second"].reply_to == (first,)
        assert all(one.is_history for one in got.values())
    send_text(network, "m", "to the first", first)
    send_text(network, "n", "to the second", second)
    network.run(network.now + NS)
    assert heard(network, "b")["to the first"].reply_to == (first,)
    assert heard(network, "m")["to the second"].reply_to == (second,)


def test_no_more_history_than_was_asked_for_and_than_a_welcome_holds() -> None:
    network = group(names="ab", history=3)
    for k in range(5):
        send_text(network, "a", f"{k}")
    network.run(network.now + NS)
    network.add("n", Settings(order="reply", history=9))
    network.start("n", "b")
    network.run(network.now + 3 * NS)
    assert list(heard(network, "n")) == ["2", "3", "4"]
    for k in range(3):
        network.say("a", bytes([65 + k]) * (7 << 20))
    network.run(network.now + 3 * NS)
    network.add("m", Settings(order="reply", history=9))
    network.start("m", "b")
    network.run(network.now + 3 * NS)
    assert [text[0] for text in heard(network, "m")] == ["B", "C"]


def test_a_newcomer_gets_no_more_history_than_it_keeps_and_in_order() -> None:
    network = group(names="ab", history=50)
    for k in range(8):
        send_text(network, "a", f"{k}")
    network.run(network.now + NS)
    for name, history in ("n", 3), ("m", 0):
        network.add(name, Settings(order="reply", history=history))
        network.start(name, "b")
        network.run(network.now + 3 * NS)
        assert list(heard(network, name)) == [f"{k}" for k in range(8 - history, 8)]
        kept = network.observe(name).history_messages
        assert [one.payload for one in kept] == [b"%d" % k for k in range(8 - history, 8)]


# -- asking ----------------------------------------------------------------------------------------


def test_what_is_missing_is_asked_for_at_once_when_told() -> None:
    network = group(names="abc", repair_delay_ns=5 * NS)
    network.cut("a", "c")
    question = send_text(network, "a", "question")
    network.run(network.now + NS)
    send_text(network, "b", "answer", question)
    network.run(network.now + NS)
    assert len(network.observe("c").held) == 1
    asked = network.request_missing("c")
    assert asked == {question.sender_id: network.hosts["b"].sender_id}
    network.run(network.now + NS // 2)
    assert list(heard(network, "c")) == ["question", "answer"]
    network.run(network.now + NS)
    assert network.request_missing("c") == {}


def test_what_is_only_late_is_not_taken_for_lost() -> None:
    network = group(repair_delay_ns=5 * NS, failure_timeout_ns=60 * NS)
    network.leave("d")
    network.run(network.now + 6 * NS)
    network.crash("d")
    network.cut("a", "c")
    question = send_text(network, "a", "question")
    network.run(network.now + NS // 2)
    send_text(network, "b", "answer", question)
    network.run(network.now + 4 * NS)
    found = network.observe("c")
    assert found.members.keys() == {*found.connected, found.sender_id}
    assert len(found.held) == 1
    network.heal()
    network.run(network.now + 10 * NS)
    assert list(heard(network, "c")) == ["question", "answer"]
    assert not heard(network, "c")["answer"].missing_ids


# -- strangers -------------------------------------------------------------------------------------


def with_a_stranger(durable: str = "", **settings: Any) -> tuple[MemoryNetwork, Id, Id]:
    """c lets n in, of whom a and b do not hear, answers it, and dies."""
    network = group(
        names="abc", durable=durable, evict_after_ns=None, repair_delay_ns=3 * NS, **settings
    )
    network.add("n", network.hosts["c"].settings)
    network.cut("n", "ab")
    network.start("n", "c")
    network.run(network.now + NS // 4)
    words = send_text(network, "n", "words")
    while "words" not in heard(network, "c"):
        network.run(network.now + NS // 50)
    answer = send_text(network, "c", "answer", words)
    send_text(network, "c", "something else")
    network.run(network.now + NS // 10)
    network.crash("c")
    network.run(network.now + NS // 2)
    return network, words, answer


@pytest.mark.parametrize("durable", ["", "a"])
@pytest.mark.parametrize("policy", ["deliver", "drop"])
def test_what_answers_a_stranger_is_settled_too(policy: str, durable: str) -> None:
    network, words, answer = with_a_stranger(durable, on_missing_parent=policy)
    network.crash("n")
    network.run(network.now + 15 * NS)
    assert not heard(network, "a"), "while c is a member it may come back, and know"
    network.evict("a", answer.sender_id, "dead")
    network.run(network.now + 15 * NS)
    if durable:
        send_text(network, "a", "stored")
        network.run(network.now + NS)
        network.crash("a")
        network.start("a")
        network.run(network.now + 5 * NS)
    for name in "ab":
        got = heard(network, name)
        assert not network.observe(name).stalled
        assert is_at_rest(network, name)
        if policy == "deliver":
            assert {"answer", "something else"} <= got.keys()
            assert got["answer"].missing_ids == (words,)
        else:
            assert next(iter(got)) == "something else"
            assert given_up(network, name)[0] == MessagesAbandoned(
                answer.sender_id, 1, (words.sender_id,)
            )


def test_a_stranger_that_comes_after_all_is_told_and_comes_anew() -> None:
    network, words, answer = with_a_stranger()
    network.evict("a", answer.sender_id, "dead")
    network.run(network.now + 15 * NS)
    assert heard(network, "b")["answer"].missing_ids == (words,)
    network.heal()
    network.run(network.now + 15 * NS)
    assert network.observe("n").end_reason.startswith("evicted from the group")
    network.crash("n")
    network.start("n", "a")
    network.run(network.now + 3 * NS)
    send_text(network, "n", "here again", answer)
    network.run(network.now + NS)
    for name in "ab":
        assert heard(network, name)["here again"].reply_to == (answer,)


def test_who_forges_a_stranger_holds_up_itself_alone() -> None:
    network = group(names="abc")
    forged = Id("zed~00000000", 7)
    network.pretend_received("c", forged)
    send_text(network, "c", "never sent", forged)
    send_text(network, "c", "after it")
    send_text(network, "a", "all is well")
    network.run(network.now + 15 * NS)
    assert list(heard(network, "b")) == ["all is well"]
    network.crash("c")
    network.run(network.now + 12 * NS)
    for name in "ab":
        assert heard(network, name)["never sent"].missing_ids == (forged,)
        assert "after it" in heard(network, name)
