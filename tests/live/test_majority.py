"""Groups made with partition="majority": the part that hears no more than half of them stops."""

from __future__ import annotations

import pytest

from antecede.errors import LocalError
from antecede.live.settings import MAJORITY, NS, Settings
from tests.live.memory_network import MemoryNetwork


def group(names: str, **settings: int) -> MemoryNetwork:
    network = MemoryNetwork(1)
    made = Settings(partition=MAJORITY, **settings)  # type: ignore[arg-type]
    network.meet(names, made, at_once=True)
    network.run(10 * NS)
    return network


def test_two_halves_put_nobody_out_when_they_meet_again() -> None:
    network = group("ab", evict_after_ns=2 * NS)
    network.cut("a", "b")
    network.run(network.now + 20 * NS)
    assert network.observe("a").is_in_minority
    assert network.observe("b").is_in_minority
    network.heal()
    network.run(network.now + 10 * NS)
    for name in "ab":
        assert len(network.observe(name).members) == 2
        assert network.observe(name).is_in_group


def test_the_smaller_part_stops_and_goes_on_when_it_is_over() -> None:
    network = group("abc")
    network.cut("a", "c")
    network.cut("b", "c")
    network.run(network.now + 20 * NS)
    assert [network.observe(name).is_in_minority for name in "abc"] == [False, False, True]
    with pytest.raises(LocalError, match="minority part"):
        network.send("c", b"alone")
    network.say("a", b"together")
    network.run(network.now + NS)
    assert network.messages("c") == []
    network.heal()
    network.run(network.now + 10 * NS)
    assert not network.observe("c").is_in_minority
    assert network.observe("c").delivered == 1
