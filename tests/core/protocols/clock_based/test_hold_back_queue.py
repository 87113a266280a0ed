"""Indexed release: the same messages in the same order as by the definition."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antecede.core.clocks.bounds import Bounds
from antecede.core.protocols.base import Deliver, Effect, MessageId
from antecede.core.protocols.clock_based.base import ClockOrdered
from antecede.core.protocols.clock_based.hold_back_queue import HoldBackQueue, take_deliverable
from antecede.core.protocols.clock_based.linear import Linear
from antecede.core.protocols.clock_based.linear_physical import LinearPhysical
from antecede.core.protocols.clock_based.lower_bound_index import LowerBoundIndex
from antecede.core.protocols.clock_based.messages import Gone, NullMessage, StampedMessage
from antecede.core.protocols.clock_based.physical import Physical
from antecede.core.protocols.topics.protocols import Htbc, Tv, TvLt, TvPt, TvVt
from tests.core.protocols.seconds import s
from tests.core.protocols.topics.tools import GROUPS, TopicNetwork
from tests.helpers.network import Network

COARSE = Bounds[int](accuracy_s=0.5, least_s=0.2, most_s=1.5)
GOOD = Bounds[int](accuracy_s=0.1, least_s=0.3, most_s=1.5)
UNLIKE = Bounds[int](
    0.1, 0.3, 1.5, {0: 0.05, 2: 0.02}, {(0, 1): (0.5, 2), (2, 0): (0.4, 0.4), (1, 2): (0.3, 3)}
)


@pytest.mark.parametrize(("apart_ns", "kept"), [(None, 0), (5, 1)])
def test_without_physical_time_no_list_by_it_is_kept(apart_ns: int | None, kept: int) -> None:
    queue = HoldBackQueue(lambda a, b: False, apart_ns)
    for seq in range(1, 4):
        key = MessageId(0, seq)
        queue.add(key, key, (seq, 0, seq), seq)
        assert len(queue._by_time) == kept
        assert queue.release([key]) == [key]
        assert queue._by_time == []


def test_what_waited_behind_is_asked_anew_whether_it_may_go() -> None:
    first, second = MessageId(0, 1), MessageId(1, 1)
    queue = HoldBackQueue(lambda a, b: (a, b) == (first, second), None)
    queue.add(first, first, (1, *first), 0)
    queue.add(second, second, (2, *second), 0)
    assert queue.release([second]) == []
    assert queue.release([first], lambda key: key == first) == [first]
    assert queue.release([second], lambda key: key == first) == []
    assert queue.release([second]) == [second]


def readable(cls: type[Any]) -> type[Any]:
    """Return the class with the release by the definition."""

    class Readable(cls):  # type: ignore[misc]
        def _deliver(self, now: int) -> Any:
            if isinstance(self, ClockOrdered):
                return self._deliver_by_definition(now)
            free = take_deliverable(
                self.held,
                lambda waiting: now > self.due_ns(waiting),
                self._precedes,
                lambda waiting: self.relation.rank(waiting.timestamp),
            )
            return tuple(Deliver(waiting.message) for waiting in free)

    return Readable


class Pair:
    """Two members with the same inputs, whose outputs must be equal."""

    def __init__(self, make: Callable[[type[Any]], Any], cls: type[Any]) -> None:
        self.one, self.other = make(cls), make(readable(cls))

    def tell(self, call: Callable[[Any], Sequence[Effect]]) -> Sequence[Effect]:
        effects, expected = call(self.one), call(self.other)
        assert list(effects) == list(expected)
        assert self.one.snapshot() == self.other.snapshot()
        assert self.one.list_held() == self.other.list_held()
        if isinstance(self.one, ClockOrdered):
            channel = self.one.channel
            gaps = {member: channel.find_first_gap(member) for member in channel.newest}
            assert self.one.gapped == {member: gap for member, gap in gaps.items() if gap}
            if self.one.index is not None:
                for hidden in self.one.index.hidden.values():
                    assert self.one.held.keys() >= set(hidden)
        return effects

    def tick(self, now: int) -> None:
        self.tell(lambda member: member.tick(now))

    def receive(self, message: Any, now: int) -> None:
        self.tell(lambda member: member.receive(message, now=now))

    def leave(self, member: int, last: int) -> None:
        self.tell(lambda one: one.leave(member, last))


@pytest.mark.few(5)
@pytest.mark.parametrize("delivery", ["null", "bound"])
@pytest.mark.parametrize(
    ("cls", "bounds"),
    [
        *((Linear, bounds) for bounds in (COARSE, GOOD, UNLIKE)),
        *((LinearPhysical, bounds) for bounds in (COARSE, GOOD, UNLIKE)),
        (Physical, GOOD),
        (Physical, UNLIKE),
    ],
)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=15)
def test_any_messages_whatever_their_times(
    cls: type[ClockOrdered], bounds: Bounds[int], delivery: str, seed: int
) -> None:
    rng = random.Random(seed)
    members = 5
    pair = Pair(lambda c: c(0, range(members), bounds=bounds, delivery=delivery, retry_s=1.0), cls)
    sent = [0] * members
    under_way: list[Any] = []
    now = s(100)
    for _ in range(80):
        now += rng.choice((0, s(0.05), s(0.2)))
        sender = rng.randrange(1, members)
        draw = rng.random()
        lt, pt = (
            rng.randrange(12) * cls.carries_lt,
            now - rng.choice((0, s(0.2), s(0.4), s(1), -s(0.3))),
        )
        if draw < 0.5:
            sent[sender] += 1
            seq = sent[sender]
            under_way.append(StampedMessage(sender, seq, seq, seq - 1, lt, pt))
        elif draw < 0.6:
            under_way.append(NullMessage(sender, 0, b"", sent[sender], lt, pt))
        elif draw < 0.7:
            pair.tick(now)
        elif draw < 0.72 and sender in pair.one.channel.newest and pair.one.channel.high[sender]:
            gone = Gone(sender, 0, b"", pair.one.channel.high[sender])
            pair.receive(gone, now)
        elif under_way:
            message = under_way.pop(rng.randrange(min(4, len(under_way))))
            if message.sender not in pair.one.channel.last:
                pair.receive(message, now)
        if rng.random() < 0.02 and sender not in pair.one.channel.last:
            pair.leave(sender, sent[sender])
        if rng.random() < 0.05:
            for member in (pair.one, pair.other):
                member.restore(member.snapshot())
    pair.tick(now + s(50))


@pytest.mark.slow
@pytest.mark.parametrize("delivery", ["null", "bound"])
@pytest.mark.parametrize("cls", [Linear, LinearPhysical])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=10)
def test_whole_runs_with_loss_and_recovery(
    cls: type[ClockOrdered], delivery: str, seed: int
) -> None:
    options: Any = {"bounds": GOOD, "delivery": delivery, "retry_s": 1.0}
    options |= {"recovery_s": 30.0} if delivery == "bound" else {}
    orders = []
    kinds: tuple[Any, Any] = cls, readable(cls)
    for kind in kinds:
        network = Network(partial(kind, **options), 4, seed, GOOD, losses=0.1)
        network.steps(120, sends=0.25).run(60)
        orders.append(network.truth.delivered)
    assert orders[0] == orders[1]


@pytest.mark.few(2)
@pytest.mark.parametrize("cls", [Tv, TvLt, TvPt, Htbc, TvVt])
@pytest.mark.parametrize("group", GROUPS)
@given(seed=st.integers(0, 2**32), published=st.booleans())
@settings(max_examples=8)
def test_topics_over_random_runs(cls: Any, group: str, seed: int, published: bool) -> None:
    orders = []
    published &= cls is not Tv  # of which nothing is printed otherwise
    for kind in (cls, readable(cls)):
        network = TopicNetwork(kind, seed, GROUPS[group], as_published=published)
        for _ in range(12):
            network.steps(12, sends=0.2)
            if network.random.random() < 0.3:
                network.change()
        orders.append(network.run(30).truth.delivered)
    assert orders[0] == orders[1]


@pytest.mark.parametrize("step", [0, 1])
def test_what_has_gone_is_forgotten_although_one_of_its_times_never_comes_up(step: int) -> None:
    index = LowerBoundIndex([(1, 0, 0)])
    for number in range(1, 1000):
        index.add(MessageId(1, number), number * (1 - step) + step, number * step)
        index.raise_bound(1, number * (1 - step), (number + 1) * step)
        assert index.take_clear() == [MessageId(1, number)]
    assert len(index._limits) + len(index._far) < 200


@pytest.mark.parametrize("step", [0, 1])
def test_what_waits_on_is_not_forgotten_with_what_has_gone(step: int) -> None:
    index = LowerBoundIndex([(1, 0, 0)])
    waiting = MessageId(2, 1)
    index.add(waiting, 5000, 5000)
    for number in range(1, 1000):
        index.add(MessageId(1, number), number * (1 - step) + step, number * step)
        index.raise_bound(1, number * (1 - step), (number + 1) * step)
        assert index.take_clear() == [MessageId(1, number)]
    index.raise_bound(1, 5000 if step else 999, 1000 if step else 5001)
    assert index.take_clear() == [waiting]


def test_what_has_gone_leaves_nothing_by_its_linear_time() -> None:
    index = LowerBoundIndex([(1, 0, 0)])
    for number in range(1, 200):
        index.add(MessageId(1, number), number, 0)
        index.raise_bound(1, number, 0)
        assert index.take_clear() == [MessageId(1, number)]
        assert index._near == {}
    assert index._far == []


def test_a_message_that_waits_is_filed_once_however_often_it_is_asked_for() -> None:
    index = LowerBoundIndex([(1, 5, 0), (2, 0, 1)])
    index.add(MessageId(3, 1), 3, 10)
    for _ in range(50):
        assert index.take_clear() == []
        assert [len(heap) for heap in index._near.values()] == [1]
        assert index._far == []


def test_a_floor_has_one_place_among_the_lowest_however_often_it_rises() -> None:
    index = LowerBoundIndex([(1, 0, 0), (2, 0, 0)])
    for number in range(1, 500):
        index.raise_bound(1, number, number)
        index.take_clear()
        assert len(index._lowest) == 2


def test_floors_that_rise_behind_one_that_does_not_are_not_all_remembered() -> None:
    index = LowerBoundIndex([(1, 9, 10), (2, 5, 20), (3, 5, 11)])
    index.add(MessageId(4, 1), 6, 50)
    for pt_ns in range(21, 2000):
        index.raise_bound(2, 5, pt_ns)
        assert index.take_clear() == []
    assert sum(map(len, index._bounds_by_lt.values())) < 100
    index.raise_bound(3, 5, 51)
    index.raise_bound(1, 9, 51)
    assert index.take_clear() == [MessageId(4, 1)]


def test_what_goes_by_its_physical_time_is_gone_by_its_linear_time_too() -> None:
    index = LowerBoundIndex([(1, 5, 0), (2, 0, 1)])
    for seq, limit_ns in enumerate((2, 3, 10, 11), start=1):
        index.add(MessageId(3, seq), 3, limit_ns)
    assert index.take_clear() == []
    index.raise_bound(2, 0, 6)
    index.raise_bound(1, 5, 5)
    assert index.take_clear() == [MessageId(3, 1), MessageId(3, 2)]
    index.raise_bound(2, 0, 11)
    assert index.take_clear() == [MessageId(3, 3)]
    index.raise_bound(2, 0, 12)
    assert index.take_clear() == [MessageId(3, 4)]
    assert index.take_clear() == []


def test_a_floor_counts_at_a_linear_time_that_another_one_has_left() -> None:
    index = LowerBoundIndex([(1, 9, 0), (2, 3, 5), (3, 2, 6)])
    index.add(MessageId(4, 1), 6, 50)
    assert index.take_clear() == []
    index.raise_bound(2, 7, 5)
    assert index.take_clear() == []
    index.raise_bound(3, 3, 6)
    assert index.take_clear() == []
    index.raise_bound(3, 3, 51)
    assert index.take_clear() == [MessageId(4, 1)]
