"""Orders by clocks and topics over live links: who gets what, in which order, what is said."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.encoding import ByteReader
from antecede.errors import DecodeError, LocalError
from antecede.live import BoundViolation, Peer, wire
from antecede.live.audience import LACKS, RUN, TOPICS
from antecede.live.drivers import tcp
from antecede.live.events import Change, ChangeKind, Message, MessagesAbandoned, View, member_of
from antecede.live.heads import pack_topics, read_topics
from antecede.live.metrics import exposition
from antecede.live.settings import NS, Settings
from antecede.live.status import Status, format_status, status_from_json, status_to_json
from tests.live.loops import joined, run, take, until
from tests.live.memory_network import MS, Frame, MemoryNetwork
from tests.live.test_peer import peer
from tests.live.topic_runs import BOUNDS, BROADCAST, BY_TOPICS, FINE, ClockRun, clock_plan

ORDERS = BY_TOPICS + BROADCAST


def calm(seed: int, **more: Any) -> ClockRun:
    draw = random.Random(seed)
    members, durable = draw.randrange(3, 6), draw.random() < 0.5
    order = ORDERS[seed % len(ORDERS)]
    return ClockRun(clock_plan(seed, order, members=members, durable=durable, faults=0, **more))


def harmed(seed: int) -> ClockRun:
    draw = random.Random(seed)
    durable, members = draw.random() < 0.5, draw.randrange(3, 6)
    settings = {} if durable else {"evict_after_ns": 3 * NS}
    plan = clock_plan(
        *(seed, ORDERS[seed % len(ORDERS)]),
        members=members,
        durable=durable,
        faults=draw.randrange(2, 6),
        settings=settings,
    )
    return ClockRun(plan)


# -- simulated runs, judged by the oracle ----------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize("first", range(0, 40, 5))
def test_where_bounds_hold_all_is_in_order_and_no_alarm_sounds(first: int) -> None:
    sent = got = 0
    for seed in range(first, first + 5):
        one = calm(seed)
        judgement = one.watched()
        assert judgement.clean, (one.plan, judgement)
        assert not one.alarms, one.plan
        assert not one.said_early
        sent, got = sent + judgement.messages, got + judgement.deliveries
    assert sent > 5 * 40
    assert got > 5 * 50


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 160, 20))
def test_beyond_the_bounds_what_is_out_of_order_was_said_to_be_late(first: int) -> None:
    late = early = 0
    for seed in range(first, first + 20):
        one = harmed(seed)
        judgement = one.watched()
        assert judgement.clean, (one.plan, judgement)
        late, early = late + len(one.late), early + one.said_early
    assert late > early > 0


@pytest.mark.parametrize("seed", [56, 120, 1114])
def test_runs_that_went_wrong_once(seed: int) -> None:
    one = harmed(seed)
    judgement = one.watched()
    assert judgement.clean, judgement


@pytest.mark.slow
def test_the_judge_finds_an_order_that_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    from antecede.core.protocols.topics.delays import Delays

    monkeypatch.setattr(Delays, "wait_after_publishing_ns", lambda *_: -NS)
    plans = [clock_plan(seed, "htbc", faults=0, messages=400, seconds=2.0) for seed in range(3)]
    found = [ClockRun(plan) for plan in plans]
    assert sum(len(one.watched().early) for one in found) > 3


@pytest.mark.slow
def test_the_judge_finds_what_is_not_told_to_a_subscriber() -> None:
    def half(frames: list[Frame]) -> Iterator[bytes]:
        for one in frames:
            if one.kind == TOPICS:
                topics = read_topics(ByteReader(one.body), 100)
                yield wire.pack_frame(TOPICS, pack_topics(sorted({*topics} - {"x"})))
            else:
                yield one.pack()

    found = [ClockRun(clock_plan(seed, "tv", faults=0)) for seed in range(3)]
    for one in found:
        one.network.filter = half
    assert sum(len(one.watched().lost) for one in found) > 3


class Hashed:
    """Seals that anybody could make: enough to see whether what is handed on is what was sealed."""

    checked: ClassVar[Counter[bool]] = Counter()

    def owner(self, lane: str) -> bytes:
        return b"owner"

    def learn(self, lane: str, owner: bytes) -> None:
        return

    def recall(self, lane: str, owner: bytes) -> None:
        return

    def seal(self, number: int, wire: bytes) -> bytes:
        return hashlib.blake2b(b"%d" % number + wire, digest_size=8).digest()

    def check(self, lane: str, number: int, wire: bytes, seal: bytes) -> None:
        Hashed.checked[wire[:1] == b"H"] += 1
        if self.seal(number, wire) != seal:
            raise DecodeError("a seal of somebody else")


@pytest.mark.slow
def test_what_is_handed_on_bears_its_owners_seal() -> None:
    Hashed.checked.clear()
    for seed in range(200, 212):
        one = harmed(seed)
        one.network.new_signatures = lambda _: Hashed()
        assert one.watched().clean
    assert Hashed.checked[False] > 10
    assert Hashed.checked[True] > 0


# -- subscribers of other topics hand on -----------------------------------------------------------


def network(topics: dict[str, tuple[str, ...]], **more: Any) -> MemoryNetwork:
    made = MemoryNetwork(7)
    names = list(topics)
    for name, mine in topics.items():
        settings: Any = {"options": {"bounds": BOUNDS}, "topics": mine, **more}
        made.add(name, Settings(order="htbc", **settings)).clock_error_ns = 0
    made.meet(names)
    made.run(2 * NS)
    assert all(len(made.observe(name).connected) == len(names) - 1 for name in names)
    return made


def newest(made: MemoryNetwork, name: str, sender: str) -> int:
    """Return the number of a sender's newest batch at a member."""
    return made.observe(name).newest(made.hosts[sender].sender_id)


