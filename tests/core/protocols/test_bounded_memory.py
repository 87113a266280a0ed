"""Bounds of state that members keep, and reports of forgotten state."""

from __future__ import annotations

from typing import Any

import pytest

from antecede.core.clocks.bounds import Bounds
from antecede.core.clocks.intervals import nodes
from antecede.core.protocols.base import CLOSED_GAP, DUPLICATE, Deliver, Discard, Hold
from antecede.core.protocols.clock_based.channel import DEFAULT_KEEP
from antecede.core.protocols.clock_based.linear import Linear
from antecede.core.protocols.clock_based.messages import Gone, RetransmissionRequest
from antecede.core.protocols.matrix.matrix import Matrix
from antecede.core.protocols.serialization.schema import misfit
from antecede.core.protocols.serialization.states import STATES
from antecede.core.protocols.topics.messages import TopicMessage
from antecede.core.protocols.topics.protocols import Tv
from antecede.core.protocols.topics.subscriptions import Subscriptions
from antecede.errors import LocalError
from tests.core.protocols.seconds import s

BOUNDS: Bounds[int] = Bounds(accuracy_s=0, least_s=1, most_s=3)
TOPICS: Any = Subscriptions(dict.fromkeys(range(3), ("x",)))


def reader(**options: Any) -> Tv:
    return Tv(1, range(3), subscriptions=TOPICS, bounds=BOUNDS, **options)


def event(seq: int, topic: str = "x") -> TopicMessage:
    return TopicMessage(0, seq, b"", (topic,), ((topic, seq),))


def take(one: Tv, *numbers: int) -> None:
    for seq in numbers:
        first, *_ = one.receive(event(seq), now=s(seq))
        assert isinstance(first, Hold)


def test_the_filter_of_duplicates_forgets_its_oldest_gaps() -> None:
    one = reader(max_gaps=4)
    take(one, 2, 4, 6, 8)
    assert one.arrived[0] == [2, 3, 4, 5, 6, 7, 8, 9]  # four gaps: 1, 3, 5, 7
    take(one, 10)
    assert one.arrived[0] == [1, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    take(one, 12)
    assert one.arrived[0] == [1, 5, 6, 7, 8, 9, 10, 11, 12, 13]
    late = event(3)
    assert one.receive(late, now=s(13)) == (Discard(late, CLOSED_GAP),)
    assert one.receive(event(6), now=s(13)) == (Discard(event(6), DUPLICATE),)
    take(one, 5)  # a gap that is remembered
    assert one.receive(event(5), now=s(13)) == (Discard(event(5), DUPLICATE),)


def test_what_comes_too_late_still_counts_for_the_times() -> None:
    one = reader(max_gaps=1)
    take(one, 2, 4)
    late = event(1, "y")
    assert one.receive(late, now=s(5)) == (Discard(late, CLOSED_GAP),)
    assert one.tv == {"x": 4, "y": 1}


def test_a_gap_that_is_closed_is_remembered_by_a_snapshot() -> None:
    one, fresh = reader(max_gaps=2), reader(max_gaps=2)
    take(one, 1, 3)
    plain: Any = one.snapshot()
    assert misfit(plain, STATES["TopicState"]) == ""
    take(one, 5, 7)
    state: Any = one.snapshot()
    assert misfit(state, STATES["TopicState"]) == ""
    fresh.restore(state)
    assert fresh.snapshot() == state
    assert fresh.receive(event(2), now=s(8)) == (Discard(event(2), CLOSED_GAP),)
    fresh.restore(plain)
    take(fresh, 2)


@pytest.mark.parametrize("most", [1, 2, 16, 17, 100])
def test_the_filter_never_has_more_gaps(most: int) -> None:
    one = reader(max_gaps=most)
    delivered = 0
    for seq in range(3, 5 * most + 40, 2):
        effects = one.receive(event(seq), now=s(10 * seq))
        delivered += sum(isinstance(effect, Deliver) for effect in effects)
        assert nodes(one.arrived[0]) <= most + 1
        assert one.storage_bytes() <= 4 + 8 * (most + 1)
    assert delivered > most  # order goes on


def test_the_limit_of_gaps_is_a_number_and_changes_the_promise() -> None:
    for value in (0, -1, 1.5, True):
        with pytest.raises(LocalError, match="max_gaps"):
            reader(max_gaps=value)
    assert reader().guarantee.live
    assert reader(max_gaps=None).guarantee.live
    assert not reader(max_gaps=5).guarantee.live


@pytest.mark.slow
def test_a_member_keeps_so_many_of_its_messages_and_says_what_it_keeps_no_longer() -> None:
    one = Linear(0, range(3), retry_s=1.0)
    for _ in range(DEFAULT_KEEP + 2):
        one.send(b"", now=0)
    assert len(one.channel.kept) == DEFAULT_KEEP
    gone, first = one.receive(RetransmissionRequest(1, 0, b"", 1, 3), now=0)
    assert isinstance(gone.message, Gone)
    assert gone.message.last == 2
    assert first.message.seq == 3


def test_the_promise_names_what_is_kept() -> None:
    promise = Linear(0, range(3), retry_s=1.0).guarantee
    assert (promise.safe, promise.survives_loss) == (True, True)
    assert (
        promise.remark
        == f"unless a message is missing that {DEFAULT_KEEP} newer ones have followed (keep)"
    )
    assert Linear(0, range(3), retry_s=1.0, keep=None).guarantee.remark == ""
    assert not Linear(0, range(3), retry_s=1.0, keep=DEFAULT_KEEP - 1).guarantee.safe
    assert Linear(0, range(3)).guarantee.remark == ""


def test_memory_counts_what_is_held_and_kept_and_storage_does_not() -> None:
    one, other = (Linear(k, range(3), retry_s=1.0, heartbeat_s=None) for k in range(2))
    (effect,) = one.send(b"12345", now=0)
    assert one.memory_bytes() == one.storage_bytes() + 8 + 5
    empty = other.storage_bytes()
    second = one.send(b"678", now=0)[0].message
    other.receive(second, now=0)
    assert other.storage_bytes() == empty
    assert other.memory_bytes() == empty + 8 + 3
    take(subscriber := reader(), 1)
    assert subscriber.memory_bytes() == subscriber.storage_bytes() + 4
    assert effect.message.payload == b"12345"


def test_the_buffer_of_matrix_is_counted_as_kept() -> None:
    one = Matrix(0, range(3))
    (effect,) = one.send(b"12345", now=0)
    message = effect.message
    assert list(one.list_kept_messages()) == [message]
    assert one.memory_bytes() == one.storage_bytes() + one.control_bytes(message) + 5
