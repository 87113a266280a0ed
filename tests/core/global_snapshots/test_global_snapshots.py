"""Snapshot algorithms: every interleaving, random runs, through groups and live peers."""

from __future__ import annotations

import asyncio
import json
import random
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antecede import Group
from antecede.cli import main
from antecede.core.global_snapshots import (
    ALGORITHMS,
    ChandyLamport,
    LaiYang,
    Marker,
    Record,
    Snapshots,
    Tell,
)
from antecede.core.global_snapshots.base import Complete, Content
from antecede.errors import LimitError, LocalError, RemoteError
from antecede.lab.check.global_states import ANY, FIFO, UNFINISHED, explore, play
from antecede.live import Peer

NAMES = ("a", "b", "c")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "channels"), [("chandy-lamport", FIFO), ("lai-yang", ANY), ("lai-yang", FIFO)]
)
def test_every_interleaving_records_a_consistent_state(name: str, channels: str) -> None:
    for members, messages in ((2, 3), (3, 1)):
        found = explore(ALGORITHMS[name], channels, members=members, messages=messages)
        assert found.failure is None
        assert found.ends > found.plans  # each plan ends in several ways


def test_markers_need_channels_that_keep_their_order() -> None:
    found = explore(ChandyLamport, ANY, members=2, messages=2).failure
    assert found is not None
    assert found.why == "P1: received inside, sent outside"
    assert [move.kind for move in found.moves][:3] == ["begin", "send", "arrive"]
    assert len(found.moves) <= 6


class Forgetful(ChandyLamport):
    """Records without markers."""

    def _record(self, number: int) -> list[Any]:
        return [one for one in super()._record(number) if not isinstance(one, Tell)]


class Late(LaiYang):
    """Records at a marker alone."""

    def arrive(self, sender: str, snapshot_number: int, message: Any) -> Any:
        return super().arrive(sender, 0, message)


class Deaf(ChandyLamport):
    """Keeps nothing of what comes."""

    def arrive(self, sender: str, snapshot_number: int, message: Any) -> Any:
        return ()


class Hasty(LaiYang):
    """Takes channels to be empty."""

    def _close_if_complete(self, number: int, sender: str) -> list[Any]:
        del self._open_channels[number][sender]
        return [Content(number, sender, ()), *self._complete_if_closed(number)]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Forgetful, UNFINISHED),
        (Late, UNFINISHED),
        (Deaf, "sent inside, neither received nor in its channel"),
        (Hasty, "sent inside, neither received nor in its channel"),
    ],
)
def test_the_search_finds_what_is_wrong(kind: Any, why: str) -> None:
    found = explore(kind, FIFO if kind.needs_fifo else ANY, members=2, messages=2).failure
    assert found is not None
    assert why in found.why


@pytest.mark.parametrize(("name", "channels"), [("chandy-lamport", FIFO), ("lai-yang", ANY)])
def test_long_random_runs(name: str, channels: str) -> None:
    for seed in range(60):
        failure = play(ALGORITHMS[name], channels, members=5, messages=50, seed=seed)
        assert failure is None
    broken = [
        seed
        for seed in range(20)
        if play(ChandyLamport, ANY, members=5, messages=50, seed=seed) is not None
    ]
    assert len(broken) > 10


def test_a_search_that_is_too_large_says_so() -> None:
    with pytest.raises(LimitError, match="more than 100 states"):
        explore(LaiYang, ANY, members=3, messages=3, most_states=100)


@given(st.data())
def test_an_algorithm_goes_on_from_its_state(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([ChandyLamport, LaiYang]))
    one = kind("a", NAMES)
    twin = kind("a", NAMES)
    for k in range(data.draw(st.integers(1, 12))):
        twin.restore(one.snapshot())
        what = data.draw(st.sampled_from(("begin", "send", "arrive", "marker")))
        other, number = data.draw(st.sampled_from("bc")), data.draw(st.integers(0, 3))
        results: list[Any] = []
        for each in (one, twin):
            try:
                if what == "begin":
                    results.append(each.begin())
                elif what == "send":
                    results.append((each.send(other),))
                elif what == "arrive":
                    results.append(each.arrive(other, number if kind is LaiYang else 0, f"m{k}"))
                else:
                    results.append(each.marker(other, Marker(number + 1, number)))
            except RemoteError as error:
                results.append((str(error),))
        assert list(results[0]) == list(results[1])
        assert one.snapshot() == twin.snapshot()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(LocalError, match="lacks this member"):
        LaiYang("x", NAMES)
    for kind in (ChandyLamport, LaiYang):
        algorithm = kind("a", NAMES)
        before = algorithm.snapshot()
        with pytest.raises(RemoteError):
            algorithm.arrive("x", 0, "m")
        with pytest.raises(RemoteError):
            algorithm.marker("b", Marker(100))
        with pytest.raises(RemoteError):
            algorithm.marker("b", Marker(0))
        assert algorithm.snapshot() == before
        algorithm.marker("b", Marker(1))
        with pytest.raises(RemoteError):
            algorithm.marker("b", Marker(1))
    with pytest.raises(RemoteError, match="is not FIFO, or a marker was lost"):
        ChandyLamport("a", NAMES).marker("b", Marker(2))