def got(made: MemoryNetwork, name: str) -> list[tuple[bytes, tuple[str, ...]]]:
    return [(e.payload, e.topics) for e in made.messages(name)]


def test_who_does_not_subscribe_gets_a_number_and_no_more() -> None:
    made = network({"a": (), "b": ("x",), "c": ("y",)})
    before = made.status("c").bytes_in
    for k in range(50):
        made.at(k * MS, lambda: made.say("a", bytes(5000), topics=("x",)))
    made.run(4 * NS)
    assert len(got(made, "b")) == 50
    assert got(made, "c") == []
    assert newest(made, "c", "a") == 51  # its first says that it joined
    assert made.status("c").bytes_in - before < 10_000
    assert made.status("a").skipped_batches == 50
    assert not made.observe("a").memory_bytes  # all have it, so it is freed


def test_runs_are_cut_where_they_grow_long_or_about_much() -> None:
    made = network({"a": (), "b": ("x",)})
    made.cut({"a"}, {"b"})
    for _ in range(1500):
        made.say("a", b"", topics=("t",))
    for k in range(200):
        made.say("a", b"", topics=(f"t{k}",))
    made.say("a", b"at last", topics=("x",))
    made.heal()
    made.run(made.now + 3 * NS)
    assert got(made, "b") == [(b"at last", ("x",))]
    assert made.status("a").skipped_batches == 1700
    assert not made.observe("b").rejected


def test_a_dead_members_batch_is_got_from_who_subscribes() -> None:
    made = network({"a": (), "b": ("x",), "c": ("y",), "d": ("x", "y")}, evict_after_ns=20 * NS)
    made.cut({"a"}, {"d"})
    made.say("a", b"1", topics=("x",))
    made.say("a", b"2", topics=("y",))
    made.say("a", b"3", topics=("x", "y"))
    made.run(made.now + 300 * MS)
    assert got(made, "d") == []
    made.crash("a")
    made.run(made.now + 10 * NS)
    assert sorted(got(made, "d")) == [(b"1", ("x",)), (b"2", ("y",)), (b"3", ("x", "y"))]
    assert [payload for payload, _ in got(made, "b")] == [b"1", b"3"]
    assert made.observe("d").abandoned == 0


