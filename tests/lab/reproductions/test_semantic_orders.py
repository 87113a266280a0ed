"""S_b, causal and total order over the same arrivals, held against the protocols themselves."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from antecede.core.protocols.base import Deliver, MessageId, Transmit
from antecede.core.protocols.reply.sb import SemanticOrder
from antecede.core.protocols.vector.bss import Bss
from antecede.lab.reproductions.semantic import orders as semantic_orders
from antecede.lab.reproductions.semantic.metrics import compute_metrics
from antecede.lab.reproductions.semantic.orders import (
    OrderSimulation,
    Outcome,
    choose_observers,
    compute_orders,
)
from antecede.lab.reproductions.semantic.workload import MessageLoad, make_thread_load
from antecede.lab.simulate.config.model import Links, SimulationConfig, Workload
from antecede.lab.simulate.delays import Delay
from antecede.lab.simulate.network import Network
from antecede.lab.simulate.outputs.recording import ARRIVED, DELIVERED
from antecede.lab.simulate.random_streams import Ints
from antecede.lab.simulate.reference_engine import run_readable
from antecede.lab.simulate.run import simulate
from antecede.lab.simulate.topology import Mesh

WIDE = Delay(0.0, 0.3, "uniform")


def drawn(
    members: int = 6,
    rate_hz: float = 4.0,
    reply_fraction: float = 0.7,
    recent: int = 3,
    delay: Delay = WIDE,
    duration_s: float = 20.0,
    protocol: str = "bss",
) -> SimulationConfig:
    return SimulationConfig(
        Mesh(members),
        protocol,
        links=Links(delay),
        workload=Workload("poisson", rate_hz=rate_hz, reply_fraction=reply_fraction, recent=recent),
        duration_s=duration_s,
    )


def outcome(scenario: SimulationConfig, seed: int = 1) -> Outcome:
    return compute_orders(make_thread_load(scenario, seed), Network(scenario, seed), seed)


def network(members: int, delay: Delay = WIDE, seed: int = 1) -> Network:
    return Network(drawn(members, delay=delay), seed)


class Given(OrderSimulation):
    """Arrivals by hand: message -> when each member has it."""

    def __init__(self, load: MessageLoad, table: Sequence[Sequence[int]]) -> None:
        members = len(table[0])
        super().__init__(load, network(members), choose_observers(members, 1), 0)
        self.given = table

    def draw_arrivals(self, number: int, me: int, now: int) -> Ints:
        found = np.array(self.given[number])
        assert found[me] == now
        return found


def by_hand(
    senders: Sequence[int],
    parents: Sequence[Sequence[int]],
    table: Sequence[Sequence[int]],
    due: Sequence[int] | None = None,
) -> Outcome:
    times = [row[me] for row, me in zip(table, senders, strict=True)] if due is None else due
    load = MessageLoad(np.array(times), np.array(senders), parents)
    return Given(load, table).run()


def test_waits_by_hand() -> None:
    """Bhavanasi and Iyer, figure 1: Y2 is sent after X2 arrived and does not answer it; Y1 answers
    X1.
    """
    # Members P, Q, R. P sends 0 at 10 us, Q (who has it at 20) answers with 1 at 30; R has 1 at 40
    # and 0 at 100. Q sends 2, unrelated, at 50, which R has at 60. P sends 3 at 55, before 1 came
    # at 70 and 2 at 80: R has it at 65.
    found = by_hand(
        [0, 1, 1, 0], [(), (0,), (), ()], [[10, 20, 100], [70, 30, 40], [80, 50, 60], [55, 300, 65]]
    )
    assert found.delivered_us["sb"][:, 2].tolist() == [100, 100, 60, 65]
    assert found.delivered_us["causal"][:, 2].tolist() == [100, 100, 100, 100]  # 3: after 0, P's
    assert found.delivered_us["total"][:, 2].tolist() == [100, 100, 100, 100]
    assert found.delivered_us["causal"][:, 1].tolist() == [20, 30, 50, 300]
    assert found.past.tolist() == [0, 1, 2, 1]
    assert found.immediate.tolist() == [0, 1, 0, 0]  # a sender's own is never carried
    waits = {order: some.tolist() for order, some in found.waits.items()}
    assert waits == {"sb": [60], "causal": [35, 40, 60], "total": [35, 40, 60]}
    assert found.copies == 8
    assert found.longer == {"causal": 2, "total": 2}


def test_total_order_waits_where_causal_order_does_not() -> None:
    found = by_hand([0, 1], [(), ()], [[10, 90, 80], [40, 20, 30]])
    assert found.delivered_us["causal"][1].tolist() == [40, 20, 30]
    assert found.delivered_us["total"][1].tolist() == [40, 20, 80]


def test_a_reply_leaves_when_what_it_answers_is_there() -> None:
    # 1 is due at 15 and its author has 0 at 30; 2 answers 1 and is due at 16, before 1 is sent.
    found = by_hand(
        [0, 1, 2], [(), (0,), (1,)], [[10, 30, 20], [50, 31, 40], [90, 90, 41]], due=[10, 15, 16]
    )
    assert found.sent_us.tolist() == [10, 31, 41]
    assert found.number.tolist() == [0, 1, 2]
    assert found.parents == [(), (0,), (1,)]


def test_a_reply_to_oneself_does_not_leave_before_it() -> None:
    # 1 is due at 15 and leaves at 31; its author answers it at 16, and so just behind it.
    found = by_hand(
        [0, 1, 1], [(), (0,), (1,)], [[10, 30, 20], [50, 31, 40], [45, 31, 90]], due=[10, 15, 16]
    )
    assert found.sent_us.tolist() == [10, 31, 31]
    assert found.delivered_us["sb"][2].tolist() == [50, 31, 90]
    assert found.past.tolist() == [0, 1, 2]


CASES: list[dict[str, Any]] = [
    {},
    {"reply_fraction": 0.0},
    {"reply_fraction": 1.0, "recent": 1},
    {"rate_hz": 0.3, "duration_s": 300.0},
    {"rate_hz": 30.0, "duration_s": 3.0},
    {"members": 2, "recent": 1, "reply_fraction": 1.0},
    {"delay": Delay(0.001, 2.0, "lognormal")},
]


@pytest.mark.parametrize("case", CASES)
def test_no_copy_waits_longer_under_sb_than_causal_nor_causal_than_total(
    case: dict[str, Any],
) -> None:
    """Bhavanasi and Iyer, abstract: the delivery delay is less than under causal and total
    order.
    """
    found = outcome(drawn(**case))
    sb, causal, total = (found.delivered_us[order] for order in ("sb", "causal", "total"))
    assert (found.arrived_us <= sb).all()
    assert (sb <= causal).all()
    assert (causal <= total).all()
    # Of two members the other one's messages are all there is, and causal order keeps theirs.
    assert (causal < total).any() == (len(found.observers) > 2)


def test_what_answers_nothing_never_waits() -> None:
    """Bhavanasi and Iyer, abstract: a message is not blocked by one that it is unrelated to."""
    found = outcome(drawn(reply_fraction=0.0))
    assert len(found.waits["sb"]) == 0
    assert len(found.waits["causal"]) > 500


@pytest.mark.few(7)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("protocol", ["sb", "causal"])
def test_the_protocols_deliver_at_these_times(protocol: str, case: dict[str, Any]) -> None:
    found = outcome(drawn(**case))
    members = len(found.observers)
    made: list[Any] = [
        (SemanticOrder if protocol == "sb" else Bss)(me, range(members)) for me in range(members)
    ]
    events: list[tuple[int, int, int, int, Any]] = [
        (int(time), 0, at, int(found.sender[at]), None) for at, time in enumerate(found.sent_us)
    ]
    heapq.heapify(events)
    delivered = found.sent_us[:, None] * np.ones(members, dtype=np.int64)
    names: list[MessageId] = []
    while events:
        now, kind, at, member, message = heapq.heappop(events)
        if kind == 0:
            answers = [names[parent] for parent in found.parents[at]] if protocol == "sb" else []
            (sent,) = made[member].send(at, after=answers) if answers else made[member].send(at)
            assert isinstance(sent, Transmit)
            names.append(MessageId(member, sent.message.seq))
            for to in sent.to:
                heapq.heappush(events, (int(found.arrived_us[at, to]), 1, at, to, sent.message))
            continue
        for effect in made[member].receive(message):
            if isinstance(effect, Deliver):
                delivered[effect.message.payload, member] = now
    assert np.array_equal(delivered, found.delivered_us[protocol])


@pytest.mark.few(3)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("protocol", ["bss", "idr", "sent"])
def test_the_simulator_says_the_same_of_causal_order(protocol: str, case: dict[str, Any]) -> None:
    scenario = drawn(protocol=protocol, **case)
    found = outcome(scenario)
    _, run = run_readable(scenario, 1, record=True)
    place = {int(number): at for at, number in enumerate(found.number)}
    assert sorted(place) == list(range(len(run.sender)))
    order = found.number.tolist()
    assert found.sender.tolist() == [run.sender[number] for number in order]
    assert found.sent_us.tolist() == [run.sent_us[number] for number in order]
    for at, parents in enumerate(found.parents):
        answered = tuple(place[parent] for parent in run.parents[order[at]])
        assert answered == parents or _handed_over_at_once(found, at)
    for kind, times in ((ARRIVED, found.arrived_us), (DELIVERED, found.delivered_us["causal"])):
        happened = {
            (place[event.message], event.member): event.time_us
            for event in run.events()
            if event.kind == kind
        }
        assert happened == {
            (at, member): int(times[at, member])
            for at in range(len(order))
            for member in range(len(found.observers))
            if member != found.sender[at]
        }


def _handed_over_at_once(found: Outcome, at: int) -> bool:
    """Tell whether the sender of a message had got two others in the same microsecond."""
    me, now = found.sender[at], found.sent_us[at]
    got = found.delivered_us["causal"][:at, me][found.sender[:at] != me]
    moments = got[got < now].tolist()
    return len(set(moments)) < len(moments)


@pytest.mark.few(1)
@pytest.mark.parametrize("case", CASES)
def test_what_is_before_follows_from_what_was_delivered(case: dict[str, Any]) -> None:
    found = outcome(drawn(**case))
    causal, sb = found.delivered_us["causal"], found.delivered_us["sb"]
    pasts: list[set[int]] = []
    early = 0
    for at, (me, now) in enumerate(zip(found.sender, found.sent_us, strict=True)):
        mine = {m for m in range(at) if found.sender[m] == me}
        past = mine | {m for m in range(at) if causal[m, me] < now}
        covered = set().union(*(pasts[m] for m in past)) if past else set()
        assert found.past[at] == len(past)
        assert found.immediate[at] == len(past - covered - mine)
        assert set(found.parents[at]) <= past - mine
        pasts.append(past)
        before = np.array(sorted(past), dtype=np.int64)
        early += int((sb[before].max(axis=0, initial=0) > sb[at]).sum())
    assert early == found.longer["causal"]
    assert np.array_equal(np.maximum.accumulate(found.arrived_us), _unsent(found))


def _unsent(found: Outcome) -> Ints:
    """Return total order's deliveries with the senders' own as late as the others'."""
    total = found.delivered_us["total"].copy()
    own = np.arange(len(total)), found.sender
    total[own] = np.maximum.accumulate(found.arrived_us)[own]
    return total


