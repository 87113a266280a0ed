"""Peers behind super peers over TCP: the API that a program uses, failover, what is refused."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import BufferFullError, LocalError, PeerError
from antecede.live.events import Message, View
from antecede.live.peer import Peer
from antecede.live.status import format_status, status_from_json, status_to_json
from tests.conftest import ROOT
from tests.live import peer_control
from tests.live.loops import joined, take, until
from tests.live.observation import observe

QUICK = {"heartbeat_s": 0.2, "failure_timeout_s": 1.0, "evict_after_s": 1.0}


def peer(name: str, role: str, **more: Any) -> Peer:
    listen = {} if role == "internal" else {"listen": "127.0.0.1:0"}
    given = {"insecure": True, "group_name": "test", **QUICK, **listen, **more}
    return Peer(name, order="hierarchical", role=role, **given)


class Site:
    """Two super peers, an external peer, and four peers inside, two of each."""

    def __init__(self) -> None:
        self.supers = [peer(f"s{k}", "super") for k in (1, 2)]
        self.external = peer("e", "external")
        self.inside = [peer(f"i{k}", "internal") for k in range(4)]

    @property
    def everybody(self) -> list[Peer]:
        """All that send."""
        return [self.external, *self.inside]


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    made = Site()
    async with AsyncExitStack() as stack:
        for one in (*made.supers, *made.everybody):
            await stack.enter_async_context(one)
        one, other = made.supers
        await one.bootstrap()
        await other.join(one.address)
        await made.external.join(other.address)
        for k, each in enumerate(made.inside):
            await each.join(made.supers[k % 2].address)
        yield made


async def test_what_anybody_says_comes_to_all_under_its_own_name() -> None:
    async with site() as here:
        said = [await one.send(one.name.encode()) for one in here.everybody]
        for one in here.everybody:
            messages = await take(one, len(said) - 1)
            assert {m.id for m in messages} == {s for s in said if s.sender != one.name}
            assert all(m.sender.encode() == m.payload for m in messages)
        assert here.external.members == ("e", "s1", "s2")
        assert here.inside[0].members == ("i0", "s1")


async def test_an_answer_never_comes_before_what_it_answers() -> None:
    async with site() as here:
        asker, answerer, *_ = here.inside
        for _ in range(20):
            asked = await asker.send(b"?")
            [question] = await take(answerer, 1)
            assert question.id == asked
            await answerer.send(b"!")
            await take(asker, 1)
        for one in (here.external, *here.inside[2:]):
            assert [m.payload for m in await take(one, 40)] == [b"?", b"!"] * 20


async def test_a_super_peer_is_killed_and_those_inside_go_on_elsewhere() -> None:
    async with site() as here:
        first, second = here.supers
        moving = here.inside[::2]
        total = 30
        got: dict[str, list[Message]] = {one.name: [] for one in here.everybody}

        async def listen(one: Peer) -> None:
            async for message in one:
                got[one.name].append(message)

        tasks = [asyncio.create_task(listen(one)) for one in here.everybody]
        for number in range(total):
            here.everybody[number % 5].send_nowait(str(number).encode())
            if number == 10:
                peer_control.abort_connections(first)
                await first.close()
            await asyncio.sleep(0.01)
        await until(lambda: all(len(one) >= total * 4 // 5 for one in got.values()))
        await until(lambda: all(one.members == (one.name, "s2") for one in moving))
        await until(lambda: second.members == ("e", "s2"))
        for one in here.everybody:
            ids = [m.id for m in got[one.name]]
            assert len(set(ids)) == len(ids) == total * 4 // 5
        for task in tasks:
            task.cancel()


async def test_whom_one_is_inside_of_is_told_as_a_view() -> None:
    async with site() as here:
        one = here.inside[0]
        events = one.events()
        view = await anext(events)
        assert isinstance(view, View)
        assert view.members == ("i0", "s1")
        await here.supers[0].leave()
        view = await anext(events)
        assert isinstance(view, View)
        assert view.members == ("i0", "s2")


async def test_a_list_of_super_peers_is_called_until_one_answers() -> None:
    async with peer("s", "super") as s, peer("i", "internal") as i:
        await s.bootstrap()
        await i.join(["127.0.0.1:1", s.address])
        assert i.members == ("i", "s")


@pytest.mark.slow
async def test_with_tls_names_are_the_certificates(tmp_path: Path) -> None:
    from antecede.live.keys import make_authority, make_member
    from antecede.live.tls import Tls

    make_authority(tmp_path)
    for name in ("s1", "s2", "e", "i"):
        make_member(tmp_path, name)

    def secure(name: str, role: str) -> Peer:
        tls = Tls(tmp_path / f"{name}.pem", tmp_path / "ca.pem")
        return peer(name, role, insecure=False, tls=tls)

    async with (
        secure("s1", "super") as s1,
        secure("s2", "super") as s2,
        secure("e", "external") as e,
        secure("i", "internal") as i,
    ):
        await s1.bootstrap()
        await s2.join(s1.address)
        await e.join(s2.address)
        await i.join([s1.address, s2.address])
        await i.send(b"inside")
        [message] = await take(e, 1)
        assert (message.sender, message.payload) == ("i", b"inside")
        await s1.close()
        await e.send(b"outside")
        [message] = await take(i, 1)
        assert (message.sender, message.payload) == ("e", b"outside")
        assert i.members == ("i", "s2")


async def test_an_external_peer_goes_on_from_its_store(tmp_path: Path) -> None:
    async with joined(peer("s", "super", evict_after_s=60), peer("i", "internal")) as (s, i):
        path = tmp_path / "e.db"
        one = peer("e", "external", store=path, evict_after_s=60)
        await one.__aenter__()
        await one.join(s.address)
        lane = one.status().sender_id
        await one.send(b"1")
        await i.send(b"2")
        [message] = await take(i, 1)
        assert message.payload == b"1"
        [message] = await take(one, 1)
        assert message.payload == b"2"
        await one.close()
        await i.send(b"3")
        async with peer("e", "external", store=path, evict_after_s=60) as again:
            assert again.status().sender_id == lane
            messages = await take(again, 2)  # the second was not asked for what comes next
            assert [m.payload for m in messages] == [b"2", b"3"]
            await again.send(b"4")
            [message] = await take(i, 1)
            assert (message.payload, message.number) == (b"4", 2)


async def test_a_super_peer_says_nothing_and_puts_out_who_is_inside() -> None:
    async with site() as here:
        first = here.supers[0]
        with pytest.raises(LocalError, match="a super peer only forwards"):
            await first.send(b"?")
        first.evict("i0", "noise")
        with pytest.raises(PeerError, match="evicted by its super peer: noise"):
            await take(here.inside[0], 1)
        assert [lane[:2] for lane in observe(first).hierarchy.internal_peers] == ["i2"]


async def test_wrong_doors_are_said_in_words() -> None:
    async with site() as here:
        async with peer("x", "internal") as x:
            with pytest.raises(PeerError, match="is not a super peer"):
                await x.join(here.external.address)
        async with peer("y", "internal", group_name="another") as y:
            with pytest.raises(PeerError, match=r"its group_name= differs"):
                await y.join(here.supers[0].address)
        async with peer("v", "internal", verify_all_signatures=True) as v:
            differs = "its verify_all_signatures= differs: 'True' at v, 'False' at s1"
            with pytest.raises(PeerError, match=f"s of another group: {differs}"):
                await v.join(here.supers[0].address)
            for one in here.supers:
                names = (*one.members, *observe(one).hierarchy.internal_peers)
                assert not any(name[0] == "v" for name in names)
        async with Peer("z", group_name="test", insecure=True, listen="127.0.0.1:0") as z:
            with pytest.raises(PeerError, match=r"its order= differs"):
                await z.join(here.supers[0].address)
        async with peer("w", "internal") as w:
            with pytest.raises(LocalError, match="cannot bootstrap"):
                await w.bootstrap()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"role": None}, r"unknown role="),
        ({"role": "boss"}, r"unknown role='boss'"),
        ({"role": "internal", "order": "causal"}, r"role= has no effect"),
        ({"role": "internal", "listen": "127.0.0.1:0"}, "listen= is not supported"),
        ({"role": "internal", "store": "x.db"}, r"store= is not supported by role 'internal'"),
        ({"role": "super"}, r"a super peer needs listen="),
        ({"role": "super", "listen": "h:1", "store": "x.db"}, "store= is not supported"),
        ({"role": "external", "partition": "majority"}, r"partition=.* is not supported"),
        ({"role": "external", "options": {"pruning": "none"}}, r"options= is not supported"),
        ({"role": "external", "history": 5}, r"history= is not supported"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(LocalError, match=words):
        Peer("a", **{"order": "hierarchical", "insecure": True, **given})


async def test_a_link_to_the_same_super_peer_that_breaks_is_taken_up_again() -> None:
    async with site() as here:
        one, other = here.inside[0], here.inside[1]
        address = peer_control.find_internal_address(one)
        peer_control.abort_connections(one)
        await other.send(b"while it was away")
        await one.send(b"and this")
        [message] = await take(one, 1)
        assert message.payload == b"while it was away"
        [message] = await take(other, 1)
        assert message.payload == b"and this"
        assert peer_control.find_internal_address(one) == address
        assert one.members == ("i0", "s1")


@pytest.mark.slow
async def test_without_a_super_peer_what_is_said_is_kept_to_a_bound() -> None:
    async with peer("s", "super") as s:

        async def inside() -> None:
            async with peer("i", "internal", max_memory_bytes=10_000) as i:
                await s.bootstrap()
                await i.join(s.address)
                await s.close()
                for _ in range(10):
                    i.send_nowait(b"." * 1000)
                await until(lambda: i.status().memory_bytes > 10_000)
                words = r"not durable yet; max_memory_bytes=10000"
                with pytest.raises(BufferFullError, match=words):
                    i.send_nowait(b"one more")

        with pytest.raises(PeerError, match=r"acknowledged 10 messages of i"):
            await inside()


async def test_a_super_peer_tells_how_those_inside_are_doing() -> None:
    from antecede.live.metrics import exposition

    async with site() as here:
        await here.inside[0].send(b"one")
        for one in here.everybody:
            if one is not here.inside[0]:
                await take(one, 1)
        status = here.supers[0].status()
        star = status.super_peer
        assert star is not None
        assert (star.connected, star.away, star.joining, star.not_durable) == (2, 0, 0, 0)
        ways = {one.direction: one for one in star.traffic}
        assert {way: one.messages for way, one in ways.items()} == {
            "up": 1,
            "down": 1,
            "outside": 1,
        }
        assert all(one.control_bytes > 0 for one in ways.values())
        assert (
            "internal peers: 2 connected, 0 away, 0 joining; 0 messages not durable"
            in format_status(status)
        )
        assert status_from_json(json.loads(json.dumps(status_to_json(status)))) == status
        figures = exposition(status).decode()
        assert 'internal_peers{group_name="test",member="s1",state="connected"} 2.0' in figures
        assert here.external.status().super_peer is None


@pytest.mark.slow
async def test_kill_9_of_a_super_peers_process_loses_nothing() -> None:
    command = sys.executable, "-m", "tests.live.gate", "s1"
    gate = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=PIPE)
    assert gate.stdout is not None
    address = (await gate.stdout.readline()).decode().strip()
    names = [f"i{k}" for k in range(4)]
    async with AsyncExitStack() as stack:
        second = await stack.enter_async_context(peer("s2", "super"))
        await second.join(address)
        inside = [await stack.enter_async_context(peer(name, "internal")) for name in names]
        for k, one in enumerate(inside):
            await one.join([address, second.address][k % 2])
        takes = [asyncio.create_task(take(one, 30)) for one in inside]
        for number in range(40):
            inside[number % 4].send_nowait(str(number).encode())
            if number == 15:
                gate.kill()
            await asyncio.sleep(0.01)
        for one, got in zip(inside, await asyncio.gather(*takes), strict=True):
            own = int(one.name[1:])
            numbers = [int(m.payload) for m in got]
            assert sorted(numbers) == [n for n in range(40) if n % 4 != own]
            for sender in range(4):
                said = [n for n in numbers if n % 4 == sender]
                assert said == sorted(said)
        assert all(one.members == (one.name, "s2") for one in inside)
    await gate.wait()


async def test_whoever_left_a_mesh_sends_nothing_more() -> None:
    async with site() as here:
        for one in (here.inside[0], here.external):
            await one.send(b"last words of " + one.name.encode())
            await one.leave()
            with pytest.raises(PeerError, match=f"^{one.name} has left$"):
                await one.send(b"more")
            with pytest.raises(PeerError, match=f"^{one.name} has left$"):
                await one.join(here.supers[0].address)
            await until(lambda one=one: not observe(one).connections)  # type: ignore[misc]
            assert peer_control.list_dials(one) == []
        for one in here.inside[1:]:
            found = {m.payload for m in await take(one, 2)}
            assert found == {b"last words of i0", b"last words of e"}