def test_what_nobody_has_who_subscribes_is_given_up_and_said() -> None:
    topics = {"a": (), "b": ("x",), "c": ("y",), "d": ("x", "y"), "e": ()}
    made = network(topics, evict_after_ns=3 * NS)
    made.cut({"a"}, {"d"})
    made.say("a", b"1", topics=("x",))
    made.say("a", b"2", topics=("y",))
    made.run(made.now + 200 * MS)
    made.crash("a")
    made.crash("c")  # who alone had the second
    made.run(made.now + 15 * NS)
    lane = next(e.sender_id for e in made.hosts["b"].events if isinstance(e, Message))
    assert got(made, "d") == [(b"1", ("x",))]
    lost = [event for event in made.hosts["d"].events if isinstance(event, MessagesAbandoned)]
    assert lost == [MessagesAbandoned(lane, 1, ())]
    assert not [event for event in made.hosts["b"].events if isinstance(event, MessagesAbandoned)]
    assert made.observe("d").newest(lane) == 3
    assert not made.observe("d").end_reason


def say_over(frames: list[Frame]) -> Iterator[bytes]:
    """Let b say of every lane that it lacks something of that the lane is over."""
    for frame in frames:
        if frame.source == "b" and frame.kind == LACKS:
            assert frame.body.endswith(b"\0"), "the honest answer"
            yield wire.pack_frame(LACKS, frame.body[:-1], b"\1")
        else:
            yield frame.pack()


def test_one_who_denies_it_keeps_a_lane_from_being_over() -> None:
    made = network({"a": (), "b": (), "c": (), "d": ("x",)})
    made.filter = say_over
    made.cut({"a"}, {"d"})
    made.say("a", b"not over", topics=("x",))
    made.run(made.now + 8 * NS)
    assert newest(made, "d", "a") == 1, "nothing was passed over"
    ends = made.observe("d").log_ends[made.hosts["a"].sender_id]
    told = {member_of(one): over for one, over in ends.items()}
    assert told == {"b": True, "c": False}
    made.heal()
    made.run(made.now + 3 * NS)
    assert got(made, "d") == [(b"not over", ("x",))]
    assert not [event for event in made.hosts["d"].events if isinstance(event, MessagesAbandoned)]


def test_a_relay_cannot_pass_over_what_one_subscribes_to() -> None:
    made = network({"a": (), "b": ("x",), "c": ("y",)})
    place = made.place("c", made.hosts["a"].sender_id)
    run_bytes = b"H" + bytes((2, 9)) + b"\x01\x01x"
    made.inject("c", "b", wire.pack_frame(RUN, bytes((place, 0)), run_bytes))
    made.run(made.now + 100 * MS)
    assert newest(made, "b", "a") == 1
    assert not made.observe("b").rejected
    made.say("a", b"for b", topics=("x",))
    made.run(made.now + NS)
    assert got(made, "b") == [(b"for b", ("x",))]


# -- subscriptions ---------------------------------------------------------------------------------


def test_subscriptions_change_in_order_and_survive_a_crash() -> None:
    made = MemoryNetwork(3)
    options = {"bounds": BOUNDS}
    made.add("a", Settings(order="htbc", options=options, topics=["x"]))
    made.add("b", Settings(order="htbc", options=options), durable=True)
    made.start("a")
    made.at(50 * MS, lambda: made.start("b", "a"))
    made.run(NS)
    found = made.observe("b")
    assert found.subscriptions[found.sender_id] == ()
    made.say("a", b"too early", topics=("y",))
    made.run(2 * NS)
    made.subscribe("b", ["y", "z"])
    made.run(3 * NS)
    made.say("a", b"in time", topics=("y",))
    made.run(4 * NS)
    made.crash("b")
    made.run(5 * NS)
    made.say("a", b"while away", topics=("z",))
    made.start("b")
    made.run(8 * NS)
    found = made.observe("b")
    assert found.subscriptions[found.sender_id] == ("y", "z")
    payloads = [payload for payload, _ in got(made, "b")]  # the first again: it was not noted
    assert list(dict.fromkeys(payloads)) == [b"in time", b"while away"]
    changes = [e.change for e in made.hosts["a"].events if isinstance(e, View)]
    mine = [one for one in changes if one.member == "b"]
    assert [one.kind for one in mine] == [
        *(ChangeKind.JOINED, ChangeKind.SUBSCRIBED, ChangeKind.SUBSCRIBED)
    ]
    assert mine[-1].topics == ("y", "z")
    assert str(mine[-1]) == "b subscribes to y, z"
    assert str(mine[1]) == "b subscribes to nothing"