def test_a_small_window_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = drawn(rate_hz=1.0, duration_s=100.0)
    usual = outcome(scenario)
    window = semantic_orders._Window

    class Small(window):  # type: ignore[misc,valid-type]
        def __init__(self, size: int) -> None:
            super().__init__(size)
            self.room = 2

    monkeypatch.setattr(semantic_orders, "_Window", Small)
    found = outcome(scenario)
    for name in ("sb", "causal", "total"):
        assert np.array_equal(found.delivered_us[name], usual.delivered_us[name])
    assert found.parents == usual.parents
    assert np.array_equal(found.immediate, usual.immediate)


def test_waits_and_bytes_are_those_of_the_simulator() -> None:
    scenario = drawn(members=8, delay=Delay(0.05, 0.25))
    found = compute_metrics(outcome(scenario), Network(scenario, 1))
    bss = simulate(scenario, 1, "reference").figures
    for name in ("mean", "p50", "p99", "max"):
        assert found[f"causal.wait_ms.{name}"] == pytest.approx(bss[f"wait_ms.{name}"], abs=1e-9)
    assert found["bss.bytes"] == bss["peer.control_bytes"]
    idr = simulate(drawn(members=8, delay=Delay(0.05, 0.25), protocol="idr"), 1, "reference")
    assert found["idr.bytes"] == pytest.approx(idr.figures["peer.control_bytes"], abs=1e-9)
    sb = simulate(drawn(members=8, delay=Delay(0.05, 0.25), protocol="sb"), 1, "reference").figures
    assert found["sb.bytes"] == sb["peer.control_bytes"] == 16


