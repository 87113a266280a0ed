"""Groups made with partition="majority": the part that hears no more than half of them stops."""

from __future__ import annotations

import pytest

from antecede.errors import LocalError
from antecede.live.node import Node
from antecede.live.settings import MAJORITY, NS, Settings
from tests.live.memory_network import MemoryNetwork


def group(names: str, **settings: int) -> MemoryNetwork:
    network = MemoryNetwork(1)
    for name in names:
        network.add(name, Settings(partition=MAJORITY, **settings))  # type: ignore[arg-type]
    network.start(names[0])
    for name in names[1:]:
        network.start(name, join=names[0])
    network.run(10 * NS)
    return network


def node(network: MemoryNetwork, name: str) -> Node:
    return network.node(name)


def test_two_halves_put_nobody_out_when_they_meet_again() -> None:
    network = group("ab", evict_after_ns=2 * NS)
    network.cut("a", "b")
    network.run(network.now + 20 * NS)
    assert node(network, "a").in_minority
    assert node(network, "b").in_minority
    network.heal()
    network.run(network.now + 10 * NS)
    for name in "ab":
        assert len(node(network, name).active.members) == 2
        assert not node(network, name).out


def test_the_smaller_part_stops_and_goes_on_when_it_is_over() -> None:
    network = group("abc")
    network.cut("a", "c")
    network.cut("b", "c")
    network.run(network.now + 20 * NS)
    assert [node(network, name).in_minority for name in "abc"] == [False, False, True]
    with pytest.raises(LocalError, match="minority part"):
        node(network, "c").send(b"alone")
    network.say("a", b"together")
    network.run(network.now + NS)
    assert node(network, "c").take_delivered() == []
    network.heal()
    network.run(network.now + 10 * NS)
    assert not node(network, "c").in_minority
    assert node(network, "c").active.place == 1
