"""The end of a member: its messages reach some other member, or it says which ones do not."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import PeerError
from antecede.live import Id, Message, Peer, View
from antecede.live.settings import NS, Settings
from tests.live.loops import take, until
from tests.live.memory_network import MemoryNetwork


class Pair:
    """Alice has a store and comes back to her address; bob is connected with her alone."""

    def __init__(self, folder: Path, *, durable: bool = False, order: str = "causal") -> None:
        self.folder, self.durable, self.order = folder, durable, order
        self.port = 0

    def alice(self) -> Peer:
        return self._peer("alice", f"127.0.0.1:{self.port}", store=self.folder / "alice.db")

    def bob(self, **more: Any) -> Peer:
        store = {"store": self.folder / "bob.db"} if self.durable else {}
        return self._peer("bob", "127.0.0.1:0", **store, **more)

    def _peer(self, name: str, listen: str, **more: Any) -> Peer:
        return Peer(name, insecure=True, order=self.order, listen=listen, **more)

    async def meet(self, bob: Peer) -> None:
        """Let bob join alice, who then ends."""
        async with self.alice() as alice:
            await alice.bootstrap()
            self.port = int(alice.address.rpartition(":")[2])
            await bob.join(alice.address)
            await until(lambda: alice.members == ("alice", "bob"))
        await until(lambda: bob.status().others == "1 away")


@pytest.fixture
def pair(tmp_path: Path) -> Callable[..., Pair]:
    return partial(Pair, tmp_path)


@pytest.mark.parametrize("order", ["causal", "reply"])
@pytest.mark.parametrize("durable", [False, True])
async def test_leave_names_the_messages_that_nobody_has(
    pair: Callable[..., Pair], durable: bool, order: str, caplog: pytest.LogCaptureFixture
) -> None:
    two = pair(durable=durable, order=order)
    async with two.bob() as bob:
        await two.meet(bob)
        sent = [await bob.send(b"one"), await bob.send(b"two")]
        assert await bob.leave(timeout_s=0.3) == tuple(sent)
        assert await bob.leave(timeout_s=0.1) == tuple(sent)
        with pytest.raises(PeerError, match="has left"):
            await bob.send(b"three")
    [entry, _] = [one for one in caplog.records if vars(one)["antecede_event"] == "lost"]
    assert entry.levelno == logging.ERROR
    assert vars(entry)["antecede_count"] == 2
    assert str(sent[0]) in entry.getMessage()


async def test_leave_waits_until_somebody_has_all(pair: Callable[..., Pair]) -> None:
    two = pair()
    async with two.bob() as bob:
        await two.meet(bob)
        sent = await bob.send(b"one")
        leaving = asyncio.create_task(bob.leave(timeout_s=30))
        await asyncio.sleep(0.3)
        assert not leaving.done()
        async with two.alice() as alice:
            assert await leaving == ()
            assert [one.id for one in await take(alice, 1)] == [sent]
            await until(lambda: alice.members == ("alice",))


@pytest.mark.slow
async def test_the_end_without_a_store_raises_where_nobody_has_the_messages(
    pair: Callable[..., Pair],
) -> None:
    two = pair()

    async def live() -> None:
        async with two.bob() as bob:
            await two.meet(bob)
            await bob.send(b"one")

    with pytest.raises(PeerError, match=r"no other member has acknowledged 1 message of bob"):
        await live()


@pytest.mark.parametrize("said", [True, False])
async def test_the_end_without_a_store_waits_for_nobody_where_nothing_is_at_stake(
    pair: Callable[..., Pair], said: bool, caplog: pytest.LogCaptureFixture
) -> None:
    two = pair()
    async with two.bob() as bob:
        async with two.alice() as alice:
            await alice.bootstrap()
            await bob.join(alice.address)
            if said:
                await bob.send(b"one")
                await take(alice, 1)
                await until(lambda: all(one.lag == 0 for one in bob.status().members))
        await until(lambda: bob.status().others == "1 away")
    async with Peer("alone", insecure=True) as alone:
        await alone.bootstrap()
        await alone.send(b"to nobody")
    assert not [one for one in caplog.records if vars(one).get("antecede_event") == "lost"]


async def test_a_peer_that_is_closed_without_a_store_logs_what_nobody_has(
    pair: Callable[..., Pair], caplog: pytest.LogCaptureFixture
) -> None:
    two = pair()
    with contextlib.suppress(ZeroDivisionError):
        async with two.bob() as bob:
            await two.meet(bob)
            bob.send_nowait(b"not even in a batch")
            raise ZeroDivisionError
    [entry] = [one for one in caplog.records if vars(one).get("antecede_event") == "lost"]
    assert vars(entry)["antecede_count"] == 1


async def test_a_leave_that_nobody_heard_goes_on_after_a_restart(pair: Callable[..., Pair]) -> None:
    two = pair(durable=True)
    async with two.bob() as bob:
        await two.meet(bob)
        sent = await bob.send(b"last words")
        assert await bob.leave(timeout_s=0.2) == (sent,)
    async with two.alice() as alice:
        async with two.bob() as bob:
            assert await bob.leave(timeout_s=30) == ()
        seen = []
        async for event in alice.events():
            assert isinstance(event, View | Message)
            seen.append(str(event.change) if isinstance(event, View) else event.payload)
            if seen[-1] == "bob left":
                break
        assert seen[-2:] == [b"last words", "bob left"]


@pytest.mark.slow
async def test_large_messages_that_only_the_store_has_are_named(pair: Callable[..., Pair]) -> None:
    two = pair(durable=True)
    async with two.bob(max_memory_bytes=1 << 16) as bob:
        await two.meet(bob)
        sent: list[Id] = [await bob.send(bytes(100_000)) for _ in range(8)]
        await asyncio.sleep(0.6)
        assert bob.status().disk_bytes > 0
        assert await bob.leave(timeout_s=0.1) == tuple(sent)


@pytest.mark.parametrize("seed", range(4))
def test_a_member_that_leaves_learns_who_has_its_messages(seed: int) -> None:
    network = MemoryNetwork(seed)
    for name in "abc":
        network.add(name, Settings(), durable=True)
    network.meet("abc")
    network.run(2 * NS)
    network.say("b", b"last words")
    network.leave("b")
    network.run(network.now + 4 * NS)
    state = network.observe("b")
    assert (state.end_reason, state.unacknowledged_by) == ("", frozenset())