def test_forty_members_are_watched_by_thirty_two() -> None:
    scenario = drawn(members=40, rate_hz=1.0, duration_s=3.0)
    found = outcome(scenario)
    assert len(found.observers) == 32
    assert found.delivered_us["sb"].shape == (len(found.sent_us), 32)
    assert found.copies == 39 * len(found.sent_us)
    watched = (found.delivered_us["total"] > found.arrived_us).sum()
    assert len(found.waits["total"]) > watched


def test_waits_count_from_the_warm_up_on() -> None:
    scenario = drawn()
    late = compute_orders(
        make_thread_load(scenario, 1), Network(scenario, 1), 1, warm_us=10_000_000
    )
    counted = int((late.sent_us >= 10_000_000).sum())
    assert 0 < counted < len(late.sent_us)
    assert late.copies == 5 * counted
    there = late.sent_us >= 10_000_000
    waits = (late.delivered_us["causal"] - late.arrived_us)[there]
    assert np.array_equal(late.waits["causal"], np.sort(waits[waits > 0]))


def test_a_sequencer_by_hand() -> None:
    # 1 answers 0 and reaches member 0 at 50, before 0 does at 60.
    found = by_hand([1, 2], [(), (0,)], [[60, 10, 20], [50, 55, 30]])
    figures = compute_metrics(found, network(3, Delay(0.001, 0.001, "constant")))
    assert figures["sequencer.inverted"] == 1.0
    # Numbers leave at 50 and 60 us and travel 1 ms; at member 0 they are at once. Waits: of 0 at
    # 0: 0, at 2: 1060 - 20; of 1 at 0: 0, at 1: 1050 - 55.
    waits = sorted([0, 1040, 0, 995])
    assert figures["sequencer.wait_ms.max"] == waits[-1] / 1000
    assert figures["sequencer.wait_ms.mean"] == sum(waits) / 4 / 1000
    assert figures["sequencer.waited"] == 0.5


def test_pairs_and_messages_held_by_hand() -> None:
    found = by_hand(
        [0, 1, 1, 0], [(), (0,), (), ()], [[10, 20, 100], [70, 30, 40], [80, 50, 60], [55, 300, 65]]
    )
    figures = compute_metrics(found, network(3))
    assert (figures["pairs"], figures["pairs.causal"], figures["pairs.replies"]) == (6, 4, 1)
    assert (figures["sb.held_max"], figures["causal.held_max"]) == (1, 3)
    assert figures["causal.held"] == pytest.approx((35 + 40 + 60) / 3 / 55)
    assert figures["causal.waited"] == 3 / 8
    assert figures["causal.longer"] == 2 / 8


def test_replies_to_several_wait_for_all() -> None:
    found = by_hand([0, 0, 1], [(), (), (0, 1)], [[10, 20, 90], [12, 22, 80], [99, 40, 50]])
    assert found.delivered_us["sb"][2, 2] == 90
    assert compute_metrics(found, network(3))["sb.bytes"] == (16 + 16 + 24) / 3