def test_nobody_says_to_what_somebody_else_subscribes() -> None:
    made = network({"a": ("x",), "b": ("x",)})
    a, b = made.hosts["a"].sender_id, made.hosts["b"].sender_id
    made.announce("a", Change(ChangeKind.SUBSCRIBED, b, "y"))
    made.run(made.now + NS)
    assert made.observe("b").subscriptions[b] == ("x",)
    assert "only b may" in made.observe("b").distrusted[a]


def test_topics_that_can_be_none_spoil_the_lane_of_who_says_them_alone() -> None:
    made = network({"a": ("x",), "b": ("x",), "c": ("x",)})
    a = made.hosts["a"].sender_id
    made.announce("a", Change(ChangeKind.SUBSCRIBED, a, "*"))
    made.run(made.now + NS)
    assert a in made.observe("b").distrusted
    made.say("c", b"on", topics=("x",))
    made.run(made.now + NS)
    assert got(made, "b") == [(b"on", ("x",))]


# -- leaving ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_what_was_said_before_a_leave_comes_and_nothing_behind_it(order: str) -> None:
    made, options = MemoryNetwork(1), {"bounds": BOUNDS}
    about: Any = {"topics": ("x",)} if order in BY_TOPICS else {}
    if order in BROADCAST:
        options = {**options, "delivery": "bound"}  # type: ignore[dict-item]
    if order == "physical":
        options["bounds"] = FINE
    for name in "abc":
        made.add(name, Settings(order=order, options=options, **about))
    made.start("a")
    for name in "bc":
        made.at(50 * MS, lambda name=name: made.start(name, "a"))  # type: ignore[misc]
    made.run(2 * NS)
    with made.step("b"):
        made.send("b", b"last words", **about)
        made.leave("b")
        with pytest.raises(LocalError, match="b has left"):
            made.send("b", b"refused", **about)
        made.send_anyway("b", b"as a program that does not heed it", **about)
    made.run(made.now + 3 * NS)
    for name in "ac":
        assert [payload for payload, _ in got(made, name)] == [b"last words"]
        assert made.hosts["b"].sender_id in made.observe(name).departed
        assert not made.observe(name).held


# -- clocks ----------------------------------------------------------------------------------------


@pytest.mark.few(6)
@pytest.mark.parametrize("order", ["htbc", "tv-lt", "linear-physical"])
@pytest.mark.parametrize("jump_ns", [-3600 * NS, -NS, NS, 10**6 * NS])
def test_a_clock_that_jumps_is_said_and_nothing_stands_still(order: str, jump_ns: int) -> None:
    made, options = MemoryNetwork(1), {"bounds": BOUNDS}
    about: Any = {"topics": ("x",)} if order in BY_TOPICS else {}
    if order in BROADCAST:
        options = {**options, "delivery": "bound"}  # type: ignore[dict-item]
    start = 2 * 10**6 * NS
    for name in "abc":
        host = made.add(name, Settings(order=order, options=options, **about))
        host.clock, host.clock_error_ns = lambda now: start + now, 0
    made.start("a")
    for name in "bc":
        made.at(50 * MS, lambda name=name: made.start(name, "a"))  # type: ignore[misc]
    made.run(2 * NS)
    made.hosts["b"].clock = lambda now: start + now + jump_ns
    for k in range(20):
        made.at(k * 100 * MS, lambda k=k: made.say("a", b"a%d" % k, **about))  # type: ignore[misc]
        made.at(k * 100 * MS, lambda k=k: made.say("b", b"b%d" % k, **about))  # type: ignore[misc]
    made.run(made.now + 10 * NS)
    kinds = list_violations(made, "b")
    assert kinds["set_back" if jump_ns < 0 else "set_ahead"] == 1
    assert any("the clock of b went" in text for text in made.take_violations("b"))
    assert kinds["not_followed"] == (jump_ns > 3600 * NS), "the others' clocks say otherwise"
    for name, others in (("a", "b"), ("b", "a"), ("c", "ab")):
        assert len(got(made, name)) == 20 * len(others), name
    assert not any(made.observe(name).rejected for name in "abc")
    if jump_ns == NS:  # it is followed, and the others see that it cannot be
        assert list_violations(made, "a")["early"]


