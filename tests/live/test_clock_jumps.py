"""A system clock that jumps a day ahead: the others hear its member, or it is told."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.errors import LocalError
from antecede.live.settings import NS, Settings
from tests.live.loops import joined
from tests.live.memory_network import MS, Host, MemoryNetwork
from tests.live.observation import pretend_clock

EPOCH, DAY = 10**18, 86_400 * NS
BOUNDS = Bounds[Any](accuracy_s=0.0001, least_s=0.0005, most_s=0.2)
OPTIONS = {"bounds": BOUNDS, "delivery": "bound"}
PHYSICAL = ("physical", "linear-physical")


def group(order: str, names: str = "abc", *, durable: bool = True) -> MemoryNetwork:
    network = MemoryNetwork(5)
    for name in names:
        network.add(name, Settings(order=order, options=OPTIONS), durable=durable)
        network.hosts[name].clock_error_ns = 10_000
        show(network.hosts[name], 0)
    network.start("a")
    for k, name in enumerate(names[1:]):
        network.at((50 + 30 * k) * MS, partial(network.start, name, "a"))
    network.run(3 * NS)
    return network


def show(host: Host, ahead_ns: int) -> None:
    """Let the system clock of a host be ahead."""
    host.clock = lambda now: EPOCH + now + ahead_ns


def say(network: MemoryNetwork, name: str, payload: bytes, wait_ns: int = 2 * NS) -> None:
    assert network.say(name, payload) is not None
    network.run(network.now + wait_ns)


@pytest.mark.parametrize("order", PHYSICAL)
@pytest.mark.parametrize("mended", [False, True])
def test_a_clock_that_jumps_a_day_ahead_is_not_followed(order: str, mended: bool) -> None:
    network = group(order)
    say(network, "b", b"before")
    show(network.hosts["b"], DAY)
    network.run(network.now + 50 * MS)
    say(network, "b", b"ahead")
    if mended:
        show(network.hosts["b"], 0)
    say(network, "b", b"after")
    say(network, "a", b"a1")
    assert network.payloads("a") == [b"before", b"ahead", b"after"]
    assert network.payloads("c") == [b"before", b"ahead", b"after", b"a1"]
    assert network.payloads("b") == [b"a1"]
    told = network.status("b")
    assert told.clock is not None
    assert told.clock.bound_violations["not_followed"] == 1
    assert told.is_healthy
    network.crash("b")
    network.run(network.now + NS)
    show(network.hosts["b"], 0)
    network.start("b")
    network.run(network.now + 5 * NS)
    say(network, "b", b"anew")
    assert network.payloads("a")[-1] == network.payloads("c")[-1] == b"anew"


@pytest.mark.parametrize("order", PHYSICAL)
def test_a_restart_with_a_clock_a_day_ahead_goes_on_by_the_others(order: str) -> None:
    network = group(order)
    say(network, "b", b"before")
    network.crash("b")
    show(network.hosts["b"], DAY)
    network.run(network.now + NS)
    network.start("b")
    network.run(network.now + 3 * NS)
    say(network, "b", b"anew")
    assert network.payloads("a") == network.payloads("c") == [b"before", b"anew"]


@pytest.mark.parametrize("order", PHYSICAL)
def test_all_machines_that_slept_follow_their_clocks(order: str) -> None:
    network = group(order)
    say(network, "b", b"before")
    for host in network.hosts.values():
        show(host, 3600 * NS)
    network.run(network.now + 8 * NS)
    for name in "abc":
        say(network, name, name.encode(), 0)
    network.run(network.now + 2 * NS)
    for name in "abc":
        assert set(network.payloads(name)) == {b"a", b"b", b"c", b"before"} - (
            {name.encode()} | ({b"before"} if name == "b" else set())
        )
        told = network.status(name)
        assert told.clock is not None
        assert (told.clock.ahead_s, told.is_healthy) == (0, True)


def test_one_machine_that_slept_follows_its_clock() -> None:
    network = group("physical")
    network.freeze("b")
    slept_ns = 300 * NS
    for name in "ac":
        show(network.hosts[name], slept_ns)
    network.run(network.now + NS)
    network.thaw("b")
    show(network.hosts["b"], slept_ns)
    network.run(network.now + 8 * NS)
    say(network, "b", b"awake")
    say(network, "a", b"hello")
    assert network.payloads("a")[-1] == network.payloads("c")[0] == b"awake"
    assert network.payloads("b")[-1] == b"hello"


def test_a_member_alone_in_its_group_follows_its_clock() -> None:
    network = group("physical", "a")
    show(network.hosts["a"], DAY)
    network.run(network.now + NS)
    told = network.status("a")
    assert told.clock is not None
    assert told.clock.bound_violations.get("not_followed", 0) == 0
    assert told.is_healthy


@pytest.mark.parametrize("order", PHYSICAL)
def test_a_member_whose_messages_nobody_takes_is_told(order: str) -> None:
    network = group(order)
    network.cut("b", "ac")
    show(network.hosts["b"], DAY)
    network.run(network.now + 12 * NS)
    assert network.say("b", b"a day ahead") is not None
    network.run(network.now + NS)
    network.heal()
    network.run(network.now + 5 * NS)
    told = network.status("b")
    assert not told.is_healthy
    assert "messages of b are 86" in told.unhealthy_reason
    assert "start with a new store" in told.unhealthy_reason
    assert told.clock is not None
    assert told.clock.bound_violations["stamped_ahead"] == 1
    assert network.say("b", b"more") is None
    with pytest.raises(LocalError, match="ahead of the clocks of the others"):
        network.send("b", b"more")
    say(network, "a", b"a1")
    assert network.payloads("b") == [b"a1"], "it is heard by nobody, and hears all"
    assert network.status("a").is_healthy
    assert network.status("c").is_healthy


@pytest.mark.parametrize("order", ["tv-lt", "htbc"])
def test_orders_that_deliver_such_messages_go_on(order: str) -> None:
    network = MemoryNetwork(5)
    bounds: dict[str, Any] = {"options": {"bounds": BOUNDS}}
    for name in "ab":
        network.add(name, Settings(order=order, topics=["x"], **bounds))
        network.hosts[name].clock_error_ns = 10_000
    show(network.hosts["a"], 0)
    show(network.hosts["b"], DAY)
    network.start("a")
    network.start("b", "a")
    network.run(8 * NS)
    assert network.status("b").is_healthy
    assert network.say("b", b"ahead", topics=("x",)) is not None
    network.run(network.now + 2 * NS)
    assert network.payloads("a") == [b"ahead"]


def test_one_member_with_a_wrong_clock_stops_nobody_else() -> None:
    network = group("physical", "abc")
    show(network.hosts["c"], -DAY)
    network.run(network.now + 8 * NS)
    for name in "ab":
        assert network.status(name).is_healthy
        say(network, name, name.encode())
    assert network.payloads("a") == [b"b"]


async def test_a_peer_that_is_told_says_so_in_send() -> None:
    from antecede.errors import PeerError
    from antecede.live.peer import Peer

    more: dict[str, Any] = {"group_name": "jump", "listen": "127.0.0.1:0", "insecure": True}
    more |= {"order": "physical", "options": OPTIONS, "clock_error_s": 0.0001}
    async with joined(Peer("a", **more), Peer("b", **more)) as (a, b):
        pretend_clock(b, a.status().sender_id, -3600 * NS)
        with pytest.raises(PeerError, match=r"are 3[56]\d\d[.\d]* s ahead"):
            await b.send(b"x")
        assert not b.status().is_healthy
