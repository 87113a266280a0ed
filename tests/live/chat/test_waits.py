"""What a held answer waits for, in words, over the simulated network."""

from __future__ import annotations

from antecede.live.chat.waits import STRANGER
from antecede.live.settings import NS
from tests.live.peer_control import forget_acknowledged, list_waits
from tests.live.test_orphans import group, orphaned, send_text, with_a_stranger


def test_a_parent_that_others_have_or_that_is_on_its_way() -> None:
    network = group(names="abc", repair_delay_ns=5 * NS, failure_timeout_ns=60 * NS)
    c = network.hosts["c"]
    assert list_waits(c) == {}
    network.cut("a", "c")
    question = send_text(network, "a", "question")
    network.run(network.now + NS)
    answer = send_text(network, "b", "answer", question)
    network.run(network.now + NS // 50)
    while not list_waits(c):
        network.run(network.now + NS // 100)
    assert list_waits(c) == {answer: (question, "requested from b")}
    more = send_text(network, "b", "more", answer)
    network.run(network.now + NS)
    assert list_waits(c)[more] == (answer, "")
    forget_acknowledged(c, network.hosts["b"].sender_id)
    assert list_waits(c)[answer] == (question, "a is connected and sends it")


def test_a_parent_whose_sender_is_away_or_gone() -> None:
    network = group(evict_after_ns=None)
    question, [answer, _] = orphaned(network)
    network.run(network.now + 6 * NS)
    a = network.hosts["a"]
    assert list_waits(a)[answer] == (question, "d is disconnected; no connected member has it")
    lanes = {lane[0]: lane for lane in a.observe().members}
    network.evict("a", lanes["d"], "dead")
    network.run(network.now + NS // 2)
    assert list_waits(a)[answer] == (question, "d has departed; c, disconnected, may have it")
    network.evict("a", lanes["c"], "dead")
    network.run(network.now + NS // 2)
    why = "d has departed; all members are being checked"
    assert list_waits(a)[answer] == (question, why)


def test_who_speaks_of_a_stranger_is_shown() -> None:
    network, _, answer = with_a_stranger()
    network.crash("n")
    network.run(network.now + NS)
    for name in "ab":
        assert list_waits(network.hosts[name]) == {answer: (answer, STRANGER)}
