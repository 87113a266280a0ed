"""What a held answer waits for, in words, over the simulated network."""

from __future__ import annotations

from antecede.live.chat.waits import STRANGER, list_held
from antecede.live.settings import NS
from tests.live.test_orphans import group, orphaned, send_text, with_a_stranger


def test_a_parent_that_others_have_or_that_is_on_its_way() -> None:
    network = group(names="abc", repair_delay_ns=5 * NS, failure_timeout_ns=60 * NS)
    node = network.node("c")
    assert list_held(node) == {}
    network.cut("a", "c")
    question = send_text(network, "a", "question")
    network.run(network.now + NS)
    answer = send_text(network, "b", "answer", question)
    network.run(network.now + NS // 50)
    while not list_held(node):
        network.run(network.now + NS // 100)
    assert list_held(node) == {answer: (question, "requested from b")}
    more = send_text(network, "b", "more", answer)
    network.run(network.now + NS)
    assert list_held(node)[more] == (answer, "")
    node.active.lanes.heard[network.node("b").lane].clear()
    assert list_held(node)[answer] == (question, "a is connected and sends it")


def test_a_parent_whose_sender_is_away_or_gone() -> None:
    network = group(evict_after_ns=None)
    question, [answer, _] = orphaned(network)
    network.run(network.now + 6 * NS)
    a = network.node("a")
    assert list_held(a)[answer] == (question, "d is disconnected; no connected member has it")
    lanes = {lane[0]: lane for lane in a.active.others()}
    a.evict(lanes["d"], "dead")
    network.turn("a")
    network.run(network.now + NS // 2)
    assert list_held(a)[answer] == (question, "d has departed; c, disconnected, may have it")
    a.evict(lanes["c"], "dead")
    network.turn("a")
    network.run(network.now + NS // 2)
    why = "d has departed; all members are being checked"
    assert list_held(a)[answer] == (question, why)


def test_who_speaks_of_a_stranger_is_shown() -> None:
    network, _, answer = with_a_stranger()
    network.crash("n")
    network.run(network.now + NS)
    for name in "ab":
        assert list_held(network.node(name)) == {answer: (answer, STRANGER)}
