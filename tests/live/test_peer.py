"""Peers over TCP on this machine: the API that a program uses."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.errors import LocalError, PeerError, StoreError
from antecede.live import keys, wire
from antecede.live.events import Id, Message, View
from antecede.live.peer import Peer
from antecede.live.tls import Tls
from tests.live import peer_control
from tests.live.loops import joined, run, take, until
from tests.live.observation import observe
from tests.live.peer_control import list_dials, run_step

HTBC = {"bounds": Bounds[Any](accuracy_s=0.1, least_s=0.001, most_s=1)}


def peer(name: str, **more: Any) -> Peer:
    return Peer(name, **{"listen": "127.0.0.1:0", "insecure": True, "group_name": "test", **more})


async def test_the_example_of_the_readme() -> None:
    async with joined(peer("bob", order="reply"), peer("alice", order="reply")) as (bob, alice):
        sent = await alice.send(b"lunch?")
        [asked] = await take(bob, 1)
        assert (asked.sender, asked.payload, asked.id) == ("alice", b"lunch?", sent)
        await bob.send(b"yes", reply_to=asked)
        [answer] = await take(alice, 1)
        assert (answer.sender, answer.payload, answer.reply_to) == ("bob", b"yes", (sent,))
        assert alice.members == bob.members == ("alice", "bob")


async def test_many_join_at_once_and_all_see_all() -> None:
    names = [f"m{k}" for k in range(8)]
    peers = [peer(name) for name in names]
    for one in peers:
        await one.__aenter__()
    await peers[0].bootstrap()
    await asyncio.gather(*(one.join(peers[0].address) for one in peers[1:]))
    await until(lambda: all(one.members == tuple(names) for one in peers))
    for one in peers:
        for k in range(50):
            one.send_nowait(f"{one.name} {k}".encode())
    got = await asyncio.gather(*(take(one, 7 * 50) for one in peers))
    for one, messages in zip(peers, got, strict=True):
        for name in names:
            said = [m.payload for m in messages if m.sender == name]
            assert said == ([] if name == one.name else [f"{name} {k}".encode() for k in range(50)])
    for one in peers:
        await one.close()


async def test_a_turn_passes_over_what_is_being_closed(tmp_path: Path) -> None:
    keys.make_authority(tmp_path)
    for name in "ab":
        keys.make_member(tmp_path, name)
    tls = {name: Tls(tmp_path / f"{name}.pem", tmp_path / "ca.pem") for name in "ab"}
    more: dict[str, Any] = {"insecure": False}
    async with joined(peer("a", tls=tls["a"], **more), peer("b", tls=tls["b"], **more)) as (a, b):
        number = peer_control.disconnect(a, b.status().sender_id)
        run_step(a)
        run_step(a)  # asyncio's TLS forgets its connection when it is closed twice
        ping = wire.pack_frame(wire.PING)  # as a heartbeat that comes too late
        peer_control.queue_frame(a, number, ping)
        run_step(a)
        await until(lambda: number not in observe(a).connections and len(observe(b).connected) == 1)
        await b.send(b"again")
        [message] = await take(a, 1)
        assert message.payload == b"again"


async def test_views_come_in_order_with_the_messages() -> None:
    async with peer("a") as a:
        await a.bootstrap()
        async with peer("b") as b:
            await b.join(a.address)
            await b.send(b"here")
            await until(lambda: a.members == ("a", "b"))
        seen = []
        async for event in a.events():
            assert isinstance(event, View | Message)
            seen.append(str(event.change) if isinstance(event, View) else event.payload)
            if len(seen) == 4:
                break
        assert seen == ["a joined", "b joined", b"here", "b left"]
        assert a.members == ("a",)


async def test_a_store_goes_on_where_it_was(tmp_path: Path) -> None:
    store = tmp_path / "b.db"
    async with peer("a") as a:
        await a.bootstrap()
        async with peer("b", store=store, acknowledge="explicit") as b:
            await b.join(a.address)
            lane = b.status().sender_id
            await a.send(b"1")
            await a.send(b"2")
            one, two = await take(b, 2)
            b.acknowledge(one)
            sent = await b.send(b"from b")
        await a.send(b"3")
        async with peer("b", store=store, acknowledge="explicit") as b:
            assert b.status().sender_id == lane
            again, three = await take(b, 2)
            assert (again.id, again.payload) == (two.id, b"2")
            assert three.payload == b"3"
            b.acknowledge(three)
            await b.send(b"from b again")
            first, second = await take(a, 2)
            assert (first.id, first.payload) == (sent, b"from b")
            assert second.id == Id(sent.sender_id, sent.number + 1)
        await a.send(b"4")
        async with peer("b", store=store) as b:
            [four] = await take(b, 1)
            assert four.payload == b"4"


async def test_a_store_is_one_members_and_one_rooms(tmp_path: Path) -> None:
    store = tmp_path / "a.db"
    async with peer("a", store=store) as a:
        await a.bootstrap()
        with pytest.raises(StoreError, match="another process has it open"):
            await peer("a", store=store).__aenter__()
    others: list[dict[str, Any]] = [{"name": "b"}, {"group_name": "other"}, {"order": "reply"}]
    for wrong in others:
        with pytest.raises(StoreError, match=r"store of 'a', or of another group name"):
            await peer(**{"name": "a", "store": store, **wrong}).__aenter__()


async def test_who_is_put_out_is_told_and_the_others_go_on() -> None:
    async with peer("a") as a, peer("b") as b, peer("c") as c:
        await a.bootstrap()
        await b.join(a.address)
        await c.join(b.address)
        await until(lambda: a.members == c.members == ("a", "b", "c"))
        await c.send(b"last words")
        assert (await take(a, 1))[0].payload == b"last words"
        a.evict("c", "a test")
        with pytest.raises(PeerError, match="evicted from the group"):
            await take(c, 1)
        with pytest.raises(PeerError, match="evicted"):
            await c.send(b"more")
        await until(lambda: a.members == b.members == ("a", "b"))
        assert (await take(b, 1))[0].payload == b"last words"
        await a.send(b"still here")
        assert (await take(b, 1))[0].payload == b"still here"


async def test_a_minority_stops_where_the_group_was_made_so() -> None:
    more = {"partition": "majority", "failure_timeout_s": 0.5, "heartbeat_s": 0.1}
    async with joined(peer("a", **more), peer("b", **more), peer("c", **more)) as (a, b, c):
        await until(lambda: len(observe(c).connected) == 2 and c.members == ("a", "b", "c"))
        await until(lambda: a.members == b.members == ("a", "b", "c"))
        await a.close()
        await c.close()
        await until(lambda: b.status().in_minority)
        with pytest.raises(PeerError, match="minority part"):
            await b.send(b"alone")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"group_name": "other"}, "its group_name= differs"),
        ({"order": "reply"}, "its order= differs: '(reply' at b, 'causal' at a|causal' at a, 're)"),
        ({"order": "bss", "options": {"differences": True}}, "its order= differs"),
        ({"partition": "majority"}, "its partition= differs: 'm(ajority' at b|erge' at a), 'm"),
        (
            {"verify_all_signatures": True},
            "its verify_all_signatures= differs: '(True' at b|False' at a), '",
        ),
        ({"options": {"max_held": 9}}, r"differs in 'max_held', (not given|given only) by [ab]"),
    ],
)
async def test_whoever_is_of_another_group_is_not_let_in(more: dict[str, Any], why: str) -> None:
    async with peer("a") as a, peer("b", **more) as b:
        await a.bootstrap()
        with pytest.raises(PeerError, match=why):
            await b.join(a.address)
        assert a.members == ("a",)


async def test_two_groups_of_one_room_do_not_mix() -> None:
    async with peer("a") as a, peer("b") as b:
        await a.bootstrap()
        await b.bootstrap()
        assert observe(a).group_id != observe(b).group_id
        peer_control.dial(b, a.address)
        await until(lambda: observe(a).rejected.total() + observe(b).rejected.total() > 0)
        assert "bootstrapped separately" in a.status().last_rejection + b.status().last_rejection
        assert a.members == ("a",)


@pytest.mark.parametrize("by_certificates", ["the caller", "the called"])
async def test_one_with_certificates_and_one_without_say_so(
    tmp_path: Path, by_certificates: str
) -> None:
    keys.make_authority(tmp_path)
    keys.make_member(tmp_path, "a")
    tls = {"tls": Tls(tmp_path / "a.pem", tmp_path / "ca.pem"), "insecure": False}
    async with peer("a", **tls) as a, peer("b") as b:
        host, caller = (a, b) if by_certificates == "the called" else (b, a)
        await host.bootstrap()
        with pytest.raises(PeerError, match="certificates") as raised:
            await caller.join(host.address, timeout_s=1000)
        assert "insecure" in str(raised.value)
        await until(lambda: observe(host).rejected.total() > 0)
        assert "TLS" in host.status().last_rejection
        assert "certificates" in host.status().last_rejection


async def test_nobody_there_is_said() -> None:
    async with peer("a") as a:
        with pytest.raises(PeerError, match=r"a cannot join the group at 127\.0\.0\.1:1"):
            await a.join("127.0.0.1:1", timeout_s=0.3)
        with pytest.raises(LocalError, match="expected HOST:PORT"):
            await a.join("somewhere")
        with pytest.raises(PeerError, match="not in a group"):
            await a.send(b"x")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"insecure": False}, "needs tls="),
        ({"name": "a~b"}, "without '~'"),
        ({"name": ""}, "1 to 200 bytes"),
        ({"order": "tv"}, "bounds"),
        ({"order": "matrix"}, "is not supported by live groups"),
        ({"acknowledge": "never"}, "acknowledge="),
        ({"failure_timeout_s": 0.1}, "failure_timeout_s= must exceed"),
        ({"no_such": 1}, "unknown argument 'no_such'"),
        ({"partition": "split"}, "partition="),
        ({"listen": "here"}, "HOST:PORT"),
        ({"listen": 7000}, "invalid address 7000"),
        ({"listen": ("127.0.0.1", 7000)}, "invalid address"),
        ({"listen": "*:0"}, r"0\.0\.0\.0:PORT"),
        ({"address": "foo"}, "invalid address 'foo'"),
        ({"status": 9464}, "invalid address 9464"),
        ({"evict_after_s": -1}, r"evict_after_s=-1 is invalid; expected above 0"),
        ({"heartbeat_s": float("nan")}, "heartbeat_s=nan is invalid; expected a number"),
        ({"heartbeat_s": 0}, "heartbeat_s=0 is invalid"),
        ({"linger_s": -1}, "linger_s=-1 is invalid; expected 0 or more"),
        ({"max_memory_bytes": 1.5}, r"max_memory_bytes=1\.5 is invalid"),
        ({"max_memory_bytes": "64MiB"}, "max_memory_bytes='64MiB' is invalid"),
        ({"max_message_bytes": 1 << 40}, "max_message_bytes=.* batches have up to"),
        (
            {"max_message_bytes": 1 << 40, "options": {"max_packet": 1 << 42}},
            "is too large; the limit is 62,914,560",
        ),
        ({"history": 10**12}, "history=.* is too large; the limit is 1,000,000"),
        ({"history": -1}, "history=-1 is invalid"),
        ({"verify_all_signatures": 1}, "verify_all_signatures=1 is invalid"),
        ({"options": [1]}, "options=.* expected a mapping"),
        ({"options": {1: 1}}, "options=.* expected a mapping"),
        ({"tls": "keys", "insecure": False}, r"tls='keys' is invalid"),
        ({"tls": "keys"}, "exclude each other"),
        ({"insecure": 1}, "insecure=.* expected True or False"),
        ({"store": ""}, "store='' is invalid; expected a path"),
        ({"store": 7}, "store=7 is invalid; expected a path"),
        ({"on_bound_violation": 7, "order": "htbc", "options": HTBC}, "on_bound_violation="),
        ({"order": "total"}, "needs a closed group: pass members="),
        ({"order": "htbc"}, r'options=\{"bounds": Bounds\('),
        ({"order": "matrix"}, r"examples/lossy_sockets\.py for UDP"),
        ({"max_memroy_bytes": 1}, r"max_memroy_bytes' of Peer; did you mean max_memory_bytes=\?"),
        ({"heartbeat": 1}, r"did you mean heartbeat_s=\?"),
        ({"lissten": "x"}, r"did you mean listen=\?"),
    ],
)
def test_arguments_that_cannot_be_are_refused(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(LocalError, match=why):
        peer(**{"name": "a", **arguments})


def test_what_help_and_editors_show_of_a_peer() -> None:
    parameters = inspect.signature(Peer).parameters
    assert [*parameters][:4] == ["name", "group_name", "order", "role"]
    assert {"tls", "listen", "store", "settings"} <= parameters.keys()
    with pytest.raises(LocalError, match="one positional argument"):
        Peer("a", "design")  # type: ignore[call-arg]


async def test_times_and_answers_that_cannot_be_are_refused() -> None:
    async with peer("a", order="reply") as a:
        for address in (None, 7, [], [7], b"127.0.0.1:1"):
            with pytest.raises(LocalError, match="address"):
                await a.join(address)  # type: ignore[arg-type]
        for timeout_s in ("1", float("nan"), -1, None):
            with pytest.raises(LocalError, match="timeout_s="):
                await a.join("127.0.0.1:1", timeout_s=timeout_s)  # type: ignore[arg-type]
        await a.bootstrap()
        with pytest.raises(LocalError, match="reply_to=3 is invalid"):
            await a.send(b"x", reply_to=3)  # type: ignore[arg-type]


async def test_messages_that_cannot_be_are_refused() -> None:
    async with peer("a", max_message_bytes=100) as a, peer("r", order="reply") as r:
        await a.bootstrap()
        await r.bootstrap()
        for payload, why in (("text", "expected bytes"), (bytes(101), "max_message_bytes=100")):
            with pytest.raises(LocalError, match=why):
                await a.send(payload)  # type: ignore[arg-type]
        with pytest.raises(LocalError, match='use order="reply"'):
            await a.send(b"x", reply_to=Id("b~00000000", 1))
        with pytest.raises(LocalError):
            await r.send(b"x", reply_to=Id("b~00000000", 1))
        assert (await r.send(b"x", reply_to=())).number == 2


async def test_ways_to_take_messages_may_change_in_the_middle_of_a_batch() -> None:
    async with joined(peer("a"), peer("b")) as (a, b):
        for k in range(10):
            a.send_nowait(b"%d" % k)
        assert [m.payload for m in await take(b, 3)] == [b"0", b"1", b"2"]
        async for said in b.batches():
            assert (said.sender, said.first) == ("a", 4)
            assert said.payloads == [b"%d" % k for k in range(3, 10)]
            assert [m.number for m in said.messages()] == list(range(4, 11))
            break
        await a.send(b"more")
        assert [(m.payload, m.number) for m in await take(b, 1)] == [(b"more", 11)]


@pytest.mark.parametrize("taken", [0, 1, 4, 10])
async def test_what_was_not_done_comes_again_and_nothing_else(tmp_path: Path, taken: int) -> None:
    store = tmp_path / "b.db"
    async with peer("a") as a:
        await a.bootstrap()
        async with peer("b", store=store) as b:
            await b.join(a.address)
            for k in range(10):
                a.send_nowait(b"%d" % k)
            await take(b, taken)
            await until(lambda: b.status().delivered == 10)
            await asyncio.sleep(0.05)
        async with peer("b", store=store) as b:
            left = 10 - max(0, taken - 1)
            again = await take(b, left)
            assert [m.payload for m in again] == [b"%d" % k for k in range(10 - left, 10)]


@pytest.mark.slow
async def test_an_application_that_is_behind_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peer_control.MAX_READY, 100)
    async with joined(peer("a"), peer("slow"), peer("c")) as (a, slow, c):
        await until(lambda: slow.members == c.members == ("a", "c", "slow"))
        payload = bytes(10_000)
        for _ in range(40):
            for _ in range(100):
                a.send_nowait(payload)
            await a.drain()
            await take(c, 100)
        await until(lambda: not peer_control.is_reading(slow))
        assert observe(slow).undelivered_events < 4000
        assert len(await take(slow, 4000)) == 4000


@pytest.mark.slow
async def test_an_application_that_takes_nothing_does_not_find_the_others_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peer_control.MAX_READY, 100)
    quick = {"heartbeat_s": 0.05, "failure_timeout_s": 0.3}
    async with joined(peer("a", **quick), peer("slow", **quick)) as (a, slow):
        before = observe(slow).connections
        assert len(before) == 1
        for _ in range(40):
            for _ in range(100):
                a.send_nowait(bytes(10_000))
            await a.drain()
            await asyncio.sleep(0)
        await until(lambda: not peer_control.is_reading(slow))
        await asyncio.sleep(0.6)
        assert observe(slow).connections == before
        assert len(await take(slow, 4000)) == 4000
        assert observe(slow).connections == before


@pytest.mark.parametrize("order", ["causal", "reply", "fifo", "none"])
async def test_nothing_is_sent_or_taken_after_a_leave(order: str) -> None:
    async with joined(peer("a", order=order), peer("b", order=order)) as (a, b):
        taking = asyncio.create_task(take(b, 2))
        await a.send(b"before")
        await until(lambda: b.status().delivered == 1)
        b.send_nowait(b"last words")
        await b.leave()
        assert [m.payload for m in await taking] == [b"before"]
        await b.leave()
        for late in (b.send(b"x"), b.join(a.address), b.bootstrap(), b.drain(), take(b, 1)):
            with pytest.raises(PeerError, match=r"^b has left$"):
                await late
        for what in (lambda: b.send_nowait(b"x"), lambda: b.evict("a")):
            with pytest.raises(PeerError, match=r"^b has left$"):
                what()
        assert (b.status().is_healthy, b.status().unhealthy_reason) == (False, "it has left")
        assert [m.payload for m in await take(a, 1)] == [b"last words"]
        assert a.members == ("a",)
        await until(lambda: not observe(b).connections)
        assert list_dials(b) == []
        assert (observe(a).rejected, observe(b).rejected) == ({}, {})


@pytest.mark.parametrize("order", ["causal", "reply", "fifo", "none"])
async def test_what_somebody_says_behind_its_leave_nobody_takes(order: str) -> None:
    async with joined(peer("a", order=order), peer("b", order=order)) as (a, b):
        lane = b.status().sender_id
        peer_control.send_after_leave(b, b"as a program that does not heed it")
        await until(lambda: observe(a).newest(lane) == observe(b).newest(lane))
        await until(lambda: a.members == ("a",))
        seen = []
        async for event in a.events():
            seen.append(str(event.change) if isinstance(event, View) else "")
            if len(seen) == 3:
                break
        assert seen[-1:] == ["b left"]
        assert a.status().delivered == 0
        assert peer_control.list_left(a) == {lane}


async def test_a_store_knows_that_its_member_left(tmp_path: Path) -> None:
    store = tmp_path / "b.db"
    async with peer("a") as a:
        await a.bootstrap()
        async with peer("b", store=store) as b:
            await b.join(a.address)
            await a.send(b"not taken")
            await until(lambda: b.status().delivered == 1)
            await b.leave()
        async with peer("b", store=store) as b:
            left = r"b has left, by its store .*b\.db; give a new store"
            with pytest.raises(PeerError, match=left):
                await b.join(a.address)
            with pytest.raises(PeerError, match=left):
                await b.send(b"x")
            assert [m.payload for m in await take(b, 1)] == [b"not taken"]
            with pytest.raises(PeerError, match=left):
                await take(b, 1)
            assert not observe(b).connections
        async with peer("b", store=tmp_path / "new.db") as b:
            await b.join(a.address)
            await until(lambda: a.members == ("a", "b"))


async def test_a_peer_is_in_one_group_and_says_so(tmp_path: Path) -> None:
    async with peer("a") as a, peer("b", store=tmp_path / "b.db") as b:
        await a.bootstrap()
        with pytest.raises(LocalError, match="a is in a group already"):
            await a.bootstrap()
        for address in (a.address, "127.0.0.1:1"):
            with pytest.raises(LocalError, match="a is in a group already"):
                await a.join(address)
        await b.join(a.address)
        with pytest.raises(LocalError, match="b is in a group already"):
            await b.join(a.address)
    async with peer("b", store=tmp_path / "b.db") as b:
        await b.join("127.0.0.1:1")
        await b.bootstrap()
    for late in (b.bootstrap(), b.join(a.address), b.leave(), b.drain(), b.flush(), b.send(b"x")):
        with pytest.raises(PeerError, match="b is closed"):
            await late


async def test_a_peer_begins_once() -> None:
    async with peer("a") as a:
        with pytest.raises(LocalError, match="a was entered already"):
            await a.__aenter__()
        b = peer("b", listen=a.address)
        with pytest.raises(PeerError, match="cannot listen"):
            await b.__aenter__()
    with pytest.raises(LocalError, match="a was entered already"):
        await a.__aenter__()
    async with b:
        await b.bootstrap()


def test_a_peer_is_for_the_loop_in_which_it_began() -> None:
    async def begin() -> Peer:
        one = await peer("a").__aenter__()
        await one.bootstrap()
        return one

    with asyncio.Runner() as first:
        a = first.run(begin())
        for late in (lambda: a.send(b"x"), lambda: take(a, 1), a.flush, a.bootstrap, a.leave):
            with pytest.raises(LocalError, match="a was entered in another event loop"):
                run(late)
        with pytest.raises(LocalError, match="a was entered in another event loop"):
            a.send_nowait(b"x")
        first.run(a.close())
