"""Flow control: bytes are bounded, senders wait for slow members, and no setting evicts anybody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antecede.errors import BufferFullError, LocalError, PeerError
from antecede.live.events import ChangeKind, View
from antecede.live.peer import Peer
from antecede.live.settings import NS, Settings
from tests.live.loops import joined, take, until
from tests.live.memory_network import MS, MemoryNetwork

SIZE = 1000


def peer(name: str, **more: Any) -> Peer:
    return Peer(name, **{"listen": "127.0.0.1:0", "insecure": True, "group_name": "flow", **more})


def group(seed: int = 1, *, durable: bool = False, **each: dict[str, Any]) -> MemoryNetwork:
    """Return a network of the named members, connected; `each`: their settings."""
    network = MemoryNetwork(seed, most_ns=5 * MS)
    for name, settings in each.items():
        network.add(name, Settings(**settings), durable=durable)
    network.meet(each, at_once=True)
    network.run(5 * NS)
    return network


def members(network: MemoryNetwork, name: str) -> list[str]:
    return sorted([name, *(one.name for one in network.status(name).members)])


def send_for(
    network: MemoryNetwork,
    senders: str,
    seconds: float,
    look: Callable[[], object] = lambda: None,
    size: int = SIZE,
) -> int:
    """Send whenever there is room; return how much was sent."""
    end, sent = network.now + round(seconds * NS), 0
    while network.now < end:
        for name in senders:
            if network.has_room(name) and network.say(name, bytes(size)) is not None:
                sent += 1
        network.run(network.now + 5 * MS)
        look()
    return sent


def got(network: MemoryNetwork, name: str) -> int:
    return len(network.messages(name))


# -- one member's memory ---------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize(("memory", "senders"), [(1, "a"), (20_000, "abcd"), (5_000, "bc")])
def test_a_small_memory_slows_the_senders_and_evicts_nobody(memory: int, senders: str) -> None:
    little: dict[str, Any] = {"max_memory_bytes": memory}
    network = group(a={}, b={}, c=little, d={})
    most = [0]

    def look() -> None:
        most[0] = max(most[0], network.status("c").memory_bytes)

    sent = send_for(network, senders, 6, look)
    network.run(network.now + 3 * NS)
    assert sent > 50, "they go on"
    for name in "abcd":
        assert members(network, name) == list("abcd")
        assert got(network, name) == sent - network.status(name).sent
        assert network.status(name).memory_bytes == 0
    assert most[0] <= 2 * memory + 5 * SIZE * len(senders), "some batches of each are on their way"


def test_a_small_disk_evicts_nobody() -> None:
    little: dict[str, Any] = {"max_disk_bytes": 5_000, "max_memory_bytes": 2_000}
    network = group(a={}, b={}, c=little, durable=True)
    sent = send_for(network, "ab", 6)
    network.run(network.now + 3 * NS)
    assert sent > 50
    assert all(members(network, name) == list("abc") for name in "abc")
    assert got(network, "c") == sent


def test_a_member_that_is_away_for_less_than_the_time_stays() -> None:
    network = group(a={}, b={}, c={"max_memory_bytes": 5_000})
    network.cut("b", {"a", "c"})
    sent = send_for(network, "a", 7)
    network.heal()
    sent += send_for(network, "a", 3)
    network.run(network.now + 5 * NS)
    assert all(members(network, name) == list("abc") for name in "abc")
    assert got(network, "b") == sent


# -- a slow member ---------------------------------------------------------------------------------


@pytest.mark.parametrize("after_s", [1, 4])
def test_a_member_that_takes_nothing_is_evicted_after_the_time_that_all_share(after_s: int) -> None:
    more: dict[str, Any] = {"max_memory_bytes": 40_000, "evict_slow_after_ns": after_s * NS}
    network = group(a=more, b=more, c=more)
    network.hosts["c"].takes = False
    full_ns, out_ns, most = [0], [0], [0]

    def look() -> None:
        if not full_ns[0] and not network.has_room("a"):
            full_ns[0] = network.now
        if not out_ns[0] and "c" not in members(network, "a"):
            out_ns[0] = network.now
        most[0] = max(most[0], network.status("c").inbox_bytes)

    sent = send_for(network, "a", after_s + 4, look)
    assert members(network, "a") == members(network, "b") == ["a", "b"]
    assert after_s <= (out_ns[0] - full_ns[0]) / NS < after_s + 2
    network.run(network.now + NS)
    assert got(network, "b") == sent
    evicted = network.status("c")
    assert not evicted.is_healthy
    views = [one for one in network.hosts["b"].events if isinstance(one, View)]
    [why] = {one.change.detail for one in views if one.change.kind is ChangeKind.EVICTED}
    assert why.startswith("too slow: it has not acknowledged")
    assert most[0] <= evicted.inbox_limit + 2 * 40_000, "and what was on its way, with its overhead"


def test_a_slow_member_that_goes_on_is_waited_for() -> None:
    more: dict[str, Any] = {"max_memory_bytes": 20_000, "evict_slow_after_ns": 2 * NS}
    network = group(a=more, b=more, c=more)
    network.hosts["c"].takes = False

    def look() -> None:
        if network.now // NS > (network.now - 5 * MS) // NS:  # once a second
            network.take("c")

    sent = send_for(network, "a", 12, look)
    for _ in range(20):
        network.take("c")
        network.run(network.now + NS // 2)
    assert all(members(network, name) == list("abc") for name in "abc")
    assert got(network, "b") == got(network, "c") == sent


def test_a_member_that_only_sends_evicts_nobody() -> None:
    more: dict[str, Any] = {"max_memory_bytes": 20_000, "evict_slow_after_ns": 2 * NS}
    network = group(a=more, b=more, c=more)
    network.hosts["a"].takes = False
    network.say("b", bytes(100_000))
    sent = send_for(network, "a", 6)
    assert sent > 300
    assert all(members(network, name) == list("abc") for name in "abc")


def test_nobody_is_evicted_while_nobody_sends() -> None:
    more: dict[str, Any] = {"max_memory_bytes": 3_000, "evict_slow_after_ns": 2 * NS}
    network = group(a=more, b=more)
    network.cut("a", "b")
    while network.status("a").unacknowledged_bytes <= network.status("a").unacknowledged_limit:
        network.say("a", bytes(SIZE))
        network.run(network.now + 50 * MS)
    network.run(network.now + 20 * NS)
    assert members(network, "a") == ["a", "b"]
    assert not network.has_room("a"), "and from now on it is waited for"
    network.run(network.now + 4 * NS)
    assert members(network, "a") == ["a"]


@pytest.mark.slow
def test_a_sender_that_slept_has_waited_for_nobody() -> None:
    more: dict[str, Any] = {
        "max_memory_bytes": 20_000,
        "evict_slow_after_ns": 5 * NS,
        "failure_timeout_ns": 60 * NS,
    }
    network = group(a=more, b=more, c=more)
    network.hosts["c"].takes = False
    send_for(network, "a", 3)
    assert not network.has_room("a")
    network.freeze("a")
    network.run(network.now + 20 * NS)
    network.thaw("a")
    network.take("c")
    network.hosts["c"].takes = True
    sent = send_for(network, "a", 10)
    assert sent > 50
    assert all(members(network, name) == list("abc") for name in "abc")


async def test_the_time_is_the_same_for_all() -> None:
    async with peer("a", evict_slow_after_s=3) as a, peer("b") as b:
        await a.bootstrap()
        with pytest.raises(PeerError, match=r"evict_slow_after_s= differs: 3 at a, 10 at b"):
            await b.join(a.address)
    with pytest.raises(LocalError, match=r"evict_slow_after_s=0 is invalid"):
        peer("a", evict_slow_after_s=0)


@pytest.mark.slow
def test_many_senders_share_the_least_budget() -> None:
    more: dict[str, Any] = {"max_memory_bytes": 100_000}
    network = group(1, durable=False, **dict.fromkeys("abcdef", more))
    network.cut("f", set("abcde"))  # lacks what all of them sent when it comes back
    most = [0]

    def look() -> None:
        most[0] = max(most[0], *(network.status(name).memory_bytes for name in "abcde"))

    send_for(network, "abcde", 5, look)
    network.heal()
    sent = send_for(network, "abcde", 3, look)
    assert sent > 100
    assert all(members(network, name) == list("abcdef") for name in "abcdef")
    assert most[0] < 250_000, "each alone might have sent as much as the budget"


# -- bytes in a peer -------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("store", [False, True])
async def test_messages_that_wait_for_the_application_are_bounded_by_bytes(
    tmp_path: Path, store: bool
) -> None:
    more: dict[str, Any] = {
        "max_memory_bytes": 1 << 20,
        "max_disk_bytes": 8 << 20,
        "max_message_bytes": 1 << 20,
    }
    stores = {n: {"store": tmp_path / f"{n}.db"} if store else {} for n in "ab"}
    async with joined(peer("a", **more, **stores["a"]), peer("b", **more, **stores["b"])) as (a, b):
        await until(lambda: a.members == b.members == ("a", "b"))
        count, payload = 60, bytes(200_000)

        async def send() -> None:
            for _ in range(count):
                await a.send(payload)

        sending = asyncio.create_task(send())
        await asyncio.sleep(2.0)
        now = b.status()
        assert now.inbox_limit == (1 << 20) // 4
        assert 0 < now.inbox_bytes < now.inbox_limit + (3 << 20), "two batches"
        if not store:
            assert not sending.done(), "the sender waits"
            assert a.status().unacknowledged_bytes <= (2 << 20), "a batch beyond the limit"
            assert a.status().unacknowledged_limit == 1 << 20
        assert len(await take(b, count)) == count
        await sending
        await until(
            lambda: a.status().unacknowledged_bytes == 0 and b.status().inbox_bytes < 300_000
        )
        assert a.members == b.members == ("a", "b")


async def test_what_is_not_acknowledged_counts_where_it_is_kept(tmp_path: Path) -> None:
    more: dict[str, Any] = {"max_memory_bytes": 1 << 20}
    async with joined(
        peer("a", **more), peer("b", store=tmp_path / "b.db", acknowledge="explicit", **more)
    ) as (a, b):
        payload = bytes(100_000)
        sending = asyncio.create_task(_send(a, payload, 40))
        got = await take(b, 8)
        await asyncio.sleep(0.5)
        assert b.status().inbox_limit == 1 << 20
        assert b.status().inbox_bytes >= 800_000, "the application has them, and may crash"
        assert not sending.done()
        while len(got) < 40:
            b.acknowledge(got[-1])
            got += await take(b, 1)
        await sending
        b.acknowledge(got[-1])
        assert b.status().inbox_bytes == 0


async def _send(one: Peer, payload: bytes, count: int) -> None:
    for _ in range(count):
        await one.send(payload)


@pytest.mark.parametrize("store", [False, True])
async def test_sending_without_waiting_is_bounded(tmp_path: Path, store: bool) -> None:
    more = {"store": tmp_path / "a.db"} if store else {}
    async with joined(peer("a", max_memory_bytes=100_000, **more), peer("b")) as (a, b):
        await until(lambda: a.members == b.members == ("a", "b"))
        sent = 0
        while a.status().unacknowledged_bytes <= 100_000:
            a.send_nowait(bytes(10_000))
            sent += 1
        with pytest.raises(BufferFullError, match=r"max_memory_bytes=100,000 is the limit"):
            a.send_nowait(b"x")
        assert 10 <= sent <= 12
        assert 100_000 <= a.status().unacknowledged_bytes < 130_000
        await take(b, sent)
        await until(lambda: a.status().unacknowledged_bytes == 0)
        a.send_nowait(bytes(500_000))  # one passes, however large
        with pytest.raises(BufferFullError):
            a.send_nowait(b"x")
        await take(b, 1)
        await a.send(b"and on")
        assert [m.payload for m in await take(b, 1)] == [b"and on"]


async def test_bytes_are_told_to_people_and_to_prometheus() -> None:
    pytest.importorskip("prometheus_client")
    from antecede.live.metrics import exposition
    from antecede.live.status import format_status, status_from_json, status_to_json

    async with joined(peer("a", max_memory_bytes=1 << 20), peer("b", max_memory_bytes=4 << 20)) as (
        a,
        b,
    ):
        await a.send(bytes(5000))
        await until(lambda: b.status().inbox_bytes > 5000)
        await until(lambda: b.status().unacknowledged_limit == 1 << 20)
        found = b.status()
        text = exposition(found).decode()
        for name in (
            "inbox_bytes",
            "unacknowledged_bytes",
            "unacknowledged_limit_bytes",
            "connection_bytes",
        ):
            assert f"antecede_live_{name}{{" in text
        assert 'antecede_live_inbox_limit_bytes{group_name="flow",member="b"} 1.048576e+06' in text
        assert "inbox 4.9 KiB of 1.0 MiB" in format_status(found)
        assert status_from_json(status_to_json(found)) == found
