"""Two processes of one name: one life stays, and the other is told so."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import PeerError
from antecede.live import Peer
from antecede.live.events import member_of
from antecede.live.settings import NS, Settings
from antecede.live.store import PeerStore
from tests.live.memory_network import MS, MemoryNetwork
from tests.live.observation import put_out


class Namesakes(MemoryNetwork):
    """Hosts whose names differ in the digit alone are of one member."""

    def member_at(self, name: str) -> str:
        return name.rstrip("0123456789")


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
    found = [host.observe() for host in network.hosts.values()]
    stay = [one for one in found if not one.end_reason]
    assert sorted(member_of(one.sender_id) for one in stay) == ["alice", "bob", "carol"]
    lanes = {one.sender_id for one in stay}
    assert all(one.members.keys() == lanes for one in stay)
    reasons = {one.end_reason for one in found} - {""}
    assert reasons == {"another incarnation of alice has started"}


async def test_who_is_replaced_while_it_joins_is_told_and_waits_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def peer(name: str, store: str | None = None) -> Peer:
        at = None if store is None else tmp_path / store
        return Peer(name, group_name="r", insecure=True, listen="127.0.0.1:0", store=at)

    write, goes_on = PeerStore.write, threading.Event()

    def written(store: PeerStore, *given: Any) -> None:
        if store.path.name == "first":
            goes_on.wait()
        write(store, *given)

    monkeypatch.setattr(PeerStore, "write", written)
    async with peer("bob") as bob, peer("alice", "first") as first:
        await bob.bootstrap()
        joining = asyncio.create_task(first.join(bob.address))
        await asyncio.sleep(0.5)
        assert not joining.done()
        put_out(first, "another incarnation of alice has started")
        try:
            with pytest.raises(PeerError, match="out of the group: another incarnation"):
                await asyncio.wait_for(joining, 5)
        finally:
            goes_on.set()
        assert member_of(first.status().sender_id) == "alice"
