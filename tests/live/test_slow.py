"""Who is too far behind is put out: that one, by everybody, and nobody else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from antecede.live.events import member_of
from antecede.live.hierarchy.settings import HierarchySettings
from antecede.live.laggards import Behind, SlowMembers
from antecede.live.settings import NS, Settings
from tests.live.memory_network import MemoryNetwork


@pytest.mark.parametrize("talker", ["a", "b"])
def test_who_only_sends_is_not_taken_for_who_lacks_most(talker: str) -> None:
    network = MemoryNetwork(1)
    more: dict[str, Any] = {
        "max_memory_bytes": 100_000,
        "failure_timeout_ns": 60 * NS,
        "evict_slow_after_ns": 2 * NS,
    }
    network.meet("abc", Settings(**more), at_once=True)
    network.run(10 * NS)
    for _ in range(50):  # so c has more of them than the talker has acknowledged of anything
        network.say(talker, b"all have this")
        network.run(network.now + NS // 20)
    network.cut("a", "c")
    network.cut("b", "c")
    for _ in range(200):
        network.say(talker, bytes(1000))
        network.run(network.now + NS // 20)
    for name in "ab":
        found = network.observe(name)
        assert found.is_in_group
        assert sorted(map(member_of, found.members)) == ["a", "b"]


@pytest.mark.slow
def test_nobody_is_put_out_for_being_the_last_of_many_that_keep_up() -> None:
    names = "abcdefgh"
    network = MemoryNetwork(2)
    network.meet(names, Settings(max_memory_bytes=30_000), at_once=True)
    network.run(10 * NS)
    beyond = 0
    for turn in range(400):
        for _ in range(8):
            network.say(names[turn % 8], bytes(1000))
        network.run(network.now + NS // 50)
        beyond += network.observe("a").memory_bytes > 30_000
    assert beyond > 40, "or nobody was tried"
    network.run(network.now + 5 * NS)
    for host in network.hosts.values():
        assert host.is_in_group
        assert len(host.observe().members) == 8


def judged(*looks: tuple[int, dict[str, Behind]]) -> list[str | None]:
    laggards = SlowMembers()
    return [laggards.sample(kept, 100, 100, behind) for kept, behind in looks]


def test_who_comes_nearer_is_put_out_at_bound_and_allowance_alone() -> None:
    slow = [{"a": Behind(110, k), "b": Behind(20, 9)} for k in range(9)]
    assert judged(*[(150, one) for one in slow]) == [None] * 9
    assert judged((201, slow[0])) == ["a"], "at once, at the first look"


def test_two_looks_on_end_without_progress_put_out() -> None:
    still = {"a": Behind(110, 5), "b": Behind(120, 7)}
    assert judged(*[(150, still)] * 3) == [None, None, "b"]
    goes_on = {"a": Behind(110, 5), "b": Behind(120, 8)}
    found = judged((150, still), (150, still), (150, goes_on), (150, goes_on), (150, goes_on))
    assert found == [None, None, "a", "a", "b"], "b once it has stopped too"


def test_who_lacks_little_or_nothing_stays_though_it_says_nothing() -> None:
    assert judged(*[(150, {"a": Behind(0, 5), "b": Behind(75, 7)})] * 5) == [None] * 5


def test_looks_before_it_was_well_again_do_not_count() -> None:
    laggards, still = SlowMembers(), {"a": Behind(110, 5)}
    for _ in range(4):
        assert laggards.sample(150, 100, 100, still) is None
        assert laggards.sample(150, 100, 100, still) is None
        laggards.reset()


def test_a_super_peer_puts_out_who_stands_still_and_nobody_who_is_the_last() -> None:
    network = MemoryNetwork(3)
    for name in ("s1", "i1", "i2", "i3"):
        role, memory = ("super", 60_000) if name == "s1" else ("internal", 1 << 20)
        more: dict[str, Any] = {"failure_timeout_ns": 60 * NS, "evict_slow_after_ns": 2 * NS}
        network.add(name, HierarchySettings(role=role, max_memory_bytes=memory, **more))
    network.meet(network.hosts, at_once=True)
    network.run(5 * NS)
    beyond = 0
    for _ in range(100):
        for _ in range(6):
            network.say("i1", bytes(1000))
        network.run(network.now + NS // 10)
        beyond += network.observe("s1").hierarchy.retained_bytes > 30_000
    assert beyond > 20, "or nobody was tried"
    assert len(network.observe("s1").hierarchy.internal_peers) == 3
    network.cut({"s1"}, {"i3"})
    for _ in range(15):
        for _ in range(6):
            network.say("i1", bytes(1000))
        network.run(network.now + NS // 10)
    found = network.observe("s1").hierarchy
    assert found.retained_bytes > 60_000
    assert len(found.internal_peers) == 3, "a small memory evicts nobody at once"
    for _ in range(100):
        network.say("i1", bytes(1000))
        network.run(network.now + NS // 10)
    found = network.observe("s1").hierarchy
    assert sorted(map(member_of, found.internal_peers)) == ["i1", "i2"]
    [why] = found.evicted.values()
    assert re.fullmatch(r"too slow: [\d,]+ of [\d,]+ retained bytes are kept for it", why)