def test_who_is_alone_is_the_global_state() -> None:
    for kind in (ChandyLamport, LaiYang):
        assert list(kind("a", ["a"]).begin()) == [Record(1), Complete(1)]


# -- through groups --------------------------------------------------------------------------------


class Bank:
    """Members who send each other money: what there is in all never changes."""

    def __init__(self, algorithm: str) -> None:
        self.money = dict.fromkeys(NAMES, 100)
        self.snapshots = {
            name: Snapshots(name, NAMES, algorithm, partial(self.written, name)) for name in NAMES
        }
        self.found: list[Any] = []

    def written(self, name: str) -> bytes:
        return str(self.money[name]).encode()

    def pay(self, sender: str, to: str, amount: int) -> bytes:
        self.money[sender] -= amount
        return self.snapshots[sender].wrap(f"{to} {amount}".encode())

    def take(self, name: str, sender: str, payload: bytes) -> tuple[bytes, ...]:
        told = self.snapshots[name].unwrap(sender, payload)
        if told.payload is not None:
            to, amount = told.payload.decode().split()
            if to == name:
                self.money[name] += int(amount)
        self.found += told.global_states
        return told.to_send


def total(state: Any) -> int:
    under_way = [
        int(payload.split()[1])
        for (_, to), payloads in state.channels.items()
        for payload in payloads
        if payload.split()[0].decode() == to
    ]
    return sum(map(int, state.states.values())) + sum(under_way)


@pytest.mark.parametrize(
    ("algorithm", "order", "fifo"),
    [
        ("chandy-lamport", "fifo", False),  # the order makes up for the network
        ("chandy-lamport", "causal", False),
        ("lai-yang", "none", False),
        ("lai-yang", "reply", False),
        ("chandy-lamport", "none", True),
    ],
)
def test_money_is_counted_while_it_moves(algorithm: str, order: str, fifo: bool) -> None:
    states = [run_over_groups(algorithm, order, fifo, seed) for seed in range(20)]
    assert sum(bool(state.channels) for state in states) > 3  # money was under way


def run_over_groups(algorithm: str, order: str, fifo: bool, seed: int) -> Any:
    bank, chance = Bank(algorithm), random.Random(seed)
    groups = {name: Group(name, NAMES, order=order) for name in NAMES}
    wires: dict[tuple[str, str], list[bytes]] = {(a, b): [] for a in NAMES for b in NAMES}

    def send(name: str, payloads: tuple[bytes, ...]) -> None:
        for payload in payloads:
            wire = groups[name].send(payload)
            for other in NAMES:
                if other != name:
                    wires[name, other].append(bytes(wire))

    for step in range(120):
        if step == 40:
            send("a", bank.snapshots["a"].begin())
        if step < 80 and chance.random() < 0.4:
            sender, to = chance.sample(NAMES, 2)
            send(sender, (bank.pay(sender, to, chance.randint(1, 9)),))
        arrive(chance, wires, groups, bank, send, fifo)
    while any(wires.values()):
        arrive(chance, wires, groups, bank, send, fifo)
    assert [state.number for state in bank.found] == [1, 1, 1]
    assert all(total(state) == 300 for state in bank.found)
    assert bank.found[0] == bank.found[1] == bank.found[2]
    assert not bank.snapshots["b"].pending
    return bank.found[0]


def arrive(
    chance: random.Random, wires: Any, groups: Any, bank: Bank, send: Any, fifo: bool
) -> None:
    ways = [ends for ends, some in wires.items() if some]
    if not ways:
        return
    sender, name = chance.choice(ways)
    some = wires[sender, name]
    wire = some.pop(0 if fifo else chance.randrange(len(some)))
    for message in groups[name].receive(wire):
        send(name, bank.take(name, message.sender, message.payload))


def test_without_order_markers_lose_money() -> None:
    assert sum(run_without_order(seed) for seed in range(30)) > 5


def run_without_order(seed: int) -> bool:
    bank, chance = Bank("chandy-lamport"), random.Random(seed)
    flying: list[tuple[str, str, bytes]] = []

    def send(name: str, payloads: tuple[bytes, ...]) -> None:
        flying.extend((name, other, one) for one in payloads for other in NAMES if other != name)

    for step in range(60):
        if step == 20:
            send("a", bank.snapshots["a"].begin())
        if step < 40:
            sender, to = chance.sample(NAMES, 2)
            send(sender, (bank.pay(sender, to, chance.randint(1, 9)),))
        if flying:
            sender, name, payload = flying.pop(chance.randrange(len(flying)))
            send(name, bank.take(name, sender, payload))
    while flying:
        sender, name, payload = flying.pop(chance.randrange(len(flying)))
        send(name, bank.take(name, sender, payload))
    return any(total(state) != 300 for state in bank.found)