def list_violations(made: MemoryNetwork, name: str) -> Counter[str]:
    clock = made.status(name).clock
    assert clock is not None
    return Counter(clock.bound_violations)


# -- over TCP --------------------------------------------------------------------------------------

TCP_BOUNDS: Bounds[str] = Bounds(accuracy_s=0.005, least_s=0, most_s=0.15)


def topical(name: str, topics: list[str] | None = None, **more: Any) -> Peer:
    given = {"order": "htbc", "options": {"bounds": TCP_BOUNDS}, "clock_error_s": 0.001, **more}
    return peer(name, topics=topics, **given)


async def test_peers_speak_about_topics() -> None:
    both = ["news", "sport"]
    async with topical("a", ["news"]) as a, topical("b", both) as b, topical("c", ["sport"]) as c:
        await a.bootstrap()
        await b.join(a.address)
        await c.join(b.address)
        everybody = {"a": ("news",), "b": ("news", "sport"), "c": ("sport",)}
        await until(lambda: a.subscriptions == b.subscriptions == everybody)
        await a.send(b"1", topics=["news"])
        await a.send(b"2", topics=["sport"])
        await a.send(b"3", topics=["sport", "news"])
        messages = await take(b, 3)
        assert [one.payload for one in messages] == [b"1", b"2", b"3"]
        assert [one.topics for one in messages] == [*(("news",), ("sport",), ("news", "sport"))]
        assert [one.payload for one in await take(c, 2)] == [b"2", b"3"]
        await c.subscribe(["news"])
        await until(lambda: a.subscriptions.get("c") == ("news",))
        await a.send(b"4", topics=["sport"])
        await a.send(b"5", topics=["news"])
        assert [one.payload for one in await take(c, 1)] == [b"5"]
        assert c.status().topics == ("news",)
        assert a.status().skipped_batches >= 2


async def test_delays_are_measured_and_kept_and_a_subscription_with_them(tmp_path: Path) -> None:
    store = tmp_path / "b.db"
    async with topical("a", ["x"]) as a:
        await a.bootstrap()
        async with topical("b", ["x"], store=store) as b:
            await b.join(a.address)
            await b.subscribe(["x", "y"])
            await until(lambda: a.subscriptions.get("b") == ("x", "y"))
            await a.send(b"1", topics=["y"])
            assert [one.payload for one in await take(b, 1)] == [b"1"]
            measured = b.delays["a"]
            assert measured.batches >= 1
            assert 0 <= measured.least_ns[0] <= measured.least_ns[1] < 10**9
            await b.send(b"kept", topics=["x"])
        async with topical("b", store=store) as b:
            assert b.delays["a"].batches >= measured.batches
            assert b.subscriptions["b"] == ("x", "y")
            await a.send(b"2", topics=["x"])
            found = await take(b, 2)  # the first was not acknowledged: nobody asked for more
            assert [one.payload for one in found][-1] == b"2"
            assert all(one.topics for one in found)


