"""Where parts of the live group meet: store and newcomers, topics and who is gone, alarms, room."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.errors import LocalError, PeerError
from antecede.live import wire
from antecede.live.charges import EVICTED, WHILE_NS, EvictionVotes
from antecede.live.peer import Peer
from antecede.live.settings import NS, Settings
from antecede.live.store import PeerStore
from tests.live.loops import joined, take, until
from tests.live.memory_network import MS, MemoryNetwork


class KillingNetwork(MemoryNetwork):
    """Kills "a" once, when its answer to a newcomer waits for the store."""

    killed = False

    def turn(self, name: str) -> None:
        super().turn(name)
        if name == "a" and not self.killed and self.hosts["a"].observe().unanswered:
            self.killed = True
            self.crash("a")
            self.at(500 * MS, partial(self.start, "a"))


@pytest.mark.parametrize("seed", range(3, 6))
def test_a_newcomer_is_told_of_nothing_that_a_crash_takes_back(seed: int) -> None:
    network = KillingNetwork(seed)
    network.meet("abc", Settings(), durable=True)
    network.add("n", Settings(), durable=True)
    network.run(2 * NS)

    def talk() -> None:
        if not network.killed:
            network.say("a", b"x")
            network.at(MS, talk)

    network.at(0, talk)
    network.at(20 * MS, partial(network.start, "n", "a"))
    network.run(network.now + 20 * NS)
    assert network.killed
    found = [host.observe() for host in network.hosts.values()]
    assert all(one.is_in_group and len(one.members) == 4 for one in found)
    newest = [{lane: log.newest for lane, log in one.logs.items()} for one in found]
    assert all(one == newest[0] for one in newest)


@pytest.mark.parametrize("evict_after_ns", [None, 3 * NS])
def test_who_left_behind_what_nobody_has_is_not_waited_for(evict_after_ns: int | None) -> None:
    network = MemoryNetwork(1)
    bounds: Bounds[str] = Bounds(accuracy_ns=5 * MS, least_ns=MS, most_ns=150 * MS)
    for name, topics in (("a", "x"), ("c", "x"), ("d", "x"), ("n", "xy")):
        settings = Settings(
            order="tv",
            options={"bounds": bounds},
            topics=tuple(topics),
            evict_after_ns=evict_after_ns,
        )
        host = network.add(name, settings)
        host.clock, host.clock_error_ns = lambda now: 1000 * NS + now, MS
    network.start("a")
    network.at(50 * MS, partial(network.start, "c", "a"))
    network.at(70 * MS, partial(network.start, "d", "a"))
    network.run(2 * NS)
    network.cut(["c"], ["n"])
    network.start("n", "d")
    network.run(network.now + 40 * MS)
    network.say("c", b"about y", (), ("y",))
    network.leave("c")
    network.run(network.now + 300 * MS)
    network.crash("c")
    network.heal()
    network.run(network.now + 20 * NS)
    views = {frozenset(network.observe(name).members) for name in "adn"}
    assert len(views) == 1
    assert len(views.pop()) == 3


@pytest.mark.slow
async def test_to_send_much_in_a_row_puts_nobody_out() -> None:
    peers = [
        Peer(name, group_name="x", insecure=True, listen="127.0.0.1:0", max_memory_bytes=8 << 20)
        for name in "abc"
    ]
    for one in peers:
        await one.__aenter__()
    await peers[0].bootstrap()
    for one in peers[1:]:
        await one.join(peers[0].address)
    readers = [asyncio.create_task(_read(one)) for one in peers[1:]]
    for _ in range(20_000):
        await peers[0].send(bytes(1 << 10))
    await asyncio.sleep(0.5)
    assert peers[0].members == ("a", "b", "c")
    for one in peers:
        await one.close()
    await asyncio.gather(*readers)


async def _read(peer: Peer) -> None:
    async for _ in peer:
        pass


@pytest.mark.slow
async def test_who_is_put_out_while_its_store_is_slow_does_not_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, slow = PeerStore.write, list[bool]()

    def written(store: PeerStore, *given: Any) -> None:
        if slow and store.path.name == "b":
            time.sleep(0.5)
        write(store, *given)

    monkeypatch.setattr(PeerStore, "write", written)
    given: Any = {"group_name": "x", "insecure": True, "listen": "127.0.0.1:0"}
    async with joined(
        Peer("a", store=tmp_path / "a", **given), Peer("b", store=tmp_path / "b", **given)
    ) as (a, b):
        await asyncio.sleep(0.3)
        slow.append(True)
        b.send_nowait(b"first")
        await asyncio.sleep(0.05)
        sending = asyncio.create_task(b.send(b"second"))
        a.evict("b")
        with pytest.raises(PeerError):
            await asyncio.wait_for(sending, 5)


def test_a_word_against_one_counts_once_it_has_stood_for_a_while() -> None:
    charges = EvictionVotes("a")
    lanes = [f"{name}~00000000" for name in "abc"]
    charges.add(EVICTED, "b", "words")
    assert not charges.outcome(lanes, lanes[1:], 0)
    assert not charges.outcome(lanes, lanes[1:2], 60 * NS)
    assert not charges.outcome(lanes, lanes[1:2], 60 * NS + WHILE_NS - 1)
    assert charges.outcome(lanes, lanes[1:2], 60 * NS + WHILE_NS) == "words"


@pytest.mark.slow
async def test_the_time_of_a_peer_goes_on_when_on_alarm_raises() -> None:
    def raises(alarm: object) -> None:
        raise ValueError(alarm)

    heard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: heard.append(what))
    bounds: Bounds[str] = Bounds(accuracy_s=0.001, least_ns=0, most_ns=NS)
    options = {"bounds": bounds, "delivery": "bound"}
    more: Any = {"group_name": "x", "insecure": True, "order": "linear", "options": options}
    more |= {"listen": "127.0.0.1:0"}
    worse: Any = {"on_bound_violation": raises, "clock_error_s": 0.5}
    async with joined(Peer("a", **worse, **more), Peer("b", **more)) as (a, b):
        await until(lambda: bool(heard))
        sent = await b.send(b"x")
        [got] = await take(a, 1)  # only in time, a second later
        assert got.id == sent
        await until(lambda: b.status().unacknowledged_bytes == 0)  # a's timer acknowledges


def test_what_one_member_says_it_gave_up_ends_nobody() -> None:
    network = MemoryNetwork(1)
    network.meet("abcm", Settings())
    network.run(2 * NS)
    place = network.place("m", "x~00000000")
    for other in "abc":
        had = wire.pack_rows(wire.ACK, [(place, 5)])
        network.inject("m", other, had, wire.pack_rows(wire.TRUNCATED, [(place, 1_000_000)]))
    network.run(network.now + 10 * NS)
    assert not any(host.observe().end_reason for host in network.hosts.values())


@pytest.mark.parametrize(
    "given",
    [
        {"options": {"max_packet": 4096}},
        {"max_message_bytes": 1 << 26},
        {"max_message_bytes": 1 << 40},
    ],
)
def test_a_batch_fits_into_what_the_order_takes(given: dict[str, Any]) -> None:
    # Else what was said would be gone when it is put together, and nobody would be told.
    with pytest.raises(LocalError, match=r"max_message_bytes=\d+: batches have up to"):
        Settings(**given)
    Settings(max_message_bytes=1000, options={"max_packet": 2 << 20})


def test_a_link_that_is_owed_another_lane_alone_is_served() -> None:
    network = MemoryNetwork(1)
    times: dict[str, Any] = {"heartbeat_ns": 60 * NS, "failure_timeout_ns": 120 * NS}
    network.meet("abc", Settings(ack_delay_ns=2 * NS, **times))
    network.run(5 * NS)
    assert network.list_writable("a") == []
    network.cut("b", "c")
    network.disconnect("c", "b")
    for payload in (b"1", b"2"):  # c asks a for the first, and gets the second at once
        network.say("b", payload)
        network.run(network.now + (10 * NS if payload == b"1" else NS // 10))
    network.hosts["a"].writes_to = ()
    network.say("b", b"3")
    network.run(network.now + NS // 10)
    assert network.list_writable("a") == ["c"], "for b, and nothing of one's own"
    network.hosts["a"].writes_to = None
    network.run(network.now + NS // 10)
    assert network.payloads("c") == [b"1", b"2", b"3"]