@given(st.binary(max_size=60))
def test_any_bytes_are_taken_or_refused(data: bytes) -> None:
    for algorithm in ALGORITHMS:
        snapshots = Snapshots("a", NAMES, algorithm, lambda: b"")
        try:
            snapshots.unwrap("b", data)
        except RemoteError:
            continue


def test_arguments_that_cannot_be() -> None:
    with pytest.raises(LocalError, match="choose from chandy-lamport, lai-yang"):
        Snapshots("a", NAMES, "magic", lambda: b"")
    with pytest.raises(LocalError, match="state= returned str; expected bytes"):
        Snapshots("a", NAMES, "lai-yang", lambda: "text").begin()  # type: ignore[arg-type, return-value]


# -- live ------------------------------------------------------------------------------------------


def test_live_peers_count_their_money() -> None:
    async def run() -> list[Any]:
        bank = Bank("chandy-lamport")
        chance = random.Random(7)
        async with (
            Peer("a", insecure=True, order="fifo", listen="127.0.0.1:0") as a,
            Peer("b", insecure=True, order="fifo", listen="127.0.0.1:0") as b,
            Peer("c", insecure=True, order="fifo", listen="127.0.0.1:0") as c,
        ):
            peers = {"a": a, "b": b, "c": c}
            await a.bootstrap()
            await b.join(a.address)
            await c.join(a.address)
            while any(len(peer.members) < 3 for peer in peers.values()):
                await asyncio.sleep(0.01)

            async def listen(name: str) -> None:
                async for message in peers[name]:
                    for payload in bank.take(name, message.sender, message.payload):
                        peers[name].send_nowait(payload)

            async def talk(name: str) -> None:
                for k in range(100):
                    to = chance.choice([other for other in NAMES if other != name])
                    peers[name].send_nowait(bank.pay(name, to, chance.randint(1, 5)))
                    if k == 50 and name == "a":
                        for payload in bank.snapshots["a"].begin():
                            a.send_nowait(payload)
                    if k % 5 == 0:
                        await asyncio.sleep(0.001)

            listening = [asyncio.create_task(listen(name)) for name in NAMES]
            await asyncio.gather(*map(talk, NAMES))
            async with asyncio.timeout(20):
                while len(bank.found) < 3:
                    await asyncio.sleep(0.01)
            for task in listening:
                task.cancel()
            await asyncio.gather(*listening, return_exceptions=True)
        return bank.found

    found = asyncio.run(run())
    assert all(total(state) == 300 for state in found)
    assert len({json.dumps(sorted(map(str, state.states.items()))) for state in found}) == 1


# -- the command -----------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ("--messages", "2", "--runs", "10")
    assert main(["check", "--snapshots", "lai-yang", *few]) == 0
    said = capsys.readouterr().out
    assert said.startswith("lai-yang, channels without order\n")
    assert "10 random runs: 0 inconsistent states" in said
    picture = tmp_path / "x.svg"
    words = [
        "check",
        "--snapshots",
        "chandy-lamport",
        "--channels",
        "any",
        *few,
        "--output-svg",
        str(picture),
    ]
    assert main(words) == 1
    said = capsys.readouterr().out
    assert "Smallest counterexample: P1: received inside, sent outside" in said
    assert "✗ not in this global state" in said
    assert "<svg" in picture.read_text()
    assert main(words) == 2  # the file is there
    capsys.readouterr()
    assert (
        main(["check", "--snapshots", "chandy-lamport", "--channels", "any", *few, "--json"]) == 1
    )
    plain = json.loads(capsys.readouterr().out)
    assert plain["moves"][0] == "P begins a snapshot"
    assert len(plain["wrong_runs"]) <= 10
    assert main(["check", "--snapshots", "lai-yang", "--members", "9"]) == 2


def test_queues_of_bytes_are_not_needed() -> None:
    # Snapshots go over whatever carries bytes in order: here two deques.
    there, back = deque[bytes](), deque[bytes]()
    one, other = (Snapshots(name, ["a", "b"], "chandy-lamport", lambda: b"s") for name in "ab")
    there.extend(one.begin())
    there.append(one.wrap(b"after"))
    found: list[Any] = []
    while there or back:
        if there:
            told = other.unwrap("a", there.popleft())
            back.extend(told.to_send)
            found += told.global_states
        if back:
            told = one.unwrap("b", back.popleft())
            there.extend(told.to_send)
            found += told.global_states
    assert [state.states for state in found] == [{"a": b"s", "b": b"s"}] * 2


def test_options_that_draw_nothing_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    svg = tmp_path / "x.svg"
    call = [
        "check",
        "--snapshots",
        "lai-yang",
        "--messages",
        "1",
        "--runs",
        "0",
        "--output-svg",
        str(svg),
    ]
    assert main(call) == 0
    assert f"{svg} was not written" in capsys.readouterr().out
    assert main([*call, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["svg"] is None
    assert not svg.exists()
    assert main(["check", "--snapshots", "lai-yang", "--runs", "0", "--seed", "5"]) == 2
    assert "omit --seed" in capsys.readouterr().err