@pytest.mark.slow
async def test_a_store_keeps_readings_and_runs_through_many_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp, "SNAPSHOT_ROWS", 7)
    store, seen = tmp_path / "b.db", list[bytes]()
    async with topical("a", ["x"]) as a:
        await a.bootstrap()
        sent = 0
        for _ in range(4):
            async with topical("b", ["x", "y"], store=store) as b:
                await b.join(a.address)
                await until(lambda: a.subscriptions.get("b") == ("x", "y"))
                for k in range(30):
                    await a.send(b"%d" % (sent + k), topics=[("x", "y", "z")[k % 3]])
                    if k % 5 == 0:
                        await b.send(b"from b", topics=["x"])
                while not seen or seen[-1] != b"%d" % (sent + 28):
                    seen += [one.payload for one in await take(b, 1)]
                sent += 30
        expected = [b"%d" % k for k in range(sent) if k % 30 % 3 != 2]
        assert list(dict.fromkeys(seen)) == expected  # some again, where a crash could be
        assert [one.payload for one in await take(a, 24)] == [b"from b"] * 24


def test_a_clock_worse_than_promised_is_an_alarm(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[BoundViolation] = []

    async def work() -> None:
        worse = {"clock_error_s": 0.02}
        watchful: dict[str, Any] = {"on_bound_violation": heard.append}
        async with joined(topical("a", ["x"], **watchful), topical("b", ["x"], **worse)) as (_, b):
            await b.send(b"1", topics=["x"])
            await until(lambda: bool(heard))
            await until(lambda: bool(b.status().clock.bound_violations))  # type: ignore[union-attr]

    with caplog.at_level(logging.WARNING, "antecede.live"):
        run(work)
    assert {(one.kind, one.member) for one in heard} == {("accuracy", "b")}
    assert heard[0].by_s == pytest.approx(0.015)
    records = [
        one for one in caplog.records if getattr(one, "antecede_event", "") == "bound_violation"
    ]
    assert {one.antecede_member for one in records} == {"b"}  # type: ignore[attr-defined]
    assert {one.antecede_kind for one in records} == {"accuracy"}  # type: ignore[attr-defined]


async def test_what_comes_too_late_is_an_alarm() -> None:
    heard: list[BoundViolation] = []
    tight: dict[str, Any] = {
        "options": {"bounds": Bounds(accuracy_s=0.001, least_s=0, most_s=0.0001)}
    }
    exact = {**tight, "clock_error_s": 0}
    watchful: dict[str, Any] = {**exact, "on_bound_violation": heard.append}
    async with joined(topical("a", ["x"], **exact), topical("b", ["x"], **watchful)) as (a, _):
        while not heard:
            await a.send(b"1", topics=["x"])
            await asyncio.sleep(0.01)
    assert {(one.kind, one.member) for one in heard} == {("late", "a")}


@pytest.mark.few(1)
@pytest.mark.parametrize("order", BROADCAST)
async def test_orders_by_clocks_without_topics_go_over_tcp(order: str) -> None:
    bounds: Bounds[str] = Bounds(accuracy_s=0.000_01, least_s=0.000_03, most_s=0.15)
    more = {"order": order, "options": {"bounds": bounds, "delivery": "bound"}}
    more["clock_error_s"] = 0  # type: ignore[assignment]
    async with peer("a", **more) as a, peer("b", **more) as b, peer("c", **more) as c:
        await a.bootstrap()
        await b.join(a.address)
        await c.join(b.address)
        await until(lambda: a.members == b.members == c.members == ("a", "b", "c"))
        await a.send(b"question")
        await take(b, 1)
        await b.send(b"answer")
        assert [one.payload for one in await take(c, 2)] == [b"question", b"answer"]


# -- what is refused -------------------------------------------------------------------------------

HTBC: dict[str, Any] = {"order": "htbc", "options": {"bounds": TCP_BOUNDS}}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"topics": ["x"]}, "topics"),
        ({"clock_error_s": 1}, "uses no clock"),
        ({"on_bound_violation": print}, "uses no clock"),
        ({**HTBC, "topics": "news"}, "a list of names"),
        ({**HTBC, "topics": ["*"]}, "is reserved"),
        ({**HTBC, "clock_error_s": -1}, "0 or more"),
        ({**HTBC, "history": 5}, "history="),
        ({**HTBC, "trace": "somewhere"}, "cannot check"),
        ({"order": "htbc"}, "bounds"),
        ({"order": "htbc", "options": {"bounds": Bounds(clocks={"a": 1})}}, "hold for all of them"),
        ({**HTBC, "options": {"subscriptions": 5}}, "each peer its own"),
        ({"order": "linear"}, '"delivery": "bound"'),
        ({"order": "linear", "options": {"delivery": "bound"}}, "bounds"),
        (
            {"order": "linear", "options": {"delivery": "null", "bounds": TCP_BOUNDS}},
            '"delivery": "bound"',
        ),
        (
            {
                "order": "linear",
                "options": {"delivery": "bound", "bounds": TCP_BOUNDS, "retry_s": 1},
            },
            "live connections lose nothing",
        ),
        (
            {"order": "physical", "options": {"delivery": "bound", "bounds": TCP_BOUNDS}},
            "physical time alone cannot order",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words(given: dict[str, Any], why: str) -> None:
    with pytest.raises(LocalError, match=why):
        peer("a", **given)


async def test_messages_are_about_topics_where_the_order_has_some_and_nowhere_else() -> None:
    async with topical("a") as a, peer("b") as b:
        await a.bootstrap()
        await b.bootstrap()
        for wrong in ((), ["*"], [""]):
            with pytest.raises(LocalError, match="topic"):
                await a.send(b"about nothing", topics=wrong)
        with pytest.raises(LocalError, match="topics= is not supported"):
            await b.send(b"about something", topics=["x"])
        with pytest.raises(LocalError, match="no topics to subscribe"):
            await b.subscribe(["x"])
        with pytest.raises(LocalError, match="list of names"):
            await a.subscribe("x")
        sent = await a.send(b"to nobody yet", topics=["x"])
        assert sent.number == 1


# -- seen from outside -----------------------------------------------------------------------------


def test_status_and_metrics_tell_clocks_delays_and_topics() -> None:
    made = network({"a": ("x",), "b": ("x", "y"), "c": ("y",)})
    made.hosts["b"].clock_error_ns = 7 * MS  # 5 are promised
    for k in range(5):
        made.at(k * 50 * MS, partial(made.say, "b", b"x", (), ("x",)))
    made.run(made.now + NS)
    made.say("b", b"held", (), ("x",))
    made.run(made.now + 60 * MS)
    made.take_violations("a")
    status = made.status("a")
    assert status_from_json(json.loads(json.dumps(status_to_json(status)))) == status
    assert status.topics == ("x",)
    assert {one.name: one.topics for one in status.members} == {"b": ("x", "y"), "c": ("y",)}
    clock = status.clock
    assert clock is not None
    assert (clock.promised_s, clock.least_s, clock.most_s) == (0.005, 0.001, 0.15)
    assert clock.inaccurate_members == ("b",)
    assert clock.bound_violations == {"accuracy": 1}
    assert {one.member for one in clock.delays} == {"b"}
    assert 0 <= clock.delays[0].least_s[0] < clock.delays[0].most_s[1] < 0.2
    text = format_status(status)
    for words in (
        "subscribes to x",
        "b subscribes to x, y",
        "clock: error at most 0 ms (the simulation); promised 5 ms and delays of 1 ms to 150",
        "BOUND VIOLATIONS, the order is not guaranteed: 1 accuracy",
        "last: the clock error of b exceeds the promised one by 0.002 s",
        "its clock with an error of at most 7 ms",
        "waits for the clock, 0.",
    ):
        assert words in text
    lines = exposition(status).decode().splitlines()
    prefix = "antecede_live_"
    for line in (
        f'{prefix}clock_bound_violations_total{{group_name="",kind="accuracy",member="a"}} 1.0',
        f'{prefix}clock_bound_violations_total{{group_name="",kind="late",member="a"}} 0.0',
        f'{prefix}inaccurate_clocks{{group_name="",member="a"}} 1.0',
        f'{prefix}clock_promised_seconds{{group_name="",member="a"}} 0.005',
    ):
        assert line in lines
    assert "bound_violations" not in exposition(flat_status()).decode()


def flat_status() -> Status:
    made = MemoryNetwork(1)
    made.add("a", Settings())
    made.start("a")
    return made.status("a")
