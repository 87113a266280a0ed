"""Live peers over a simulated network: crashes, partitions, joins, leaves; the oracle judges."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from antecede.core.clocks.lanes import unit
from antecede.core.protocols.base import Deliver
from antecede.core.protocols.vector.idr import Idr
from antecede.errors import AntecedeError
from antecede.live import wire
from antecede.live.lanes import SenderLogs
from antecede.live.ordering import StoredInput as StoredRow
from antecede.live.settings import NS, Settings
from antecede.tables.trace.schema import DELIVER
from tests.live.memory_network import MS, MemoryNetwork, MemoryStore
from tests.live.simulated import Judgement, Plan, Run, StoredInput

ORDERS = ("causal", "causal", "reply", "fifo", "bss", "none")
SOAK_S = float(os.environ.get("ANTECEDE_SOAK_S", "3600"))


def plan_of(seed: int) -> Plan:
    """Return a run that differs from the others in all that matters."""
    draw = random.Random(seed)
    durable = draw.random() < 0.5
    settings = {} if durable else {"evict_after_ns": 3 * NS}
    return Plan(
        seed,
        members=draw.randrange(2, 6),
        order=draw.choice(ORDERS),
        durable=durable,
        faults=draw.randrange(2, 7),
        settings=settings,
    )


def verdict(seed: int) -> Judgement:
    judgement = Run(plan_of(seed)).run()
    assert judgement.clean, (plan_of(seed), judgement)
    return judgement


@pytest.mark.few(1)
@pytest.mark.parametrize("first", range(0, 240, 15))
def test_nothing_is_lost_early_twice_or_stuck(first: int) -> None:
    done = [verdict(seed) for seed in range(first, first + 15)]
    assert sum(one.messages for one in done) > 15 * 25
    assert sum(one.deliveries for one in done) > 15 * 50


def test_a_run_follows_from_its_seed() -> None:
    one, again = Run(plan_of(7)), Run(plan_of(7))
    one.run(), again.run()
    assert one.rows == again.rows
    assert one.rows != Run(plan_of(9)).rows


def _same_sender(one: StoredInput, other: StoredInput) -> bool:
    return one[0] == other[0] == DELIVER and one[1].sender_id == other[1].sender_id


@pytest.mark.parametrize("kind", ["early", "lost", "twice"])
def test_the_judge_finds_what_is_put_wrong_by_hand(kind: str) -> None:
    run = Run(Plan(3, members=3, faults=0))
    run.run()
    rows = next(rows for rows in run.rows.values() if rows[-1][0] == DELIVER)
    if kind == "early":  # two of one sender, one after the other
        at = next(k for k in range(1, len(rows)) if _same_sender(rows[k - 1], rows[k]))
        rows[at - 1], rows[at] = rows[at], rows[at - 1]
    elif kind == "lost":
        rows.remove(next(row for row in rows if row[0] == DELIVER))
    else:
        rows.append(rows[-1])
    run.judgement = Judgement()
    run.judge()
    assert getattr(run.judgement, kind)


@pytest.mark.soak
def test_an_hour_of_runs() -> None:
    end, seed, messages = time.monotonic() + SOAK_S, 10**6, 0
    while time.monotonic() < end:
        messages += verdict(seed).messages
        seed += 1
    assert messages > SOAK_S


# -- a run finds what is broken --------------------------------------------------------------------


def _deliver_at_once(self: Idr, message: Any, *, now: int | None = None) -> Any:
    """As `Idr.receive`, without looking at causes."""
    if self.counts.get(message.sender) != message.seq - 1:
        return self.receive_slowly(message)
    self.ci |= self.marks[message.sender]
    self.clock += unit(message.sender)
    self.counts[message.sender] = message.seq
    return (Deliver(message),)


def _hand_on_nothing(network: MemoryNetwork) -> None:
    """Nobody hears what others ask for."""
    network.filter = lambda frames: [one.pack() for one in frames if one.kind != wire.NAK]


def _lose_rows(self: MemoryStore, rows: Iterable[StoredRow], *rest: Any) -> None:
    """As `MemoryStore.write`, but for one row in twenty of others."""
    kept = [row for row in rows if row.number % 20 or row.number < 1]
    WRITE(self, kept, *rest)


def _tell_early(network: MemoryNetwork) -> None:
    network.tells_early = True


def _forget_nothing_twice(self: SenderLogs, name: str, number: int, batch: Any) -> bool:
    """As `Lanes.take`, for one who loses a batch and goes on."""
    lane = self.by_name.get(name)
    if lane is not None and number == lane.newest + 1 and not number % 9:
        lane.newest = number
        lane.first = lane.oldest = number + 1
        lane.batches.clear()
        self.bytes = 0
        return False
    return TAKE(self, name, number, batch)


WRITE, TAKE = MemoryStore.write, SenderLogs.take
BROKEN: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "causes are not looked at": (Idr, "receive", _deliver_at_once),
    "the store loses rows": (MemoryStore, "write", _lose_rows),
    "a batch is lost": (SenderLogs, "take", _forget_nothing_twice),
}
FAULTS: dict[str, Callable[[MemoryNetwork], None]] = {
    "what is asked for is not handed on": _hand_on_nothing,
    "others are told before the store has written": _tell_early,
}


@pytest.mark.few(1)
@pytest.mark.parametrize("what", [*BROKEN, *FAULTS])
def test_what_is_broken_on_purpose_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if what in BROKEN:
        monkeypatch.setattr(*BROKEN[what])
    for seed in range(60):
        one = Run(plan_of(seed)._replace(order="causal"))
        if what in FAULTS:
            FAULTS[what](one.network)
        try:
            clean = one.run().clean
        except (AssertionError, AntecedeError, IndexError):
            clean = False
        if not clean:
            return
    pytest.fail("60 runs found nothing")


# -- clocks ----------------------------------------------------------------------------------------


def test_a_machine_that_sleeps_with_all_its_members_goes_on() -> None:
    run = Run(Plan(5, members=4))
    run.start()
    before = {name: host.observe() for name, host in run.network.hosts.items()}
    network, hour = run.network, 3600 * NS
    network.sleep(hour)
    network.run(network.now + hour + 3 * NS)
    for name, was in before.items():
        found = network.observe(name)
        assert (found.connections, found.connected) == (was.connections, was.connected)
        assert not found.rejected
    run.say("a")
    run.network.run(run.network.now + NS)
    run.judge()
    assert run.judgement.clean, run.judgement
    assert run.judgement.deliveries == 3


@pytest.mark.slow
def test_one_that_sleeps_alone_is_called_again_when_it_wakes() -> None:
    run = Run(Plan(6, members=3))
    run.start()
    run.network.freeze("b")
    run.say("a")
    run.network.run(run.network.now + 60 * NS)
    connected = run.network.observe("a").connected
    assert all(lane[0] != "b" for lane in connected), "silent ones are abandoned"
    run.network.thaw("b")
    run.network.run(run.network.now + 5 * NS)
    run.judge()
    assert run.judgement.clean, run.judgement
    assert run.judgement.deliveries == 2


@pytest.mark.few(2)
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("order", ["causal", "bss", "fifo", "reply"])
@pytest.mark.parametrize("sponsor", ["a", "c"])
def test_a_newcomer_whose_welcome_is_lost_is_let_in_later(
    sponsor: str, order: str, durable: bool
) -> None:
    network = MemoryNetwork(7)
    for name in "abc":
        network.add(name, Settings(order=order), durable=durable)
    network.start("a")
    network.start("b", "a")
    while not network.observe("a").admitted:
        network.run(network.now + MS)
    network.hosts["b"].joining = ""
    network.disconnect("b", "a")
    network.start("c", "a")
    network.run(network.now + 2 * NS)
    network.say("a", b"before")
    network.run(network.now + 80 * NS)
    assert not network.hosts["b"].is_in_group
    assert not network.observe("a").admitted, "abandoned"
    network.hosts["b"].joining = sponsor
    network.run(network.now + 10 * NS)
    found = [network.observe(name) for name in "abc"]
    lanes = {one.sender_id for one in found}
    assert all(one.members.keys() == lanes for one in found)
    network.say("b", b"after")
    network.run(network.now + NS)
    for name in "ac":
        assert network.payloads(name)[-1] == b"after"
