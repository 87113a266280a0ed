"""Two processes of one name: one life stays, and the other is told so."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from antecede.errors import PeerError
from antecede.live import Peer
from antecede.live.events import member_of
from antecede.live.node import Node
from antecede.live.settings import NS, Settings
from tests.live.memory_network import MS, Host, MemoryNetwork


def member_at(host: str) -> str:
    return host.rstrip("0123456789")


class Namesake(Node):
    """Its links come from hosts, whose digit is none of the name that a certificate would give."""

    def link_up(self, number: int, name: str, now: int, *, dialed: bool) -> None:
        super().link_up(number, member_at(name), now, dialed=dialed)


class Namesakes(MemoryNetwork):
    """Hosts whose names differ in the digit alone are of one member."""

    def new_node(self, host: Host, life: str) -> Node:
        durable = host.store is not None
        return Namesake(member_at(host.name), host.settings, life, host.name, durable=durable)


@pytest.mark.few(3)
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("order", ["causal", "fifo", "reply"])
@pytest.mark.parametrize("seed", range(4))
def test_of_lives_that_come_at_once_one_stays(seed: int, order: str, durable: bool) -> None:
    network = Namesakes(seed, most_ns=5 * MS)
    for name in ("bob", "carol", "alice1", "alice2", "alice3"):
        network.add(name, Settings(order=order), durable=durable)
    network.start("bob")
    network.start("carol", "bob")
    network.run(2 * NS)
    calls = ("alice1", "bob", 0), ("alice2", "carol", seed), ("alice3", "bob", 2)
    for name, sponsor, wait in calls:
        network.at(wait * MS, partial(network.start, name, sponsor))
    network.run(network.now + 12 * NS)
    nodes = {name: host.node for name, host in network.hosts.items()}
    stay = [one for one in nodes.values() if one is not None and not one.out]
    assert sorted(one.name for one in stay) == ["alice", "bob", "carol"]
    lanes = sorted(one.lane for one in stay)
    assert all(sorted(one.active.members) == lanes for one in stay)
    for one in nodes.values():
        assert one is not None
        assert one in stay or one.out == "another incarnation of alice has started"


async def test_who_is_replaced_while_it_joins_is_told_and_waits_for_nothing(
    tmp_path: object,
) -> None:
    def peer(name: str, store: str | None = None) -> Peer:
        at = None if store is None else f"{tmp_path}/{store}"
        return Peer(name, group_name="r", insecure=True, listen="127.0.0.1:0", store=at)

    async with peer("bob") as bob, peer("alice", "first") as first:
        await bob.bootstrap()
        first.node.safe = dict  # type: ignore[method-assign]
        joining = asyncio.create_task(first.join(bob.address))
        await asyncio.sleep(0.5)
        assert not joining.done()
        first.node.go_out("another incarnation of alice has started")
        first._waking.wake()
        with pytest.raises(PeerError, match="out of the group: another incarnation"):
            await asyncio.wait_for(joining, 5)
        assert member_of(first.node.lane) == "alice"
