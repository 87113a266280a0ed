"""Messages that come again after a restart: named by their ids, and by nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antecede.live.events import Id, Message, SentBatch, View
from antecede.live.peer import Peer
from antecede.live.settings import NS, Settings
from tests.live.loops import joined, take, until
from tests.live.memory_network import MS, MemoryNetwork


def peer(name: str, **more: Any) -> Peer:
    return Peer(name, **{"listen": "127.0.0.1:0", "insecure": True, "group_name": "again", **more})


def test_a_message_has_no_number_that_a_crash_may_change() -> None:
    named = {"sender_id", "number", "payload", "reply_to", "missing_ids", "topics", "is_history"}
    assert set(Message._fields) == named
    assert set(SentBatch._fields) == named - {"number", "payload"} | {"first", "payloads"}


@pytest.mark.slow
def test_what_a_kill_undid_comes_again_under_the_same_ids() -> None:
    changed = [_kill_again_and_again(seed) for seed in range(4)]
    assert any(changed), "or no kill undid anything that came again in another order"


def _kill_again_and_again(seed: int) -> bool:
    """Return whether anything came again in another order."""
    network = MemoryNetwork(seed)
    network.meet("abc", Settings(), durable=True, at_once=True)
    network.hosts["c"].acknowledges = False
    network.run(5 * NS)
    sent = set[Id]()
    host, order_changed, before = network.hosts["c"], False, list[Id]()
    for _ in range(12):
        for k in range(20):
            for name in "ab":
                one = network.say(name, f"{name} {k}".encode())
                assert one is not None
                sent.add(one)
            network.run(network.now + 3 * MS)
        network.crash("c")
        seen = [e.id for e in host.events if isinstance(e, Message)]
        order_changed = order_changed or seen[: len(before)] != before[: len(seen)]
        before = seen
        host.events.clear()
        network.run(network.now + NS // 5)
        network.start("c")
    network.run(network.now + 20 * NS)
    last = [e.id for e in host.events if isinstance(e, Message)]
    assert len(last) == len(set(last)), "once in a life"
    assert set(last) == sent, "nothing was acknowledged, so all come again"
    return order_changed


@pytest.mark.parametrize("acknowledged", [1, 4, 9, 10])
async def test_a_message_is_acknowledged_by_its_id(tmp_path: Path, acknowledged: int) -> None:
    store = tmp_path / "b.db"
    async with joined(peer("a"), peer("c")) as (a, c):
        async with peer("b", store=store, acknowledge="explicit") as b:
            await b.join(a.address)
            await until(lambda: a.members == b.members == c.members == ("a", "b", "c"))
            for k in range(5):
                a.send_nowait(b"a %d" % k)
                c.send_nowait(b"c %d" % k)
            got = await take(b, 10)
            b.acknowledge(got[acknowledged - 1])
            b.acknowledge(got[0])  # an earlier one takes nothing back
            b.acknowledge(Message("x~00000000", 1, b"never here"))
            assert b.status().pending_messages == 10 - acknowledged
        await a.send(b"last")
        async with peer("b", store=store, acknowledge="explicit") as b:
            again = await take(b, 11 - acknowledged)
            assert [m.id for m in again[:-1]] == [m.id for m in got[acknowledged:]]
            assert again[-1].payload == b"last"
            b.acknowledge(again[-1])
        async with peer("b", store=store, acknowledge="explicit") as b:
            await a.send(b"anew")
            assert [m.payload for m in await take(b, 1)] == [b"anew"]


async def test_an_answer_that_waited_is_acknowledged_by_its_id(tmp_path: Path) -> None:
    store = tmp_path / "b.db"
    more: dict[str, Any] = {"order": "reply", "repair_delay_s": 60.0}
    async with joined(peer("a", **more), peer("c", **more)) as (a, c):
        async with peer("b", store=store, acknowledge="explicit", **more) as b:
            await b.join(a.address)
            await until(lambda: a.members == b.members == c.members == ("a", "b", "c"))
            question = await a.send(b"question")
            await take(c, 1)
            await c.send(b"answer", reply_to=question)
            await c.send(b"apart")
            got = await take(b, 3)
            middle = got[1]
            b.acknowledge(middle)
        async with peer("b", store=store, acknowledge="explicit", **more) as b:
            again = await take(b, 1)
            assert [m.id for m in again] == [got[2].id]
            assert b.status().pending_messages == 1


async def test_the_history_needs_no_acknowledgement(tmp_path: Path) -> None:
    store = tmp_path / "b.db"
    async with peer("a", history=5) as a:
        await a.bootstrap()
        await a.send(b"old")
        async with peer("b", store=store, acknowledge="explicit", history=5) as b:
            await b.join(a.address)
            await a.send(b"new")
            old, new = await take(b, 2)
            assert (old.payload, old.is_history) == (b"old", True)
            assert (new.payload, new.is_history) == (b"new", False)
            b.acknowledge(old)
            assert b.status().pending_messages == 1
        async with peer("b", store=store, acknowledge="explicit", history=5) as b:
            assert [m.payload for m in await take(b, 1)] == [b"new"]
            await asyncio.sleep(0.1)
            assert b.status().pending_messages == 1


async def test_without_a_store_nothing_of_what_is_not_acknowledged_is_kept() -> None:
    async with joined(peer("a"), peer("b", acknowledge="explicit")) as (a, b):
        for k in range(30):
            await a.send(b"%d" % k)
        got = await take(b, 30)
        b.acknowledge(got[9])
        assert b.status().pending_messages == 20
        b.acknowledge(got[29])
        assert b.status().pending_messages == 0


@pytest.mark.parametrize("taken", [False, True])
async def test_members_at_the_start_have_what_views_do_not_say_again(
    tmp_path: Path, taken: bool
) -> None:
    store = tmp_path / "b.db"
    async with peer("a") as a:
        await a.bootstrap()
        async with peer("b", store=store) as b:
            await b.join(a.address)
            async with peer("c") as c, peer("d") as d:
                await c.join(a.address)
                await d.join(a.address)
                await c.send(b"from c")
                await until(lambda: len(b.members) == 4)
                await until(lambda: b.status().delivered == 1)
                if taken:
                    await take(b, 1)
                await d.leave()
                await until(lambda: len(b.members) == 3)
                await asyncio.sleep(0.1)
                await b.close()
            await until(lambda: len(a.members) == 2)
        async with peer("b", store=store) as b:
            assert b.members == ("a", "b", "c"), "before anything is taken or connected"
            known = set(b.members)
            async for event in b.events():
                if isinstance(event, View):
                    assert set(event.members) == known - {"c"}
                    assert event.change.member == "c"
                    break
                assert event.payload == b"from c"  # type: ignore[union-attr]
            assert set(b.members) == {"a", "b"}
