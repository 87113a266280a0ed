"""What a member does for all others at once, and how soon it asks for what is missing."""

from __future__ import annotations

import pytest

from antecede.live import wire
from antecede.live.lanes import SenderLogs, SignedBatch
from antecede.live.settings import NS, Settings
from tests.live.memory_network import MS, MemoryNetwork

BATCH = SignedBatch(b"", b"x")


@pytest.mark.parametrize("members", [1, 2, 16, 17, 40, 100, 160, 1000])
def test_all_acknowledge_no_more_often_than_sixteen_do(members: int) -> None:
    settings = Settings()
    every_ns = settings.ack_period_ns(members)
    if members <= 16:
        assert every_ns == settings.ack_delay_ns
    elif every_ns < 2 * NS:
        frames = members * (members - 1) / every_ns
        assert frames <= 1.1 * 16 * 16 / settings.ack_delay_ns
    assert every_ns <= 2 * NS


def test_whoever_is_asked_to_acknowledge_seldom_does_not_do_it_more_often() -> None:
    assert Settings(ack_delay_ns=5 * NS).ack_period_ns(100) == 5 * NS


def test_what_somebody_has_more_of_is_known_until_it_is_here() -> None:
    lanes = SenderLogs()
    lanes.take("a~00000000", 1, BATCH)
    lanes.acknowledge("b~00000000", {"a~00000000": 1})
    assert not lanes.ahead()
    lanes.acknowledge("b~00000000", {"a~00000000": 2, "c~00000000": 1})
    assert sorted(lanes.ahead()) == ["a~00000000", "c~00000000"]
    lanes.take("a~00000000", 2, BATCH)
    assert lanes.ahead() == ["c~00000000"]
    lanes.replace_frontier("d~00000000", {"a~00000000": 3})
    assert sorted(lanes.ahead()) == ["a~00000000", "c~00000000"]


def network() -> MemoryNetwork:
    """Three members that have been together for a while."""
    made = MemoryNetwork(3, least_ns=MS, most_ns=2 * MS)
    made.meet("abc", Settings(group_name="r"), at_once=True)
    made.run(10 * NS)
    assert all(len(made.observe(name).connected) == 2 for name in "abc")
    return made


@pytest.mark.parametrize(("connected", "soon"), [(False, True), (True, False)])
def test_the_last_words_of_who_is_gone_are_asked_for_at_once(connected: bool, soon: bool) -> None:
    made = network()
    made.cut("a", "c")
    if not connected:
        made.disconnect("c", "a")
    made.say("a", b"last words")
    made.run(made.now + 200 * MS)
    assert made.payloads("b") == [b"last words"]
    assert made.payloads("c") == ([b"last words"] if soon else [])
    made.run(made.now + 2 * NS)
    assert made.payloads("c") == [b"last words"]


def test_a_turn_asks_only_the_links_that_have_something_to_write() -> None:
    made = network()
    made.run(made.now + NS)
    made.turn("a")
    assert made.list_writable("a") == []
    made.hosts["a"].writes_to = ()
    made.say("a", b"to all")
    assert made.list_writable("a") == ["b", "c"]
    made.hosts["a"].writes_to = ("b",)
    made.turn("a")
    assert made.list_writable("a") == ["c"]
    made.reject_connection("a", "b", "for the test")
    assert made.list_writable("a") == ["b", "c"]


def test_who_is_written_to_anyhow_gets_few_heartbeats() -> None:
    made = network()
    counts = []
    for talking in ("", "abc"):
        before = made.frames[wire.PING]
        for _ in range(40):
            for name in talking:
                made.say(name, b"x")
            made.run(made.now + NS // 2)
        counts.append(made.frames[wire.PING] - before)
    quiet, busy = counts
    assert 3 * 15 <= quiet <= 3 * 30  # a heartbeat or its answer a second on each of three links
    assert 0 < busy < quiet / 2
    assert all(len(made.observe(name).connected) == 2 for name in "abc")
