"""Who is too far behind is put out: that one, by everybody, and nobody else."""

from __future__ import annotations

import pytest

from antecede.live.drivers.memory import MemoryNetwork
from antecede.live.events import member_of
from antecede.live.settings import NS, Settings


@pytest.mark.parametrize("talker", ["a", "b"])
def test_who_only_sends_is_not_taken_for_who_lacks_most(talker: str) -> None:
    network = MemoryNetwork(1)
    for name in "abc":
        network.add(name, Settings(memory=100_000, silence_ns=60 * NS))
    network.start("a")
    network.start("b", join="a")
    network.start("c", join="a")
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
        node = network.hosts[name].node
        assert node is not None
        assert not node.out
        assert sorted(map(member_of, node.active.members)) == ["a", "b"]
